package match_test

import (
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/tool/match"
)

func TestReplace(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text, old, new string
		all                  bool
		want                 string // "" is an error
		n                    int
	}{
		{"exact", "a b c", "b", "x", false, "a x c", 1},
		{"to nothing", "a b c", " b", "", false, "a c", 1},
		{"missing", "a", "b", "c", false, "", 0},
		{"twice", "b b", "b", "c", false, "", 0},
		{"all", "b b", "b", "c", true, "c c", 2},
		{"all do not overlap", "aaaa", "aa", "b", true, "bb", 2},
		{"all may contain old", "a a", "a", "aa", true, "aa aa", 2},
		{"unix text, dos old", "a\nb\nc\n", "a\r\nb", "x\r\ny", false, "x\ny\nc\n", 1},
		{"dos text, unix old", "a\r\nb\r\nc\r\n", "a\nb", "x\ny", false, "x\r\ny\r\nc\r\n", 1},
		{"dos text, one line", "a\r\nb\r\n", "a", "x\ny", false, "x\r\ny\r\nb\r\n", 1},
		{"mixed text keeps the style of the place", "a\nb\r\nc\r\n", "a\n", "x\ny\n", false, "x\ny\nb\r\nc\r\n", 1},
		{"mark stays", "\uFEFFa", "a", "b", false, "\uFEFFb", 1},
		{"mark in old", "\uFEFFa b", "\uFEFFa", "\uFEFFc", false, "\uFEFFc b", 1},
		{"indentation missing", "\tif a {\n\t\tb\n\t}\n", "if a {\n\tb\n}\n", "if c {\n\td\n\n}\n", false, "\tif c {\n\t\td\n\n\t}\n", 1},
		{"indentation too deep", "a:\n  b\nc\n", "  a:\n    b", "  a:\n    x", false, "a:\n  x\nc\n", 1},
		{"indentation of another kind", "\ta\n\t\tb\n", "    a\n        b", "    a\n        x", false, "    a\n        x\n", 1},
		{"trailing space", "a  \nb\n", "a\nb", "c", false, "c\n", 1},
		{"line match is whole lines", "  xa\n", "a\n ", "c", false, "", 0},
		{"lines twice", "\ta\n\tb\n\ta\n\tb\n", "  a\n  b", "c", false, "", 0},
		{"lines all", " a\n b\n a\n b\n", "a\nb\n", "c\n", true, " c\n c\n", 2},
		{"lines in dos text", "\ta\r\n\tb\r\n", "a\nb", "c\nd", false, "\tc\r\n\td\r\n", 1},
		{"no line end", "x\n  a\n  b", "a\nb", "c\nd", false, "x\n  c\n  d", 1},
		{"blank old", "a\n\nb", " \n ", "x", false, "", 0},
	}
	for _, tt := range tests {
		got, n, err := match.Replace(tt.text, tt.old, tt.new, tt.all)
		if (err != nil) != (tt.want == "") || got != tt.want || n != tt.n {
			t.Errorf("%s: %q, %d, %v", tt.name, got, n, err)
		}
	}
}

func TestReplaceTellsWhere(t *testing.T) {
	t.Parallel()
	_, _, err := match.Replace(strings.Repeat("a\n", 12), "a", "b", false)
	if err == nil || !strings.Contains(err.Error(), "12 times (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 …)") {
		t.Error(err)
	}
}

// What is outside of the places that matched is never touched, and an exact
// match is replaced exactly.
func FuzzReplace(f *testing.F) {
	f.Add("a\r\nb\n", "b", "c\n", true)
	f.Add("\uFEFF\ta\n\t\tb\n", "a\n\tb", "x", false)
	f.Add("  a\n\n  b\r\n", "a\n\nb\n", "", true)
	f.Fuzz(func(t *testing.T, text, old, new string, all bool) {
		got, n, err := match.Replace(text, old, new, all)
		if err != nil {
			if n != 0 || got != "" {
				t.Fatalf("%q, %d with %v", got, n, err)
			}
			return
		}
		if n < 1 || n > 1 && !all {
			t.Fatalf("%d places", n)
		}
		if strings.ContainsAny(text+old+new, "\r\uFEFF") || !strings.Contains(text, old) {
			return
		}
		limit := 1
		if all {
			limit = -1
		}
		if want := strings.Replace(text, old, new, limit); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	})
}
