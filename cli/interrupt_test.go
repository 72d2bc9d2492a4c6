package cli_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// machine is a home, a repository and the environment of the program there.
type machine struct {
	repo string
	env  []string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	work := t.TempDir()
	m := &machine{repo: filepath.Join(work, "repo")}
	if err := prepare(work, func(name, value string) { m.env = append(m.env, name+"="+value) }); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *machine) serve(t *testing.T) {
	t.Helper()
	_, stop, err := start(m.repo, m.env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("the server ended with: %v", err)
		}
	})
}

// interrupted runs a turn that never ends until it is busy, interrupts it, and
// gives the events and the exit code.
func (m *machine) interrupted(t *testing.T) (events string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, path, "run", "--json", "hang")
	cmd.Dir, cmd.Env, cmd.Stderr = m.repo, m.env, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		all.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), `"role":"assistant"`) && !strings.Contains(lines.Text(), `"completed"`) {
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return all.String(), cmd.ProcessState.ExitCode()
}

func TestAnInterruptEndsTheTurn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		serve bool
	}{{"of a server", true}, {"inside the program", false}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			if tt.serve {
				m.serve(t)
			}
			events, code := m.interrupted(t)
			if code != 130 {
				t.Errorf("exit code %d, not 130", code)
			}
			if !strings.Contains(events, `"outcome":"cancelled"`) {
				t.Errorf("the turn did not end as cancelled:\n%s", events)
			}
		})
	}
}
