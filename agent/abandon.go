package agent

import (
	"context"
	"errors"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/llm"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
)

// abandon stores what came of a step that failed: the partial text stays, open
// calls are errors, the message says why.
func (t *turn) abandon(ctx context.Context, s *step, err error) {
	if isLost(ctx, err) {
		return
	}
	outcome, failure := t.outcome(ctx, err)
	reason := "aborted"
	switch outcome {
	case session.TurnFailed:
		reason = "failed"
	case session.Interrupted:
		reason = "interrupted"
	case session.Cancelled, session.Completed:
	}
	now := clock.Now()
	s.msg.Error, s.msg.Time.Completed = failure, now
	if s.msg.Finish == "" {
		s.msg.Finish = string(llm.ReasonError)
	}
	settle, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	writeErr := t.engine.sessions.Own(settle, store.Durable, t.run, func(ctx context.Context, tx *store.Tx) error {
		for _, w := range s.writes(func(p chat.Part) { abortPart(p, now, reason) }) {
			if err := t.engine.sessions.PutPart(ctx, tx, t.run, w); err != nil {
				return err
			}
		}
		return t.engine.sessions.PutMessage(ctx, tx, t.run, s.seq, s.msg)
	})
	if writeErr != nil && !errors.Is(writeErr, session.ErrLost) {
		t.engine.log.Error("storing a failed step", "session", t.run.SessionID, "error", writeErr)
	}
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
