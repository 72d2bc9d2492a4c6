// Package match finds the text that an edit names, in the forms that models get
// slightly wrong, and replaces it.
package match

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/switchyard-dev/switchyard/fault"
)

const bom = "\uFEFF"

// Replace puts new in the place of old in text and counts the places. Line
// endings and a byte order mark are those of the text; where old is not there
// exactly, whole lines that differ in surrounding white space only are taken. No
// place, or more than one without all, is a validation_failed fault.
func Replace(text, old, new string, all bool) (string, int, error) {
	mark := ""
	if strings.HasPrefix(text, bom) {
		mark, text = bom, text[len(bom):]
		old, new = strings.TrimPrefix(old, bom), strings.TrimPrefix(new, bom)
	}
	spans := exactSpans(text, old)
	if len(spans) == 0 {
		spans = lineSpans(text, old)
	}
	switch {
	case old == "" || len(spans) == 0:
		return "", 0, fault.New(fault.ValidationFailed, "oldString was not found in the file. It must match exactly, with all white space.")
	case len(spans) > 1 && !all:
		return "", 0, fault.New(fault.ValidationFailed, "oldString was found %d times (lines %s). Add lines around it to make it unique, or set replaceAll.",
			len(spans), places(text, spans))
	}
	crlf := strings.Contains(text, "\r\n") && 2*strings.Count(text, "\r\n") >= strings.Count(text, "\n")
	var b strings.Builder
	b.WriteString(mark)
	end := 0
	for _, s := range spans {
		b.WriteString(text[end:s.start])
		b.WriteString(fit(new, text[s.start:s.end], s, crlf))
		end = s.end
	}
	b.WriteString(text[end:])
	return b.String(), len(spans), nil
}

// span is a place in a text that matched.
type span struct {
	start, end int
	// added and removed are what the file has at the start of each line, and old
	// has not, and the other way round.
	added, removed string
}

// exactSpans finds old as it is, else with the other kind of line endings.
func exactSpans(text, old string) []span {
	unix := strings.ReplaceAll(old, "\r\n", "\n")
	for _, try := range []string{old, strings.ReplaceAll(unix, "\n", "\r\n"), unix} {
		var spans []span
		for from := 0; try != ""; {
			i := strings.Index(text[from:], try)
			if i < 0 {
				break
			}
			spans = append(spans, span{start: from + i, end: from + i + len(try)})
			from += i + len(try)
		}
		if len(spans) > 0 {
			return spans
		}
	}
	return nil
}

// lineSpans finds the lines of old when only white space around them differs.
func lineSpans(text, old string) []span {
	if strings.TrimSpace(old) == "" {
		return nil
	}
	have := strings.SplitAfter(text, "\n")
	want := strings.Split(strings.TrimSuffix(old, "\n"), "\n")
	var spans []span
	at := 0
	for i := 0; i+len(want) <= len(have); {
		added, removed, ok := sameLines(have[i:i+len(want)], want)
		if !ok {
			at += len(have[i])
			i++
			continue
		}
		s := span{start: at, added: added, removed: removed}
		for _, line := range have[i : i+len(want)] {
			at += len(line)
		}
		i += len(want)
		s.end = at
		if !strings.HasSuffix(old, "\n") {
			s.end -= len(lineEnd(text[:at]))
		}
		spans = append(spans, s)
	}
	return spans
}

// sameLines compares lines without the white space around them. It also gives
// by what the indentation differs, where that is the same for all lines.
func sameLines(have, want []string) (added, removed string, ok bool) {
	first, same := true, true
	for i := range want {
		if strings.TrimSpace(have[i]) != strings.TrimSpace(want[i]) {
			return "", "", false
		}
		if strings.TrimSpace(want[i]) == "" {
			continue
		}
		h, w := indent(have[i]), indent(want[i])
		a, hasA := strings.CutSuffix(h, w)
		r, hasR := strings.CutSuffix(w, h)
		if hasA {
			r = ""
		} else {
			a = ""
		}
		same = same && (hasA || hasR) && (first || a == added && r == removed)
		added, removed, first = a, r, false
	}
	if !same {
		return "", "", true
	}
	return added, removed, true
}

func indent(line string) string {
	return line[:len(line)-len(strings.TrimLeftFunc(line, unicode.IsSpace))]
}

// fit gives new the indentation and the line endings of the place it goes to.
func fit(new, old string, s span, crlf bool) string {
	new = strings.ReplaceAll(new, "\r\n", "\n")
	if s.added != "" || s.removed != "" {
		parts := strings.Split(new, "\n")
		for i, line := range parts {
			if strings.TrimSpace(line) != "" {
				parts[i] = s.added + strings.TrimPrefix(line, s.removed)
			}
		}
		new = strings.Join(parts, "\n")
	}
	if strings.Contains(old, "\n") {
		crlf = strings.Contains(old, "\r\n")
	}
	if crlf {
		new = strings.ReplaceAll(new, "\n", "\r\n")
	}
	return new
}

// lineEnd gives the newline that a text ends with, if it does.
func lineEnd(text string) string {
	for _, end := range []string{"\r\n", "\n"} {
		if strings.HasSuffix(text, end) {
			return end
		}
	}
	return ""
}

// places lists the lines at which spans begin, the first ten of them.
func places(text string, spans []span) string {
	var b strings.Builder
	line, at := 1, 0
	for i, s := range spans {
		line += strings.Count(text[at:s.start], "\n")
		at = s.start
		switch {
		case i == 10:
			return b.String() + " …"
		case i > 0:
			b.WriteString(", ")
		}
		fmt.Fprint(&b, line)
	}
	return b.String()
}
