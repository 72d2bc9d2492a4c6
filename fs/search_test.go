package fs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/switchyard-dev/switchyard/fs"
)

func (b bundle) search(t testing.TB, in fs.SearchInput) fs.SearchOutput {
	t.Helper()
	out, err := b.Search(t.Context(), in)
	must(t, err)
	return out
}

func paths(out fs.SearchOutput) []string {
	list := []string{}
	for _, e := range out.Entries {
		list = append(list, e.Path)
	}
	return list
}

func TestSearchRanksPaths(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, p := range []string{
		"session/store.go", "session/service.go", "store/session.sql", "docs/session-store-notes.md", "README.md",
		"web/src/Réadme.txt", "deep/a/b/c/session.go", "session.go",
	} {
		b.write(t, p, "")
	}
	for _, tt := range []struct {
		query, typ string
		best       []string
	}{
		{"session.go", "", []string{"session.go", "deep/a/b/c/session.go"}},
		{"SESSION.GO", "", []string{"session.go"}},
		{"sesstore", "", []string{"session/store.go"}},
		{"sql ses", "file", []string{"store/session.sql"}},
		{"readme", "", []string{"README.md", "web/src/Réadme.txt"}},
		{"docs/", "directory", []string{"docs"}},
		{"session", "directory", []string{"session"}},
		{"zzz", "", nil},
	} {
		got := paths(b.search(t, fs.SearchInput{Query: tt.query, Type: tt.typ}))
		wantList(t, tt.query, got[:min(len(got), len(tt.best))], tt.best...)
		if tt.best == nil && len(got) != 0 {
			t.Errorf("%s: %v", tt.query, got)
		}
	}
}

func TestSearchOfNothingIsTheTopLevel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write(t, "zdir/f", "")
	b.write(t, "adir/f", "")
	b.write(t, "bb", "")
	b.write(t, "a", "")
	b.write(t, ".hidden", "")
	b.link(t, "tofile", "a")
	b.link(t, "todir", "zdir")
	b.link(t, "out", "/etc/passwd")
	b.fifo(t, "fifo")
	wantList(t, "all", paths(b.search(t, fs.SearchInput{Query: "  "})), "adir", "zdir", "a", "bb", "tofile")
	wantList(t, "files", paths(b.search(t, fs.SearchInput{Type: "file", Hidden: true})), ".hidden", "a", "bb", "tofile")
	out := b.search(t, fs.SearchInput{Limit: 2})
	if wantList(t, "two", paths(out), "adir", "zdir"); !out.Truncated {
		t.Error("two of many are not truncated")
	}
	if out := b.search(t, fs.SearchInput{Type: "directory", Limit: 2}); out.Truncated || out.Entries[0].Type != "directory" {
		t.Errorf("%+v", out)
	}
}

// bigTree makes an ignored and a hidden directory with many files, a few that
// count, and links in a circle.
func bigTree(t testing.TB) bundle {
	b := setup(t)
	b.write(t, ".gitignore", "node_modules/\n")
	for i := range 3000 {
		b.write(t, fmt.Sprintf("node_modules/m%d/needle%d.js", i%50, i), "a needle here\n")
	}
	for i := range 20 {
		b.write(t, fmt.Sprintf(".cache/needle%02d.txt", i), "a needle here\n")
		b.write(t, fmt.Sprintf("src/needle%02d.txt", i), "first\na needle here\n")
	}
	b.link(t, "src/loop", "..")
	b.link(t, "src/self", "self")
	return b
}

func TestSC42_SearchFlagsAndLimits(t *testing.T) {
	t.Parallel()
	b := bigTree(t)
	for _, tt := range []struct {
		in   fs.SearchInput
		want int
		more bool
	}{
		{fs.SearchInput{}, 20, false},
		{fs.SearchInput{Hidden: true}, 40, false},
		{fs.SearchInput{Ignored: true, Limit: 100_000}, fs.MaxSearch, true},
		{fs.SearchInput{Limit: 10}, 10, true},
		{fs.SearchInput{Limit: 20}, 20, false},
		{fs.SearchInput{Ignored: true}, fs.DefaultSearch, true},
	} {
		tt.in.Query = "needle"
		if out := b.search(t, tt.in); len(out.Entries) != tt.want || out.Truncated != tt.more {
			t.Errorf("%+v: %d, truncated %v", tt.in, len(out.Entries), out.Truncated)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Search(ctx, fs.SearchInput{Query: "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the client left: %v", err)
	}
}
