package fs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/fs"
)

func (b bundle) grep(t testing.TB, in fs.GrepInput) fs.GrepOutput {
	t.Helper()
	out, err := b.Grep(t.Context(), in)
	must(t, err)
	return out
}

func places(out fs.GrepOutput) []string {
	list := []string{}
	for _, m := range out.Matches {
		list = append(list, fmt.Sprintf("%s:%d", m.Path, m.Line))
	}
	return list
}

func TestGrepTellsWhereAndWhat(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write(t, "f", "zero\r\none two one\r\n\r\nthree one")
	got := b.grep(t, fs.GrepInput{Pattern: `\bone\b`, Context: 1}).Matches
	want := []fs.Match{
		{
			PathName: fs.PathName{Path: "f"}, Line: 2, Offset: 6, Text: "one two one", Before: []string{"zero"}, After: []string{""},
			Submatches: []fs.Submatch{{Start: 0, End: 3, Text: "one"}, {Start: 8, End: 11, Text: "one"}},
		},
		{
			PathName: fs.PathName{Path: "f"}, Line: 4, Offset: 21, Text: "three one", Before: []string{""},
			Submatches: []fs.Submatch{{Start: 6, End: 9, Text: "one"}},
		},
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
	if m := b.grep(t, fs.GrepInput{Pattern: "three", Context: 100}).Matches[0]; len(m.Before) != 3 || m.After != nil {
		t.Errorf("more context than there is: %+v", m)
	}
}

func TestGrepMatchesWithinLines(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write(t, "a", "\xef\xbb\xbffoo\nbar foo\r\nfoo\nFOO Kelvin\n\n")
	for pattern, want := range map[string][]string{
		"^foo":        {"a:1", "a:3"},
		"foo$":        {"a:1", "a:2", "a:3"},
		`foo\sbar`:    {},
		`\Afoo\z`:     {"a:1", "a:3"},
		"(?i)foo":     {"a:1", "a:2", "a:3", "a:4"},
		"(?i)KELVIN":  {"a:4"},
		"foo|FOO":     {"a:1", "a:2", "a:3", "a:4"},
		"(bar|baz) f": {"a:2"},
		"^$":          {"a:5"},
		"x*":          {"a:1", "a:2", "a:3", "a:4", "a:5"},
		"[^\\n]oo":    {"a:1", "a:2", "a:3"},
		"none":        {},
	} {
		wantList(t, pattern, places(b.grep(t, fs.GrepInput{Pattern: pattern})), want...)
	}
	if m := b.grep(t, fs.GrepInput{Pattern: "^foo", Limit: 1}).Matches[0]; m.Offset != 3 || m.Text != "foo" {
		t.Errorf("behind a byte order mark: %+v", m)
	}
	wantList(t, "literal", places(b.grep(t, fs.GrepInput{Pattern: "x*", Literal: true})))
}

func TestGrepChoosesFiles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, p := range []string{"a.go", "a.txt", "sub/b.go", "sub/deep/c.go", "Makefile"} {
		b.write(t, p, "needle\n")
	}
	b.write(t, "binary", "needle\x00")
	b.write(t, "late", strings.Repeat("x\n", 600)+"needle\n\x00")
	b.write(t, "locked", "needle")
	b.write(t, "empty", "")
	b.fifo(t, "fifo")
	b.link(t, "link", "a.go")
	b.link(t, "out", "/etc/passwd")
	for include, want := range map[string][]string{
		"*.go":         {"a.go:1", "sub/b.go:1", "sub/deep/c.go:1"},
		"/*.go":        {"a.go:1"},
		"./sub/*.go":   {"sub/b.go:1"},
		"sub/**/*.go":  {"sub/b.go:1", "sub/deep/c.go:1"},
		"*.{txt,md}":   {"a.txt:1"},
		"!*.go":        {"Makefile:1", "a.txt:1", "late:601", "locked:1"},
		"Makefile":     {"Makefile:1"},
		"[a-z]*[!o].t": {},
	} {
		wantList(t, include, places(b.grep(t, fs.GrepInput{Pattern: "needle", Include: include})), want...)
	}
	_, err := b.Grep(t.Context(), fs.GrepInput{Pattern: "x", Include: "[a"})
	wantCode(t, "a bad glob", err, fault.ValidationFailed)
}

func TestGrepCutsLongLinesAndCleansOddBytes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write(t, "long", strings.Repeat("€", 700)+"needle\nneedle "+strings.Repeat("x", 1<<20)+" needle")
	b.write(t, "odd", "caf\xe9 \xffneedle\xff needle")
	for _, m := range b.grep(t, fs.GrepInput{Pattern: "needle"}).Matches {
		if len(m.Text) > 2000 || strings.Contains(m.Text, "\xff") {
			t.Errorf("%s:%d has %d bytes of text", m.Path, m.Line, len(m.Text))
		}
		for _, s := range m.Submatches {
			if m.Text[s.Start:s.End] != "needle" || s.Text != "needle" {
				t.Errorf("%s:%d: %+v", m.Path, m.Line, s)
			}
		}
		if want := map[string]int{"long:1": 0, "long:2": 1, "odd:1": 2}[fmt.Sprintf("%s:%d", m.Path, m.Line)]; len(m.Submatches) != want {
			t.Errorf("%s:%d: %d submatches", m.Path, m.Line, len(m.Submatches))
		}
	}
}

func TestSC42_GrepFlagsLimitsAndOrder(t *testing.T) {
	t.Parallel()
	b := bigTree(t)
	for _, tt := range []struct {
		in   fs.GrepInput
		want int
		more bool
	}{
		{fs.GrepInput{}, 20, false},
		{fs.GrepInput{Hidden: true}, 41, false}, // with a line of .gitignore
		{fs.GrepInput{Ignored: true, Limit: 100_000}, 3020, false},
		{fs.GrepInput{Limit: 10}, 10, true},
		{fs.GrepInput{Limit: 20}, 20, false},
		{fs.GrepInput{Ignored: true}, fs.DefaultGrep, true},
	} {
		tt.in.Pattern = "needle|node_modules"
		out := b.grep(t, tt.in)
		if len(out.Matches) != tt.want || out.Truncated != tt.more {
			t.Errorf("%+v: %d, truncated %v", tt.in, len(out.Matches), out.Truncated)
		}
		if got := places(out); !slices.IsSorted(got) {
			t.Errorf("%+v: not in order", tt.in)
		}
		n := 0
		for _, err := range b.GrepEach(t.Context(), tt.in) {
			must(t, err)
			n++
		}
		if n != tt.want {
			t.Errorf("%+v: %d one by one", tt.in, n)
		}
	}
}

func TestSC42_InvalidPatternTellsThePosition(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for pattern, want := range map[string]int{
		"":         0,
		"ab[z-a]":  3,
		"x*|*":     3,
		"a**":      1,
		"good(bad": 4,
		"(a(b)":    0,
		"a)b":      1,
		`[)]\((x`:  5,
		`\Q(\E)`:   5,
		"[]a)](b":  5,
		"é[b":      2,
		`ab\`:      2,
		`\d\q`:     2,
		"a{2000}":  1,
		"(?<=a)b":  0,
		"a\xffb":   1,
	} {
		_, err := b.Grep(t.Context(), fs.GrepInput{Pattern: pattern})
		wantCode(t, pattern, err, fault.PatternInvalid)
		if e, ok := fault.As(err); ok && e.Fields["position"] != want {
			t.Errorf("%q: position %v, want %d (%v)", pattern, e.Fields["position"], want, err)
		}
	}
}

// TestSC42_GrepEndsWithItsClient leaves no goroutine either: TestMain looks.
func TestSC42_GrepEndsWithItsClient(t *testing.T) {
	t.Parallel()
	b := setup(t)
	line := strings.Repeat("ab", 500) + "\n"
	for i := range 200 {
		b.write(t, fmt.Sprintf("d%d/f%d", i%10, i), strings.Repeat(line, 200))
	}
	slow := fs.GrepInput{Pattern: "(a|b|ab)*(a|b)*c", Limit: 5} // 40 MB without a match
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("client left"))
	defer cancel()
	begun := time.Now()
	_, err := b.Grep(ctx, slow)
	if took := time.Since(begun); err == nil || err.Error() != "client left" || took > 2*time.Second {
		t.Errorf("%v after %v", err, took)
	}
	for range b.GrepEach(t.Context(), fs.GrepInput{Pattern: "ab"}) {
		break // leaving the loop ends the search
	}
	for m, err := range b.GrepEach(ctx, slow) {
		if err == nil {
			t.Errorf("a match after the end: %+v", m)
		}
	}
}
