// Package output holds texts of commands and other tools within bounds: while
// they come and before a model sees them (opencode contract §11.3).
package output

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits bound what the model sees of one output.
type Limits struct {
	Lines int // DefaultLines when zero
	Bytes int // of UTF-8, DefaultBytes when zero
}

// The limits where none are given.
const (
	DefaultLines = 2000
	DefaultBytes = 51200
)

// OrDefault fills in what is zero.
func (l Limits) OrDefault() Limits {
	if l.Lines <= 0 {
		l.Lines = DefaultLines
	}
	if l.Bytes <= 0 {
		l.Bytes = DefaultBytes
	}
	return l
}

// Exceeded reports a text that is too long.
func (l Limits) Exceeded(text string) bool {
	return len(text) > l.Bytes || strings.Count(strings.TrimSuffix(text, "\n"), "\n") >= l.Lines
}

// Halves gives the first and the last half of what is allowed of a text, with a
// line between them that says what is left out and where all of it is; place is
// "" when it was not kept.
func (l Limits) Halves(text, place string) string {
	head := text[:CutHead(text, l.Lines/2, l.Bytes/2)]
	tail := text[cutTail(text, l.Lines/2, l.Bytes/2):]
	left := len(text) - len(head) - len(tail)
	hint := "and was not kept"
	if place != "" {
		hint = "and is in " + place + "; use grep, or read with offset and limit, to see it"
	}
	return fmt.Sprintf("%s\n[%d bytes of %d were left out here. The whole output has %d lines %s.]\n%s",
		strings.TrimSuffix(head, "\n"), left, len(text), Lines(text), hint, tail)
}

// Lines counts lines; the last one needs no newline.
func Lines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

// CutHead gives the length of the longest beginning within the limits. It ends
// with a line where one fits, else between characters.
func CutHead(text string, maxLines, maxBytes int) int {
	end := 0
	for range maxLines {
		i := strings.IndexByte(text[end:], '\n')
		if i < 0 || end+i+1 > maxBytes {
			break
		}
		end += i + 1
	}
	if end > 0 {
		return end
	}
	return RuneStart(text, min(maxBytes, len(text)))
}

// cutTail gives the start of the longest end within the limits.
func cutTail(text string, maxLines, maxBytes int) int {
	start := len(text)
	for range maxLines {
		i := strings.LastIndexByte(text[:max(start-1, 0)], '\n')
		if i < 0 || len(text)-i-1 > maxBytes {
			break
		}
		start = i + 1
	}
	if start < len(text) {
		return start
	}
	start = max(len(text)-maxBytes, 0)
	for start < len(text) && !utf8.RuneStart(text[start]) {
		start++
	}
	return start
}

// RuneStart moves n back to where a character starts.
func RuneStart(text string, n int) int {
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}
