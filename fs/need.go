package fs

import (
	"bytes"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// maxTexts is the most alternatives that are looked for one by one.
const maxTexts = 16

// need are texts of which every match holds one; empty when nothing is known.
// Looking for them first spares the regular expression most lines.
type need []needle

// needle is a text to look for.
type needle struct {
	text   string // of lower case when fold is set
	fold   bool   // ASCII letters of either case
	anchor int    // the place of its rarest byte, for fold
}

// needOf finds what every match of a valid pattern holds.
func needOf(pattern string) need {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	return required(tree)
}

func required(re *syntax.Regexp) need {
	switch re.Op {
	case syntax.OpLiteral:
		return literalNeed(re)
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		var best need
		for _, sub := range re.Sub {
			if n := required(sub); n.length() > best.length() {
				best = n
			}
		}
		return best
	case syntax.OpAlternate:
		var all need
		for _, sub := range re.Sub {
			n := required(sub)
			if len(n) == 0 || len(all)+len(n) > maxTexts {
				return nil
			}
			all = append(all, n...)
		}
		return all
	}
	return nil
}

// length is how much the shortest text tells.
func (n need) length() int {
	if len(n) == 0 {
		return 0
	}
	shortest := len(n[0].text)
	for _, t := range n {
		shortest = min(shortest, len(t.text))
	}
	return shortest
}

// literalNeed makes a needle of a literal, or of the best part of it.
func literalNeed(re *syntax.Regexp) need {
	text := string(re.Rune)
	if re.Flags&syntax.FoldCase == 0 {
		// U+FFFD in a pattern also matches bytes that are no UTF-8.
		if strings.ContainsRune(text, utf8.RuneError) || len(text) == 1 && common(text[0]) {
			return nil
		}
		return need{{text: text}}
	}
	best := ""
	for _, part := range strings.FieldsFunc(strings.ToLower(text), oddlyFolded) {
		if len(part) > len(best) {
			best = part
		}
	}
	if len(best) < 2 {
		return nil
	}
	n := needle{text: best, fold: true}
	for i := range len(best) {
		if rarity(best[i]) > rarity(best[n.anchor]) {
			n.anchor = i
		}
	}
	return need{n}
}

// oddlyFolded are the characters with other cases than the two of ASCII: K and S
// also match the Kelvin sign and the long s.
func oddlyFolded(r rune) bool { return r >= utf8.RuneSelf || r == 'k' || r == 's' }

// common bytes are on most lines: looking for them alone spares nothing.
func common(b byte) bool {
	return b == ' ' || b == '\t' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9'
}

// rarity orders bytes by how seldom they are in source text.
func rarity(b byte) int {
	if i := strings.IndexByte(" etaoinsrlcdpumfhgbyvw_.kxqjz", b); i >= 0 {
		return i
	}
	return 15
}

// cursor looks for the texts of a need in one file, always forwards.
type cursor struct {
	need need
	at   []int // where each text is next, len(data) for nowhere; -1 when not looked for yet
}

func (n need) cursor() *cursor {
	c := &cursor{need: n, at: make([]int, len(n))}
	for i := range c.at {
		c.at[i] = -1
	}
	return c
}

// next gives a place at or behind from that is on the next line worth a look, -1
// when there is none.
func (c *cursor) next(data []byte, from int) int {
	if len(c.need) == 0 {
		return from
	}
	first := len(data)
	for i, n := range c.need {
		if c.at[i] < from {
			c.at[i] = len(data)
			if found := n.index(data[from:]); found >= 0 {
				c.at[i] = from + found
			}
		}
		first = min(first, c.at[i])
	}
	if first == len(data) {
		return -1
	}
	return first
}

// index finds the needle in data.
func (n needle) index(data []byte) int {
	if !n.fold {
		return bytes.Index(data, []byte(n.text))
	}
	low := n.text[n.anchor]
	high := low
	if 'a' <= low && low <= 'z' {
		high -= 'a' - 'A'
	}
	for from := n.anchor; from < len(data); {
		hit := indexEither(data[from:], low, high)
		if hit < 0 {
			return -1
		}
		begin := from + hit - n.anchor
		if len(data)-begin < len(n.text) {
			return -1
		}
		if foldedEqual(data[begin:begin+len(n.text)], n.text) {
			return begin
		}
		from += hit + 1
	}
	return -1
}

func indexEither(data []byte, a, b byte) int {
	first := bytes.IndexByte(data, a)
	if a == b {
		return first
	}
	if first >= 0 {
		data = data[:first]
	}
	if other := bytes.IndexByte(data, b); other >= 0 {
		return other
	}
	return first
}

// foldedEqual compares with a text of lower case.
func foldedEqual(data []byte, low string) bool {
	for i := range len(low) {
		c := data[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != low[i] {
			return false
		}
	}
	return true
}
