package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/llm"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// settle gives the write that takes back what a turn still asks.
func (e *Engine) settle(turn id.Turn) func(context.Context, *store.Tx) error {
	return func(ctx context.Context, tx *store.Tx) error {
		if err := e.permissions.Cancel(ctx, tx, turn); err != nil {
			return err
		}
		return e.questions.Cancel(ctx, tx, turn)
	}
}

// settleParts gives the write that closes what a lost run left open: its
// messages get an end, its unfinished calls become errors. What a call that had
// begun did is not known, unless it only read.
func (e *Engine) settleParts(t session.Run, reason string, failure *chat.Error) func(context.Context, *store.Tx) error {
	return func(ctx context.Context, tx *store.Tx) error {
		if err := e.settle(t.TurnID)(ctx, tx); err != nil {
			return err
		}
		begun, err := tx.ToolCallList(ctx, db.ToolCallListParams{TurnID: string(t.TurnID)})
		if err != nil {
			return err
		}
		effects := map[string]bool{}
		for _, c := range begun {
			if c.Ended == nil && c.Class != "read" {
				effects[c.PartID] = true
			}
			if c.Ended == nil {
				end := db.ToolCallEndParams{ID: c.ID, State: "error", Post: []byte("{}"), Ended: clock.Now()}
				if _, err := tx.ToolCallEnd(ctx, end); err != nil {
					return err
				}
			}
		}
		return e.sessions.SettleMessages(ctx, tx, t, failure, func(p chat.Part) bool {
			if effects[string(p.Head().ID)] {
				return closeLost(p, unknownOutcome)
			}
			return closeLost(p, reason)
		})
	}
}

// closeLost closes a part that a crash cut off, and tells whether that changed
// it.
func closeLost(p chat.Part, reason string) (changed bool) {
	before, err := json.Marshal(p)
	if err != nil {
		return false
	}
	abortPart(p, clock.Now(), reason)
	after, err := json.Marshal(p)
	return err == nil && string(before) != string(after)
}

// rules gathers what decides about a step's calls.
func (t *turn) rules(ctx context.Context, set *setting) (rule.Sets, error) {
	saved, err := t.engine.permissions.Saved(ctx, t.row.ProjectID)
	if err != nil {
		return rule.Sets{}, err
	}
	configured := append([]rule.Rule{}, set.agent.Permission...)
	configured = append(configured, set.Rules...)
	configured = append(configured, t.row.Permission...)
	return rule.Sets{Configured: configured, Saved: saved, Guard: set.agent.Guard()}, nil
}

// setRetry remembers the status while a turn waits to try again.
func (t *turn) setRetry(s *session.Status) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.retry = s
}

func (t *turn) retrying() (session.Status, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.retry == nil {
		return session.Status{}, false
	}
	return *t.retry, true
}

// waitRetry tells that the provider call is tried again, and when, and waits.
func (t *turn) waitRetry(ctx context.Context, attempt int, wait time.Duration, cause error) error {
	status := session.Status{
		Type: "retry", TurnID: t.run.TurnID, Attempt: attempt, Message: t.failure(cause).Data.Message, Next: clock.Now() + wait.Milliseconds(),
	}
	t.setRetry(&status)
	defer t.setRetry(nil)
	if err := t.publishStatus(ctx, status); err != nil {
		return err
	}
	if err := clock.Sleep(ctx, wait); err != nil {
		return err
	}
	return t.publishStatus(ctx, session.Status{Type: "busy", TurnID: t.run.TurnID})
}

func (t *turn) publishStatus(ctx context.Context, s session.Status) error {
	return t.engine.sessions.Own(ctx, store.Relaxed, t.run, func(_ context.Context, tx *store.Tx) error {
		return session.StatusChanged.Append(tx, t.run.Origin, session.StatusPayload{SessionID: t.run.SessionID, Status: s})
	})
}

// tooLong tells the wait that a provider asked for, when that is why the turn
// does not try again.
func tooLong(err error) error {
	var model *llm.Error
	if !errors.As(err, &model) || model.RetryAfter == 0 || strings.Contains(model.Message, "asks to wait") {
		return err
	}
	told := *model
	told.Message = fmt.Sprintf("%s (it asks to wait %s)", model.Message, model.RetryAfter.Round(time.Second))
	return &told
}

// WaitInput selects what to wait for.
type WaitInput struct {
	SessionID id.Session
	// TurnID waits for one turn; empty waits until no turn runs and no prompt
	// can start one.
	TurnID id.Turn
}

// WaitResult says what a wait ended with.
type WaitResult struct {
	// Outcome is that of the turn, or none when there was nothing to wait for,
	// or deleted.
	Outcome string
	Turn    session.Turn
}

// Wait waits until a turn or a session's work is over, or ctx ends.
func (e *Engine) Wait(ctx context.Context, in WaitInput) (WaitResult, error) {
	return event.Await(ctx, e.changed, string(in.SessionID), func(ctx context.Context) (WaitResult, bool, error) {
		return e.lookAt(ctx, in)
	})
}

func (e *Engine) lookAt(ctx context.Context, in WaitInput) (WaitResult, bool, error) {
	if in.TurnID != "" {
		t, err := e.sessions.TurnGet(ctx, in.SessionID, in.TurnID)
		if fault.Is(err, fault.TurnNotFound) {
			_, err = e.sessions.Get(ctx, in.SessionID)
			if fault.Is(err, fault.SessionNotFound) {
				return WaitResult{Outcome: "deleted"}, true, nil
			}
		}
		return WaitResult{Outcome: t.State, Turn: t}, t.Ended != 0, err
	}
	busy, err := e.sessions.Busy(ctx, in.SessionID)
	if fault.Is(err, fault.SessionNotFound) {
		return WaitResult{Outcome: "deleted"}, true, nil
	}
	if err != nil || busy {
		return WaitResult{}, false, err
	}
	last, ok, err := e.sessions.LastTurn(ctx, in.SessionID)
	if err == nil && !ok {
		// The reads see different moments: a delete may lie between them.
		_, err = e.sessions.Get(ctx, in.SessionID)
	}
	switch {
	case fault.Is(err, fault.SessionNotFound):
		return WaitResult{Outcome: "deleted"}, true, nil
	case !ok:
		return WaitResult{Outcome: "none"}, err == nil, err
	}
	return WaitResult{Outcome: last.State, Turn: last}, true, err
}
