package session

import (
	"context"
	"fmt"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// Move says where a session goes.
type Move struct {
	SessionID id.Session
	// From is where it must still be.
	From, To  event.Context
	ProjectID id.Project
	// Path is To's directory relative to the top of its work tree.
	Path string
}

// Move pins a session to another context, with the sessions below it that stand
// where it stands, and publishes session.moved on both contexts. A turn that runs
// anywhere in its tree is a session_busy fault.
func (s *Service) Move(ctx context.Context, m Move) (Session, error) {
	var out Session
	err := s.store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) error {
		ses, err := hold(ctx, tx, m.SessionID)
		if err != nil {
			return err
		}
		if ses.Context() != m.From {
			return fault.New(fault.SessionBusy, "the session was moved meanwhile").With("sessionID", m.SessionID)
		}
		if err := treeIdle(ctx, tx.Reader, m.SessionID); err != nil {
			return err
		}
		rows, err := tx.SessionMove(ctx, db.SessionMoveParams{
			ID: string(m.SessionID), ProjectID: string(m.ProjectID), WorkspaceID: string(m.To.WorkspaceID), Directory: m.To.Directory, Path: m.Path,
			Updated: clock.Now(), FromDirectory: m.From.Directory, FromWorkspace: string(m.From.WorkspaceID),
		})
		if err != nil {
			return err
		}
		for _, row := range rows {
			r, err := fromRow(row)
			if err != nil {
				return err
			}
			if r.ID == m.SessionID {
				out = r.Session
			}
			p := MovedPayload{SessionID: r.ID, Info: r.Session, From: m.From, To: m.To}
			for _, at := range []event.Context{m.From, m.To} {
				if err := Moved.Append(tx, event.At(at, r.ID, r.RootSessionID), p); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return Session{}, fmt.Errorf("moving session %s: %w", m.SessionID, err)
	}
	return out, nil
}

// TreeIdle is nil when no turn runs in a session or below it, else a session_busy
// fault.
func (s *Service) TreeIdle(ctx context.Context, ses id.Session) error {
	_, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) (struct{}, error) {
		return struct{}{}, treeIdle(ctx, r, ses)
	})
	return err
}

func treeIdle(ctx context.Context, r store.Reader, ses id.Session) error {
	n, err := r.SessionTreeBusy(ctx, db.SessionTreeBusyParams{ID: string(ses)})
	if err != nil {
		return fmt.Errorf("looking for turns of %s: %w", ses, err)
	}
	if n > 0 {
		return fault.New(fault.SessionBusy, "the session is working").With("sessionID", ses)
	}
	return nil
}
