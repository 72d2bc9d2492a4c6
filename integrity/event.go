package integrity

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

func eventRules() []Rule {
	return []Rule{
		{"event-head", "the newest number given is not below that of any event", eventHead},
		{"event-total", "the log's rows and bytes are those that are counted", eventTotal},
		{"event-gap", "no event has a number that a start has skipped", eventGap},
		{"event-idle", "a turn that is over has said session.idle once", eventIdle},
	}
}

func eventHead(ctx context.Context, p *pass) error {
	head, total, err := p.log(ctx)
	if err != nil || total.Newest <= head.Seq {
		return err
	}
	p.add(Finding{Subject: "event_head", Detail: fmt.Sprintf("the newest event is %d, the newest number given is %d", total.Newest, head.Seq)}, recount)
	return nil
}

func eventTotal(ctx context.Context, p *pass) error {
	head, total, err := p.log(ctx)
	if err != nil || total.TotalRows == head.TotalRows && total.TotalBytes == head.TotalBytes {
		return err
	}
	p.add(Finding{
		Subject: "event_head",
		Detail: fmt.Sprintf("the log has %d events with %d bytes, counted are %d with %d",
			total.TotalRows, total.TotalBytes, head.TotalRows, head.TotalBytes),
	}, recount)
	return nil
}

// log gives what is counted of the event log and what is there.
func (p *pass) log(ctx context.Context) (head db.EventHeadRow, total db.IntegrityEventTotalsRow, err error) {
	if head, err = p.EventHead(ctx); err != nil {
		return head, total, err
	}
	total, err = p.IntegrityEventTotals(ctx)
	return head, total, err
}

// recount makes the head row say what is there. Its number never goes back.
func recount(ctx context.Context, tx *store.Tx) error {
	inside := &pass{Reader: tx.Reader}
	head, total, err := inside.log(ctx)
	if err != nil {
		return err
	}
	_, err = tx.MendEventHead(ctx, db.MendEventHeadParams{
		Seq: max(head.Seq, total.Newest), TotalRows: total.TotalRows, TotalBytes: total.TotalBytes,
	})
	return err
}

func eventGap(ctx context.Context, p *pass) error {
	rows, err := p.IntegrityEventsSkipped(ctx, db.IntegrityEventsSkippedParams{MaxRows: p.rows()})
	return each(p, rows, err, func(r db.IntegrityEventsSkippedRow) (Finding, mend) {
		f := Finding{SessionID: r.SessionID, Subject: fmt.Sprintf("event %d", r.Seq), Detail: fmt.Sprintf("a %s has a number that a start has skipped", r.Type)}
		return f, nil
	})
}

// told is what the log says of a turn.
type told struct {
	began bool // its begin is in the log, so its end must be too
	idles int
}

func eventIdle(ctx context.Context, p *pass) error {
	turns, err := p.toldTurns(ctx)
	if err != nil {
		return err
	}
	for after := ""; !p.full(); {
		rows, err := p.IntegrityTurns(ctx, db.IntegrityTurnsParams{After: after, MaxRows: smallRows})
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, r := range rows {
			after = r.ID
			if t := turns[r.ID]; t.began && t.idles == 0 {
				f := Finding{SessionID: r.SessionID, TurnID: r.ID, Subject: r.ID, Detail: "it is over and session.idle was not said"}
				p.add(f, sayIdle(r))
			}
		}
	}
	return nil
}

// toldTurns reads the log's events that begin and end turns, and tells of ends
// that were said twice.
func (p *pass) toldTurns(ctx context.Context) (map[string]told, error) {
	turns := map[string]told{}
	at := db.IntegrityEventsOfTurnsParams{MaxRows: smallRows}
	for {
		rows, err := p.IntegrityEventsOfTurns(ctx, at)
		if err != nil || len(rows) == 0 {
			return turns, err
		}
		for _, r := range rows {
			at.After = r.Seq
			var payload struct {
				TurnID string `json:"turnID"`
				Status struct {
					TurnID string `json:"turnID"`
				} `json:"status"`
			}
			if json.Unmarshal(r.Payload, &payload) != nil {
				p.add(Finding{SessionID: r.SessionID, Subject: fmt.Sprintf("event %d", r.Seq), Detail: "its payload cannot be read"}, nil)
				continue
			}
			if turn := payload.Status.TurnID; turn != "" {
				t := turns[turn]
				t.began = true
				turns[turn] = t
			}
			if r.Type != "session.idle" {
				continue
			}
			t := turns[payload.TurnID]
			t.idles++
			turns[payload.TurnID] = t
			if t.idles > 1 {
				p.add(Finding{
					SessionID: r.SessionID, TurnID: payload.TurnID, Subject: fmt.Sprintf("event %d", r.Seq),
					Detail: "it says session.idle of a turn again",
				}, forget(r))
			}
		}
	}
}

// forget takes an event out of the log.
func forget(r db.IntegrityEventsOfTurnsRow) mend {
	return func(ctx context.Context, tx *store.Tx) error {
		n, err := tx.MendEventDelete(ctx, db.MendEventDeleteParams{Seq: r.Seq})
		if err != nil || n == 0 {
			return err
		}
		_, err = tx.EventHeadAdvance(ctx, db.EventHeadAdvanceParams{AddedRows: -n, AddedBytes: -r.Size})
		return err
	}
}

// sayIdle publishes the end of a turn.
func sayIdle(r db.IntegrityTurnsRow) mend {
	return func(ctx context.Context, tx *store.Tx) error {
		ses, err := tx.SessionGet(ctx, db.SessionGetParams{ID: r.SessionID})
		if err != nil {
			return err
		}
		idle := map[string]any{"sessionID": r.SessionID, "turnID": r.ID, "outcome": r.State}
		if failure := json.RawMessage(r.Error); len(failure) > 0 && string(failure) != "null" {
			idle["error"] = failure
		}
		data, err := json.Marshal(idle)
		if err != nil {
			return err
		}
		tx.Append(store.Event{
			Type: "session.idle", Time: clock.Now(), Directory: ses.Directory, WorkspaceID: ses.WorkspaceID,
			SessionID: ses.ID, RootSessionID: ses.RootID, Payload: data,
		})
		return nil
	}
}
