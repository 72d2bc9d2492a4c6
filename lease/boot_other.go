//go:build !linux

package lease

import "time"

// bootTime gives a time that no one sets. Here it may stand still while the machine
// sleeps.
func bootTime() time.Duration { return time.Since(started) }
