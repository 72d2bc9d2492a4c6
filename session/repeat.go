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

// Repeated gives the answer of an earlier admission with the same message id or
// key; false when there is none. It needs SessionID, MessageID, Key and Body of
// the Admission, so that a repeated prompt is answered without looking again at
// what it names, which may have changed. Admit decides about those that come at
// the same time.
func (s *Service) Repeated(ctx context.Context, a Admission) (out Admitted, found bool, err error) {
	if a.MessageID == "" && a.Key == "" {
		return Admitted{}, false, nil
	}
	err = s.store.Read(ctx, func(ctx context.Context, r store.Reader) error {
		var row db.Inbox
		if row, found, err = findAdmission(ctx, r, a); err != nil || !found {
			return err
		}
		return replay(ctx, r, row, bodyHash(a.Body), &out)
	})
	if err != nil {
		return Admitted{}, false, fmt.Errorf("looking for an earlier prompt: %w", err)
	}
	return out, found, nil
}

// findAdmission finds the admission that a repeats. A message id and a key of two
// different ones are an idempotency_conflict.
func findAdmission(ctx context.Context, r store.Reader, a Admission) (db.Inbox, bool, error) {
	byID, err := r.InboxByMessage(ctx, db.InboxByMessageParams{SessionID: string(a.SessionID), MessageID: string(a.MessageID)})
	found := err == nil
	if err != nil && !store.IsNoRows(err) || a.Key == "" {
		return byID, found, orNone(err)
	}
	byKey, err := r.InboxByKey(ctx, db.InboxByKeyParams{SessionID: string(a.SessionID), IdempotencyKey: a.Key})
	if err != nil {
		return byID, found, orNone(err)
	}
	if found && byID.Ord != byKey.Ord {
		return byKey, false, sentBefore(byKey)
	}
	return byKey, true, nil
}

func orNone(err error) error {
	if store.IsNoRows(err) {
		return nil
	}
	return err
}

func sentBefore(row db.Inbox) error {
	return fault.New(fault.IdempotencyConflict, "message %q was sent before with another body", row.MessageID).
		With("sessionID", row.SessionID).With("messageID", row.MessageID)
}

// replay tells what has become of an earlier admission.
func replay(ctx context.Context, r store.Reader, row db.Inbox, hash string, out *Admitted) error {
	if row.BodyHash != hash {
		return sentBefore(row)
	}
	*out = Admitted{
		MessageID: id.Message(row.MessageID), Delivery: Delivery(row.Delivery), Delivered: row.State == "delivered",
		Cancelled: row.State == "cancelled", TurnID: id.Turn(row.TurnID), Replayed: true,
	}
	if row.State != "queued" {
		return nil
	}
	queued, err := r.InboxQueued(ctx, db.InboxQueuedParams{SessionID: row.SessionID})
	if err != nil {
		return err
	}
	out.Position = slices.IndexFunc(queued, func(q db.Inbox) bool { return q.Ord == row.Ord }) + 1
	turn, err := r.TurnOpen(ctx, db.TurnOpenParams{SessionID: row.SessionID})
	out.TurnID = id.Turn(turn.ID)
	return orNone(err)
}
