package session

import (
	"context"

	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// Orphans gives the open turns whose owner is not there any more.
func (s *Service) Orphans(ctx context.Context, owner string) ([]Turn, error) {
	all, err := s.OpenTurns(ctx)
	if err != nil {
		return nil, err
	}
	var out []Turn
	for _, t := range all {
		if t.Owner != owner {
			out = append(out, t)
		}
	}
	return out, nil
}

// Claim takes a turn over; false when another was first.
func (s *Service) Claim(ctx context.Context, t Turn, owner string, generation int64, count bool) (Run, Turn, bool, error) {
	var run Run
	var claimed bool
	var counted int64
	if count {
		counted = 1
	}
	err := s.store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) error {
		claimed = false
		ses, err := read(ctx, tx.Reader, t.SessionID)
		if err != nil {
			return err
		}
		row, err := tx.TurnClaim(ctx, db.TurnClaimParams{
			ID: string(t.ID), Owner: owner, Generation: generation, Counted: counted, OldOwner: t.Owner, OldGeneration: t.Generation,
		})
		if store.IsNoRows(err) {
			return nil
		}
		t, claimed = turnOf(row), err == nil
		run = Run{SessionID: t.SessionID, TurnID: t.ID, Owner: owner, Generation: generation, Origin: ses.Origin()}
		return err
	})
	return run, t, claimed, err
}
