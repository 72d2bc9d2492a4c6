package shell

import (
	"path"
	"strings"
)

// operands notes the paths of commands that read or change files.
func (r *reader) operands(words []word, at place) {
	if len(words) == 0 || !touches[path.Base(words[0].text)] {
		return
	}
	for _, w := range words[1:] {
		r.operand(w, at)
	}
}

// operand notes one argument. A flag can carry a path: --reference=/x, -t/x.
func (r *reader) operand(w word, at place) {
	switch {
	case !w.literal:
		return // told as opaque by who read the word
	case !strings.HasPrefix(w.text, "-"):
		r.target(w, at, false)
		return
	}
	if _, value, ok := strings.Cut(w.text, "="); ok {
		w.text = value
		r.target(w, at, false)
		return
	}
	if len(w.text) > 2 && strings.Contains(w.text, "/") {
		w.text = w.text[2:]
		r.target(w, at, false)
	}
}

// target notes the file that a word names, for every place it may be read from.
func (r *reader) target(w word, at place, dir bool) {
	if !w.literal || w.text == "" || streams[w.text] {
		return
	}
	if w.tilde {
		r.path(w.text, dir)
		return
	}
	name := w.text
	if w.glob {
		// What is before the first wildcard says which directory is meant.
		first := strings.IndexAny(name, "*?[")
		if strings.Contains(name[first:], "/") {
			r.hide("a path below a wildcard")
		}
		name, dir = name[:strings.LastIndex(name[:first], "/")+1], true
	}
	names := at.join(name)
	if names == nil {
		r.hide("a path in a directory that is only known when it runs")
	}
	for _, n := range names {
		r.path(n, dir)
	}
}

// cd gives where a change of directory leads.
func (r *reader) cd(args []word, at place) (ok, failed place) {
	for len(args) > 0 && (args[0].text == "-P" || args[0].text == "-L" || args[0].text == "--") {
		args = args[1:]
	}
	switch {
	case len(args) == 0:
		r.path("~", true)
		return nil, at
	case len(args) > 1 || !args[0].literal || args[0].glob || strings.HasPrefix(args[0].text, "-"):
		r.hide("a change of directory that is only known when it runs")
		return nil, at
	case args[0].text == "":
		return at, at
	}
	r.target(args[0], at, true)
	if args[0].tilde {
		return nil, at
	}
	names := at.join(args[0].text)
	if names == nil {
		return nil, at
	}
	return names, at
}
