package env_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/fault"
)

// output gathers what a process writes.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// await waits until the output holds text.
func (o *output) await(t testing.TB, text string) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); <-time.After(2 * time.Millisecond) {
		if strings.Contains(o.String(), text) {
			return
		}
	}
	t.Fatalf("no %q in %q", text, o.String())
}

// run runs a command line to its end.
func (b bundle) run(t testing.TB, c env.Command) (string, env.Exit) {
	t.Helper()
	out := &output{}
	c.Output = out
	p, err := b.env.Start(t.Context(), c)
	must(t, err)
	exit := p.Wait()
	return out.String(), exit
}

// alive reports whether a process exists and is no zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// pidsIn reads the numbers that a script printed.
func pidsIn(t testing.TB, text string) []int {
	t.Helper()
	var pids []int
	for word := range strings.FieldsSeq(text) {
		if pid, err := strconv.Atoi(word); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestStartMergesOutputInOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	out, exit := b.run(t, env.Command{Shell: `for i in 1 2 3; do echo out$i; echo err$i >&2; done; exit 7`})
	if out != "out1\nerr1\nout2\nerr2\nout3\nerr3\n" || exit.Code != 7 || exit.Signal != "" || exit.Err != nil {
		t.Errorf("%q, %+v", out, exit)
	}
	out, exit = b.run(t, env.Command{Args: []string{"cat"}}) // stdin is empty
	if out != "" || exit.Code != 0 {
		t.Errorf("cat: %q, %+v", out, exit)
	}
	if _, exit = b.run(t, env.Command{Shell: `kill -KILL $$`}); exit.Code != -1 || exit.Signal != "SIGKILL" {
		t.Errorf("killed: %+v", exit)
	}
	out, _ = b.run(t, env.Command{Shell: `head -c 3000000 /dev/zero | tr '\0' x`})
	if len(out) != 3_000_000 {
		t.Errorf("%d bytes of much output", len(out))
	}
}

func TestStartRunsInItsDirectory(t *testing.T) {
	t.Parallel()
	b := linked(t)
	for dir, want := range map[string]string{"": b.root, "d": b.at("d"), b.at("d"): b.at("d"), "abs": b.at("d")} {
		if out, _ := b.run(t, env.Command{Shell: "pwd -P", Dir: dir}); strings.TrimSpace(out) != want {
			t.Errorf("%q: ran in %s", dir, out)
		}
	}
	for dir, code := range map[string]fault.Code{
		"none": fault.DirectoryNotFound, "d/f": fault.NotADirectory, "..": fault.PathOutside, "out": fault.PathOutside,
	} {
		_, err := b.env.Start(t.Context(), env.Command{Shell: "true", Dir: dir})
		wantCode(t, dir, err, code)
	}
	if _, err := b.env.Start(t.Context(), env.Command{Args: []string{"no-such-program"}}); err == nil {
		t.Error("an unknown program started")
	}
	if _, err := b.env.Start(t.Context(), env.Command{}); err == nil {
		t.Error("nothing started")
	}
}

func TestChildrenSeeAllowedVariablesOnly(t *testing.T) {
	t.Parallel()
	b := setup(t, env.WithPass("GOFLAGS", "SWITCHYARD_TOKEN"), env.WithEnviron([]string{
		"PATH=/usr/bin:/bin", "HOME=/home/u", "USER=u", "LOGNAME=u", "SHELL=/bin/sh", "LANG=C.UTF-8", "LC_TIME=C",
		"TERM=xterm", "TMPDIR=/tmp", "TZ=UTC", "XDG_CONFIG_HOME=/c", "XDG_API_TOKEN=secret", "SWITCHYARD_TOKEN=secret",
		"FOO_API_KEY=secret", "AWS_SECRET_ACCESS_KEY=secret", "LD_PRELOAD=secret", "GOFLAGS=-v", "EMPTY=",
	}))
	out, _ := b.run(t, env.Command{Args: []string{"env"}, Env: map[string]string{"MINE": "1", "MY_API_KEY": "given"}, Call: "7:call_x"})
	got := strings.Split(strings.TrimSpace(out), "\n")
	slices.Sort(got)
	want := []string{
		"GIT_TERMINAL_PROMPT=0", "GOFLAGS=-v", "HOME=/home/u", "LANG=C.UTF-8", "LC_TIME=C", "LOGNAME=u", "MINE=1",
		"MY_API_KEY=given", "PATH=/usr/bin:/bin", "PWD=" + b.root, "SHELL=/bin/sh", "SWITCHYARD_CALL=7:call_x",
		"TERM=xterm", "TMPDIR=/tmp", "TZ=UTC", "USER=u", "XDG_CONFIG_HOME=/c",
	}
	wantPaths(t, "environment", got, want...)
	if got := b.env.Shell(); !slices.Equal(got, []string{"/bin/sh", "-c"}) {
		t.Errorf("shell %v", got)
	}
	for _, odd := range []string{"SHELL=/usr/bin/fish", "SHELL=bash", "SHELL=/none/zsh", "SHELL="} {
		if got := setup(t, env.WithEnviron([]string{odd})).env.Shell(); got[0] != "/bin/bash" && got[0] != "/bin/sh" {
			t.Errorf("%s: shell %v", odd, got)
		}
	}
}

func TestWaitDoesNotHangOnABackgroundChild(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, tt := range []struct{ name, line string }{
		{"silent", "sleep 60 & echo $!; echo done"},
		{"chatty", "(trap '' PIPE; while :; do echo x; sleep 0.05; done) & echo $!; echo done"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out := &output{}
			p, err := b.env.Start(t.Context(), env.Command{Shell: tt.line, Output: out})
			must(t, err)
			begun := time.Now()
			exit := p.Wait()
			if took := time.Since(begun); exit.Code != 0 || took > 2500*time.Millisecond {
				t.Errorf("%+v after %v", exit, took)
			}
			if !strings.Contains(out.String(), "done") {
				t.Errorf("output %q", out.String())
			}
			child := pidsIn(t, out.String())[0]
			if tt.name == "silent" && !alive(child) {
				t.Error("the background child was killed")
			}
			p.Stop()
			if alive(child) {
				t.Error("the background child is left after Stop")
			}
		})
	}
}

// TestSC12_StopEndsAStubbornGroup stops a shell that ignores INT and TERM, with
// a child that does the same.
func TestSC12_StopEndsAStubbornGroup(t *testing.T) {
	t.Parallel()
	b := setup(t)
	out := &output{}
	p, err := b.env.Start(t.Context(), env.Command{
		Shell:  `trap '' INT TERM; (sleep 300 & echo $!; wait) & echo $!; echo ready; while :; do wait; sleep 1; done`,
		Output: out,
	})
	must(t, err)
	out.await(t, "ready")
	begun := time.Now()
	var stops sync.WaitGroup
	for range 3 {
		stops.Go(p.Stop)
	}
	stops.Wait()
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("stopping took %v", took)
	}
	for _, pid := range append(pidsIn(t, out.String()), p.PID()) {
		if alive(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
	if exit := p.Wait(); exit.Signal != "SIGKILL" {
		t.Errorf("exit %+v", exit)
	}
	p.Stop()
}

func TestStopIsQuickWithObedientProcesses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, err := b.env.Start(t.Context(), env.Command{Args: []string{"sleep", "300"}})
	must(t, err)
	begun := time.Now()
	p.Stop()
	if took := time.Since(begun); took > 700*time.Millisecond {
		t.Errorf("stopping took %v", took)
	}
	if exit := p.Wait(); exit.Signal != "SIGINT" || exit.Took <= 0 {
		t.Errorf("exit %+v", exit)
	}
}

func TestContextEndStopsTheGroup(t *testing.T) {
	t.Parallel()
	b := setup(t)
	out := &output{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p, err := b.env.Start(ctx, env.Command{Shell: `sleep 300 & echo $!; echo ready; wait`, Output: out})
	must(t, err)
	out.await(t, "ready")
	cancel()
	p.Wait()
	for _, pid := range append(pidsIn(t, out.String()), p.PID()) {
		if alive(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
	if _, err := b.env.Start(ctx, env.Command{Shell: "true"}); err == nil {
		t.Error("a command started under an ended context")
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestABrokenOutputDoesNotBlockTheCommand(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, err := b.env.Start(t.Context(), env.Command{Shell: `head -c 1000000 /dev/zero; exit 3`, Output: brokenWriter{}})
	must(t, err)
	if exit := p.Wait(); exit.Code != 3 {
		t.Errorf("exit %+v", exit)
	}
}
