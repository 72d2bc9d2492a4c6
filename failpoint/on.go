//go:build failpoint

package failpoint

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Enabled tells whether this build can be killed at a failpoint.
const Enabled = true

// Variable names the environment variable that chooses the moment:
// "<point>.before:<n>" or "<point>.after:<n>" kills the process the n-th time.
const Variable = "SWITCHYARD_FAILPOINT"

// plan is the chosen moment; what is left of its count is in left.
type plan struct {
	at   string
	left atomic.Int64
}

// chosen reads the plan once: the environment of a process does not change.
var chosen = func() *plan { //nolint:gochecknoglobals // read once, only in builds for tests
	at, n, _ := strings.Cut(os.Getenv(Variable), ":")
	p := &plan{at: at}
	count, err := strconv.ParseInt(n, 10, 64)
	if err != nil || count < 1 {
		count = 1
	}
	p.left.Store(count)
	return p
}()

// Before marks the moment before a write.
func Before(p Point) { hit(string(p) + ".before") }

// After marks the moment after it.
func After(p Point) { hit(string(p) + ".after") }

func hit(at string) {
	if chosen.at != at || chosen.left.Add(-1) != 0 {
		return
	}
	// A kill, not an exit: nothing is flushed and no deferred call runs.
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
