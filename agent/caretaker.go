package agent

import (
	"context"
	"errors"
	"time"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/session"
)

const (
	// A turn that cannot be ended is tried again after endWait, then after twice
	// that, up to endWaitMax.
	endWait    = 100 * time.Millisecond
	endWaitMax = 5 * time.Second
	// strayGap lies between the two looks that tell a turn without a run from one
	// that is just starting.
	strayGap = 250 * time.Millisecond
)

// Lease is the right of a server to run turns.
type Lease interface {
	// Held tells whether the right holds now.
	Held() bool
	// Term gives a channel that is closed when the right of now is lost.
	Term() <-chan struct{}
}

func (e *Engine) mayRun() bool { return e.lease == nil || e.lease.Held() }

// trouble tells the caretaker that a write failed whose outcome is not known.
func (e *Engine) trouble(err error) {
	if err == nil || !fault.Is(err, fault.StoreUnavailable) && !fault.Is(err, fault.StoreFull) {
		return
	}
	select {
	case e.troubled <- struct{}{}:
	default: // it knows
	}
}

// tend is the caretaker: after trouble with the store, and where servers share
// one from time to time, it looks for turns that nobody runs. Without the lease
// nothing runs here.
func (e *Engine) tend(ctx context.Context) {
	var tick <-chan time.Time
	if e.scan > 0 {
		ticker := time.NewTicker(e.scan)
		defer ticker.Stop()
		tick = ticker.C
	}
	lost := e.term()
	for {
		select {
		case <-ctx.Done():
			return
		case <-lost:
			// The old generation's writes are refused from here on, whoever claims
			// its turns first: another server, or this one in its next term.
			e.generation.Add(1)
			e.Drop()
			lost = e.term()
			e.log.Warn("all turns were dropped: the lease is lost")
		case <-tick:
			e.look(ctx, false)
		case <-e.troubled:
			e.look(ctx, true)
		}
	}
}

func (e *Engine) term() <-chan struct{} {
	if e.lease == nil {
		return nil
	}
	return e.lease.Term()
}

// look recovers what other servers left, and after trouble also turns of this
// server: an answer of the store may have been lost, and with it a run.
func (e *Engine) look(ctx context.Context, strays bool) {
	if !e.mayRun() {
		return
	}
	_, err := e.Recover(ctx)
	if err == nil && strays {
		err = e.adopt(ctx)
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	e.log.Warn("looking for turns that nobody runs", "error", err)
	if clock.Sleep(ctx, endWait) == nil {
		e.trouble(err)
	}
}

// adopt takes up the turns of this server that have no run.
func (e *Engine) adopt(ctx context.Context) error {
	first, err := e.strays(ctx)
	if err != nil || len(first) == 0 {
		return err
	}
	if err := clock.Sleep(ctx, strayGap); err != nil {
		return err
	}
	second, err := e.strays(ctx)
	for turn, t := range second {
		if _, ok := first[turn]; !ok || err != nil {
			continue
		}
		l, err := e.assess(ctx, t)
		if err != nil {
			return err
		}
		if _, err := e.takeOver(ctx, l); err != nil && !fault.Is(err, fault.SessionNotFound) {
			return err
		}
	}
	return err
}

func (e *Engine) strays(ctx context.Context) (map[id.Turn]session.Turn, error) {
	open, err := e.sessions.OpenTurns(ctx)
	if err != nil {
		return nil, err
	}
	out := map[id.Turn]session.Turn{}
	for _, t := range open {
		if r := e.running(t.SessionID); t.Owner == e.owner && t.Generation == e.generation.Load() && (r == nil || r.run.TurnID != t.ID) {
			out[t.ID] = t
		}
	}
	return out, nil
}

// end writes the end of the turn until the store takes it: a turn whose end is
// not written would be busy for ever. It gives up only when the server stops, and
// then the next one settles the turn.
func (t *turn) end(ctx context.Context, err error) (again bool, next *session.Run, endErr error) {
	for wait := endWait; ; wait = min(2*wait, endWaitMax) {
		again, next, endErr = t.finish(ctx, err)
		if endErr == nil || errors.Is(endErr, session.ErrLost) {
			return again, next, endErr
		}
		t.engine.log.Error("ending a turn", "session", t.run.SessionID, "turn", t.run.TurnID, "error", endErr)
		if clock.Sleep(t.engine.ctx, wait) != nil {
			return false, nil, endErr
		}
		if err != nil {
			continue
		}
		// The answer to the write may have been lost, after a prompt had joined.
		if again, lookErr := t.engine.sessions.Unanswered(ctx, t.run.SessionID); again && lookErr == nil {
			return true, nil, nil
		}
	}
}

// trouble logs a write that failed where something else will do its work.
func (t *turn) trouble(doing string, err error) {
	if err != nil && !errors.Is(err, session.ErrLost) {
		t.engine.log.Error(doing, "session", t.run.SessionID, "turn", t.run.TurnID, "error", err)
	}
}
