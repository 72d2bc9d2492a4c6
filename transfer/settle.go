package transfer

import (
	"github.com/switchyard-dev/switchyard/chat"
)

// settle closes what a running turn had left open when it was copied: nobody
// will go on with it in the copy. The text so far stays; calls without a result
// are errors with the reason, and an answer that was not whole ends as aborted,
// at the moment given.
func settle(item chat.Item, at int64, reason string) {
	for _, p := range item.Parts {
		settlePart(p, at, reason)
	}
	answer, ok := item.Info.(*chat.AssistantMessage)
	if !ok || answer.Time.Completed != 0 {
		return
	}
	answer.Time.Completed = at
	if answer.Error == nil {
		answer.Error = chat.NewError(chat.ErrAborted, "the conversation was copied while the turn ran")
	}
	if answer.Finish == "" {
		answer.Finish = "error"
	}
}

func settlePart(p chat.Part, at int64, reason string) {
	switch v := p.(type) {
	case *chat.TextPart:
		settleTime(v.Time, at)
	case *chat.ReasoningPart:
		settleTime(v.Time, at)
	case *chat.ToolPart:
		if chat.Terminal(v.State) {
			return
		}
		span := chat.PartTime{Start: at, End: at}
		if running, ok := v.State.(*chat.ToolRunning); ok {
			span.Start = running.Time.Start
		}
		v.State = chat.Failed(chat.ToolInput(v.State), "The conversation was copied while the call ran.", map[string]any{"reason": reason}, span)
	}
}

func settleTime(t *chat.PartTime, at int64) {
	if t != nil && t.End == 0 {
		t.End = at
	}
}
