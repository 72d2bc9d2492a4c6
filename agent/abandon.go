package agent

import (
	"context"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/llm"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
)

// abandon stores what came of a step that failed: the partial text stays, open
// calls are errors, the message says why. When it cannot be stored, the end of the
// turn does the same.
func (t *turn) abandon(ctx context.Context, s *step, err error) error {
	if isLost(ctx, err) {
		return session.ErrLost
	}
	outcome, failure := t.outcome(ctx, err)
	reason := abortReason(outcome)
	now := clock.Now()
	s.msg.Error, s.msg.Time.Completed = failure, now
	if s.msg.Finish == "" {
		s.msg.Finish = string(llm.ReasonError)
	}
	settle, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	return t.engine.sessions.Own(settle, store.Durable, t.run, func(ctx context.Context, tx *store.Tx) error {
		for _, w := range s.writes(func(p chat.Part) { abortPart(p, now, reason) }) {
			if err := t.engine.sessions.PutPart(ctx, tx, t.run, w); err != nil {
				return err
			}
		}
		// The answer to a write may have been lost, and with it a part.
		err := t.engine.sessions.CloseParts(ctx, tx, t.run, s.seq, func(p chat.Part) bool { return closeLost(p, reason) })
		if err != nil {
			return err
		}
		return t.engine.sessions.PutMessage(ctx, tx, t.run, s.seq, s.msg)
	})
}

// abortReason is what metadata.reason says of calls that an outcome cut off.
func abortReason(o session.Outcome) string {
	switch o {
	case session.TurnFailed:
		return "failed"
	case session.Interrupted:
		return "interrupted"
	case session.Cancelled, session.Completed:
	}
	return "aborted"
}

// abortPart closes a part that did not finish by itself.
func abortPart(p chat.Part, now int64, reason string) {
	switch v := p.(type) {
	case *chat.TextPart:
		if v.Time != nil && v.Time.End == 0 {
			v.Time.End = now
		}
	case *chat.ReasoningPart:
		if v.Time != nil && v.Time.End == 0 {
			v.Time.End = now
		}
	case *chat.ToolPart:
		if !chat.Terminal(v.State) {
			v.State = chat.Failed(chat.ToolInput(v.State), abortMessage(reason), map[string]any{"reason": reason}, startedAt(v.State, now))
		}
	}
}

// abortMessage tells the model what became of a call without a result.
func abortMessage(reason string) string {
	if reason == unknownOutcome {
		return "The server stopped while this ran. What it did is not known; look before doing it again."
	}
	return "Tool execution aborted"
}

func startedAt(s chat.ToolState, now int64) chat.PartTime {
	if running, ok := s.(*chat.ToolRunning); ok {
		return chat.PartTime{Start: running.Time.Start, End: now}
	}
	return chat.PartTime{Start: now, End: now}
}
