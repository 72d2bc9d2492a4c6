package operations

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/runtime"
	"github.com/switchyard-dev/switchyard/session"
)

// SessionShellInput is a command that a person types.
type SessionShellInput struct {
	Command   string         `json:"command" minLength:"1" maxLength:"65536" doc:"Command line for the shell; it runs in the session's directory."`
	MessageID string         `json:"messageID,omitempty" pattern:"^msg_[A-Za-z0-9_-]{1,64}$" doc:"Chosen by the client: sending it again gives the first answer again."`
	Agent     string         `json:"agent,omitempty" maxLength:"200" doc:"Noted in the messages; absent means the session's."`
	Model     *chat.ModelRef `json:"model,omitempty" doc:"Noted in the messages; absent means the session's."`
	Key       string         `json:"Idempotency-Key,omitempty" in:"header" pattern:"^[!-~]{1,255}$" doc:"Kept with the session: sending the command again with it gives the first answer again."`
}

// SessionShellOutput tells which turn runs the command.
type SessionShellOutput struct {
	Message   op.JSON[chat.Item] `json:"message" doc:"The user message that stands for the command."`
	MessageID id.Message         `json:"messageID"`
	TurnID    id.Turn            `json:"turnID"`
}

// SessionShell runs a command that a person types. The answer comes as soon as
// the turn is on the disk.
var SessionShell = op.New(op.Spec{
	Name: "session.shell", Method: "POST", Path: "/api/session/{sessionID}/shell",
	Summary: "Run a command of the user in the session.",
	Doc: "Answers at once, as session.prompt does; the turn that runs the command ends with session.idle. It is a user message and an " +
		"answer with one bash call, whose output comes as deltas. Nobody is asked for permission and no model is called; the model " +
		"sees the command and its output with the next prompt. It may take ten minutes.",
	Codes: []fault.Code{
		fault.SessionBusy, fault.IdempotencyConflict, fault.ModelUnavailable, fault.AgentUnknown, fault.DirectoryMissing, fault.Stopping,
	},
	Aliases: map[string]string{"id": "messageID", "model.id": "model.modelID"},
	Example: SessionShellInput{Command: "git log --oneline -5"},
}, func(ctx context.Context, s *runtime.Session, in SessionShellInput) (SessionShellOutput, error) {
	var out SessionShellOutput
	done, err := shell(ctx, s, in)
	if err != nil {
		return out, err
	}
	if done.Replayed {
		op.ResponseHeader(ctx).Set(op.HeaderReplayed, "true")
	}
	raw, err := s.Sessions.MessageGet(ctx, s.ID, done.MessageID)
	return SessionShellOutput{Message: op.JSON[chat.Item](raw), MessageID: done.MessageID, TurnID: done.TurnID}, err
})

// shell admits a command, or gives what became of it when it was sent before.
func shell(ctx context.Context, s *runtime.Session, in SessionShellInput) (session.Admitted, error) {
	if strings.TrimSpace(in.Command) == "" || strings.ContainsRune(in.Command, 0) {
		return session.Admitted{}, fault.New(fault.ValidationFailed, "the command is empty or has a NUL").At("body.command", "empty or with NUL")
	}
	sent := session.Admission{SessionID: s.ID, MessageID: id.Message(in.MessageID), Prompt: session.Prompt{Text: in.Command}, Key: in.Key}
	in.Key = "" // not of the body that a repetition must equal
	var err error
	if sent.Body, err = json.Marshal(in); err != nil {
		return session.Admitted{}, fmt.Errorf("encoding a command: %w", err)
	}
	if done, repeated, err := s.Sessions.Repeated(ctx, sent); err != nil || repeated {
		return done, err
	}
	a, err := shellAdmission(ctx, s, in, sent)
	if err != nil {
		return session.Admitted{}, err
	}
	return s.Agent.Shell(ctx, a)
}

// shellAdmission settles what is noted with a command.
func shellAdmission(ctx context.Context, s *runtime.Session, in SessionShellInput, sent session.Admission) (session.ShellAdmission, error) {
	none := session.ShellAdmission{}
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
	if in.Model != nil {
		if _, err := settings.Models.Model(ctx, *in.Model); err != nil {
			return none, err
		}
	}
	sent.Agent, sent.Model = chosen.Name, settings.ModelFor(in.Model, chosen, s.Row.Model)
	return session.ShellAdmission{Admission: sent, Path: chat.MessagePath{CWD: s.Row.Directory, Root: parts.Env.Root()}}, nil
}
