package integrity

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

func callRules() []Rule {
	return []Rule{
		{"part-open", "a call of a turn that is over has its result", partOpen},
		{"call-open", "a call that began in a turn that is over has an end", callOpen},
		{"call-lost", "what began is a call of an answer", callLost},
		{"call-result", "a call has one result, and the answer shows it", callResult},
	}
}

// partOpen closes calls like the recovery of a server does: what one that can
// have an effect did is not known.
func partOpen(ctx context.Context, p *pass) error {
	rows, err := p.IntegrityPartsOpen(ctx, db.IntegrityPartsOpenParams{MaxRows: p.rows()})
	return each(p, rows, err, func(r db.IntegrityPartsOpenRow) (Finding, mend) {
		f := Finding{SessionID: r.SessionID, TurnID: r.TurnID, Subject: r.ID, Detail: "the turn is over and the call has no result"}
		part, err := chat.DecodePart(r.Data)
		call, ok := part.(*chat.ToolPart)
		if err != nil || !ok {
			return f, nil // part-data tells
		}
		reason, message := interrupted, "Tool execution aborted"
		if r.Effects > 0 {
			reason, message = "outcome_unknown", "The server stopped while this ran. What it did is not known; look before doing it again."
		}
		now := clock.Now()
		span := chat.PartTime{Start: now, End: now}
		if running, ok := call.State.(*chat.ToolRunning); ok {
			span.Start = running.Time.Start
		}
		call.State = chat.Failed(chat.ToolInput(call.State), message, map[string]any{"reason": reason}, span)
		return f, putPart(r.SessionID, r.MessageSeq, r.Ord, call)
	})
}

// putPart replaces a part as it is stored, its columns included.
func putPart(session string, seq, ord int64, part chat.Part) mend {
	return func(ctx context.Context, tx *store.Tx) error {
		data, err := json.Marshal(part)
		if err != nil {
			return err
		}
		_, err = tx.MendPart(ctx, db.MendPartParams{
			SessionID: session, MessageSeq: seq, Ord: ord, Type: chat.PartType(part), State: partState(part), Data: data,
		})
		return err
	}
}

// partState gives the state column of a part.
func partState(p chat.Part) string {
	if call, ok := p.(*chat.ToolPart); ok && call.State != nil {
		return call.State.Status()
	}
	return ""
}

func callOpen(ctx context.Context, p *pass) error {
	rows, err := p.IntegrityCallsOpen(ctx, db.IntegrityCallsOpenParams{MaxRows: p.rows()})
	return each(p, rows, err, func(r db.IntegrityCallsOpenRow) (Finding, mend) {
		f := Finding{
			SessionID: r.SessionID, TurnID: r.TurnID, Subject: r.ID,
			Detail: fmt.Sprintf("the turn is over and the call (%s) has no end", r.Class),
		}
		return f, one((*store.Tx).MendCall, db.MendCallParams{ID: r.ID, State: "error", Ended: clock.Now()})
	})
}

func callLost(ctx context.Context, p *pass) error {
	rows, err := p.IntegrityCallsLost(ctx, db.IntegrityCallsLostParams{MaxRows: p.rows()})
	return each(p, rows, err, func(r db.IntegrityCallsLostRow) (Finding, mend) {
		f := Finding{
			SessionID: r.SessionID, TurnID: r.TurnID, Subject: r.ID,
			Detail: fmt.Sprintf("it began, and no answer has its part %s", r.PartID),
		}
		return f, nil
	})
}

func callResult(ctx context.Context, p *pass) error {
	twice, err := p.IntegrityCallsTwice(ctx, db.IntegrityCallsTwiceParams{MaxRows: p.rows()})
	err = each(p, twice, err, func(r db.IntegrityCallsTwiceRow) (Finding, mend) {
		f := Finding{
			SessionID: r.SessionID, TurnID: r.TurnID, Subject: r.PartID,
			Detail: fmt.Sprintf("the call completed %d times", r.Results),
		}
		return f, nil
	})
	if err != nil {
		return err
	}
	rows, err := p.IntegrityCallsUnlike(ctx, db.IntegrityCallsUnlikeParams{MaxRows: p.rows()})
	return each(p, rows, err, func(r db.IntegrityCallsUnlikeRow) (Finding, mend) {
		f := Finding{
			SessionID: r.SessionID, TurnID: r.TurnID, Subject: r.ID,
			Detail: fmt.Sprintf("it ended as %q, its part %s shows %q", r.State, r.PartID, r.PartState),
		}
		if r.State == "completed" {
			return f, nil // the result is gone
		}
		state := "error"
		if r.PartState == "completed" {
			state = r.PartState
		}
		return f, one((*store.Tx).MendCall, db.MendCallParams{ID: r.ID, State: state})
	})
}
