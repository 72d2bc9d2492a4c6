package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// check holds the history against the promises and gives all that is wrong.
func (w *world) check(ctx context.Context) error {
	var errs []error
	texts := map[id.Part]string{}
	log, err := w.log(ctx)
	errs = append(errs, err)
	completed, err := checkTurns(log)
	errs = append(errs, err)
	for _, ses := range w.sessions {
		errs = append(errs, w.checkSession(ctx, ses, texts, completed))
	}
	errs = append(errs, w.checkAcks(ctx), w.checkEffects())
	for n, c := range w.clients {
		if err := c.check(log, texts); err != nil {
			errs = append(errs, fmt.Errorf("client %d: %w", n, err))
		}
	}
	return errors.Join(errs...)
}

func (w *world) log(ctx context.Context) ([]store.Event, error) {
	_, head, err := w.server.store.EventBounds(ctx)
	if err != nil {
		return nil, err
	}
	return w.server.store.Events(ctx, 0, head, 1<<20)
}

// checkSession: messages without holes, every answer completed, every call with
// one result.
func (w *world) checkSession(ctx context.Context, ses id.Session, texts map[id.Part]string, completed map[id.Turn]bool) error {
	raw, err := w.server.sessions.Context(ctx, ses)
	if err != nil {
		return err
	}
	items, err := session.Items(raw)
	if err != nil {
		return err
	}
	row, err := store.Get(ctx, w.server.store, func(ctx context.Context, r store.Reader) (db.Session, error) {
		return r.SessionGet(ctx, db.SessionGetParams{ID: string(ses)})
	})
	if err != nil {
		return err
	}
	if n := int64(len(items)); row.MessageCount != n || row.MessageSeq != n {
		return fmt.Errorf("session %s has %d messages, counts %d and is at %d", ses, n, row.MessageCount, row.MessageSeq)
	}
	if err := checkAnswered(items, completed); err != nil {
		return err
	}
	for _, item := range items {
		if a, ok := item.Info.(*chat.AssistantMessage); ok && a.Time.Completed == 0 {
			return fmt.Errorf("answer %s is open: %+v", a.ID, a)
		}
		for _, p := range item.Parts {
			switch v := p.(type) {
			case *chat.ToolPart:
				if !chat.Terminal(v.State) {
					return fmt.Errorf("call %s of %s is %s, its message %+v", v.CallID, ses, v.State.Status(), item.Info)
				}
			case *chat.TextPart:
				texts[v.ID] = v.Text
			}
		}
	}
	return nil
}

// checkAnswered: in a turn that completed an answer follows every prompt.
func checkAnswered(items []chat.Item, completed map[id.Turn]bool) error {
	answered := map[id.Turn]bool{}
	for _, item := range slices.Backward(items) {
		switch v := item.Info.(type) {
		case *chat.AssistantMessage:
			answered[v.TurnID] = true
		case *chat.UserMessage:
			if completed[v.TurnID] && !answered[v.TurnID] {
				return fmt.Errorf("prompt %s has no answer", v.ID)
			}
		}
	}
	return nil
}

// checkTurns: each turn is busy, then idle once; no two of a session overlap;
// nothing of a session comes after its deletion. It gives the turns that completed.
func checkTurns(log []store.Event) (map[id.Turn]bool, error) {
	completed := map[id.Turn]bool{}
	open, ended, deleted := map[string]id.Turn{}, map[id.Turn]bool{}, map[string]bool{}
	for _, e := range log {
		if e.SessionID != "" && deleted[e.SessionID] {
			return nil, fmt.Errorf("%s of the deleted %s", e.Type, e.SessionID)
		}
		switch e.Type {
		case "session.status":
			var p session.StatusPayload
			if err := json.Unmarshal(e.Payload, &p); err != nil {
				return nil, err
			}
			turn := p.Status.TurnID
			if p.Status.Type == "idle" {
				continue
			}
			if now, busy := open[e.SessionID]; busy && now != turn || ended[turn] {
				return nil, fmt.Errorf("turn %s of %s runs beside %s, or again", turn, e.SessionID, now)
			}
			open[e.SessionID] = turn
		case "session.idle":
			var p session.Idle
			if err := json.Unmarshal(e.Payload, &p); err != nil {
				return nil, err
			}
			if open[e.SessionID] != p.TurnID || ended[p.TurnID] {
				return nil, fmt.Errorf("turn %s of %s ends twice, or never began", p.TurnID, e.SessionID)
			}
			delete(open, e.SessionID)
			ended[p.TurnID] = true
			completed[p.TurnID] = p.Outcome == session.Completed
		case "session.deleted":
			deleted[e.SessionID] = true
			delete(open, e.SessionID)
		}
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("turns without an end: %v", open)
	}
	return completed, nil
}

// checkAcks: what was acknowledged is a message, or waits in a parked inbox.
func (w *world) checkAcks(ctx context.Context) error {
	for _, a := range w.acked {
		if w.gone[a.session] {
			continue
		}
		err := w.server.store.Read(ctx, func(ctx context.Context, r store.Reader) error { return checkAck(ctx, r, a) })
		if err != nil {
			return fmt.Errorf("prompt %s of %s: %w", a.message, a.session, err)
		}
	}
	return nil
}

func checkAck(ctx context.Context, r store.Reader, a ack) error {
	row, err := r.InboxByMessage(ctx, db.InboxByMessageParams{SessionID: string(a.session), MessageID: string(a.message)})
	if err != nil {
		return fmt.Errorf("lost: %w", err)
	}
	if row.State == "queued" {
		ses, err := r.SessionGet(ctx, db.SessionGetParams{ID: string(a.session)})
		if err == nil && ses.InboxParked == 0 {
			return errors.New("waits although nothing runs and nothing is parked")
		}
		return err
	}
	_, err = r.MessageByID(ctx, db.MessageByIDParams{SessionID: string(a.session), ID: string(a.message)})
	if err != nil {
		return fmt.Errorf("delivered, but no message: %w", err)
	}
	return nil
}

// checkEffects: what may happen only once did.
func (w *world) checkEffects() error {
	w.script.mu.Lock()
	defer w.script.mu.Unlock()
	for call, n := range w.script.done {
		if n > 1 && strings.HasPrefix(call, "effect ") {
			return fmt.Errorf("the effect of %s happened %d times", call, n)
		}
	}
	return nil
}

// check: the client saw every event since its knowledge began, once and in
// order, and knows the texts as they are stored.
func (c *client) check(log []store.Event, texts map[id.Part]string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wrong != nil {
		return c.wrong
	}
	var want []int64
	for _, e := range log {
		if (event.Position{Epoch: c.from.Epoch, Seq: e.Seq}).Compare(c.from) > 0 {
			want = append(want, e.Seq)
		}
	}
	if !slices.Equal(want, c.seen) {
		return fmt.Errorf("saw %d events of %d: %v instead of %v", len(c.seen), len(want), c.seen, want)
	}
	for part, text := range c.texts {
		if stored, ok := texts[part]; ok && stored != text {
			return fmt.Errorf("knows %q of %s, stored is %q", text, part, stored)
		}
	}
	return nil
}
