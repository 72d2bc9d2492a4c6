package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/switchyard-dev/switchyard/cli"
	"github.com/switchyard-dev/switchyard/clock"
)

// patience bounds what a test waits for.
const patience = 10 * time.Second

// scratch is the directory of the built program.
var scratch string //nolint:gochecknoglobals // set once before the tests

// program builds the program when a test first needs it and gives its path.
var program = sync.OnceValues(func() (string, error) { //nolint:gochecknoglobals // made once for all tests
	path := filepath.Join(scratch, "switchyard")
	build := exec.CommandContext(context.Background(), "go", "build", "-ldflags=-s -w", "-o", path, "./cmd/switchyard")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the program: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) { os.Exit(test(m)) }

func test(m *testing.M) int {
	for _, name := range []string{"SWITCHYARD_URL", "SWITCHYARD_TOKEN", "SWITCHYARD_STATE", "SWITCHYARD_CONFIG", "SWITCHYARD_CONFIG_CONTENT"} {
		_ = os.Unsetenv(name)
	}
	dir, err := os.MkdirTemp("", "switchyard-cli-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	scratch = dir
	return m.Run()
}

// TestScripts runs the program against real servers, each script with a home and
// a repository of its own.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:   "testdata",
		Setup: func(e *testscript.Env) error { return prepare(e.WorkDir, e.Setenv) },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve": scriptServe, "code": scriptCode, "eventually": scriptEventually,
		},
	})
}

// prepare makes the place that the program runs in.
func prepare(work string, set func(name, value string)) error {
	path, err := program()
	if err != nil {
		return err
	}
	set("PATH", filepath.Dir(path)+string(os.PathListSeparator)+os.Getenv("PATH"))
	set("HOME", filepath.Join(work, "home"))
	set("XDG_STATE_HOME", filepath.Join(work, "home", "state"))
	set("XDG_CONFIG_HOME", filepath.Join(work, "home", "config"))
	for _, dir := range []string{"home", "repo/.git"} {
		if err := os.MkdirAll(filepath.Join(work, dir), 0o700); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(work, "repo", ".git", "HEAD"), []byte("ref: refs/heads/main\n"), 0o600)
}

// start runs a server until the returned function stops it.
func start(dir string, env []string, flags ...string) (cli.Runtime, func() error, error) {
	path, err := program()
	if err != nil {
		return cli.Runtime{}, nil, err
	}
	cmd := exec.CommandContext(context.Background(), path, append([]string{"serve", "--port", "0"}, flags...)...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.StdoutPipe()
	if err != nil {
		return cli.Runtime{}, nil, err
	}
	if err := cmd.Start(); err != nil {
		return cli.Runtime{}, nil, err
	}
	stop := func() error { return errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()) }
	var at cli.Runtime
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &at)
	}
	if err != nil {
		return at, nil, errors.Join(fmt.Errorf("starting a server: %w", err), stop())
	}
	return at, stop, nil
}

// scriptServe is "serve [flags]": a server in the background, with its address
// in $URL.
func scriptServe(ts *testscript.TestScript, _ bool, args []string) {
	env := []string{}
	for _, name := range []string{"PATH", "HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"} {
		env = append(env, name+"="+ts.Getenv(name))
	}
	at, stop, err := start(ts.Getenv("WORK"), env, args...)
	ts.Check(err)
	ts.Defer(func() {
		if err := stop(); err != nil {
			ts.Logf("the server ended with: %v", err)
		}
	})
	ts.Setenv("URL", at.URL)
	waitFor(ts, func() bool {
		_, err := os.Stat(filepath.Join(ts.Getenv("XDG_STATE_HOME"), "switchyard", cli.RuntimeFile))
		return err == nil
	})
}

// scriptCode is "code N command...": the command ends with exit code N.
func scriptCode(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, not %d", got, want)
	}
}

// scriptEventually is "eventually PATTERN command...": the command prints what
// matches within some seconds.
func scriptEventually(ts *testscript.TestScript, _ bool, args []string) {
	pattern := regexp.MustCompile(args[0])
	waitFor(ts, func() bool {
		err := ts.Exec(args[1], args[2:]...)
		return err == nil && pattern.MatchString(ts.ReadFile("stdout"))
	})
}

func waitFor(ts *testscript.TestScript, done func() bool) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for !done() {
		if clock.Sleep(ctx, 20*time.Millisecond) != nil {
			ts.Fatalf("it did not happen in time")
		}
	}
}
