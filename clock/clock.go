// Package clock holds the only waits of the program, so that each of them ends
// with its context, and the one conversion to the API's time unit.
package clock

import (
	"context"
	"time"
)

// Millis gives t as the API writes times: whole milliseconds since the epoch.
func Millis(t time.Time) int64 { return t.UnixMilli() }

// Now gives the current time in milliseconds since the epoch.
func Now() int64 { return time.Now().UnixMilli() }

// Sleep waits for d or until ctx ends, whichever comes first, and returns ctx's
// cause in the second case.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
