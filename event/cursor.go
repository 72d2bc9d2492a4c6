package event

import (
	"context"
	"fmt"

	"github.com/switchyard-dev/switchyard/fault"
)

// place is where a cursor leads.
type place struct {
	from     Position // to continue from; the zero value means the newest event
	reason   Reason   // why it cannot be continued, else ""
	earliest Position // of the log, when it cannot be continued
}

// locate finds out what a cursor means; "" means the newest event. It looks into
// the log only for cursors that the ring does not cover.
func (b *Bus) locate(ctx context.Context, cursor string) (place, error) {
	if cursor == "" {
		return place{}, nil
	}
	p, ok := ParsePosition(cursor)
	if ok {
		b.mu.RLock()
		covered := b.covers(p)
		b.mu.RUnlock()
		if covered {
			return place{from: p}, nil
		}
	}
	oldest, head, err := b.cfg.Log.EventBounds(ctx)
	if err != nil {
		return place{}, fault.Wrap(err, fault.StoreUnavailable, "the event log cannot be read now")
	}
	reason := ReasonMalformed
	if ok {
		reason = b.reject(p, oldest, head)
	}
	if reason != "" {
		return place{reason: reason, earliest: b.earliest(oldest)}, nil
	}
	// Another server may have written up to here; its events must be delivered
	// before the stream can join.
	b.Advance(min(p.Seq, head))
	if err := b.reach(ctx, p.Seq); err != nil {
		return place{}, fmt.Errorf("waiting for %s: %w", p, err)
	}
	return place{from: b.own(p)}, nil
}

// reject tells why a cursor cannot be continued, or "".
func (b *Bus) reject(p Position, oldest, head int64) Reason {
	b.mu.RLock()
	defer b.mu.RUnlock()
	switch {
	case p.Epoch != b.cfg.Epoch || p.Seq > max(head, b.last):
		return ReasonUnknown
	case b.lost(p.Seq):
		return ReasonLost
	case p.Seq < b.trimmed(oldest, head):
		return ReasonExpired
	}
	return ""
}

// lost tells whether a start skipped the number. The last one of a gap is where
// streams of that start began, before its first event.
func (b *Bus) lost(seq int64) bool {
	for _, g := range b.gaps {
		if g.From <= seq && seq < g.To {
			return true
		}
	}
	return false
}

// trimmed gives the greatest number that an event which is not kept any more can
// have: the one before the oldest record, or before the gaps in front of it. The
// caller holds the lock.
func (b *Bus) trimmed(oldest, head int64) int64 {
	if oldest == 0 {
		oldest = head + 1
	}
	seq := oldest - 1
	for again := true; again; {
		again = false
		for _, g := range b.gaps {
			if g.From <= seq && seq <= g.To {
				seq, again = g.From-1, true
			}
		}
	}
	return seq
}

func (b *Bus) earliest(oldest int64) Position {
	if oldest == 0 {
		return b.Head()
	}
	return Position{Epoch: b.cfg.Epoch, Seq: oldest}
}

// covers tells whether a stream that has everything up to p can go on with the
// ring alone. The caller holds the lock.
//
// The position of a durable event does not tell how a client got there. One that
// was served from the log has not seen the deltas before it, so up to the newest
// position where that happened, durable ones are not covered; and never where
// other servers, whose deltas are not here, give out the same positions.
func (b *Bus) covers(p Position) bool {
	switch {
	case p.Epoch != b.cfg.Epoch || p.before(b.ring.floor) || b.position().before(p):
		return false
	case p.Sub == 0:
		return !b.cfg.Shared && b.incomplete.before(p)
	}
	return !p.marked() && p.instance() == b.instance
}

// own gives the position that a stream which resumes at p starts from. A sub
// that this process did not give out says nothing here, and may be greater than
// the ones to come, so the durable event before it takes its place.
func (b *Bus) own(p Position) Position {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if p.Seq < b.cfg.Start {
		return p // everything to come has a greater seq
	}
	if p.Sub > 1 && (p.instance() != b.instance || b.position().mark().before(p)) {
		p.Sub = 0
	}
	return p
}

func errStopping() error { return fault.New(fault.Stopping, "the server is stopping") }
