// Package lease keeps a server's right to run turns on a store that several
// servers share (design §9): a row whose expiry, by the database's clock, the
// server moves on. Who finds the row expired may take the server's turns.
//
// The server itself stops earlier than others may take over: it measures from
// before its last renewal, on a clock that goes on while the machine sleeps.
package lease

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// keepRows is how long the rows of servers that are gone stay, for people to see.
const keepRows = 24 * time.Hour

// Config says how long a lease lives. Zero durations have defaults.
type Config struct {
	Store *store.DB
	Owner string
	Boot  int64
	// TTL is how long a lease holds after a renewal; default 15 s. Renew is the
	// time between renewals; default 5 s. Margin is how much earlier than others
	// may take over the server stops by itself; default 3 s.
	TTL, Renew, Margin time.Duration
	Log                *slog.Logger
}

// Keeper holds a lease until Close. It is safe for concurrent use.
type Keeper struct {
	c    Config
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex    // protects what follows
	term    chan struct{} // closed when the lease is lost
	renewed time.Duration // on bootTime, before the renewal was sent
	held    bool
}

// Keep takes a lease and renews it in the background.
func Keep(ctx context.Context, c Config) (*Keeper, error) {
	if c.TTL == 0 {
		c.TTL, c.Renew, c.Margin = 15*time.Second, 5*time.Second, 3*time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	k := &Keeper{c: c, term: make(chan struct{})}
	if err := k.begin(ctx); err != nil {
		return nil, err
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	k.stop = stop
	k.wg.Go(func() { k.renewals(run) })
	k.wg.Go(func() { k.watch(run) })
	return k, nil
}

// Held tells whether the server may run turns now.
func (k *Keeper) Held() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.held && bootTime()-k.renewed < k.c.TTL-k.c.Margin
}

// Term gives a channel that is closed when the lease of now is lost. After that
// it gives the one of the next lease.
func (k *Keeper) Term() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.term
}

// Close gives the lease up, so that others need not wait for its end.
func (k *Keeper) Close(ctx context.Context) error {
	k.stop()
	k.wg.Wait()
	k.lose()
	err := k.c.Store.Write(ctx, store.Relaxed, func(ctx context.Context, tx *store.Tx) error {
		return tx.ServerDelete(ctx, db.ServerDeleteParams{Owner: k.c.Owner})
	})
	if err != nil {
		return fmt.Errorf("giving the lease up: %w", err)
	}
	return nil
}

// begin starts a term.
func (k *Keeper) begin(ctx context.Context) error {
	sent := bootTime()
	err := k.c.Store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) error {
		now, err := tx.DatabaseTime(ctx)
		if err != nil {
			return err
		}
		if err := tx.ServerTrim(ctx, db.ServerTrimParams{Before: now - keepRows.Milliseconds()}); err != nil {
			return err
		}
		return tx.ServerInsert(ctx, db.ServerInsertParams{
			Owner: k.c.Owner, Boot: k.c.Boot, Renewed: now, Expires: now + k.c.TTL.Milliseconds(),
		})
	})
	if err != nil {
		return fmt.Errorf("taking a lease: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.renewed, k.held = sent, true
	return nil
}

// renewals moves the expiry on, and begins a new term after a lost one.
func (k *Keeper) renewals(ctx context.Context) {
	for clock.Sleep(ctx, k.c.Renew) == nil {
		var err error
		if k.Held() {
			err = k.renew(ctx)
		} else {
			k.lose()
			if err = k.begin(ctx); err == nil {
				k.c.Log.Info("the lease is held again")
			}
		}
		if err != nil && ctx.Err() == nil {
			k.c.Log.Warn("the lease was not renewed", "error", err)
		}
	}
}

func (k *Keeper) renew(ctx context.Context) error {
	// A renewal that comes back after the end of the lease is worth nothing.
	ctx, cancel := context.WithTimeout(ctx, k.c.TTL-k.c.Margin)
	defer cancel()
	sent, n := bootTime(), int64(0)
	err := k.c.Store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) error {
		now, err := tx.DatabaseTime(ctx)
		if err != nil {
			return err
		}
		n, err = tx.ServerRenew(ctx, db.ServerRenewParams{Owner: k.c.Owner, Now: now, Expires: now + k.c.TTL.Milliseconds()})
		return err
	})
	if err != nil {
		return err
	}
	if n == 0 {
		k.lose()
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.renewed = sent
	return nil
}

// watch ends the term on time, also when a renewal hangs.
func (k *Keeper) watch(ctx context.Context) {
	for clock.Sleep(ctx, min(k.c.Margin/4, time.Second)) == nil {
		if !k.Held() {
			k.lose()
		}
	}
}

// lose ends the term, once.
func (k *Keeper) lose() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.held {
		return
	}
	k.held = false
	close(k.term)
	k.term = make(chan struct{})
	k.c.Log.Warn("the lease is lost: turns stop here")
}
