package session

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// Queued is a prompt that waits.
type Queued struct {
	InboxItem
	// Position is the place among the waiting prompts in the order of their
	// admission, from 1; 0 once the prompt is delivered.
	Position int `json:"position,omitempty" doc:"Place among the waiting prompts, from 1; absent once it is delivered."`
}

// Queue lists the prompts that wait, in the order of their admission. An unknown
// session has none.
func (s *Service) Queue(ctx context.Context, ses id.Session) ([]Queued, error) {
	out, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) ([]Queued, error) { return queue(ctx, r, ses) })
	if err != nil {
		return nil, fmt.Errorf("reading the inbox of %s: %w", ses, err)
	}
	return out, nil
}

func queue(ctx context.Context, r store.Reader, ses id.Session) ([]Queued, error) {
	rows, err := r.InboxQueued(ctx, db.InboxQueuedParams{SessionID: string(ses)})
	if err != nil {
		return nil, err
	}
	out := make([]Queued, 0, len(rows))
	for i, row := range rows {
		item, err := itemOf(row)
		if err != nil {
			return nil, err
		}
		out = append(out, Queued{InboxItem: item, Position: i + 1})
	}
	return out, nil
}

func itemOf(row db.Inbox) (InboxItem, error) {
	var in stored
	if err := json.Unmarshal(row.Prompt, &in); err != nil {
		return InboxItem{}, fmt.Errorf("reading an inbox row: %w", err)
	}
	item := InboxItem{
		MessageID: id.Message(row.MessageID), SessionID: id.Session(row.SessionID), Delivery: Delivery(row.Delivery),
		Prompt: mustJSON(in.Prompt), Time: InboxTime{Created: row.Created},
	}
	if row.Kind == kindCompact {
		item.Kind = row.Kind
	}
	return item, nil
}

// Redelivery changes when a waiting prompt is delivered.
type Redelivery struct {
	SessionID id.Session
	MessageID id.Message
	Delivery  Delivery
	// Owner and Generation are of the server that runs the turn if one starts.
	Owner      string
	Generation int64
}

// Redeliver changes when a waiting prompt is delivered and publishes
// session.inbox.updated. Immediate also releases an inbox that an interrupt
// parked and, when the session is idle, starts its turn in the same transaction.
// A prompt that was delivered meanwhile is an already_delivered fault, one that
// does not wait a message_not_found fault.
func (s *Service) Redeliver(ctx context.Context, in Redelivery) (Queued, *Run, error) {
	var out Queued
	var run *Run
	err := s.store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) error {
		out, run = Queued{}, nil
		ses, err := hold(ctx, tx, in.SessionID)
		if err != nil {
			return err
		}
		n, err := tx.InboxSetDelivery(ctx, db.InboxSetDeliveryParams{
			SessionID: string(in.SessionID), MessageID: string(in.MessageID), Delivery: string(in.Delivery),
		})
		if err != nil {
			return err
		}
		if n == 0 {
			return notQueued(ctx, tx, in.SessionID, in.MessageID)
		}
		if out, err = position(ctx, tx.Reader, in.SessionID, in.MessageID); err != nil {
			return err
		}
		if err := InboxUpdated.Append(tx, ses.Origin(), out.InboxItem); err != nil || in.Delivery != Immediate {
			return err
		}
		if _, err := tx.SessionPark(ctx, db.SessionParkParams{ID: string(in.SessionID)}); err != nil {
			return err
		}
		if run, err = s.startIdle(ctx, tx, Run{SessionID: in.SessionID, Owner: in.Owner, Generation: in.Generation}); err != nil || run == nil {
			return err
		}
		now, err := position(ctx, tx.Reader, in.SessionID, in.MessageID)
		out.Position = now.Position
		return err
	})
	if err != nil {
		return Queued{}, nil, fmt.Errorf("changing the delivery of %s: %w", in.MessageID, err)
	}
	return out, run, nil
}

// position finds a prompt among the waiting ones; the zero value for one that
// does not wait.
func position(ctx context.Context, r store.Reader, ses id.Session, msg id.Message) (Queued, error) {
	all, err := queue(ctx, r, ses)
	if err != nil {
		return Queued{}, err
	}
	if i := slices.IndexFunc(all, func(q Queued) bool { return q.MessageID == msg }); i >= 0 {
		return all[i], nil
	}
	return Queued{}, nil
}

// Withdraw takes a waiting prompt back and publishes session.inbox.removed. The
// faults are those of Redeliver.
func (s *Service) Withdraw(ctx context.Context, ses id.Session, msg id.Message) error {
	err := s.store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) error {
		row, err := hold(ctx, tx, ses)
		if err != nil {
			return err
		}
		n, err := tx.InboxCancel(ctx, db.InboxCancelParams{SessionID: string(ses), MessageID: string(msg)})
		if err != nil {
			return err
		}
		if n == 0 {
			return notQueued(ctx, tx, ses, msg)
		}
		return InboxGone.Append(tx, row.Origin(), InboxRemoved{SessionID: ses, MessageID: msg, Reason: "cancelled"})
	})
	if err != nil {
		return fmt.Errorf("withdrawing %s: %w", msg, err)
	}
	return nil
}

// hold locks a session's row first, as admissions and ends of turns do: changes
// of the inbox and what is decided from it take turns.
func hold(ctx context.Context, tx *store.Tx, ses id.Session) (Row, error) {
	row, err := tx.SessionHold(ctx, db.SessionHoldParams{ID: string(ses)})
	if store.IsNoRows(err) {
		return Row{}, notFound(ses)
	}
	if err != nil {
		return Row{}, err
	}
	return fromRow(row)
}

// notQueued says why a prompt could not be changed.
func notQueued(ctx context.Context, tx *store.Tx, ses id.Session, msg id.Message) error {
	row, err := tx.InboxByMessage(ctx, db.InboxByMessageParams{SessionID: string(ses), MessageID: string(msg)})
	if err == nil && row.State == "delivered" {
		return fault.New(fault.AlreadyDelivered, "message %q was delivered already", msg).
			With("sessionID", ses).With("messageID", msg).With("turnID", row.TurnID)
	}
	if err != nil && !store.IsNoRows(err) {
		return err
	}
	return messageNotFound(ses, msg)
}

// StartQueued starts the next waiting prompt of a session that is idle and whose
// inbox is not parked, as one conditional write. It gives the run that the server
// named by owner and generation must start, nil when there is nothing to start.
func (s *Service) StartQueued(ctx context.Context, ses id.Session, owner string, generation int64) (*Run, error) {
	var run *Run
	err := s.store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) error {
		run = nil
		_, err := hold(ctx, tx, ses)
		if err != nil {
			return err
		}
		run, err = s.startIdle(ctx, tx, Run{SessionID: ses, Owner: owner, Generation: generation})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("starting the next prompt of %s: %w", ses, err)
	}
	return run, nil
}

// Stranded lists the sessions with a prompt that nothing will start: no turn runs
// whose end would, and no interrupt parked them. An orderly history has none; a
// store that was mended or restored by hand may.
func (s *Service) Stranded(ctx context.Context) ([]id.Session, error) {
	rows, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) ([]string, error) { return r.InboxStranded(ctx) })
	if err != nil {
		return nil, fmt.Errorf("looking for prompts that nothing starts: %w", err)
	}
	out := make([]id.Session, len(rows))
	for i, row := range rows {
		out[i] = id.Session(row)
	}
	return out, nil
}

// startIdle is startNext for a session that may be running a turn. The session's
// row is locked.
func (s *Service) startIdle(ctx context.Context, tx *store.Tx, run Run) (*Run, error) {
	_, err := tx.TurnOpen(ctx, db.TurnOpenParams{SessionID: string(run.SessionID)})
	if err == nil {
		return nil, nil
	}
	if !store.IsNoRows(err) {
		return nil, err
	}
	return s.startNext(ctx, tx, run)
}

// firstWaiting picks the prompt to start: the immediate ones come first, as they
// do at a step boundary, and those that were put off after them.
func firstWaiting(rows []db.Inbox) db.Inbox {
	if i := slices.IndexFunc(rows, immediate); i >= 0 {
		return rows[i]
	}
	return rows[0]
}

func immediate(row db.Inbox) bool { return Delivery(row.Delivery) == Immediate }
