package lease

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime gives the time since the machine started, which no one sets and which
// goes on while the machine sleeps.
func bootTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return time.Since(started)
	}
	return time.Duration(t.Nano())
}
