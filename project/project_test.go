package project_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/project"
	"github.com/switchyard-dev/switchyard/store"
)

func real(t *testing.T, dir string) string {
	t.Helper()
	out, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func setup(t *testing.T) *project.Service {
	t.Helper()
	db, err := store.Open(t.Context(), store.Config{URL: filepath.Join(t.TempDir(), "s.db"), Owner: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return project.NewService(db, id.NewSource(time.Now, nil))
}

func TestLocate(t *testing.T) {
	t.Parallel()
	repo := real(t, testkit.Repo(t))
	sub := filepath.Join(repo, "a", "b")
	if err := os.MkdirAll(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	linked := filepath.Join(real(t, t.TempDir()), "linked")
	testkit.Git(t, repo, "worktree", "add", "-q", linked)
	bare := filepath.Join(real(t, t.TempDir()), "bare.git")
	testkit.Git(t, repo, "clone", "-q", "--bare", repo, bare)
	ofBare := filepath.Join(real(t, t.TempDir()), "tree")
	testkit.Git(t, bare, "worktree", "add", "-q", ofBare)
	plain := real(t, t.TempDir())
	broken := real(t, t.TempDir())
	if err := os.WriteFile(filepath.Join(broken, ".git"), []byte("gitdir: /none/such\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	git := filepath.Join(repo, ".git")
	for name, c := range map[string]struct {
		dir  string
		want project.Place
	}{
		"top":               {repo, project.Place{Root: repo, Identity: git, Main: repo, GitDir: git, VCS: "git"}},
		"below":             {sub, project.Place{Root: repo, Identity: git, Main: repo, GitDir: git, VCS: "git"}},
		"linked work tree":  {linked, project.Place{Root: linked, Identity: git, Main: repo, GitDir: filepath.Join(git, "worktrees", "linked"), VCS: "git"}},
		"work tree of bare": {ofBare, project.Place{Root: ofBare, Identity: bare, Main: ofBare, GitDir: filepath.Join(bare, "worktrees", "tree"), VCS: "git"}},
		"no git":            {plain, project.Place{Root: plain, Identity: plain, Main: plain, VCS: "none"}},
		"dangling pointer":  {broken, project.Place{Root: broken, Identity: broken, Main: broken, VCS: "none"}},
	} {
		if got := project.Locate(c.dir); got != c.want {
			t.Errorf("%s: %+v\nwant %+v", name, got, c.want)
		}
	}
}

func TestOneProjectPerClone(t *testing.T) {
	t.Parallel()
	s := setup(t)
	first := real(t, testkit.Repo(t))
	second := filepath.Join(real(t, t.TempDir()), "clone")
	testkit.Git(t, first, "clone", "-q", first, second)
	linked := filepath.Join(real(t, t.TempDir()), "linked")
	testkit.Git(t, first, "worktree", "add", "-q", linked)
	ensure := func(dir string) id.Project {
		p, err := s.Ensure(t.Context(), project.Locate(dir))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	a, b := ensure(first), ensure(second)
	if a == b || ensure(linked) != a || ensure(first) != a {
		t.Fatalf("%s %s %s", a, b, ensure(linked))
	}
	got, err := s.Get(t.Context(), a)
	if err != nil || got.VCS != "git" || got.Commands == nil || got.Time.Created == 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := s.Get(t.Context(), "prj_none"); !fault.Is(err, fault.ProjectNotFound) {
		t.Fatalf("err %v", err)
	}
	if entries, _ := filepath.Glob(filepath.Join(first, ".git", "*switchyard*")); len(entries) != 0 {
		t.Fatalf("the user's .git holds %v", entries)
	}
}
