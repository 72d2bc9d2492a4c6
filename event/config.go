package event

import (
	"cmp"
	"log/slog"
	"time"
)

// Config says what a Bus works on and within which limits. Limits that are zero
// take the defaults.
type Config struct {
	// Epoch names the store; the first bit is 0.
	Epoch uint32
	// Start is the newest number when this process started, after its own gap.
	Start int64
	// Gaps are the ranges that starts skipped, this one's included.
	Gaps []Gap
	Log  Log
	// Shared tells that other processes write to the same store. A durable
	// event's id does not tell which of them a client had it from, so a stream
	// that resumes at one then gets the parts open here as a whole.
	Shared bool
	// Version of the server, for server.connected.
	Version string
	// Logger gets trouble with the log; nil means none.
	Logger *slog.Logger

	// RingBytes bounds the ring, overhead included; default 16 MiB.
	RingBytes int
	// RingAge is how long a frame may stay in the ring; default 10 minutes.
	RingAge time.Duration
	// Heartbeat is the longest silence of a stream; default 10 s.
	Heartbeat time.Duration
	// WriteTimeout bounds each flush to a client; default 15 s.
	WriteTimeout time.Duration
	// MergeAfter is how many bytes of events must wait for a stream, since it
	// last had everything, before deltas are merged for it; default 1 MiB.
	MergeAfter int
	// LagBudget is how many bytes may wait before the stream is given up with
	// server.lagged; default 64 MiB.
	LagBudget int
	// Page is how many records are read from the log at once; default 100.
	Page int
}

func (c Config) withDefaults() Config {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.RingBytes = cmp.Or(c.RingBytes, 16<<20)
	c.RingAge = cmp.Or(c.RingAge, 10*time.Minute)
	c.Heartbeat = cmp.Or(c.Heartbeat, 10*time.Second)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 15*time.Second)
	c.MergeAfter = cmp.Or(c.MergeAfter, 1<<20)
	c.LagBudget = cmp.Or(c.LagBudget, 64<<20)
	c.Page = cmp.Or(c.Page, 100)
	return c
}
