package fs_test

import (
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/fs"
)

func (b bundle) tree(t testing.TB, in fs.TreeInput) fs.TreePage {
	t.Helper()
	page, err := b.Tree(t.Context(), in)
	must(t, err)
	return page
}

func names(page fs.TreePage) []string {
	out := []string{}
	for _, e := range page.Entries {
		out = append(out, e.Name)
	}
	return out
}

func TestTreeListsTypedEntries(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write(t, "z/f", "")
	b.write(t, "B", "four")
	b.write(t, "a", "")
	b.write(t, ".git/HEAD", "")
	b.write(t, ".env", "")
	b.write(t, "out.log", "")
	b.write(t, ".gitignore", "*.log\ngen/\n")
	b.write(t, "gen/x", "")
	b.link(t, "link", "z")
	b.fifo(t, "pipe")
	must(t, os.Chtimes(b.path("B"), time.Time{}, time.UnixMilli(1_700_000_000_123)))

	page := b.tree(t, fs.TreeInput{})
	wantList(t, "all", names(page), "gen", "z", ".env", ".gitignore", "B", "a", "link", "out.log", "pipe")
	for _, e := range page.Entries {
		want := map[string]string{"gen": "directory", "z": "directory", "link": "symlink", "pipe": "other"}[e.Name]
		if want == "" {
			want = "file"
		}
		if e.Type != want || e.Path != e.Name || e.Absolute != b.path(e.Name) || e.MTime == 0 || (e.Size != nil) != (want == "file") {
			t.Errorf("%+v", e)
		}
		if e.Ignored != (e.Name == "gen" || e.Name == "out.log") {
			t.Errorf("%s: ignored is %v", e.Name, e.Ignored)
		}
	}
	if e := page.Entries[4]; *e.Size != 4 || e.MTime != 1_700_000_000_123 {
		t.Errorf("%+v", e)
	}
	wantList(t, "no hidden, no ignored", names(b.tree(t, fs.TreeInput{NoHidden: true, NoIgnored: true})), "z", "B", "a", "link", "pipe")
	wantList(t, "an ignored directory", names(b.tree(t, fs.TreeInput{In: fs.In{Path: "gen"}, NoIgnored: true})), "x")
	if e := b.tree(t, fs.TreeInput{In: fs.In{Path: "link"}}).Entries[0]; e.Path != "link/f" {
		t.Errorf("below a link: %+v", e)
	}
	if page := b.tree(t, fs.TreeInput{In: fs.In{Path: b.path(".git")}}); page.Entries[0].Path != ".git/HEAD" || !page.Entries[0].Ignored {
		t.Errorf(".git by name: %+v", page)
	}
	for p, code := range map[string]fault.Code{
		"B": fault.NotADirectory, "pipe": fault.NotADirectory, "none": fault.FileNotFound, "/": fault.PathOutside, "..": fault.PathOutside,
	} {
		_, err := b.Tree(t.Context(), fs.TreeInput{In: fs.In{Path: p}})
		wantCode(t, p, err, code)
	}
}

func TestTreePagesBothWays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 7 {
		b.write(t, fmt.Sprintf("d/f%d", i), "")
		b.write(t, fmt.Sprintf("d/dir%d/x", i%3), "")
	}
	b.write(t, "d/.hidden", "")
	in := fs.TreeInput{In: fs.In{Path: "d"}, Limit: 4, NoHidden: true}
	first := b.tree(t, in)
	wantList(t, "first", names(first), "dir0", "dir1", "dir2", "f0")
	if first.Previous != "" {
		t.Error("there is something before the first page")
	}
	second := b.tree(t, fs.TreeInput{Cursor: first.Next, Limit: 4}) // the cursor knows the rest
	wantList(t, "second", names(second), "f1", "f2", "f3", "f4")
	must(t, os.Remove(b.path("d/f4"))) // the cursor's own entry may go
	b.write(t, "d/f45", "")
	in.Cursor = second.Next
	third := b.tree(t, in)
	wantList(t, "third", names(third), "f45", "f5", "f6")
	if third.Next != "" {
		t.Error("there is something behind the last page")
	}
	back := b.tree(t, fs.TreeInput{Cursor: third.Previous, Limit: 2})
	wantList(t, "back", names(back), "f2", "f3")
	wantList(t, "and forth", names(b.tree(t, fs.TreeInput{Cursor: back.Next, Limit: 1})), "f45")

	outside := base64.RawURLEncoding.EncodeToString([]byte(`{"p":"Li4=","n":"eA=="}`))
	for what, in := range map[string]fs.TreeInput{
		"another directory": {In: fs.In{Path: "d/dir0"}, Cursor: first.Next},
		"another filter":    {In: fs.In{Path: "d"}, Cursor: first.Next, NoIgnored: true},
		"junk":              {Cursor: "zzz"},
		"no JSON":           {Cursor: base64.RawURLEncoding.EncodeToString([]byte("[1]"))},
		"outside":           {Cursor: outside},
	} {
		_, err := b.Tree(t.Context(), in)
		wantCode(t, what, err, fault.CursorInvalid)
	}
}

// TestSC40_AwkwardDirectory pages through many files with odd ones between them.
func TestSC40_AwkwardDirectory(t *testing.T) {
	t.Parallel()
	const files = 20_000
	b := setup(t)
	for i := range files {
		f, err := os.Create(b.path(fmt.Sprintf("f%05d", i)))
		must(t, err)
		must(t, f.Close())
	}
	must(t, os.Mkdir(b.path("locked"), 0))
	b.link(t, "dangling", "none")
	b.fifo(t, "fifo")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: b.path("sock"), Net: "unix"})
	must(t, err)
	defer l.Close()

	seen := []string{}
	kinds := map[string]string{}
	var in fs.TreeInput
	begun := time.Now()
	for page := b.tree(t, fs.TreeInput{Limit: 1000}); ; page = b.tree(t, in) {
		for _, e := range page.Entries {
			seen = append(seen, e.Name)
			kinds[e.Name] = e.Type
		}
		if page.Next == "" {
			break
		}
		in = fs.TreeInput{Cursor: page.Next, Limit: 10_000_000} // taken as the most there is
		if len(page.Entries) > fs.MaxTree {
			t.Fatalf("a page of %d", len(page.Entries))
		}
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("paging took %v", took)
	}
	if len(seen) != files+4 || len(kinds) != files+4 || seen[0] != "locked" || !slices.IsSorted(seen[1:]) {
		t.Errorf("%d entries, %d different, first %s", len(seen), len(kinds), seen[0])
	}
	for name, want := range map[string]string{"locked": "directory", "dangling": "symlink", "fifo": "other", "sock": "other", "f00000": "file"} {
		if kinds[name] != want {
			t.Errorf("%s is %s", name, kinds[name])
		}
	}
}
