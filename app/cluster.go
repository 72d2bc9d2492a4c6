package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/lease"
	"github.com/switchyard-dev/switchyard/permission"
	"github.com/switchyard-dev/switchyard/question"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

const (
	// takeoverScan is how often a server looks for turns of servers that are gone.
	takeoverScan = 2 * time.Second
	// sweepEvery is how often it looks for their children on this machine.
	sweepEvery = 15 * time.Second
	// wakeRetry is the pause after the stream of wake-ups broke.
	wakeRetry = time.Second
)

// shared tells whether other servers may use the store.
func (a *App) shared() bool { return store.IsPostgres(a.database()) }

// join makes this one of the servers of a shared store: it takes the lease that
// lets it run turns.
func (a *App) join(ctx context.Context, owner string) error {
	if !a.shared() {
		return nil
	}
	c := a.config.Lease
	c.Store, c.Owner, c.Boot, c.Log = a.store, owner, a.store.Boot().Number, a.log
	keeper, err := lease.Keep(ctx, c)
	if err != nil {
		return err
	}
	a.keeper = keeper
	return nil
}

// connect lets what the other servers do show here: their events, and the
// answers, wishes and ends that turns and requests of this server wait for.
func (a *App) connect(ctx context.Context) {
	if !a.shared() {
		return
	}
	a.store.OnHead(a.bus.Advance)
	a.store.OnTopic(func(topic string) {
		if ses, ok := session.InterruptTold(topic); ok {
			a.engine.Interrupted(ses)
		}
	})
	ctx, a.leave = context.WithCancel(context.WithoutCancel(ctx))
	a.joined.Go(func() { a.wake(ctx) })
	a.joined.Go(func() {
		for clock.Sleep(ctx, sweepEvery) == nil {
			a.sweep(ctx)
		}
	})
}

// wake follows the events of all servers and wakes who waits for them here.
func (a *App) wake(ctx context.Context) {
	types, err := event.ParseTypes("permission.replied,question.*,session.idle,session.deleted")
	if err != nil {
		a.log.Error("choosing the events of other servers", "error", err)
		return
	}
	filter := event.Filter{All: true, Types: types}
	for ctx.Err() == nil {
		err := a.wakeOnce(ctx, filter)
		if err == nil || ctx.Err() != nil || errors.Is(err, event.ErrStopping) {
			return
		}
		a.log.Warn("following the events of other servers", "error", err)
		if clock.Sleep(ctx, wakeRetry) != nil {
			return
		}
	}
}

func (a *App) wakeOnce(ctx context.Context, filter event.Filter) error {
	s, err := a.bus.Subscribe(ctx, event.Options{Filter: filter})
	if err != nil {
		return err
	}
	defer s.Close()
	for {
		f, err := s.Next(ctx)
		if err != nil {
			return err
		}
		if err := a.wakeFor(f); err != nil {
			return fmt.Errorf("reading %s: %w", f.Type, err)
		}
	}
}

func (a *App) wakeFor(f *event.Frame) error {
	switch f.Type {
	case permission.RepliedEvent.Name():
		var p permission.Replied
		err := json.Unmarshal(f.Payload(), &p)
		a.services.Permissions.Wake(p.PermissionID)
		return err
	case question.RepliedEvent.Name(), question.RejectedEvent.Name():
		var p struct {
			QuestionID id.Question `json:"questionID"`
		}
		err := json.Unmarshal(f.Payload(), &p)
		a.services.Questions.Wake(p.QuestionID)
		return err
	case session.BecameIdle.Name(), session.Deleted.Name():
		var p struct {
			SessionID id.Session `json:"sessionID"`
		}
		err := json.Unmarshal(f.Payload(), &p)
		a.engine.Woken(p.SessionID)
		if f.Type == session.Deleted.Name() {
			a.engine.Forget([]id.Session{p.SessionID})
		}
		return err
	}
	return nil
}

// sweep ends what crashed servers of this store left running on this machine.
// That it cannot end something is no reason not to work.
func (a *App) sweep(ctx context.Context) {
	live, err := a.liveBoots(ctx)
	if err != nil {
		a.log.Warn("looking for the servers of this store", "error", err)
		return
	}
	own := a.mark()
	n, err := env.Sweep(ctx, func(m env.Mark) bool { return m.Store == own.Store && !live[m.Boot] })
	if n > 0 || err != nil {
		a.log.Warn("processes of an earlier server were ended", "processes", n, "error", err)
	}
}

// liveBoots gives the starts whose servers live: this one, and on a shared store
// those with a lease. Whoever has none may run nothing, its children neither.
func (a *App) liveBoots(ctx context.Context) (map[int64]bool, error) {
	live := map[int64]bool{a.store.Boot().Number: true}
	if !a.shared() {
		return live, nil
	}
	err := a.store.Read(ctx, func(ctx context.Context, r store.Reader) error {
		now, err := r.DatabaseTime(ctx)
		if err != nil {
			return err
		}
		servers, err := r.ServerLive(ctx, db.ServerLiveParams{Now: now})
		for _, s := range servers {
			live[s.Boot] = true
		}
		return err
	})
	return live, err
}

func (a *App) mark() env.Mark {
	boot := a.store.Boot()
	return env.Mark{Store: boot.Epoch, Boot: boot.Number}
}
