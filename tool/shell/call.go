package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

var (
	escaped   = regexp.MustCompile(`(?s)\\.`)
	safeFlags = regexp.MustCompile(`^[-+][euxvf]*o?$`)
	localName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	lcName    = regexp.MustCompile(`^LC_[A-Z]+$`)
)

// call reads a simple command.
func (r *reader) call(c *syntax.CallExpr, at place) (ok, failed place) {
	for _, a := range c.Assigns {
		r.assign(a, len(c.Args) > 0, at)
	}
	if len(c.Args) == 0 {
		return at, at
	}
	words := make([]word, len(c.Args))
	texts := make([]string, len(c.Args))
	before := r.hidden
	for i, a := range c.Args {
		words[i] = r.word(a, at)
		texts[i] = words[i].text
	}
	r.judge(words)
	if reason := hides(words); reason != "" {
		r.hide(reason + path.Base(words[0].text))
		r.unwrap(words, at)
	}
	r.command(strings.Join(texts, " "), r.hidden == before)
	if strings.Contains(texts[0], "/") && words[0].literal {
		r.veto(strings.Join(append([]string{path.Base(texts[0])}, texts[1:]...), " "))
	}
	if words[0].text == "cd" {
		return r.cd(words[1:], at)
	}
	r.operands(words, at)
	return at, at
}

// judge looks at the words of a command: its name must be known, and so must
// what it is told to do.
func (r *reader) judge(words []word) {
	name := words[0]
	if !name.literal || name.glob && !prints[name.text] || name.tilde || name.text == "" || strings.ContainsAny(name.text, " \t\n=") {
		r.hide("a command whose name is only known when it runs")
		return
	}
	harmless := prints[name.text] && !slices.ContainsFunc(words, func(w word) bool { return evaluates[w.text] })
	for _, w := range words[1:] {
		switch {
		case !w.literal && !harmless && !numeric[w.text]:
			r.hide("a variable in an argument")
		case builtins[name.text] && w.evaluable():
			r.hide("text that a shell may run later")
		}
	}
}

const (
	runsAnother = "a command that runs another: "
	changesMind = "a command that changes what others mean: "
)

// hides tells why a command is not all that runs, or changes what later ones
// mean; "" when neither.
func hides(words []word) string {
	name, args := path.Base(words[0].text), words[1:]
	if changers[name] || name == "set" && len(options(args)) < len(args) ||
		declares[name] && len(declarations(args)) < len(args) ||
		name == "printf" && len(args) > 0 && args[0].text == "-v" {
		return changesMind
	}
	if runners[name] || shells[name] && !script(args) || acts(actions[name], args) {
		return runsAnother
	}
	if name == "command" && !(len(args) > 0 && (args[0].text == "-v" || args[0].text == "-V")) {
		return runsAnother
	}
	return ""
}

// script reports whether a shell's first argument is a file to run, which then
// stands in the command's text.
func script(args []word) bool {
	return len(args) > 0 && args[0].literal && args[0].text != "" && !strings.ContainsAny(args[0].text[:1], "-+")
}

func acts(flags []string, args []word) bool {
	return slices.ContainsFunc(args, func(w word) bool {
		flag, _, _ := strings.Cut(w.text, "=")
		return slices.Contains(flags, flag)
	})
}

// options gives the words that only switch harmless options of the shell.
func options(words []word) []word {
	return slices.DeleteFunc(slices.Clone(words), func(w word) bool {
		return !safeFlags.MatchString(w.text) && !shellOptions[w.text]
	})
}

// declarations gives the words that only set harmless variables.
func declarations(words []word) []word {
	return slices.DeleteFunc(slices.Clone(words), func(w word) bool {
		name, _, _ := strings.Cut(w.text, "=")
		return w.evaluable() || !safeVariable(name)
	})
}

// unwrap reads what a command that hides another may run, for rules that deny
// it. Which of its arguments are its own options is not worth knowing: every
// tail of them counts.
func (r *reader) unwrap(words []word, at place) {
	if r.depth == maxDepth {
		return
	}
	r.depth++
	defer func() { r.depth-- }()
	texts := make([]string, 0, len(words))
	for _, w := range words[1:] {
		texts = append(texts, w.text)
	}
	for i, t := range texts[:min(len(texts), maxVeto)] {
		r.veto(strings.Join(texts[i:], " "))
		if strings.Contains(t, "/") {
			r.veto(strings.Join(append([]string{path.Base(t)}, texts[i+1:]...), " "))
		}
		r.operands(words[i+1:], at)
	}
	name := path.Base(words[0].text)
	if name == "eval" {
		r.nested(strings.Join(texts, " "), at)
	}
	for i := 1; shells[name] && i < len(words); i++ {
		r.nested(words[i].text, at)
	}
}

// nested reads a text that is an argument; its commands only count for denies.
func (r *reader) nested(text string, at place) {
	inner := &reader{depth: r.depth}
	inner.text(text, at)
	for _, c := range inner.out.Commands {
		r.veto(c.Text)
	}
	for _, v := range inner.out.Veto {
		r.veto(v)
	}
	for _, p := range inner.out.Paths {
		r.path(p.Name, p.Dir)
	}
}

// assign judges an assignment: of the shell itself, or of one command's
// environment, where nearly every name can change what a program does.
func (r *reader) assign(a *syntax.Assign, exported bool, at place) {
	if a.Append || a.Index != nil || a.Array != nil || a.Name == nil {
		r.hide("an assignment that can change what commands mean")
		r.substitutions(a, at)
		return
	}
	r.variable(a.Name.Value, exported)
	r.value(a.Value, at)
}

func (r *reader) variable(name string, exported bool) {
	if safeVariable(name) || !exported && localName.MatchString(name) && !zshSpecial[name] {
		return
	}
	r.hide("an assignment that can change what commands mean")
}

func safeVariable(name string) bool { return variables[name] || lcName.MatchString(name) }
