package crashtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/cli"
)

const (
	token = "swy_test-token-of-at-least-forty-characters-0123456789"
	// patience bounds what takes milliseconds on an idle machine, and what waits
	// for the longest command.
	patience = 30 * time.Second
)

// scratch is the directory of the built program.
var scratch string //nolint:gochecknoglobals // set once before the tests

// program builds the program that can be killed and gives its path.
var program = sync.OnceValues(func() (string, error) { //nolint:gochecknoglobals // made once for all tests
	path := filepath.Join(scratch, "switchyard")
	build := exec.CommandContext(context.Background(), "go", "build", "-tags", "failpoint", "-ldflags=-s -w", "-o", path, "./cmd/switchyard")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the program: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) { os.Exit(test(m)) }

func test(m *testing.M) int {
	dir, err := os.MkdirTemp("", "switchyard-crash-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	scratch = dir
	return m.Run()
}

// server is a server in a process of its own.
type server struct {
	t      *testing.T
	cmd    *exec.Cmd
	client *http.Client
	url    string
	errs   bytes.Buffer
	dead   chan struct{} // closed when the process has ended
}

// spawn starts a server; nil when it died at a failpoint before it listened.
func spawn(t *testing.T, w *world, at string) *server {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, dead: make(chan struct{}), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}}
	s.cmd = exec.Command(path, "serve", "--port", "0", "--state", w.state, "--directory", w.dir, "--log-level", "warn") // killed by the test
	s.cmd.Env = []string{
		"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "SWITCHYARD_TOKEN=" + token, failpointVariable + "=" + at,
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd.Stderr = &s.errs
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	go func() {
		_ = s.cmd.Wait()
		close(s.dead)
	}()
	var info cli.Runtime
	if err == nil {
		err = json.Unmarshal(line, &info)
	}
	if err != nil {
		s.kill()
		if at == "" || !s.killed() {
			t.Fatalf("the server did not start: %q %v\n%s", line, err, s.errs.String())
		}
		return nil
	}
	s.url = info.URL
	return s
}

// failpointVariable is failpoint.Variable, which this build does not have.
const failpointVariable = "SWITCHYARD_FAILPOINT"

// kill ends the process as power does, and waits for its end.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.dead
	s.client.CloseIdleConnections()
}

// gone tells that the process has ended.
func (s *server) gone() bool {
	select {
	case <-s.dead:
		return true
	default:
		return false
	}
}

// ended waits for the end of a process that does not answer any more.
func (s *server) ended() {
	select {
	case <-s.dead:
	case <-time.After(patience):
		s.t.Errorf("the server does not answer\n%s", s.errs.String())
	}
}

// killed tells that the process, which has ended, was killed and did not exit.
func (s *server) killed() bool {
	status, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// stop ends the process in an orderly way.
func (s *server) stop() {
	s.t.Helper()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.dead:
	case <-time.After(patience):
		s.kill()
		s.t.Errorf("the server did not stop in time\n%s", s.errs.String())
	}
	s.client.CloseIdleConnections()
}

// call sends JSON and decodes the "data" of the answer. The status is 0 when the
// server is gone.
func (s *server) call(method, path string, in, out any) (status int) {
	data, err := json.Marshal(in)
	if err != nil {
		s.t.Error(err)
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(data))
	if err != nil {
		s.t.Error(err)
		return 0
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	res, err := s.client.Do(r)
	if err != nil {
		s.ended()
		return 0
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		s.ended()
		return 0
	}
	answer := struct {
		Data any `json:"data"`
	}{Data: out}
	if out != nil && res.StatusCode == http.StatusOK {
		if err := json.Unmarshal(body, &answer); err != nil {
			s.t.Errorf("%s %s: %s: %v", method, path, body, err)
		}
	}
	return res.StatusCode
}
