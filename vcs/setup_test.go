package vcs_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/project"
	"github.com/switchyard-dev/switchyard/vcs"
)

// bundle is a repository with a service on it, and a home of its own.
type bundle struct {
	t    testing.TB
	home string
	dir  string // top of the work tree
	want []string
	sums map[string]string
}

// setup makes a directory that is no repository yet.
func setup(t testing.TB) *bundle {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bundle{t: t, home: filepath.Join(base, "home"), dir: filepath.Join(base, "work")}
	for _, d := range []string{b.home, b.dir} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	b.write(b.home+"/.gitconfig", "[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[protocol \"file\"]\n\tallow = always\n")
	return b
}

// repo makes a repository with a commit of files.
func repo(t testing.TB, files map[string]string) *bundle {
	t.Helper()
	b := setup(t)
	b.git("init", "-q")
	b.commit(files)
	return b
}

func (b *bundle) commit(files map[string]string) {
	b.t.Helper()
	for name, text := range files {
		b.write(name, text)
	}
	b.git("add", "-A")
	b.git("commit", "-q", "--allow-empty", "-m", "more")
}

// write writes a file, relative to the work tree or absolute.
func (b *bundle) write(name, text string) {
	b.t.Helper()
	path := b.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(b.dir, name)
}

func (b *bundle) read(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(b.path(name))
	if errors.Is(err, os.ErrNotExist) {
		return "<none>"
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

func (b *bundle) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// environ is what git and the service see of the machine.
func (b *bundle) environ() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.home, "XDG_CONFIG_HOME=" + b.home + "/.config"}
}

// try runs git in the work tree.
func (b *bundle) try(args ...string) (string, error) {
	cmd := exec.CommandContext(b.t.Context(), "git", args...)
	cmd.Dir = b.dir
	cmd.Env = append(b.environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_OPTIONAL_LOCKS=0", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = errors.New("git " + strings.Join(args, " ") + ": " + err.Error() + "\n" + stderr.String())
	}
	return string(out), err
}

func (b *bundle) git(args ...string) string {
	b.t.Helper()
	out, err := b.try(args...)
	b.must(err)
	return out
}

// service makes a service for a directory below the work tree.
func (b *bundle) service(below string, change ...func(*vcs.Config)) *vcs.Service {
	b.t.Helper()
	directory, err := filepath.EvalSymlinks(filepath.Join(b.dir, below))
	b.must(err)
	place := project.Locate(directory)
	e, err := env.Local(place.Root, env.WithEnviron(b.environ()))
	b.must(err)
	b.t.Cleanup(func() { _ = e.Close() })
	c := vcs.Config{Env: e, Directory: directory, Locate: func() (vcs.Repo, bool) {
		p := project.Locate(directory)
		return vcs.Repo{Root: p.Root, GitDir: p.GitDir, CommonDir: p.Identity}, p.GitDir != ""
	}}
	for _, f := range change {
		f(&c)
	}
	return vcs.New(c)
}

// withoutGit makes a service that finds no git program.
func withoutGit(c *vcs.Config) { c.Program = "there-is-no-such-git" }

func (b *bundle) status(s *vcs.Service) []vcs.Change {
	b.t.Helper()
	got, err := s.Status(b.t.Context())
	b.must(err)
	return got
}

func (b *bundle) diff(s *vcs.Service, mode string) []vcs.FileDiff {
	b.t.Helper()
	got, err := s.Diff(b.t.Context(), vcs.DiffOptions{Mode: mode, Context: vcs.DefaultContext})
	b.must(err)
	return got
}

func (b *bundle) patch(ctx context.Context, s *vcs.Service, mode string) string {
	b.t.Helper()
	var out bytes.Buffer
	b.must(s.WritePatch(ctx, vcs.DiffOptions{Mode: mode, Context: vcs.DefaultContext}, &out))
	return out.String()
}
