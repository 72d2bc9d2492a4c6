// Package shell reads a command line without running it: which simple commands
// it has, which of its paths matter, and whether anything in it can only be
// known by running it. Permissions of the bash tool stand on it (design §10).
//
// The reading errs on one side only: what it cannot tell for sure it reports as
// opaque, so that a person is asked. It is no sandbox: a program that was
// allowed may do whatever it likes.
package shell

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// Reading is what a text would do, as far as that can be told.
type Reading struct {
	// Commands are the simple commands, each once, in the order of the text. There
	// is at least one: where none can be told apart it is the whole text.
	Commands []Command
	// Opaque says in short phrases what cannot be told before it runs; empty
	// when all of it can.
	Opaque []string
	// Veto are further readings of the same commands, such as what "sudo" would
	// run. A rule that denies one of them denies the text; one that allows it
	// means nothing.
	Veto []string
	// Paths are what commands like rm and the redirections name.
	Paths []Path
}

// Command is one simple command.
type Command struct {
	// Text are its words without quotes and escapes, joined by one space, without
	// leading assignments. Words that hold a variable stand as written.
	Text string
	// Plain says that the text tells all of it.
	Plain bool
}

// Path is a path that a command or a redirection names.
type Path struct {
	// Name is absolute, or begins with "~" where the shell would put a home
	// directory. It is not cleaned: "a/../b" is another file than "b" when a is a
	// symbolic link.
	Name string
	// Dir says that the directory itself is meant, not an entry of one.
	Dir bool
}

const (
	maxDepth  = 3  // of commands that are arguments of commands
	maxVeto   = 64 // further readings of one text
	maxPlaces = 8  // directories that a cd may have led to
	maxLevel  = 32 // of lists inside lists

	maxNesting = 200 // of parentheses
)

var (
	errNested        = errors.New("nested too deeply")
	continuedComment = regexp.MustCompile(`#[^\n]*\\\n`)
)

// Read reads text as it would run in the absolute directory dir. Bash and POSIX
// shells take some texts differently; which one will run it is not known here,
// so both readings count.
func Read(text, dir string) Reading {
	r := &reader{}
	r.text(text, place{dir})
	if len(r.out.Commands) == 0 {
		r.out.Commands = []Command{{Text: strings.TrimSpace(text), Plain: true}}
	}
	if len(r.out.Opaque) > 0 {
		return r.out
	}
	if invisible(text) {
		r.hide("characters that cannot be seen")
	}
	return r.out
}

// reader collects one Reading.
type reader struct {
	out    Reading
	hidden int // how often hide was called
	depth  int // of texts that are arguments
	level  int // of lists inside lists
}

// text reads a text of its own: the one given, or one that is an argument.
func (r *reader) text(text string, at place) {
	bash, bashErr := parse(text, syntax.LangBash)
	posix, posixErr := parse(text, syntax.LangPOSIX)
	if continuedComment.MatchString(text) {
		// The parser takes the next line for a part of this one; shells do not.
		r.hide("a comment that ends with a backslash")
		r.pieces(text)
	}
	switch {
	case bashErr != nil && posixErr != nil:
		r.hide("text that cannot be read as shell")
		r.pieces(text)
		return
	case bashErr != nil || posixErr != nil:
		r.hide("syntax that not every shell has")
	}
	for _, f := range []*syntax.File{bash, posix} {
		if f != nil {
			r.list(f.Stmts, at)
		}
	}
}

// pieces notes everything that could be a command of a text that does not
// parse.
func (r *reader) pieces(text string) {
	r.veto(strings.TrimSpace(text))
	for part := range strings.FieldsFuncSeq(text, separator) {
		r.veto(strings.TrimSpace(part))
	}
}

func parse(text string, lang syntax.LangVariant) (*syntax.File, error) {
	if nesting(text) > maxNesting {
		return nil, errNested
	}
	f, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, err
	}
	return f, nil
}

// nesting estimates how deep parentheses go: parsing what is very deep takes
// long.
func nesting(text string) int {
	deepest, depth := 0, 0
	for _, c := range text {
		switch c {
		case '(':
			depth++
			deepest = max(deepest, depth)
		case ')':
			depth = max(depth-1, 0)
		}
	}
	return deepest
}

// separator reports the characters at which commands could begin in a text
// that does not parse.
func separator(c rune) bool { return strings.ContainsRune(";&|\n(){}`", c) }

func (r *reader) hide(reason string) {
	r.hidden++
	if !slices.Contains(r.out.Opaque, reason) {
		r.out.Opaque = append(r.out.Opaque, reason)
	}
}

func (r *reader) veto(text string) {
	if text != "" && len(r.out.Veto) < maxVeto && !slices.Contains(r.out.Veto, text) {
		r.out.Veto = append(r.out.Veto, text)
	}
}

func (r *reader) command(text string, plain bool) {
	for i, c := range r.out.Commands {
		if c.Text == text {
			r.out.Commands[i].Plain = c.Plain && plain
			return
		}
	}
	r.out.Commands = append(r.out.Commands, Command{Text: text, Plain: plain})
}

func (r *reader) path(name string, dir bool) {
	p := Path{Name: name, Dir: dir}
	if !slices.Contains(r.out.Paths, p) {
		r.out.Paths = append(r.out.Paths, p)
	}
}

// invisible reports characters that would make the text look like another one
// to the person who is asked.
func invisible(text string) bool {
	for _, c := range text {
		switch {
		case c == '\n' || c == '\t' || c == ' ':
		case unicode.IsControl(c), unicode.Is(unicode.Cf, c), unicode.IsSpace(c), c == unicode.ReplacementChar:
			return true
		}
	}
	return false
}
