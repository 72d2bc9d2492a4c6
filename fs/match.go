package fs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/switchyard-dev/switchyard/env"
)

const (
	// binarySniff is how much of a file is looked at for a NUL, in bytes.
	binarySniff = 1 << 10
	// firstBuffer is what is read of a file at once, and what a buffer grows by.
	firstBuffer = 64 << 10
	// keptBuffer is the largest buffer that a searcher keeps for the next file.
	keptBuffer = 4 << 20
	// checkLines is after how many lines a search looks at its context.
	checkLines = 4096
)

// byteOrderMark may begin a text; it is none of it.
const byteOrderMark = "\xef\xbb\xbf"

// searcher searches files one after the other in one buffer.
type searcher struct {
	p   *pattern
	in  GrepInput
	buf []byte
}

// batch searches files and releases them.
func (s *searcher) batch(ctx context.Context, entries []*env.Entry) []Match {
	defer release(entries)
	var out []Match
	for _, e := range entries {
		if ctx.Err() != nil || len(out) >= s.in.Limit {
			break
		}
		if data, ok := s.content(e); ok {
			out = s.search(ctx, out, nameOf(e.Path), data)
		}
	}
	return out
}

// content reads a file; it is false for one that is not searched.
func (s *searcher) content(e *env.Entry) ([]byte, bool) {
	f, err := e.Open()
	if err != nil {
		return nil, false
	}
	defer f.Close()
	if cap(s.buf) > keptBuffer {
		s.buf = nil
	}
	data := slices.Grow(s.buf[:0], firstBuffer)
	for checked := false; ; {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		s.buf = data
		if !checked && (len(data) >= binarySniff || err != nil) {
			if checked = true; bytes.IndexByte(data[:min(len(data), binarySniff)], 0) >= 0 {
				return nil, false
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return data, true
		case err != nil, len(data) > maxGrepFile:
			return nil, false
		case len(data) == cap(data): // most files end before: only these are asked for their size
			if data = grown(f, data); data == nil {
				return nil, false
			}
		}
	}
}

// grown makes room for the rest of a file; it is nil when the file is too large.
func grown(f env.File, data []byte) []byte {
	info, err := f.Stat()
	if err != nil || info.Size() > maxGrepFile {
		return nil
	}
	// A file may have grown meanwhile, and the last read of all finds nothing.
	return slices.Grow(data, max(int(info.Size())-len(data), 0)+firstBuffer)
}

// search appends the matches of one file to out.
func (s *searcher) search(ctx context.Context, out []Match, name PathName, data []byte) []Match {
	at := 0
	if bytes.HasPrefix(data, []byte(byteOrderMark)) {
		at = len(byteOrderMark)
	}
	first := at
	hint := s.p.need.cursor()
	line, counted := 1, at
	for n := 0; at < len(data) && len(out) < s.in.Limit; n++ {
		if n%checkLines == checkLines-1 && ctx.Err() != nil {
			return out
		}
		hit := hint.next(data, at)
		if hit < 0 {
			return out
		}
		begin := at + bytes.LastIndexByte(data[at:hit], '\n') + 1
		end, next := lineEnd(data, hit)
		text := bytes.TrimSuffix(data[begin:end], []byte("\r"))
		if found := s.p.re.FindAllIndex(text, maxSubmatches); found != nil {
			line += bytes.Count(data[counted:begin], []byte("\n"))
			counted = begin
			m := Match{PathName: name, Line: line, Offset: int64(begin)}
			m.Text, m.Submatches = tell(text, found)
			m.Before, m.After = linesBefore(data[first:begin], s.in.Context), linesAfter(data[next:], s.in.Context)
			out = append(out, m)
		}
		at = next
	}
	return out
}

// lineEnd gives where the line around data[at] ends and where the next begins.
func lineEnd(data []byte, at int) (end, next int) {
	if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
		return at + i, at + i + 1
	}
	return len(data), len(data)
}

// tell makes text of a line, cut and in UTF-8, and places of that text of what
// was found in the line.
func tell(line []byte, found [][]int) (string, []Submatch) {
	line = cut(line)
	text, place := string(line), func(at int) int { return at }
	if !utf8.Valid(line) {
		text = readable(text)
		place = func(at int) int { return len(readable(string(line[:at]))) }
	}
	submatches := make([]Submatch, 0, len(found))
	for _, f := range found {
		if f[1] <= len(line) {
			from, to := place(f[0]), place(f[1])
			submatches = append(submatches, Submatch{Start: from, End: to, Text: text[from:to]})
		}
	}
	return text, submatches
}

// cut shortens a long line.
func cut(line []byte) []byte {
	if len(line) <= maxLine {
		return line
	}
	return line[:lastWhole(line[:maxLine])]
}

// told is a line of context.
func told(line []byte) string {
	return readable(string(cut(bytes.TrimSuffix(line, []byte("\r")))))
}

// linesBefore gives the last n lines of data, which ends where a line begins.
func linesBefore(data []byte, n int) []string {
	var lines []string
	for ; n > 0 && len(data) > 0; n-- {
		data = data[:len(data)-1]
		begin := bytes.LastIndexByte(data, '\n') + 1
		lines = append(lines, told(data[begin:]))
		data = data[:begin]
	}
	slices.Reverse(lines)
	return lines
}

// linesAfter gives the first n lines of data.
func linesAfter(data []byte, n int) []string {
	var lines []string
	for ; n > 0 && len(data) > 0; n-- {
		end, next := lineEnd(data, 0)
		lines = append(lines, told(data[:end]))
		data = data[next:]
	}
	return lines
}
