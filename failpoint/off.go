//go:build !failpoint

package failpoint

// Enabled tells whether this build can be killed at a failpoint.
const Enabled = false

// Before marks the moment before a write.
func Before(Point) {}

// After marks the moment after it.
func After(Point) {}
