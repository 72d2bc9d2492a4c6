package event

import (
	"context"
	"slices"
	"time"

	"github.com/switchyard-dev/switchyard/clock"
)

// backlog holds what cannot be delivered yet because durable events before it
// are missing: another server wrote them, or another goroutine of this one
// committed them and has not told yet. It is protected by the bus.
type backlog struct {
	records []Record // by number
	seen    int64    // greatest number committed or told by Advance
	held    []held   // ephemeral events, in the order published
	bytes   int      // of held
	lossy   bool     // ephemeral events were given up
}

// held is an ephemeral event that was published after a number was committed
// and must not be seen before it.
type held struct {
	draft Draft
	after int64
}

// waits tells whether an ephemeral event of now has to wait.
func (l *backlog) waits(last int64) bool { return l.seen > last || len(l.held) > 0 }

// hold keeps an ephemeral event, as long as they are not too many: then they all
// are given up, and streams get the parts as a whole when the log can be read.
func (l *backlog) hold(d Draft, last int64, maxBytes int) {
	if l.bytes += len(d.Payload) + frameOverhead; l.lossy || l.bytes > maxBytes {
		l.held, l.bytes, l.lossy = nil, 0, true
		return
	}
	l.held = append(l.held, held{draft: d, after: max(l.seen, last)})
}

func (l *backlog) add(r Record) {
	l.seen = max(l.seen, r.Seq)
	i, found := slices.BinarySearchFunc(l.records, r.Seq, func(have Record, seq int64) int { return int(have.Seq - seq) })
	if !found {
		l.records = slices.Insert(l.records, i, r)
	}
}

// Commit delivers the events of a transaction after it was committed. Calls may
// come in any order: events are delivered in the order of their numbers, and
// missing ones are read from the log first, without making the caller wait.
func (b *Bus) Commit(records []Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range records {
		switch {
		case r.Seq <= b.last: // the log had it already
		case r.Seq == b.last+1 && len(b.backlog.records) == 0:
			b.deliver(r)
		default:
			b.backlog.add(r)
		}
	}
	b.settle()
}

// Advance tells that the log's newest number is at least seq, as another server
// wrote to it. What is missing is read and delivered.
func (b *Bus) Advance(seq int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backlog.seen = max(b.backlog.seen, seq)
	b.settle()
}

// AddGap tells of numbers that another server skipped as it started.
func (b *Bus) AddGap(g Gap) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gaps = append(b.gaps, g)
	b.settle()
}

// settle delivers what is there and asks for what is missing. The caller holds
// the lock.
func (b *Bus) settle() {
	for len(b.backlog.records) > 0 {
		r := b.backlog.records[0]
		if r.Seq > b.last+1 {
			if !b.skipped(b.last+1, r.Seq-1) {
				break
			}
			b.skipTo(r.Seq - 1)
		}
		b.backlog.records = b.backlog.records[1:]
		if r.Seq > b.last {
			b.deliver(r)
		}
	}
	switch {
	case b.backlog.seen > b.last:
		b.wakeFiller()
	case b.backlog.lossy && b.counter == 0:
		b.restart()
	}
	b.trim()
}

// release numbers the ephemeral events that waited for what was just delivered.
func (b *Bus) release() {
	l := &b.backlog
	for len(l.held) > 0 && l.held[0].after <= b.last {
		d := l.held[0].draft
		l.held[0] = held{}
		l.held = l.held[1:]
		l.bytes -= len(d.Payload) + frameOverhead
		b.number(d)
	}
	if len(l.held) == 0 {
		l.held, l.bytes = nil, 0
	}
	b.parts.delivered(b.last)
}

// skipped tells whether one start of a server skipped all these numbers.
func (b *Bus) skipped(from, to int64) bool {
	return slices.ContainsFunc(b.gaps, func(g Gap) bool { return g.From <= from && to <= g.To })
}

func (b *Bus) wakeFiller() {
	select {
	case b.kick <- struct{}{}:
	default:
	}
}

// run reads missing events and lets old frames go, until ctx ends.
func (b *Bus) run(ctx context.Context) {
	tick := time.NewTicker(max(b.cfg.RingAge/4, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			b.mu.Lock()
			b.trim()
			b.mu.Unlock()
		case <-b.kick:
			b.fill(ctx)
		}
	}
}

// fill reads until nothing is missing. It does not give up while the log cannot
// be read: streams must not have a hole.
func (b *Bus) fill(ctx context.Context) {
	wait := 20 * time.Millisecond
	for ctx.Err() == nil {
		from, to := b.missing()
		if from == to {
			return
		}
		records, err := b.cfg.Log.Events(ctx, from, to, b.cfg.Page)
		if err != nil {
			b.cfg.Logger.Warn("reading missing events", "after", from, "up to", to, "error", err)
			_ = clock.Sleep(ctx, wait) // an ended context ends the loop
			wait = min(2*wait, time.Second)
			continue
		}
		b.filled(records, to, len(records) < b.cfg.Page)
	}
}

// missing gives the numbers, after from up to to, that must be read before
// anything else can be delivered.
func (b *Bus) missing() (from, to int64) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	to = max(b.backlog.seen, b.last)
	if len(b.backlog.records) > 0 {
		to = b.backlog.records[0].Seq - 1
	}
	return b.last, to
}

// filled delivers records that were missing. When they are all there are, the
// numbers without a record belong to no event: the head row orders commits, so
// every event with a smaller number than a committed one can be read.
func (b *Bus) filled(records []Record, to int64, all bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range records {
		if r.Seq > b.last {
			b.deliver(r)
		}
	}
	if all {
		b.skipTo(to)
	}
	b.settle()
}

// reach waits until the events up to seq are delivered.
func (b *Bus) reach(ctx context.Context, seq int64) error {
	for {
		b.mu.Lock()
		if b.last >= seq {
			b.mu.Unlock()
			return nil
		}
		if b.progress == nil {
			b.progress = make(chan struct{})
		}
		progress := b.progress
		b.mu.Unlock()
		select {
		case <-progress:
		case <-b.stopping:
			return errStopping()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
