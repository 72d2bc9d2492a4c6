package fs

import (
	"regexp"
	"testing"
)

var needCases = []struct {
	pattern string
	want    []string
}{
	{"unique777", []string{"unique777"}},
	{`session\s+\w+\s+message`, []string{"session"}},
	{`[a-z]+ng unique\d+5$`, []string{"ng unique"}},
	{"(?i)WORKSPACE handler", []string{"pace handler"}},
	{"(?i)ask", nil},
	{"foo|barbaz", []string{"foo", "barbaz"}},
	{"(foo|bar)+x?", []string{"foo", "bar"}},
	{"(ab){2,3}", []string{"ab"}},
	{"(ab){0,3}", nil},
	{"a*b?", nil},
	{"x", nil},
	{`\(`, []string{"("}},
	{"foo|.*", nil},
	{"\ufffd\ufffd", nil},
	{"été", []string{"été"}},
}

func TestNeedFindsWhatMatchesMustHold(t *testing.T) {
	t.Parallel()
	for _, tt := range needCases {
		got := needOf(tt.pattern)
		if len(got) != len(tt.want) {
			t.Errorf("%s: %+v", tt.pattern, got)
			continue
		}
		for i, want := range tt.want {
			if got[i].text != want {
				t.Errorf("%s: %+v", tt.pattern, got)
			}
		}
	}
}

// FuzzNeed holds the search with a need against the one without.
func FuzzNeed(f *testing.F) {
	for _, tt := range needCases {
		f.Add(tt.pattern, "foo bar\nWorkSpace HANDLER ng unique15\n\xff\xff (ABAB) été\nas\u212a unique777")
	}
	f.Fuzz(func(t *testing.T, text, data string) {
		re, err := regexp.Compile(text)
		if err != nil || len(text) > 200 {
			return
		}
		search := func(n need) []Match {
			s := searcher{p: &pattern{re: re, need: n}, in: GrepInput{Limit: 1000}}
			return s.search(t.Context(), nil, PathName{}, []byte(data))
		}
		with, without := search(needOf(text)), search(nil)
		if len(with) != len(without) {
			t.Fatalf("%q in %q: %d lines, %d without a need (%+v)", text, data, len(with), len(without), needOf(text))
		}
		for i, m := range with {
			if m.Line != without[i].Line || m.Offset != without[i].Offset {
				t.Fatalf("%q in %q: %+v, %+v", text, data, m, without[i])
			}
		}
	})
}
