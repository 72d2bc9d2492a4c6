package env_test

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/fault"
)

// walked gives the paths that a walk visits, ignored ones with a "!" before
// them, sorted unless the walk is ordered.
func walked(t testing.TB, files env.Files, o env.WalkOptions) []string {
	t.Helper()
	var mu sync.Mutex
	got := []string{}
	must(t, files.Walk(t.Context(), o, func(e *env.Entry) error {
		mu.Lock()
		defer mu.Unlock()
		mark := ""
		if e.Ignored {
			mark = "!"
		}
		got = append(got, mark+e.Path)
		return nil
	}))
	if !o.Ordered {
		slices.Sort(got)
	}
	return got
}

func wantPaths(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

func TestWalkLeavesOutHiddenAndIgnored(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.put(t, "a.go", "b/c.go", "b/c.log", ".env", ".cache/x", "out/deep/f", ".git/config", "b/.git/config", "b/n/.ignore", "b/n/k.txt", "b/n/l.txt")
	must(t, os.WriteFile(b.at(".gitignore"), []byte("*.log\n/out/\n"), 0o600))
	must(t, os.WriteFile(b.at("b/n/.ignore"), []byte("k.*\n"), 0o600))

	wantPaths(t, "default", walked(t, b.files, env.WalkOptions{}),
		"a.go", "b", "b/c.go", "b/c.log", "b/n", "b/n/l.txt") // b is another repository
	must(t, os.RemoveAll(b.at("b/.git")))
	wantPaths(t, "one repository", walked(t, b.files, env.WalkOptions{}),
		"a.go", "b", "b/c.go", "b/n", "b/n/l.txt")
	wantPaths(t, "hidden", walked(t, b.files, env.WalkOptions{Hidden: true}),
		".cache", ".cache/x", ".env", ".gitignore", "a.go", "b", "b/c.go", "b/n", "b/n/.ignore", "b/n/l.txt")
	wantPaths(t, "ignored", walked(t, b.files, env.WalkOptions{Ignored: true}),
		"!b/c.log", "!b/n/k.txt", "!out", "!out/deep", "!out/deep/f", "a.go", "b", "b/c.go", "b/n", "b/n/l.txt")
}

func TestWalkStartsAnywhere(t *testing.T) {
	t.Parallel()
	b := linked(t)
	b.put(t, "gen/a/b.go", "gen/c.go")
	must(t, os.WriteFile(b.at(".gitignore"), []byte("gen/\n"), 0o600))

	wantPaths(t, "an ignored directory", walked(t, b.files, env.WalkOptions{Path: "gen/a"}), "!gen/a/b.go")
	wantPaths(t, "a link", walked(t, b.files, env.WalkOptions{Path: "abs"}), "abs/f", "abs/up")
	wantPaths(t, "a file", walked(t, b.files, env.WalkOptions{Path: "d/f"}), "d/f")
	wantPaths(t, "a link to a file", walked(t, b.files, env.WalkOptions{Path: "real/viaup"}), "real/viaup")
	wantPaths(t, "one level", walked(t, b.files, env.WalkOptions{Path: "real", Depth: 1}), "real/deep", "real/viaup")
	wantPaths(t, "absolute", walked(t, b.files, env.WalkOptions{Path: b.at("d")}), "d/f", "d/up")
	for p, code := range map[string]fault.Code{"none": fault.FileNotFound, "out": fault.PathOutside, "..": fault.PathOutside} {
		err := b.files.Walk(t.Context(), env.WalkOptions{Path: p}, func(*env.Entry) error { return nil })
		wantCode(t, p, err, code)
	}
}

func TestWalkOpensEntries(t *testing.T) {
	t.Parallel()
	b := linked(t)
	var mu sync.Mutex
	var held []*env.Entry
	must(t, b.files.Walk(t.Context(), env.WalkOptions{}, func(e *env.Entry) error {
		if e.Path == "d/f" || e.Path == "real/deep/f" || e.Path == "fifo" || e.Path == "parent" {
			e.Hold()
			mu.Lock()
			held = append(held, e)
			mu.Unlock()
		}
		return nil
	}))
	if len(held) != 4 {
		t.Fatalf("held %d entries", len(held))
	}
	for _, e := range held {
		f, err := e.Open()
		switch e.Name {
		case "fifo":
			wantCode(t, e.Path, err, fault.NotAFile)
		case "parent":
			if err == nil {
				t.Error("a link to the outside was opened")
			}
		default:
			must(t, err)
			must(t, f.Close())
		}
		e.Release()
	}
	if _, err := held[0].Open(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Release: %v", err)
	}
}

func TestWalkCopesWithOddTrees(t *testing.T) {
	t.Parallel()
	b := linked(t)
	b.put(t, "locked/f", "caf\xe9/f", "new\nline")
	must(t, os.Chmod(b.at("locked"), 0))
	t.Cleanup(func() { _ = os.Chmod(b.at("locked"), 0o755) })
	kinds := map[string]iofs.FileMode{}
	var mu sync.Mutex
	must(t, b.files.Walk(t.Context(), env.WalkOptions{}, func(e *env.Entry) error {
		mu.Lock()
		defer mu.Unlock()
		kinds[e.Path] = e.Type
		return nil
	}))
	for p, want := range map[string]iofs.FileMode{
		"locked": iofs.ModeDir, "fifo": iofs.ModeNamedPipe, "sock": iofs.ModeSocket, "loop": iofs.ModeSymlink,
		"dangling": iofs.ModeSymlink, "in": iofs.ModeSymlink, "caf\xe9/f": 0, "new\nline": 0, "d/up": iofs.ModeSymlink,
	} {
		if got, ok := kinds[p]; !ok || got != want {
			t.Errorf("%q: %v, %v", p, got, ok)
		}
	}
	if _, ok := kinds["in/f"]; ok {
		t.Error("a linked directory was entered")
	}
}

func TestWalkInOrderIsBytewiseByPath(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.put(t, "a/z", "a.go", "a-b", "a0", "ab/c", "a/b/c", "a/b.x", "Z", "z/\xff", "z/é")
	got := walked(t, b.files, env.WalkOptions{Ordered: true})
	want := slices.Clone(got)
	for i, p := range want { // a directory counts with its slash
		if info, err := os.Stat(b.at(p)); err == nil && info.IsDir() {
			want[i] += "/"
		}
	}
	slices.Sort(want)
	for i := range want {
		want[i] = strings.TrimSuffix(want[i], "/")
	}
	wantPaths(t, "ordered", got, want...)
	if parallel := walked(t, b.files, env.WalkOptions{}); len(parallel) != len(got) {
		t.Errorf("%d in order, %d in parallel", len(got), len(parallel))
	}
}

func TestWalkEndsAsTheVisitSays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.put(t, "a/f", "b/f", "c/f")
	for _, ordered := range []bool{true, false} {
		var mu sync.Mutex
		seen := map[string]bool{}
		visit := func(answer map[string]error) error {
			clear(seen)
			return b.files.Walk(t.Context(), env.WalkOptions{Ordered: ordered}, func(e *env.Entry) error {
				mu.Lock()
				defer mu.Unlock()
				seen[e.Path] = true
				return answer[e.Path]
			})
		}
		must(t, visit(map[string]error{"b": iofs.SkipDir}))
		if seen["b/f"] || !seen["a/f"] || !seen["c/f"] {
			t.Errorf("SkipDir, ordered %v: %v", ordered, seen)
		}
		must(t, visit(map[string]error{"a": iofs.SkipAll, "b": iofs.SkipAll, "c": iofs.SkipAll}))
		if seen["a/f"] || seen["b/f"] || seen["c/f"] {
			t.Errorf("SkipAll, ordered %v: %v", ordered, seen)
		}
		if err := visit(map[string]error{"b/f": os.ErrInvalid}); !errors.Is(err, os.ErrInvalid) {
			t.Errorf("error, ordered %v: %v", ordered, err)
		}
	}
}

// openDescriptors counts the descriptors of this process below dir, which other
// tests do not open.
func openDescriptors(t testing.TB, dir string) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil { // no /proc here: nothing to count
		return 0
	}
	n := 0
	for _, fd := range fds {
		if target, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(target, dir+"/") {
			n++
		}
	}
	return n
}

func TestWalkEndsWithItsContextAndLeaksNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 60 {
		b.put(t, fmt.Sprintf("d%d/e/f%d", i%20, i))
	}
	why := errors.New("enough")
	for _, ordered := range []bool{true, false} {
		ctx, cancel := context.WithCancelCause(t.Context())
		n := 0
		var mu sync.Mutex
		err := b.files.Walk(ctx, env.WalkOptions{Ordered: ordered}, func(*env.Entry) error {
			mu.Lock()
			defer mu.Unlock()
			if n++; n == 10 {
				cancel(why)
			}
			return nil
		})
		if !errors.Is(err, why) || n > 12 {
			t.Errorf("ordered %v: %v after %d visits", ordered, err, n)
		}
		cancel(nil)
	}
	if n := openDescriptors(t, b.root); n != 0 {
		t.Errorf("%d descriptors are left open", n)
	}
}

// ignoreRules are files of rules, and ignoreFiles what they are held against.
var (
	ignoreRules = map[string]string{
		".git/info/exclude": "excluded.txt\nkept.tmp\n",
		".gitignore": "\ufeff*.log\n!keep.log\n# comment\n\\#hash\n\\!bang\n/build\nnode_modules/\ndoc/*.txt\n**/gen/*.go\n" +
			"vendor/**\nfoo/**/bar\n*.t?p\n[!a-z]*.dat\ntrail  \nspace\\ \ncr\r\n*\\[x\\]\n!kept.tmp\nonly/\ntemp.*.swp\n/a/*\n!/a/keep/\n",
		"sub/.gitignore":      "!*.log\n/local\ninner/\n",
		"sub/deep/.gitignore": "*\n!*/\n!*.md\n",
		"white/.gitignore":    "/*\n!/src\n!.gitignore\n",
		"all/.gitignore":      "**\n!ok\n",
	}
	ignoreFiles = []string{
		"x.log", "keep.log", "#hash", "!bang", "build/x", "src/build/x", "node_modules/m/x.js", "src/node_modules/y.js",
		"doc/a.txt", "doc/sub/a.txt", "gen/x.go", "src/gen/x.go", "src/gen/sub/x.go", "vendor/x/y", "vendor.go",
		"foo/bar", "foo/a/bar", "foo/a/b/bar", "foo/a/b/baz", "a.tmp", "kept.tmp", "excluded.txt", "sub/excluded.txt",
		"A.dat", "a.dat", "9x.dat", "trail", "space ", "cr", "q[x]", "only", "sub/only/f", "temp.1.swp", "temp.swp",
		"a/drop/f", "a/keep/f", "a/keep/x.log", "a/f",
		"sub/x.log", "sub/local", "sub/more/local", "sub/inner/f", "sub/deep/x.go", "sub/deep/x.md", "sub/deep/er/y.md", "sub/deep/er/y.go",
		"white/src/f", "white/src/x.log", "white/other/f", "white/file", "all/ok", "all/no", "all/d/ok",
		"plain/file.go", "plain/d.ext/log", "LOG.LOG", ".hidden/f",
	}
)

func (b bundle) git(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = b.root
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "XDG_CONFIG_HOME=/nowhere", "HOME=/nowhere")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// walkedFiles gives what a walk finds beside directories, hidden files too.
func walkedFiles(t testing.TB, files env.Files) []string {
	t.Helper()
	got := []string{}
	must(t, files.Walk(t.Context(), env.WalkOptions{Hidden: true, Ordered: true}, func(e *env.Entry) error {
		if !e.Type.IsDir() {
			got = append(got, e.Path)
		}
		return nil
	}))
	return got
}

// TestIgnoreRulesAgreeWithGit compares a walk with git's own opinion, also for a
// root below the top and for a linked work tree, which know the same rules.
func TestIgnoreRulesAgreeWithGit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.git(t, "init", "-q")
	for file, rules := range ignoreRules {
		must(t, os.MkdirAll(filepath.Dir(b.at(file)), 0o755))
		must(t, os.WriteFile(b.at(file), []byte(rules), 0o644))
	}
	b.put(t, ignoreFiles...)
	want := strings.Split(strings.TrimSuffix(b.git(t, "ls-files", "-co", "--exclude-standard", "-z"), "\x00"), "\x00")
	slices.Sort(want)
	wantPaths(t, "whole", walkedFiles(t, b.files), want...)

	inner, err := b.env.Open(b.at("sub"))
	must(t, err)
	defer inner.Close()
	wantSub := []string{}
	for _, p := range want {
		if rest, ok := strings.CutPrefix(p, "sub/"); ok {
			wantSub = append(wantSub, rest)
		}
	}
	wantPaths(t, "sub", walkedFiles(t, inner), wantSub...)

	b.git(t, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "--allow-empty", "-m", "x")
	b.git(t, "worktree", "add", "-q", "../linked")
	tree := filepath.Join(filepath.Dir(b.root), "linked")
	must(t, os.WriteFile(filepath.Join(tree, "excluded.txt"), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(tree, "seen.txt"), nil, 0o600))
	other, err := b.env.Open(tree)
	must(t, err)
	defer other.Close()
	wantPaths(t, "linked work tree", walkedFiles(t, other), "seen.txt")
}
