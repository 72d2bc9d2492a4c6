package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/snapshot"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/vcs"
)

// git looks as the runtime lets snapshots look.
type git struct{ *vcs.Service }

func (g git) Look(ctx context.Context) (string, []string, error) {
	l, err := g.Service.Look(ctx)
	if errors.Is(err, vcs.ErrNotARepository) {
		err = snapshot.ErrNoGit
	}
	return l.Head, l.Paths, err
}

// BenchmarkStep measures what snapshots add to a call on a tree of 50,000 files: one
// that edits a file, and a command that changes one file, in a repository and
// without git.
//
//	go test ./snapshot -run - -bench Step -benchtime 10x
func BenchmarkStep(b *testing.B) {
	for _, repo := range []bool{true, false} {
		dir, n := b.TempDir(), 50_000
		if !repo {
			n = 4_000 // more than 5,000 are not looked at without git
		}
		for i := range n {
			place := fmt.Sprintf("%s/d%d/e%d", dir, i/1000, i/50%20)
			if i%50 == 0 {
				must(b, os.MkdirAll(place, 0o700))
			}
			must(b, os.WriteFile(fmt.Sprintf("%s/f%d.txt", place, i), fmt.Appendf(nil, "file %d\nand more\n", i), 0o600))
		}
		if repo {
			testkit.Git(b, dir, "init", "-q")
			testkit.Git(b, dir, "add", "-A")
			testkit.Git(b, dir, "-c", "user.name=b", "-c", "user.email=b@example.org", "commit", "-qm", "all")
		}
		e, err := env.Local(dir)
		must(b, err)
		db, err := store.Open(b.Context(), store.Config{URL: filepath.Join(b.TempDir(), "s.db"), Owner: "bench"})
		must(b, err)
		s := snapshot.NewService(b.Context(), db, b.TempDir(), slog.New(slog.DiscardHandler))
		locate := func() (vcs.Repo, bool) {
			return vcs.Repo{Root: dir, GitDir: dir + "/.git", CommonDir: dir + "/.git"}, repo
		}
		at := snapshot.Place{Env: e, Git: git{vcs.New(vcs.Config{Env: e, Directory: dir, Locate: locate})}}
		file := dir + "/d0/e0/f1.txt"
		for name, whole := range map[string]bool{"edit": false, "command": true} {
			b.Run(fmt.Sprintf("git=%v/%s", repo, name), func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					w, err := s.Before(b.Context(), at, []string{file}, whole)
					must(b, err)
					must(b, os.WriteFile(file, fmt.Appendf(nil, "changed %d\n", i), 0o600))
					changes, err := w.After(b.Context())
					must(b, err)
					if len(changes) != 1 {
						b.Fatalf("%d changes", len(changes))
					}
				}
			})
		}
		s.Close()
		must(b, errors.Join(db.Close(), e.Close()))
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
