package operations

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/switchyard-dev/switchyard/agent"
	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/runtime"
	"github.com/switchyard-dev/switchyard/session"
)

// PromptBody is the most that a prompt may weigh (design §6).
const PromptBody = 32 << 20

// SessionPromptInput is a prompt with what it runs with.
type SessionPromptInput struct {
	Prompt    session.Prompt `json:"prompt"`
	Delivery  string         `json:"delivery,omitempty" enum:"immediate,deferred" doc:"What a running turn does with it: join at its next step (immediate, the default) or wait until idle."`
	MessageID string         `json:"messageID,omitempty" pattern:"^msg_[A-Za-z0-9_-]{1,64}$" doc:"Chosen by the client: sending it again gives the first answer again."`
	Agent     string         `json:"agent,omitempty" maxLength:"200"`
	Model     *chat.ModelRef `json:"model,omitempty"`
	Variant   string         `json:"variant,omitempty" maxLength:"100"`
	Key       string         `json:"Idempotency-Key,omitempty" in:"header" pattern:"^[!-~]{1,255}$" doc:"Kept with the session: sending the prompt again with it gives the first answer again."`
}

// SessionPromptOutput tells what became of a prompt.
type SessionPromptOutput struct {
	Message   *op.JSON[chat.Item] `json:"message,omitempty" doc:"The message, once it is delivered."`
	MessageID id.Message          `json:"messageID"`
	Delivery  session.Delivery    `json:"delivery" enum:"immediate,deferred"`
	State     string              `json:"state" enum:"delivered,queued,cancelled" doc:"cancelled only when a prompt is sent again that was taken back."`
	Position  int                 `json:"position,omitempty" doc:"Place among the waiting prompts, from 1."`
	TurnID    id.Turn             `json:"turnID"`
}

// SessionPrompt stores a prompt and starts the agent. The answer comes as soon
// as the prompt is on the disk.
var SessionPrompt = op.New(op.Spec{
	Name: "session.prompt", Method: "POST", Path: "/api/session/{sessionID}/prompt",
	Summary:   "Create a user message and queue the agent loop.",
	BodyLimit: PromptBody,
	Codes: []fault.Code{
		fault.IdempotencyConflict, fault.ModelUnavailable, fault.AgentUnknown, fault.DirectoryMissing, fault.QueueFull, fault.Stopping, fault.FileNotFound, fault.PathOutside,
		fault.NotAFile, fault.AttachmentNotFound,
	},
	Aliases: map[string]string{"id": "messageID", "text": "prompt.text", "files": "prompt.files", "agents": "prompt.agents", "model.id": "model.modelID"},
	Values:  map[string]map[string]string{"delivery": {"steer": "immediate", "queue": "deferred"}},
	Example: SessionPromptInput{Prompt: session.Prompt{Text: "Explain this repository."}},
}, func(ctx context.Context, s *runtime.Session, in SessionPromptInput) (SessionPromptOutput, error) {
	done, err := prompt(ctx, s, in)
	if err != nil {
		return SessionPromptOutput{}, err
	}
	if done.Replayed {
		op.ResponseHeader(ctx).Set(op.HeaderReplayed, "true")
	}
	out := SessionPromptOutput{
		MessageID: done.MessageID, Delivery: done.Delivery, State: "queued", Position: done.Position, TurnID: done.TurnID,
	}
	if done.Cancelled {
		out.State = "cancelled"
	}
	if !done.Delivered {
		return out, nil
	}
	out.State = "delivered"
	raw, err := s.Sessions.MessageGet(ctx, s.ID, done.MessageID)
	if err != nil {
		return out, err
	}
	item := op.JSON[chat.Item](raw)
	out.Message = &item
	return out, nil
})

// prompt admits a prompt, or gives what became of it when it was sent before.
func prompt(ctx context.Context, s *runtime.Session, in SessionPromptInput) (session.Admitted, error) {
	sent := session.Admission{SessionID: s.ID, MessageID: id.Message(in.MessageID), Key: in.Key}
	in.Key = "" // not of the body that a repetition must equal
	var err error
	if sent.Body, err = json.Marshal(in); err != nil {
		return session.Admitted{}, fmt.Errorf("encoding a prompt: %w", err)
	}
	if done, repeated, err := s.Sessions.Repeated(ctx, sent); err != nil || repeated {
		return done, err
	}
	a, err := admission(ctx, s, in, sent)
	if err != nil {
		return session.Admitted{}, err
	}
	return s.Agent.Prompt(ctx, a)
}

// admission checks a prompt and settles what it runs with: its own choice, the
// session's, the agent's, the default. sent already says which prompt it is.
func admission(ctx context.Context, s *runtime.Session, in SessionPromptInput, sent session.Admission) (session.Admission, error) {
	none := session.Admission{}
	parts, err := s.Parts()
	if err != nil {
		return none, err
	}
	settings, err := parts.Settings(ctx)
	if err != nil {
		return none, err
	}
	name := in.Agent
	if name == "" {
		name = s.Row.Agent
	}
	chosen, ok := settings.Agent(name)
	if !ok {
		return none, fault.New(fault.AgentUnknown, "there is no agent %q", name).With("agent", name)
	}
	ref := settings.ModelFor(in.Model, chosen, s.Row.Model)
	if in.Variant != "" {
		ref.Variant = in.Variant
	}
	if _, err := settings.Models.Model(ctx, ref); err != nil {
		return none, err
	}
	sent.Prompt, err = parts.Attach(ctx, s.ID, in.Prompt)
	if err != nil {
		return none, err
	}
	sent.Delivery = session.Immediate
	if in.Delivery != "" {
		sent.Delivery = session.Delivery(in.Delivery)
	}
	sent.Agent, sent.Model = chosen.Name, ref
	return sent, nil
}

// SessionWaitInput says what to wait for.
type SessionWaitInput struct {
	TurnID  string `json:"turnID,omitempty" doc:"Wait for this turn; absent means until the session has nothing to do."`
	Timeout int64  `json:"timeout,omitempty" minimum:"0" maximum:"86400000" doc:"Milliseconds; 0 or absent means no limit."`
}

// SessionWaitOutput says how the waiting ended.
type SessionWaitOutput struct {
	Outcome string                 `json:"outcome" enum:"completed,failed,cancelled,interrupted,timeout,deleted,none"`
	Status  session.Status         `json:"status"`
	TurnID  id.Turn                `json:"turnID,omitempty"`
	Error   *chat.Error            `json:"error,omitempty"`
	Message *chat.AssistantMessage `json:"message,omitempty" doc:"Head of the turn's last answer."`
}

// SessionWait waits until a turn or the session's work is over. Status and
// headers are sent at once.
var SessionWait = op.New(op.Spec{
	Name: "session.wait", Method: "POST", Path: "/api/session/{sessionID}/wait", Summary: "Wait until the session is idle.",
	Codes: []fault.Code{fault.TurnNotFound}, Example: SessionWaitInput{Timeout: 60_000},
}, func(ctx context.Context, s *runtime.Session, in SessionWaitInput) (op.Early[SessionWaitOutput], error) {
	var turn id.Turn
	if in.TurnID != "" {
		parsed, ok := id.Parse[id.Turn](in.TurnID)
		if !ok {
			return op.Early[SessionWaitOutput]{}, fault.New(fault.TurnNotFound, "session %s has no turn %q", s.ID, in.TurnID).With("turnID", in.TurnID)
		}
		if _, err := s.Sessions.TurnGet(ctx, s.ID, parsed); err != nil {
			return op.Early[SessionWaitOutput]{}, err
		}
		turn = parsed
	}
	return op.Early[SessionWaitOutput]{Wait: func(ctx context.Context) (SessionWaitOutput, error) {
		return wait(ctx, s, turn, time.Duration(in.Timeout)*time.Millisecond)
	}}, nil
})

func wait(ctx context.Context, s *runtime.Session, turn id.Turn, timeout time.Duration) (SessionWaitOutput, error) {
	bounded := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	result, err := s.Agent.Wait(bounded, agent.WaitInput{SessionID: s.ID, TurnID: turn})
	out := SessionWaitOutput{Outcome: result.Outcome, Status: session.Status{Type: "idle"}, TurnID: result.Turn.ID, Error: result.Turn.Error}
	if err != nil {
		if bounded.Err() == nil || ctx.Err() != nil {
			return out, err
		}
		out.Outcome = "timeout"
	}
	if result.Outcome == "deleted" {
		return out, nil
	}
	active, err := s.Agent.Active(ctx)
	if err != nil {
		return out, err
	}
	if status, busy := active[s.ID]; busy {
		out.Status = status
	}
	out.Message, err = s.Sessions.LastAnswer(ctx, s.ID, result.Turn.ID)
	return out, err
}

// SessionInterrupt stops the running turn.
var SessionInterrupt = op.New(op.Spec{
	Name: "session.interrupt", Method: "POST", Path: "/api/session/{sessionID}/interrupt",
	Summary: "Stop the running turn; what it has written so far stays.", Repeatable: true,
	Doc: "Answers once the wish is stored; the turn ends within seconds. Prompts that wait stay parked until the next prompt. Repeating it, or an idle session, is no error.",
}, func(ctx context.Context, s *runtime.Session, _ Empty) (op.None, error) {
	return op.None{}, s.Agent.Interrupt(ctx, s.ID)
})

// SessionCompactOutput tells what became of the wish to compact.
type SessionCompactOutput struct {
	TurnID id.Turn `json:"turnID,omitempty" doc:"The turn that does it; absent when there is nothing to compact."`
	Queued bool    `json:"queued" doc:"A running turn will do it at its next step boundary."`
}

// SessionCompact puts a summary in the place of the older conversation.
var SessionCompact = op.New(op.Spec{
	Name: "session.compact", Method: "POST", Path: "/api/session/{sessionID}/compact", Summary: "Compact the session conversation.",
	Doc: "Answers once the wish is stored. An idle session gets a turn of its own for it; what the model sees changes with " +
		"session.compacted, not before. Repeating it while one waits is no error.",
	Codes: []fault.Code{fault.DirectoryMissing, fault.QueueFull, fault.Stopping},
}, func(ctx context.Context, s *runtime.Session, _ Empty) (SessionCompactOutput, error) {
	if _, err := s.Parts(); err != nil {
		return SessionCompactOutput{}, err
	}
	out, err := s.Agent.Compact(ctx, s.ID)
	return SessionCompactOutput{TurnID: out.TurnID, Queued: out.Queued}, err
})
