package integrity

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// maxQueued is session.MaxQueued, which lives on a higher floor.
const maxQueued = 64

func inboxRules() []Rule {
	return []Rule{
		{"inbox-state", "a prompt is queued, delivered or cancelled, and a message exactly when it was delivered", inboxState},
		{"inbox-lost", "a delivered prompt is a message of its session", inboxLost},
		{"inbox-absent", "the message that began a turn came through the inbox", inboxAbsent},
		{"inbox-key", "an idempotency key belongs to one message", inboxKey},
		{"inbox-full", "at most 64 prompts wait in a session", inboxFull},
		{"inbox-stuck", "a prompt waits for a turn, or in a parked inbox", inboxStuck},
	}
}

func inboxState(ctx context.Context, p *pass) error {
	rows, err := p.IntegrityInboxStates(ctx, db.IntegrityInboxStatesParams{MaxRows: p.rows()})
	return each(p, rows, err, func(r db.IntegrityInboxStatesRow) (Finding, mend) {
		f := Finding{SessionID: r.SessionID, Subject: r.MessageID, Detail: fmt.Sprintf("the prompt is %q", r.State)}
		state := "delivered"
		if r.Messages == 0 {
			return f, requeue(r.SessionID, r.Ord)
		}
		f.Detail += " and its message exists"
		return f, one((*store.Tx).MendInboxState, db.MendInboxStateParams{SessionID: r.SessionID, Ord: r.Ord, State: state})
	})
}

func inboxLost(ctx context.Context, p *pass) error {
	rows, err := p.IntegrityInboxLost(ctx, db.IntegrityInboxLostParams{MaxRows: p.rows()})
	return each(p, rows, err, func(r db.IntegrityInboxLostRow) (Finding, mend) {
		f := Finding{SessionID: r.SessionID, TurnID: r.TurnID, Subject: r.MessageID, Detail: "the prompt was delivered and is no message"}
		return f, requeue(r.SessionID, r.Ord)
	})
}

// requeue puts a prompt back that was acknowledged. The inbox is parked: a
// person decides whether it still ought to run.
func requeue(session string, ord int64) mend {
	return func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.MendInboxState(ctx, db.MendInboxStateParams{SessionID: session, Ord: ord, State: "queued"}); err != nil {
			return err
		}
		_, err := tx.SessionPark(ctx, db.SessionParkParams{ID: session, InboxParked: 1})
		return err
	}
}

func inboxAbsent(ctx context.Context, p *pass) error {
	rows, err := p.IntegrityInboxAbsent(ctx, db.IntegrityInboxAbsentParams{MaxRows: p.rows()})
	return each(p, rows, err, func(r db.IntegrityInboxAbsentRow) (Finding, mend) {
		f := Finding{SessionID: r.SessionID, TurnID: r.TurnID, Subject: r.MessageID, Detail: "the message began the turn and has no inbox row"}
		return f, admitted(r)
	})
}

// admitted makes the inbox row of a message again, as delivered. Its body is not
// known any more: sending the same id again is a conflict, as with any other body.
func admitted(r db.IntegrityInboxAbsentRow) mend {
	return func(ctx context.Context, tx *store.Tx) error {
		parts, err := tx.PartRange(ctx, db.PartRangeParams{SessionID: r.SessionID, FromSeq: r.Seq, ToSeq: r.Seq})
		if err != nil {
			return err
		}
		var prompt struct {
			Prompt struct {
				Text string `json:"text"`
			} `json:"prompt"`
		}
		for _, row := range parts {
			if text, ok := decodePart(row.Data).(*chat.TextPart); ok && !text.Synthetic {
				prompt.Prompt.Text = text.Text
				break
			}
		}
		data, err := json.Marshal(prompt)
		if err != nil {
			return err
		}
		ord, err := tx.SessionNextInbox(ctx, db.SessionNextInboxParams{ID: r.SessionID})
		if err != nil {
			return err
		}
		return tx.InboxInsert(ctx, db.InboxInsertParams{
			SessionID: r.SessionID, Ord: ord, MessageID: r.MessageID, Kind: "prompt", Delivery: "immediate", State: "delivered",
			Prompt: data, TurnID: r.TurnID, Created: r.Started,
		})
	}
}

// decodePart gives nil for what is no part.
func decodePart(data []byte) chat.Part {
	part, err := chat.DecodePart(data)
	if err != nil {
		return nil
	}
	return part
}

func inboxKey(ctx context.Context, p *pass) error {
	rows, err := p.IntegrityInboxTwice(ctx, db.IntegrityInboxTwiceParams{MaxRows: p.rows()})
	return each(p, rows, err, func(r db.IntegrityInboxTwiceRow) (Finding, mend) {
		f := Finding{SessionID: r.SessionID, Subject: r.MessageID, Detail: fmt.Sprintf("an earlier message has its key %q", *r.IdempotencyKey)}
		return f, one((*store.Tx).MendInboxKey, db.MendInboxKeyParams{SessionID: r.SessionID, Ord: r.Ord})
	})
}

// inboxFull mends nothing: each of the prompts was acknowledged.
func inboxFull(ctx context.Context, p *pass) error {
	rows, err := p.IntegrityInboxFull(ctx, db.IntegrityInboxFullParams{MaxQueued: maxQueued, MaxRows: p.rows()})
	return each(p, rows, err, func(r db.IntegrityInboxFullRow) (Finding, mend) {
		return Finding{SessionID: r.SessionID, Subject: r.SessionID, Detail: fmt.Sprintf("%d prompts wait", r.Queued)}, nil
	})
}

func inboxStuck(ctx context.Context, p *pass) error {
	rows, err := p.IntegrityInboxStuck(ctx, db.IntegrityInboxStuckParams{MaxRows: p.rows()})
	return each(p, rows, err, func(r db.IntegrityInboxStuckRow) (Finding, mend) {
		f := Finding{SessionID: r.ID, Subject: r.ID, Detail: fmt.Sprintf("%d prompts wait, and nothing will start them", r.Queued)}
		return f, one((*store.Tx).SessionPark, db.SessionParkParams{ID: r.ID, InboxParked: 1})
	})
}
