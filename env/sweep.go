package env

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/switchyard-dev/switchyard/clock"
)

// Left-over children get a moment to end by themselves before they are killed.
const (
	sweepGrace = 500 * time.Millisecond
	sweepKill  = 2 * time.Second
	sweepPoll  = 20 * time.Millisecond
)

// Mark names a server's run of a store in its children's environment
// (SWITCHYARD_CALL), so that a later one recognises what a crash left behind.
type Mark struct {
	// Store is the epoch of the store, Boot the number of the server's start.
	Store uint32
	Boot  int64
}

// For gives the mark of a call's children.
func (m Mark) For(call string) string {
	return strconv.FormatUint(uint64(m.Store), 16) + "." + strconv.FormatInt(m.Boot, 10) + ":" + call
}

// parseMark reads what For wrote.
func parseMark(s string) (Mark, bool) {
	head, call, ok := strings.Cut(s, ":")
	epoch, number, dotted := strings.Cut(head, ".")
	store, err := strconv.ParseUint(epoch, 16, 32)
	boot, err2 := strconv.ParseInt(number, 10, 64)
	return Mark{Store: uint32(store), Boot: boot}, ok && dotted && call != "" && err == nil && err2 == nil
}

// Sweep ends the processes of this user whose mark dead accepts, with all that
// inherited it: first TERM, after half a second KILL. Processes without such a
// mark are never touched. It gives the number of processes found, and an error
// when some are still there after two and a half seconds, or when ctx ends. Where
// the system does not show environments it finds nothing.
func Sweep(ctx context.Context, dead func(Mark) bool) (int, error) {
	seen := map[int]bool{}
	for begun := time.Now(); ; {
		kill := time.Since(begun) > sweepGrace
		left := sweepOnce(dead, kill, seen)
		switch {
		case left == 0:
			return len(seen), nil
		case time.Since(begun) > sweepGrace+sweepKill:
			return len(seen), errLeft(left)
		}
		if err := clock.Sleep(ctx, sweepPoll); err != nil {
			return len(seen), err
		}
	}
}

type errLeft int

func (n errLeft) Error() string {
	return strconv.Itoa(int(n)) + " processes of an earlier server could not be ended"
}
