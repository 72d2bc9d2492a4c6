package lease

import "time"

// started is when the program began, with the monotonic reading that Since uses.
var started = time.Now() //nolint:gochecknoglobals // never written again
