// Package testkit holds what the tests of several packages share: databases, git
// repositories, waiting without guessing, and a logger that writes to the test.
package testkit

import (
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"
)

// Logger gives a logger whose lines appear with the test's own output, so only
// where the test fails or is verbose. Lines that come after the test's end, from a
// goroutine that outlives it, are dropped.
func Logger(t testing.TB) *slog.Logger {
	w := &output{w: t.Output()}
	t.Cleanup(w.close)
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// output is a test's output until the test ends, when writing to it would panic.
type output struct {
	mu sync.Mutex // protects w
	w  io.Writer  // nil after the end
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.w == nil {
		return len(p), nil
	}
	return o.w.Write(p)
}

func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.w = nil
}

// eventuallyEvery is the time between two looks. It is short against a test's
// length and long against the cost of a look.
const eventuallyEvery = 2 * time.Millisecond

// Eventually looks until ok says yes and fails the test if that takes longer than
// limit. It is for what happens in other processes and behind sockets, where no
// event can be awaited; ok must be quick and may be called often.
func Eventually(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	look := time.NewTicker(eventuallyEvery)
	defer look.Stop()
	for !ok() {
		select {
		case <-look.C:
		case <-deadline.C:
			if !ok() { // the last look may be long ago on a busy machine
				t.Fatalf("not within %v: %s", limit, what)
			}
			return
		case <-t.Context().Done():
			t.Fatalf("the test ended while it waited: %s", what)
		}
	}
}
