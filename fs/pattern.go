package fs

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/switchyard-dev/switchyard/fault"
)

// pattern is what is searched for, and where.
type pattern struct {
	re   *regexp.Regexp
	need need

	include string // "" for everything
	names   bool   // include is for names
	exclude bool   // include says what to leave out
}

func newPattern(in GrepInput) (*pattern, error) {
	if in.Pattern == "" {
		return nil, errPattern(in.Pattern, 0, "it is empty")
	}
	text := in.Pattern
	if in.Literal {
		text = regexp.QuoteMeta(text)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, errPattern(in.Pattern, positionOf(text, err), reason(err))
	}
	p := &pattern{re: re, need: needOf(text)}
	p.include, p.exclude = strings.CutPrefix(in.Include, "!")
	p.names = !strings.Contains(p.include, "/")
	p.include = strings.TrimPrefix(strings.TrimPrefix(p.include, "./"), "/")
	if !doublestar.ValidatePattern(p.include) {
		return nil, fault.New(fault.ValidationFailed, "include is not a glob").At("body.include", "not a glob")
	}
	return p, nil
}

// includes reports whether a file is to be searched.
func (p *pattern) includes(path, name string) bool {
	if p.include == "" {
		return true
	}
	if p.names {
		path = name
	}
	return doublestar.MatchUnvalidated(p.include, path) != p.exclude
}

// errPattern says where a pattern is wrong.
func errPattern(pattern string, position int, why string) error {
	return fault.New(fault.PatternInvalid, "the pattern is not valid: %s", why).With("position", position).With("pattern", pattern)
}

func reason(err error) string {
	var e *syntax.Error
	if errors.As(err, &e) {
		return e.Code.String()
	}
	return "it cannot be compiled"
}

// maxLocated is the longest pattern in which the place of a mistake is looked
// for by parsing its beginnings.
const maxLocated = 1000

// positionOf finds the byte at which a pattern is wrong. The parser names the
// wrong piece, not its place, and the same piece may stand, rightly, elsewhere:
// the place is at the end of the shortest beginning with the same complaint.
func positionOf(text string, err error) int {
	var e *syntax.Error
	if !errors.As(err, &e) {
		return 0
	}
	switch e.Code {
	case syntax.ErrMissingParen, syntax.ErrUnexpectedParen:
		return oddParen(text)
	case syntax.ErrTrailingBackslash:
		return len(text) - 1
	}
	if len(text) > maxLocated {
		return max(0, strings.Index(text, e.Expr))
	}
	for end := max(len(e.Expr), 1); end <= len(text); end++ {
		_, err := syntax.Parse(text[:end], syntax.Perl)
		var same *syntax.Error
		if errors.As(err, &same) && *same == *e {
			return max(0, end-len(e.Expr))
		}
	}
	return 0
}

// oddParen finds the first ")" without a "(", else the last "(" without a ")".
func oddParen(text string) int {
	var open []int
	inClass := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && strings.HasPrefix(text[i:], `\Q`):
			quoted := strings.Index(text[i:], `\E`)
			if quoted < 0 {
				quoted = len(text) - i
			}
			i += quoted
		case c == '\\':
			i++
		case inClass:
			inClass = c != ']'
		case c == '[':
			inClass = true
			if rest := strings.TrimPrefix(text[i+1:], "^"); strings.HasPrefix(rest, "]") {
				i = len(text) - len(rest) // a bracket that stands first means itself
			}
		case c == '(':
			open = append(open, i)
		case c == ')' && len(open) == 0:
			return i
		case c == ')':
			open = open[:len(open)-1]
		}
	}
	if len(open) == 0 {
		return 0
	}
	return open[len(open)-1]
}
