package output_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/switchyard-dev/switchyard/tool/output"
)

func TestHalvesKeepBothEnds(t *testing.T) {
	t.Parallel()
	small := output.Limits{Lines: 4, Bytes: 40}
	tests := []struct {
		name, text, head, tail string
	}{
		{"lines", "1\n2\n3\n4\n5\n6\n", "1\n2\n[", "]\n5\n6\n"},
		{"no newline at the end", "1\n2\n3\n4\n5\n6", "1\n2\n[", "]\n5\n6"},
		{"long lines", strings.Repeat("a", 30) + strings.Repeat("z", 30), strings.Repeat("a", 20) + "\n[", "]\n" + strings.Repeat("z", 20)},
		{"characters stay whole", strings.Repeat("€", 20), strings.Repeat("€", 6) + "\n[", "]\n" + strings.Repeat("€", 6)},
		{"long line first", strings.Repeat("a", 50) + "\nend\n", strings.Repeat("a", 20) + "\n[", "]\nend\n"},
		{"long line last", "begin\n" + strings.Repeat("z", 50), "begin\n[", "]\n" + strings.Repeat("z", 20)},
	}
	for _, tt := range tests {
		got := small.Halves(tt.text, "")
		if !strings.HasPrefix(got, tt.head) || !strings.HasSuffix(got, tt.tail) || !utf8.ValidString(got) {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
	if got := small.Halves("1\n2\n3\n4\n5\n", "/x/y"); !strings.Contains(got, "has 5 lines and is in /x/y;") {
		t.Errorf("%q", got)
	}
}

func TestExceeded(t *testing.T) {
	t.Parallel()
	l := output.Limits{Lines: 2, Bytes: 8}.OrDefault()
	for text, want := range map[string]bool{"": false, "a\nb": false, "a\nb\n": false, "a\nb\nc": true, "12345678": false, "123456789": true} {
		if l.Exceeded(text) != want {
			t.Errorf("%q", text)
		}
	}
	if d := (output.Limits{}).OrDefault(); d.Lines != 2000 || d.Bytes != 51200 {
		t.Errorf("%+v", d)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 0, "a": 1, "a\n": 1, "a\nb": 2, "\n\n": 2} {
		if got := output.Lines(text); got != want {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func FuzzHalves(f *testing.F) {
	f.Add("a\nb\nc\n", 2, 10)
	f.Add(strings.Repeat("€\n", 20), 7, 13)
	f.Fuzz(func(t *testing.T, text string, lines, bytes int) {
		l := output.Limits{Lines: lines, Bytes: bytes}.OrDefault()
		if !l.Exceeded(text) || l.Lines < 2 || l.Bytes < 16 {
			return
		}
		got := l.Halves(text, "")
		if len(got) > l.Bytes+200 {
			t.Fatalf("%d bytes of at most %d", len(got), l.Bytes)
		}
		if utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Fatalf("%q splits a character", got)
		}
	})
}

// However the output comes in pieces, what is passed on is whole characters and
// the beginning of what is kept.
func FuzzCapture(f *testing.F) {
	f.Add([]byte("a€b\xff\xe2"), uint8(1))
	f.Add([]byte("plain text"), uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, size uint8) {
		var live strings.Builder
		c := output.NewCapture(func(delta string) {
			if delta == "" || !utf8.ValidString(delta) {
				t.Fatalf("%q", delta)
			}
			live.WriteString(delta)
		})
		for rest := data; len(rest) > 0; {
			n := min(int(size)+1, len(rest))
			if wrote, err := c.Write(rest[:n]); wrote != n || err != nil {
				t.Fatal(wrote, err)
			}
			rest = rest[n:]
		}
		if c.Dropped() != 0 || !utf8.ValidString(c.Text()) {
			t.Fatalf("%q", c.Text())
		}
		if utf8.Valid(data) && live.String() != string(data) {
			t.Fatalf("%q of %q", live.String(), data)
		}
	})
}
