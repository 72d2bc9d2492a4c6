package session

import (
	"context"
	"fmt"
	"strings"

	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// Orphans gives the open turns that nobody has the right to run any more: those
// of servers without a lease, and those of earlier generations of owner. Sessions
// below others come first. In a store of one server every other owner is gone.
func (s *Service) Orphans(ctx context.Context, owner string, generation int64) ([]Turn, error) {
	rows, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) ([]db.Turn, error) {
		now, err := r.DatabaseTime(ctx)
		if err != nil {
			return nil, err
		}
		return r.TurnOrphans(ctx, db.TurnOrphansParams{Owner: owner, Generation: generation, Now: now})
	})
	if err != nil {
		return nil, fmt.Errorf("reading the turns without a server: %w", err)
	}
	out := make([]Turn, 0, len(rows))
	for _, row := range rows {
		out = append(out, turnOf(row))
	}
	return out, nil
}

// Claim takes a turn over from an owner that is gone, in one conditional write;
// false tells that another server was first, or that the owner is back. count
// adds to the turn's attempts.
func (s *Service) Claim(ctx context.Context, t Turn, owner string, generation int64, count bool) (Run, Turn, bool, error) {
	var run Run
	var claimed bool
	p := db.TurnClaimParams{
		ID: string(t.ID), Owner: owner, Generation: generation, OldOwner: t.Owner, OldGeneration: t.Generation,
	}
	if count {
		p.Counted = 1
	}
	err := s.store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) (err error) {
		claimed = false
		if p.Now, err = tx.DatabaseTime(ctx); err != nil {
			return err
		}
		row, err := tx.TurnClaim(ctx, p)
		if store.IsNoRows(err) {
			return nil
		}
		if err != nil {
			return err
		}
		ses, err := read(ctx, tx.Reader, t.SessionID)
		if err != nil {
			return err
		}
		t, claimed = turnOf(row), true
		run = Run{SessionID: t.SessionID, TurnID: t.ID, Owner: owner, Generation: generation, Origin: ses.Origin()}
		return nil
	})
	if err != nil {
		return run, t, false, fmt.Errorf("claiming turn %s: %w", t.ID, err)
	}
	return run, t, claimed, nil
}

// interruptTopic is what servers tell each other before the session's id.
const interruptTopic = "interrupt:"

// TellInterrupt tells the server that runs a session's turn that Interrupt stored
// a wish.
func (s *Service) TellInterrupt(ses id.Session) { s.store.Tell(interruptTopic + string(ses)) }

// InterruptTold gives the session of a topic that TellInterrupt told.
func InterruptTold(topic string) (id.Session, bool) {
	ses, ok := strings.CutPrefix(topic, interruptTopic)
	return id.Session(ses), ok
}
