package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// Ancestors gives the sessions above a session, the nearest first.
func (s *Service) Ancestors(ctx context.Context, ses id.Session) ([]id.Session, error) {
	return store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) ([]id.Session, error) {
		var out []id.Session
		for at := ses; ; {
			row, err := read(ctx, r, at)
			if err != nil {
				return nil, err
			}
			if row.ParentID == "" {
				return out, nil
			}
			at = row.ParentID
			out = append(out, at)
		}
	})
}

// Tree has the open turns of sessions with what lies above them.
type Tree struct {
	turns  map[id.Session]db.TurnOpenTreeRow
	parent map[id.Session]id.Session
}

// Statuses gives the status of all sessions that are not idle. A turn that waits
// for a task whose session waits for a person waits for that person too.
func (s *Service) Statuses(ctx context.Context) (map[id.Session]Status, error) {
	tree, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) (Tree, error) { return readTree(ctx, r, nil) })
	if err != nil {
		return nil, fmt.Errorf("reading the open turns: %w", err)
	}
	out := make(map[id.Session]Status, len(tree.turns))
	for ses := range tree.turns {
		out[ses] = tree.status(ses)
	}
	return out, nil
}

// OpenBelow gives the sessions below ses that run a turn.
func (s *Service) OpenBelow(ctx context.Context, ses id.Session) ([]id.Session, error) {
	row, err := s.Get(ctx, ses)
	if err != nil {
		return nil, err
	}
	root := string(row.RootSessionID)
	tree, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) (Tree, error) { return readTree(ctx, r, &root) })
	if err != nil {
		return nil, fmt.Errorf("reading the turns below %s: %w", ses, err)
	}
	var out []id.Session
	for below := range tree.turns {
		// Between the two may be sessions that run nothing: anybody may prompt one.
		above, err := s.Ancestors(ctx, below)
		if fault.Is(err, fault.SessionNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		if slices.Contains(above, ses) {
			out = append(out, below)
		}
	}
	return out, nil
}

func readTree(ctx context.Context, r store.Reader, root *string) (Tree, error) {
	rows, err := r.TurnOpenTree(ctx, db.TurnOpenTreeParams{RootID: root})
	t := Tree{turns: map[id.Session]db.TurnOpenTreeRow{}, parent: map[id.Session]id.Session{}}
	for _, row := range rows {
		ses := id.Session(row.SessionID)
		t.turns[ses], t.parent[ses] = row, id.Session(row.ParentID)
	}
	return t, err
}

// under tells whether a turn of ses waits for one of below: between the two there
// are open turns only, of which each waits for a task.
func (t Tree) under(below, ses id.Session) bool {
	for at := t.parent[below]; at != ""; at = t.parent[at] {
		if at == ses {
			return true
		}
	}
	return false
}

func (t Tree) status(ses id.Session) Status {
	row := t.turns[ses]
	out := Turn{ID: id.Turn(row.ID), State: row.State}.Status()
	if out.Waiting != "" {
		return out
	}
	for below := range t.turns {
		if !t.under(below, ses) {
			continue
		}
		// One word stands for all: permission, if there is any.
		if w := (Turn{State: t.turns[below].State}).Status().Waiting; w == "permission" || out.Waiting == "" {
			out.Waiting = w
		}
	}
	return out
}

// tellAbove publishes the status of the turns above a child's turn whose state
// has changed, in the same write.
func (s *Service) tellAbove(ctx context.Context, tx *store.Tx, run Run) error {
	root := string(run.Origin.RootSessionID)
	if root == "" || root == string(run.SessionID) {
		return nil
	}
	tree, err := readTree(ctx, tx.Reader, &root)
	if err != nil {
		return err
	}
	row, err := read(ctx, tx.Reader, run.SessionID)
	if err != nil {
		return err
	}
	for at := row.ParentID; at != ""; at = tree.parent[at] {
		if _, open := tree.turns[at]; !open {
			return nil
		}
		above, err := read(ctx, tx.Reader, at)
		if err != nil {
			return err
		}
		if err := StatusChanged.Append(tx, above.Origin(), StatusPayload{SessionID: at, Status: tree.status(at)}); err != nil {
			return err
		}
	}
	return nil
}
