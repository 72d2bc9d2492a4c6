package vcs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/vcs"
)

func (b *bundle) info(s *vcs.Service) vcs.Info {
	b.t.Helper()
	info, err := s.Get(b.t.Context())
	b.must(err)
	return info
}

func TestSC49_OutsideOfGit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.service("")
	if info := b.info(s); info.Type != "none" || info.Engine != vcs.EngineGit || info.Root != "" {
		t.Errorf("%+v", info)
	}
	if got := b.status(s); got == nil || len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if got := b.diff(s, ""); got == nil || len(got) != 0 || b.patch(t.Context(), s, "") != "" {
		t.Errorf("%+v", got)
	}
	b.git("init", "-q")
	b.write("a", "a\n")
	if info := b.info(s); info.Type != "git" || info.Root != b.dir || info.Branch != "main" || info.Head != "" || info.Detached || info.State != "clean" {
		t.Errorf("%+v", info)
	}
	if got := b.status(s); len(got) != 1 || got[0].Status != "untracked" || got[0].Additions != 1 {
		t.Errorf("%+v", got)
	}
}

func TestGetTellsBranchAndHead(t *testing.T) {
	t.Parallel()
	b := repo(t, map[string]string{"a": "a\n"})
	s := b.service("")
	head := func() string { return strings.TrimSpace(b.git("rev-parse", "HEAD")) }
	if info := b.info(s); info.Branch != "main" || info.DefaultBranch != "main" || info.Head != head() || info.Ahead != nil || info.Detached {
		t.Errorf("%+v", info)
	}
	b.git("switch", "-q", "-c", "feature/x")
	b.git("pack-refs", "--all")
	if info := b.info(s); info.Branch != "feature/x" || info.Head != head() || info.DefaultBranch != "main" {
		t.Errorf("%+v", info)
	}
	b.git("checkout", "-q", "--detach")
	if info := b.info(s); info.Branch != "" || !info.Detached || info.Head != head() {
		t.Errorf("%+v", info)
	}
	b.git("branch", "-q", "-m", "main", "trunk")
	if info := b.info(s); info.DefaultBranch != "" {
		t.Errorf("%+v", info)
	}
	b.git("config", "--global", "init.defaultBranch", "trunk")
	if info := b.info(b.service("")); info.DefaultBranch != "trunk" {
		t.Errorf("%+v", info)
	}
}

func TestGetCountsCommits(t *testing.T) {
	t.Parallel()
	b := repo(t, map[string]string{"a": "a\n"})
	b.git("clone", "-q", b.dir, b.home+"/clone")
	b.commit(map[string]string{"b": "b\n"})
	b.dir = b.home + "/clone"
	s := b.service("")
	if info := b.info(s); *info.Ahead != 0 || *info.Behind != 0 || info.DefaultBranch != "main" {
		t.Errorf("%+v", info)
	}
	b.commit(map[string]string{"c": "c\n"})
	b.commit(map[string]string{"d": "d\n"})
	b.git("fetch", "-q")
	for range 2 {
		if info := b.info(s); *info.Ahead != 2 || *info.Behind != 1 {
			t.Errorf("%d %d", *info.Ahead, *info.Behind)
		}
	}
	if info := b.info(b.service("", withoutGit)); info.Ahead != nil || info.Engine != vcs.EngineGoGit || info.Branch != "main" {
		t.Errorf("%+v", info)
	}
}

func TestGetTellsTheState(t *testing.T) {
	t.Parallel()
	for state, make := range map[string]func(b *bundle){
		"merging":        func(b *bundle) { conflict(b, "merge", "-q") },
		"rebasing":       func(b *bundle) { conflict(b, "rebase", "-q") },
		"cherry-picking": func(b *bundle) { conflict(b, "cherry-pick") },
		"reverting": func(b *bundle) {
			b.commit(map[string]string{"a.txt": "x\n"})
			b.commit(map[string]string{"a.txt": "y\n"})
			_, _ = b.try("revert", "--no-edit", "HEAD~1")
		},
		"bisecting": func(b *bundle) { b.git("bisect", "start") },
		"applying": func(b *bundle) {
			b.write(b.home+"/p", "From 0000 Mon Sep 17 00:00:00 2001\nFrom: a <a@b>\nSubject: x\n\n---\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-no\n+yes\n")
			_, _ = b.try("am", b.home+"/p")
		},
	} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			b := change(make)(t)
			if info := b.info(b.service("")); info.State != state {
				t.Errorf("%+v", info)
			}
		})
	}
}

func TestLinkedWorktreesHaveTheirOwnHead(t *testing.T) {
	t.Parallel()
	b := repo(t, map[string]string{"a": "a\n"})
	other := filepath.Join(filepath.Dir(b.dir), "other")
	b.git("worktree", "add", "-q", "-b", "side", other)
	if info := b.info(b.service("")); info.Branch != "main" {
		t.Errorf("%+v", info)
	}
	b.dir = other
	if info := b.info(b.service("")); info.Branch != "side" || info.Root != other || info.Head == "" || info.DefaultBranch != "main" {
		t.Errorf("%+v", info)
	}
}

func TestPathsAreRelativeToTheDirectory(t *testing.T) {
	t.Parallel()
	b := repo(t, map[string]string{"a": "a\n", "sub/b": "b\n", "sub/deep/c": "c\n", "subway/d": "d\n"})
	for _, n := range []string{"a", "sub/b", "sub/deep/c", "subway/d"} {
		b.write(n, "x\n")
	}
	b.git("mv", "sub/b", "z")
	s := b.service("sub/deep")
	var got []string
	for _, c := range b.status(s) {
		got = append(got, c.File+"<"+c.OldFile)
	}
	if want := "../../a< ../../subway/d< ../../z<../b c<"; strings.Join(got, " ") != want {
		t.Errorf("%q", got)
	}
	for _, d := range b.diff(s, "") {
		if d.File == "c" && d.Additions == 1 {
			return
		}
	}
	t.Error("c is not in the diff")
}

func TestDiffAgainstTheDefaultBranch(t *testing.T) {
	t.Parallel()
	b := repo(t, map[string]string{"a": "a\n", "b": "b\n"})
	b.git("switch", "-q", "-c", "topic")
	b.commit(map[string]string{"a": "changed\n"})
	b.git("switch", "-q", "main")
	b.commit(map[string]string{"b": "not ours\n"})
	b.git("switch", "-q", "topic")
	b.write("c", "new\n")
	for _, s := range []*vcs.Service{b.service(""), b.service("", withoutGit)} {
		got := b.diff(s, vcs.ModeDefault)
		if len(got) != 2 || got[0].File != "a" || got[0].Status != "modified" || got[1].File != "c" || got[1].Status != "added" {
			t.Errorf("%+v", got)
		}
	}
	b.git("branch", "-q", "-D", "main")
	if _, err := b.service("").Diff(t.Context(), vcs.DiffOptions{Mode: vcs.ModeDefault}); !fault.Is(err, fault.ValidationFailed) {
		t.Error(err)
	}
}

func TestWithoutGitTheLibraryAnswers(t *testing.T) {
	t.Parallel()
	b := repo(t, map[string]string{"a": "one\ntwo\nthree", "gone": "gone\n", "bin": "\x00"})
	b.write("a", "one\n2\nthree")
	b.write("new", "n\n")
	b.write("bin", "\x00\x01")
	b.must(os.Remove(b.dir + "/gone"))
	b.git("add", "a")
	s := b.service("", withoutGit)
	var got []string
	for _, c := range b.status(s) {
		got = append(got, c.File+":"+c.Staged+":"+c.Unstaged+":"+c.Status)
	}
	if want := "a:modified::modified bin::modified:modified gone::deleted:deleted new:::untracked"; strings.Join(got, " ") != want {
		t.Errorf("%q", got)
	}
	diffs := b.diff(s, "")
	if len(diffs) != 4 || diffs[0].Additions != 1 || diffs[0].Deletions != 1 || !diffs[1].Binary {
		t.Errorf("%+v", diffs)
	}
	patch := b.patch(t.Context(), s, "")
	b.git("checkout", "-q", "-f", "HEAD")
	b.must(os.Remove(b.dir + "/new"))
	b.write(b.home+"/p", patch)
	if _, err := b.try("apply", "--exclude=bin", b.home+"/p"); err != nil {
		t.Fatal(err, patch)
	}
	if b.read("a") != "one\n2\nthree" || b.read("new") != "n\n" || b.read("gone") != "<none>" {
		t.Error(patch)
	}
}

func TestLargeDiffsAreCut(t *testing.T) {
	t.Parallel()
	b := repo(t, map[string]string{"a": "a\n"})
	b.write("a", manyLines(100_000))
	b.write("u", manyLines(100_000))
	b.write("z", "z\n")
	got := b.diff(b.service(""), "")
	if len(got) != 3 || !got[0].Truncated || got[0].Additions != 100_000 || !got[1].Truncated || got[1].Additions != 100_000 || got[2].Truncated || len(got[2].Hunks) != 1 {
		t.Errorf("%d files", len(got))
	}
	for _, d := range got {
		size := 0
		for _, h := range d.Hunks {
			for _, l := range h.Lines {
				size += len(l)
			}
		}
		if size > 600<<10 {
			t.Errorf("%s has %d bytes", d.File, size)
		}
	}
}

func TestCountsFollowTheFile(t *testing.T) {
	t.Parallel()
	b := repo(t, map[string]string{"a": "a\n"})
	s := b.service("")
	for i := range 30 {
		b.write("a", strings.Repeat("x\n", i+2))
		b.write("u", strings.Repeat("y\n", i+1))
		got := b.status(s)
		if len(got) != 2 || got[0].Additions != i+2 || got[1].Additions != i+1 {
			t.Fatalf("%d: %+v", i, got)
		}
	}
}
