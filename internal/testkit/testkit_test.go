package testkit_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/switchyard-dev/switchyard/internal/testkit"
)

func TestRepoIsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	dir, twin := testkit.Repo(t), testkit.Repo(t)
	if got := testkit.Git(t, dir, "status", "--porcelain=v2", "--branch"); !strings.Contains(got, "branch.head main") || strings.Contains(got, "README") {
		t.Errorf("status: %s", got)
	}
	a, b := testkit.Git(t, dir, "rev-parse", "HEAD"), testkit.Git(t, twin, "rev-parse", "HEAD")
	if a != b || len(a) != 40 {
		t.Errorf("heads %q and %q", a, b)
	}
	if got := testkit.Git(t, dir, "config", "--list", "--show-origin"); strings.Contains(got, os.Getenv("HOME")+"/.gitconfig") {
		t.Errorf("the machine's configuration shows through: %s", got)
	}
}

func TestFilesRoundTrip(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := testkit.WriteFile(t, dir, "a/b.txt", "text")
	if got := testkit.ReadFile(t, dir, "a/b.txt"); got != "text" || path != filepath.Join(dir, "a", "b.txt") {
		t.Errorf("got %q in %s", got, path)
	}
}

func TestEventuallyWaitsForTheCondition(t *testing.T) {
	t.Parallel()
	var done atomic.Bool
	timer := time.AfterFunc(20*time.Millisecond, func() { done.Store(true) })
	defer timer.Stop()
	testkit.Eventually(t, 10*time.Second, "the timer has fired", done.Load)
	if !done.Load() {
		t.Error("came back early")
	}
}

// failure notes what a helper reports and ends its goroutine, as Fatalf does.
type failure struct {
	testing.TB
	text string
}

func (f *failure) Helper() {}

func (f *failure) Fatalf(format string, args ...any) {
	f.text = strings.TrimSpace(format)
	panic(f)
}

func TestEventuallyFailsAtTheLimit(t *testing.T) {
	t.Parallel()
	f := &failure{TB: t}
	defer func() {
		if recover() != f || !strings.Contains(f.text, "not within") {
			t.Errorf("reported %q", f.text)
		}
	}()
	testkit.Eventually(f, 10*time.Millisecond, "never", func() bool { return false })
}

func TestLoggerOutlivesItsTest(t *testing.T) {
	t.Parallel()
	var log *slog.Logger
	t.Run("inner", func(t *testing.T) {
		log = testkit.Logger(t)
		log.Debug("seen with -v", "n", 1)
	})
	log.Info("dropped")
}

func TestPostgresGivesEachTestItsOwnDatabase(t *testing.T) {
	t.Parallel()
	var first string
	t.Run("use", func(t *testing.T) {
		first = testkit.Postgres(t)
		second := testkit.Postgres(t)
		for _, url := range []string{first, second} {
			conn, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			// Left open on purpose: dropping the database must not wait for it.
			if _, err := conn.Exec(t.Context(), `CREATE TABLE only_here (id bigint)`); err != nil {
				t.Errorf("%s: %v", url, err)
			}
		}
	})
	if first == "" {
		return // no server: the subtest said so
	}
	_, err := pgx.Connect(t.Context(), first)
	if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "3D000" {
		t.Errorf("the database is still there: %v", err)
	}
}
