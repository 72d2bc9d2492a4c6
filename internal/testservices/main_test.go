package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/switchyard-dev/switchyard/internal/testkit"
)

func TestEnvironmentIsTheOneThatTestsRead(t *testing.T) {
	t.Parallel()
	if postgresEnv != testkit.PostgresEnv {
		t.Errorf("%q is not %q", postgresEnv, testkit.PostgresEnv)
	}
}

func TestCommandsExitCodeIsOurs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		command []string
		code    int
		failed  bool
	}{
		"success":   {[]string{"true"}, 0, false},
		"failure":   {[]string{"sh", "-c", "exit 7"}, 7, false},
		"killed":    {[]string{"sh", "-c", "kill -KILL $$"}, 1, false},
		"not there": {[]string{"/nowhere/command"}, 1, true},
		"none":      {nil, 2, true},
	} {
		code, err := run(t.Context(), options{command: test.command})
		if code != test.code || (err != nil) != test.failed {
			t.Errorf("%s: got %d, %v", name, code, err)
		}
	}
}

func TestInterruptEndsTheWholeGroup(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancelCause(t.Context())
	file := filepath.Join(t.TempDir(), "pid")
	type result struct {
		code int
		err  error
	}
	ended := make(chan result)
	go func() {
		// The grandchild ignores the interrupt that its parent dies of.
		script := `sh -c 'trap "" INT; echo $$ >"$0"; exec sleep 600' "$0" & wait`
		code, err := runCommand(ctx, []string{"sh", "-c", script, file}, os.Environ(), &bytes.Buffer{})
		ended <- result{code, err}
	}()
	var pid int
	testkit.Eventually(t, 10*time.Second, "the grandchild runs", func() bool {
		b, _ := os.ReadFile(file)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(b)))
		return pid > 0
	})
	stop := errors.New("stop")
	interrupt(stop)
	if got := <-ended; got.code != 1 || !errors.Is(got.err, stop) {
		t.Errorf("got %+v", got)
	}
	testkit.Eventually(t, 10*time.Second, "the grandchild is gone", func() bool {
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	})
}

func TestAptIsCalledByWhoMay(t *testing.T) {
	t.Parallel()
	has := func(names ...string) func(string) (string, error) {
		return func(name string) (string, error) {
			if slices.Contains(names, name) {
				return "/usr/bin/" + name, nil
			}
			return "", os.ErrNotExist
		}
	}
	for name, test := range map[string]struct {
		look  func(string) (string, error)
		uid   int
		start string // empty: refused
	}{
		"root":          {has("apt-get"), 0, "env"},
		"user":          {has("apt-get", "sudo"), 1000, "sudo"},
		"user, no sudo": {has("apt-get"), 1000, ""},
		"no apt":        {has("sudo"), 0, ""},
	} {
		got, err := aptCommand(test.look, test.uid)
		if (err == nil) != (test.start != "") || err == nil && (got[0] != test.start || !slices.Contains(got, "/usr/bin/apt-get")) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}

func TestUnknownProgramsAreRefused(t *testing.T) {
	t.Parallel()
	code, err := run(t.Context(), options{install: []string{"emacs"}, command: []string{"true"}})
	if code != 1 || err == nil || !strings.Contains(err.Error(), "chromium, postgres, ripgrep") {
		t.Errorf("got %d, %v", code, err)
	}
}

func TestNewestVersionComesFirst(t *testing.T) {
	t.Parallel()
	if a, b := version("/usr/lib/postgresql/9/bin"), version("/usr/lib/postgresql/15/bin"); a != 9 || b != 15 {
		t.Errorf("got %d and %d", a, b)
	}
}

func TestPostgresIsOursAndThrownAway(t *testing.T) {
	t.Parallel()
	if findPostgres() == "" {
		t.Skip("PostgreSQL not available: run make test")
	}
	s, err := startPostgres(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), s.url)
	if err != nil {
		t.Fatal(errors.Join(err, s.stop()))
	}
	// Byte order would put the capital first.
	var likePeople bool
	err = conn.QueryRow(t.Context(), `SELECT 'a' < 'B' FROM pg_roles WHERE rolname = current_user AND rolcreatedb`).Scan(&likePeople)
	if err != nil || !likePeople {
		t.Errorf("sorts like people: %v, %v", likePeople, err)
	}
	if err := s.stop(); err != nil { // with the connection open
		t.Error(err)
	}
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("the data is still there: %v", err)
	}
	if _, err := pgx.Connect(t.Context(), s.url); err == nil {
		t.Error("the server still answers")
	}
}
