package shell

import (
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// word is one argument as the shell would pass it on.
type word struct {
	text    string // without quotes where literal, else as written
	literal bool   // nothing in it is only known when it runs
	glob    bool   // has wildcards that the shell expands
	tilde   bool   // begins with a home directory
}

// word reads an argument and the commands inside it.
func (r *reader) word(w *syntax.Word, at place) word {
	if w == nil {
		return word{literal: true}
	}
	r.substitutions(w, at)
	out := word{literal: true}
	var b strings.Builder
	for i, part := range w.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			out.glob = out.glob || strings.ContainsAny(escaped.ReplaceAllString(lit.Value, ""), "*?[")
			out.tilde = out.tilde || i == 0 && strings.HasPrefix(lit.Value, "~")
		}
		text, ok := r.part(part)
		out.literal = out.literal && ok
		b.WriteString(text)
	}
	out.text = b.String()
	if braces(w) {
		r.hide("a brace expansion")
	}
	if !out.literal {
		out.text = written(w)
	}
	return out
}

// part gives what a piece of a word stands for; false when only running tells.
func (r *reader) part(p syntax.WordPart) (string, bool) {
	switch p := p.(type) {
	case *syntax.Lit:
		return unescape(p.Value), true
	case *syntax.SglQuoted:
		if !p.Dollar {
			return p.Value, true
		}
		r.hide("a quotation that not every shell reads alike")
		text, err := expand.Literal(nil, &syntax.Word{Parts: []syntax.WordPart{p}})
		return text, err == nil
	case *syntax.DblQuoted:
		if p.Dollar {
			r.hide("a quotation that not every shell reads alike")
		}
		var b strings.Builder
		for _, inner := range p.Parts {
			lit, ok := inner.(*syntax.Lit)
			if !ok {
				return "", false
			}
			b.WriteString(unescapeQuoted(lit.Value))
		}
		return b.String(), true
	case *syntax.ExtGlob:
		r.hide("an extended wildcard")
	}
	return "", false
}

// value reads a word that is data of the shell itself: of an assignment, a for
// or a case. A shell may evaluate it later, as an array index does.
func (r *reader) value(w *syntax.Word, at place) {
	if r.word(w, at).evaluable() {
		r.hide("text that a shell may run later")
	}
}

func (w word) evaluable() bool {
	return w.literal && (strings.Contains(w.text, "$(") || strings.Contains(w.text, "`"))
}

// expansion judges a variable: a plain one is data, the rest can assign,
// redirect or evaluate.
func (r *reader) expansion(p *syntax.ParamExp) {
	if p.Excl || p.Width || p.Index != nil || p.Slice != nil || p.Names != 0 || p.NestedParam != nil || len(p.Modifiers) > 0 {
		r.hide("an expansion that evaluates")
		return
	}
	if p.Exp == nil {
		return
	}
	switch p.Exp.Op {
	case syntax.AssignUnset, syntax.AssignUnsetOrNull, syntax.OtherParamOps:
		r.hide("an expansion that evaluates")
	}
}

// number reports an arithmetic expression of numbers alone. Only these are safe:
// names are evaluated again, and an index in their values may run commands.
func number(x syntax.ArithmExpr, depth int) bool {
	if depth == maxLevel {
		return false
	}
	switch x := x.(type) {
	case *syntax.BinaryArithm:
		return number(x.X, depth+1) && number(x.Y, depth+1)
	case *syntax.UnaryArithm:
		return number(x.X, depth+1)
	case *syntax.ParenArithm:
		return number(x.X, depth+1)
	case *syntax.Word:
		return strings.Trim(x.Lit(), "0123456789") == "" && x.Lit() != ""
	}
	return false
}

// unescape removes the backslashes of an unquoted literal.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if s[i] != '\n' {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// unescapeQuoted removes the backslashes that mean something in double quotes.
func unescapeQuoted(s string) string {
	return quotedEscape.Replace(s)
}

var quotedEscape = strings.NewReplacer(`\\`, `\`, `\$`, `$`, "\\`", "`", `\"`, `"`, "\\\n", "")

// braces reports what looks like an unquoted {a,b} or {1..9}. Splitting it for
// sure takes exponential time.
func braces(w *syntax.Word) bool {
	var b strings.Builder
	for _, part := range w.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			b.WriteString(escaped.ReplaceAllString(lit.Value, ""))
		}
	}
	_, inner, open := strings.Cut(b.String(), "{")
	return open && strings.Contains(inner, "}") && (strings.Contains(inner, ",") || strings.Contains(inner, ".."))
}

// written gives a node's text.
func written(n syntax.Node) string {
	var b strings.Builder
	if err := syntax.NewPrinter().Print(&b, n); err != nil {
		return "?"
	}
	return b.String()
}
