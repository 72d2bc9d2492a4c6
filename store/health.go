package store

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/store/db"
)

// probeEvery is how often a store in trouble looks whether the trouble is over.
const probeEvery = time.Second

// health remembers that the database cannot take writes. Reads go on; writes
// fail at once, and a goroutine tries one of its own until it succeeds. Callers
// need not try: behind a readiness check they may all have gone elsewhere.
type health struct {
	life context.Context // ends when the store closes
	end  context.CancelFunc
	wait sync.WaitGroup // the probing goroutine

	mu      sync.Mutex // protects the fields below
	code    fault.Code // "" while all is well
	since   time.Time
	probing bool
}

// begin starts the health's life, which ends with end and not with ctx.
func (h *health) begin(ctx context.Context) {
	h.life, h.end = context.WithCancel(context.WithoutCancel(ctx))
}

// gate lets a write through, or says why not.
func (h *health) gate() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.code == "" {
		return nil
	}
	return writeFault(h.code, nil)
}

func (h *health) close() {
	h.mu.Lock()
	h.end() // under the lock, so that no goroutine starts after the wait
	h.mu.Unlock()
	h.wait.Wait()
}

// note keeps the outcome of a write and turns the database's trouble into a
// fault.
func (d *DB) note(err error) error {
	code := trouble(err)
	if code == "" && err != nil {
		return err // the closure's own
	}
	h := &d.health
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.code
	h.code = code
	switch {
	case code == "" && was != "":
		d.log.Info("the store takes writes again", "after", time.Since(h.since).Round(time.Millisecond))
	case code != "" && was == "":
		h.since = time.Now()
		d.log.Error("the store takes no writes", "code", code, "error", err)
	}
	if code == "" {
		return nil
	}
	if !h.probing && h.life.Err() == nil {
		h.probing = true
		h.wait.Go(d.probe)
	}
	return writeFault(code, err)
}

// probe tries to write until it succeeds or the store closes.
func (d *DB) probe() {
	h := &d.health
	for clock.Sleep(h.life, probeEvery) == nil {
		h.mu.Lock()
		code := h.code
		h.probing = code != ""
		h.mu.Unlock()
		if code == "" {
			return // another write that was on its way has succeeded
		}
		_ = d.note(d.tryWrite(h.life, code))
	}
}

// tryWrite is a write that shows whether the database takes some. Where the
// database itself was away it may have lost commits that were not Durable, and
// with them numbers that subscribers have seen: they are skipped as at a start.
func (d *DB) tryWrite(ctx context.Context, code fault.Code) error {
	if _, local := d.engine.(*lite); local || code == fault.StoreFull {
		_, err := d.engine.write(ctx, Durable, func(ctx context.Context, tx *Tx) error {
			_, err := tx.EventHeadAdvance(ctx, db.EventHeadAdvanceParams{})
			return err
		})
		return err
	}
	boot, err := d.start(ctx)
	if err != nil {
		return err
	}
	d.mu.Lock()
	known := d.boot.Gaps
	d.boot.Head, d.boot.Gaps = boot.Head, boot.Gaps
	tell := d.onGap
	d.mu.Unlock()
	if tell == nil {
		return nil
	}
	for _, gap := range boot.Gaps {
		if !slices.Contains(known, gap) {
			tell(gap)
		}
	}
	return nil
}

func writeFault(code fault.Code, cause error) error {
	if code == fault.StoreFull {
		return troubleFault(code, "the store's disk is full; nothing was stored", cause)
	}
	return troubleFault(code, "the store takes no writes at the moment; try again", cause)
}

// troubleFault also says when to try again.
func troubleFault(code fault.Code, detail string, cause error) error {
	f := fault.New(code, "%s", detail)
	if cause != nil {
		f, _ = fault.As(fault.Wrap(cause, code, "%s", detail))
	}
	return f.With("retryAfter", 1)
}
