package event

import (
	"context"
	"fmt"
)

// idleCap is how many frames' room a stream keeps while it waits.
const idleCap = 64

// live takes what waits for the stream in the ring. It gives nothing when there
// is nothing, and when the stream has fallen out of the ring.
func (s *Subscription) live() []*Frame {
	b := s.bus
	clear(s.taken)
	if s.taken = s.taken[:0]; cap(s.taken) > idleCap {
		s.taken = nil
	}
	b.mu.RLock()
	closed, stopped := s.closed, b.stopped
	fell := s.dirty && s.next < b.ring.base
	tooMuch, merging := s.pending > b.cfg.LagBudget, s.pending > b.cfg.MergeAfter
	if s.dirty && !fell && !tooMuch && !closed {
		s.take(merging)
	}
	b.mu.RUnlock()
	switch {
	case closed:
		s.ending = ErrClosed
	case tooMuch:
		return s.giveUp("backlog")
	case fell:
		s.phase = phaseReplay
	case len(s.taken) == 0 && stopped:
		return s.stop()
	case merging:
		return merged(s.taken)
	}
	return s.taken
}

// take moves matching frames from the ring into taken, up to a batch. The bus is
// locked, at least for readers.
func (s *Subscription) take(merging bool) {
	b, m := s.bus, s.matcher.Load()
	limit := batchBytes
	if merging {
		limit = mergeBytes
	}
	end, size := b.ring.end(), 0
	for s.next < end && size < limit {
		f := b.ring.at(s.next)
		s.next++
		s.passed = f.Position
		if m.match(f.Type, &f.Origin) {
			s.taken = append(s.taken, f)
			size += len(f.bytes)
		}
	}
	if s.next == end {
		s.dirty, s.pending = false, 0
	}
}

// replay gives durable events after passed: from the log, page by page, until
// the ring has all the others, then from the ring. Behind the last one it joins.
// Deltas are left out: the open parts follow as a whole.
func (s *Subscription) replay(ctx context.Context) ([]*Frame, error) {
	if frames := s.interrupt(); s.ending != nil {
		return frames, nil
	}
	b := s.bus
	b.mu.Lock()
	// Who is cut off from here on holds a durable position without the deltas
	// before it.
	if b.incomplete.before(b.head) {
		b.incomplete = b.head
	}
	if b.ring.floor.Seq > s.passed.Seq {
		last := b.last
		b.mu.Unlock()
		return s.page(ctx, last)
	}
	defer b.mu.Unlock()
	frames := s.durable()
	if len(frames) == 0 {
		s.join()
		s.phase = phaseParts
	}
	return frames, nil
}

// interrupt ends a replay that must not go on; it then sets ending.
func (s *Subscription) interrupt() []*Frame {
	b := s.bus
	b.mu.RLock()
	closed, stopped, tooMuch := s.closed, b.stopped, s.pending > b.cfg.LagBudget
	b.mu.RUnlock()
	switch {
	case closed:
		s.ending = ErrClosed
	case stopped:
		return s.stop()
	case tooMuch:
		return s.giveUp("backlog")
	}
	return nil
}

// durable takes durable frames from the ring. The caller holds the lock.
func (s *Subscription) durable() []*Frame {
	b, m := s.bus, s.matcher.Load()
	s.taken = s.taken[:0]
	size := 0
	for i := b.ring.after(s.passed); i < b.ring.end() && size < batchBytes; i++ {
		f := b.ring.at(i)
		s.passed = f.Position
		if f.Durable() && m.match(f.Type, &f.Origin) {
			s.taken = append(s.taken, f)
			size += len(f.bytes)
		}
	}
	return s.taken
}

// page reads records from the log. The bounds are read after it: when nothing
// behind passed was deleted until then, the page has no hole.
func (s *Subscription) page(ctx context.Context, upTo int64) ([]*Frame, error) {
	b := s.bus
	records, err := b.cfg.Log.Events(ctx, s.passed.Seq, upTo, b.cfg.Page)
	if err != nil {
		return nil, fmt.Errorf("reading events after %d: %w", s.passed.Seq, err)
	}
	oldest, head, err := b.cfg.Log.EventBounds(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the bounds of the log: %w", err)
	}
	b.mu.RLock()
	expired := s.passed.Seq < b.trimmed(oldest, head)
	b.mu.RUnlock()
	if expired {
		return s.giveUp("expired"), nil
	}
	m := s.matcher.Load()
	s.taken = s.taken[:0]
	for _, r := range records {
		at := originOf(r)
		if m.match(r.Type, &at) {
			s.taken = append(s.taken, recordFrame(b.cfg.Epoch, r))
		}
	}
	if len(records) == b.cfg.Page {
		upTo = records[len(records)-1].Seq
	}
	s.pass(Position{Epoch: b.cfg.Epoch, Seq: upTo})
	return s.taken, nil
}

// pass notes that everything up to p is done with.
func (s *Subscription) pass(p Position) {
	s.bus.mu.RLock()
	defer s.bus.mu.RUnlock()
	if s.passed.before(p) {
		s.passed = p
	}
}

// wholePart renders the next open part that the stream is owed.
func (s *Subscription) wholePart() ([]*Frame, error) {
	if len(s.owed) == 0 {
		s.owed, s.phase = nil, phaseLive
		return nil, nil
	}
	next := s.owed[0]
	s.owed = s.owed[1:]
	d, err := next.part.render()
	if err != nil {
		return nil, fmt.Errorf("rendering an open part: %w", err)
	}
	s.taken = append(s.taken[:0], newFrame(next.at, d))
	return s.taken, nil
}

// giveUp ends the stream with server.lagged. Its id is marked, right behind what
// was sent, so that resuming there misses nothing.
func (s *Subscription) giveUp(reason string) []*Frame {
	s.ending = ErrLagged
	return []*Frame{control(ServerLagged, s.safe(), s.matcher.Load().place(), Lagged{Reason: reason})}
}

// stop ends the stream with server.stopping.
func (s *Subscription) stop() []*Frame {
	s.ending = ErrStopping
	return []*Frame{control(ServerStopping, s.safe(), s.matcher.Load().place(), Stopping{})}
}

// safe gives a new id from which a stream can resume that may not have had
// everything before the newest event.
func (s *Subscription) safe() Position {
	s.bus.mu.RLock()
	defer s.bus.mu.RUnlock()
	if s.sent.before(s.passed) {
		return s.passed.mark()
	}
	return s.sent.mark()
}

// heartbeat gives server.cursor when the stream's position moved since its last
// frame, so that a client which comes back much later need not go through what
// its filter holds back; else nothing, for a comment.
func (s *Subscription) heartbeat() []*Frame {
	b := s.bus
	b.mu.Lock()
	defer b.mu.Unlock()
	var at Position
	switch {
	case s.phase == phaseLive && !s.dirty && s.sent.before(b.head):
		at = b.next() // the stream has everything before
		s.passed = at
	case s.phase == phaseReplay && s.sent.Seq < s.passed.Seq:
		at = s.passed.mark()
	default:
		return nil
	}
	s.sent = at
	s.taken = append(s.taken[:0], control(ServerCursor, at, s.matcher.Load().place(), Cursor{}))
	return s.taken
}
