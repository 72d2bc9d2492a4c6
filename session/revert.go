package session

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// Summary counts what a session's calls changed in files.
type Summary struct {
	Additions int `json:"additions" doc:"Lines."`
	Deletions int `json:"deletions"`
	Files     int `json:"files"`
}

// Revert says that the changes of files from a message on are undone. The next
// prompt ends it: its model is told.
type Revert struct {
	MessageID id.Message `json:"messageID"`
	PartID    id.Part    `json:"partID,omitempty"`
	Files     []string   `json:"files" doc:"Absolute paths that were put back."`
}

// SetSummary stores what a session's calls changed, as part of another write of the
// run, and publishes session.updated.
func (s *Service) SetSummary(ctx context.Context, tx *store.Tx, run Run, sum Summary) error {
	row, err := tx.SessionSetSummary(ctx, db.SessionSetSummaryParams{ID: string(run.SessionID), Summary: mustJSON(sum)})
	if err != nil {
		return err
	}
	return publishUpdated(tx, row)
}

// SetRevert stores that changes are undone, or with nil that they are not any more,
// and publishes session.updated. plan is for ReadRevert alone. A turn that runs is
// a session_busy fault.
func (s *Service) SetRevert(ctx context.Context, ses id.Session, r *Revert, plan any) (Session, error) {
	var out Row
	err := s.store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) error {
		if _, err := hold(ctx, tx, ses); err != nil {
			return err
		}
		if err := treeIdle(ctx, tx.Reader, ses); err != nil {
			return err
		}
		data := []byte("null")
		if r != nil {
			data = mustJSON(storedRevert{Revert: *r, Plan: mustJSON(plan)})
		}
		row, err := tx.SessionSetRevert(ctx, db.SessionSetRevertParams{ID: string(ses), Revert: data, Updated: clock.Now()})
		if err != nil {
			return err
		}
		if out, err = fromRow(row); err != nil {
			return err
		}
		return publishUpdated(tx, row)
	})
	if err != nil {
		return Session{}, fmt.Errorf("noting what is undone in %s: %w", ses, err)
	}
	return out.Session, nil
}

type storedRevert struct {
	Revert
	Plan json.RawMessage `json:"plan"`
}

// ReadRevert reads the plan that SetRevert stored; false where nothing is undone.
func (r Row) ReadRevert(plan any) (bool, error) {
	if r.Revert == nil {
		return false, nil
	}
	var in storedRevert
	if err := json.Unmarshal(r.row.Revert, &in); err != nil {
		return false, fmt.Errorf("reading what is undone in %s: %w", r.ID, err)
	}
	if err := json.Unmarshal(in.Plan, plan); err != nil {
		return false, fmt.Errorf("reading what is undone in %s: %w", r.ID, err)
	}
	return true, nil
}

func publishUpdated(tx *store.Tx, row db.Session) error {
	r, err := fromRow(row)
	if err != nil {
		return err
	}
	return Updated.Append(tx, r.Origin(), Info{SessionID: r.ID, Info: r.Session})
}

// keepReverted ends a session's undoing when a prompt comes, and gives the text
// that tells the model; "" where nothing is undone.
func (s *Service) keepReverted(ctx context.Context, tx *store.Tx, ses Row) (string, error) {
	if ses.Revert == nil {
		return "", nil
	}
	row, err := tx.SessionSetRevert(ctx, db.SessionSetRevertParams{ID: string(ses.ID), Revert: []byte("null"), Updated: clock.Now()})
	if err != nil {
		return "", err
	}
	if err := publishUpdated(tx, row); err != nil {
		return "", err
	}
	const maxNamed = 50
	files := ses.Revert.Files
	more := ""
	if len(files) > maxNamed {
		files, more = files[:maxNamed], fmt.Sprintf("\nand %d more", len(files)-maxNamed)
	}
	return "The user has undone your changes to these files; they are as they were before:\n" + strings.Join(files, "\n") + more, nil
}

// Place gives the sequence of a message in its session, and its turn.
func (s *Service) Place(ctx context.Context, ses id.Session, msg id.Message) (seq int64, turn id.Turn, err error) {
	row, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) (db.Message, error) {
		return r.MessageByID(ctx, db.MessageByIDParams{SessionID: string(ses), ID: string(msg)})
	})
	if store.IsNoRows(err) {
		return 0, "", messageNotFound(ses, msg)
	}
	if err != nil {
		return 0, "", fmt.Errorf("reading message %s: %w", msg, err)
	}
	return row.Seq, id.Turn(row.TurnID), nil
}
