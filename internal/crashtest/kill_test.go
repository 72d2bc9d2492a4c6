package crashtest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The flags of the harness; `make soak` sets them.
var (
	seedFlag  = flag.Uint64("crash.seed", 0, "seed of the first world; 0 takes any")
	killsFlag = flag.Int("crash.kills", 200, "how many kills")
	keepFlag  = flag.String("crash.keep", "", "directory for the state of a world that failed")
	forFlag   = flag.Duration("crash.for", 0, "go on for this long, whatever crash.kills says")
)

// killsPerWorld is how often a store is used after a crash.
const killsPerWorld = 10

// TestNothingIsLostInAnyKill kills servers in the middle of all kinds of work.
func TestNothingIsLostInAnyKill(t *testing.T) {
	t.Parallel()
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64N(1 << 32)
	}
	end := time.Now().Add(*forFlag)
	kills := *killsFlag
	if testing.Short() {
		kills = min(kills, 2*killsPerWorld)
	}
	worlds := (kills + killsPerWorld - 1) / killsPerWorld
	if *forFlag > 0 {
		worlds = 1 << 20
	}
	// Subtests of their own would all be made at the start; these end with time.
	for lane := range 2 {
		t.Run(fmt.Sprint("lane", lane), func(t *testing.T) {
			t.Parallel()
			for n := lane; n < worlds && !t.Failed() && (*forFlag == 0 || time.Now().Before(end)); n += 2 {
				live(t, seed+uint64(n))
			}
		})
	}
}

// live runs one world to its end.
func live(t *testing.T, seed uint64) {
	t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
		w := newWorld(t, seed)
		defer func() {
			if t.Failed() {
				t.Logf("again with: go test ./internal/crashtest -run TestNothingIsLostInAnyKill -crash.seed=%d -crash.kills=%d", seed, killsPerWorld)
			}
			if t.Failed() && *keepFlag != "" {
				if err := os.CopyFS(filepath.Join(*keepFlag, fmt.Sprint("seed", seed)), os.DirFS(w.state)); err != nil {
					t.Error(err)
				}
			}
		}()
		for range killsPerWorld {
			if w.crash(); t.Failed() {
				return
			}
		}
		s := spawn(t, w, "")
		if w.check(s); t.Failed() {
			s.kill()
			return
		}
		w.finish(s)
	})
}

// crash runs a server on what the last one left, looks at it, gives it work and
// kills it. One that was told to die at a commit point may do so before, also
// while it starts.
func (w *world) crash() {
	w.t.Helper()
	at := w.moment()
	w.t.Logf("to be killed at %q", at)
	s := spawn(w.t, w, at)
	if s == nil {
		return
	}
	w.check(s)
	w.act(s)
	// A commit point that is not reached is no reason to wait for long.
	wait := time.Duration(w.rng.IntN(120)) * time.Millisecond
	select {
	case <-s.dead:
	case <-time.After(wait):
	}
	s.kill()
	if !s.killed() {
		w.t.Errorf("the server ended by itself: %v\n%s", s.cmd.ProcessState, s.errs.String())
	}
	w.rows(false) // nobody has settled anything yet
}
