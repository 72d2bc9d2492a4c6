package app_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/app/apptest"
)

// aloneEnv makes the test binary run one test in a process of its own.
const aloneEnv = "APP_TEST_ALONE"

const (
	// leakRounds is how many turns and how many streams are tried.
	leakRounds = 1000
	// leakSlack is what may be there beyond the start: pools that grow.
	leakSlack = 8
)

// TestTurnsAndStreamsLeaveNothingBehind counts goroutines, descriptors and
// children, which only a process that does nothing else can.
func TestTurnsAndStreamsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	if os.Getenv(aloneEnv) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", fmt.Sprintf("-test.short=%t", testing.Short()))
		cmd.Env = append(os.Environ(), aloneEnv+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	rounds := leakRounds
	if testing.Short() {
		rounds = leakRounds / 10
	}
	s := apptest.Start(t, apptest.Options{})
	work := func(n int) {
		runTurns(s, n)
		abortStreams(s, n)
		s.Plain.CloseIdleConnections()
	}
	work(40) // fills the pools
	start := count(t)
	work(rounds)
	now := count(t)
	for end := time.Now().Add(time.Minute); now.beyond(start) && time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		now = count(t)
	}
	if now.beyond(start) {
		t.Errorf("at the start %v, after %d turns and streams %v\n%s", start, rounds, now, stacks(t))
	}
}

// counted is what a process has.
type counted struct{ goroutines, files, children int }

// beyond tells whether there is more than at the start.
func (c counted) beyond(start counted) bool {
	return c.goroutines > start.goroutines+leakSlack || c.files > start.files+leakSlack || c.children > start.children
}

func (c counted) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %d children", c.goroutines, c.files, c.children)
}

func count(t *testing.T) counted {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	c := counted{goroutines: pprof.Lookup("goroutine").Count(), files: len(files)}
	for _, name := range lists {
		data, _ := os.ReadFile(name) // a thread may be gone
		c.children += len(strings.Fields(string(data)))
	}
	return c
}

// stacks gives the goroutines by what they do.
func stacks(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// inLanes runs fn n times, four at once.
func inLanes(n int, fn func(i int)) {
	var wait sync.WaitGroup
	for lane := range 4 {
		wait.Go(func() {
			for i := lane; i < n; i += 4 {
				fn(i)
			}
		})
	}
	wait.Wait()
}

// runTurns runs n turns to their ends; some of them run a command, some are stopped.
func runTurns(s *apptest.Server, n int) {
	sessions := make([]string, 16)
	for i := range sessions {
		sessions[i] = string(s.Session("").ID)
	}
	bearer := []string{"Authorization", "Bearer " + apptest.Token}
	inLanes(n, func(i int) {
		path := "/api/session/" + sessions[i%len(sessions)]
		text := "say:hello"
		switch i % 20 {
		case 3:
			text = `tool:bash:{"command":"echo done"}`
		case 7:
			text = "hang"
		}
		s.DoWith(s.Plain, http.MethodPost, path+"/prompt", map[string]any{"prompt": map[string]any{"text": text}}, bearer...)
		if text == "hang" {
			s.DoWith(s.Plain, http.MethodPost, path+"/interrupt", map[string]any{}, bearer...)
		}
		s.DoWith(s.Plain, http.MethodPost, path+"/wait", map[string]any{"timeout": 30_000}, bearer...)
	})
}

// abortStreams opens n streams and leaves each after its first bytes.
func abortStreams(s *apptest.Server, n int) {
	inLanes(n, func(int) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/event", nil)
		if err != nil {
			panic(err)
		}
		r.Header.Set("Authorization", "Bearer "+apptest.Token)
		res, err := s.Plain.Do(r)
		if err != nil {
			panic(err)
		}
		_, _ = io.ReadFull(res.Body, make([]byte, 8))
		cancel()
		_ = res.Body.Close()
	})
}
