package session

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/failpoint"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// kindShell is the inbox row of a command that a person typed. It never waits:
// the row is there so that the command can be sent again.
const kindShell = "shell"

// shellTime is the most that a command of a person may take; the tool's own
// default is meant for models.
const shellTime = 10 * time.Minute

// shellText tells the model where the call comes from that it did not make.
const shellText = "The user ran the following command."

// ShellAdmission is a command that a person typed. Of the Admission the prompt's
// text is the command, and Delivery has no meaning.
type ShellAdmission struct {
	Admission
	// Path is where the command runs.
	Path chat.MessagePath
}

// AdmitShell stores a command and the turn that runs it (C1): a user message, and
// an answer whose one call is pending. A session that runs a turn is
// session_busy. The same message id or key gives the first answer again, as Admit
// does.
func (s *Service) AdmitShell(ctx context.Context, a ShellAdmission) (Admitted, error) {
	hash := bodyHash(a.Body)
	if a.MessageID == "" {
		a.MessageID = id.New[id.Message](s.ids)
	}
	var out Admitted
	failpoint.Before(failpoint.Admit)
	err := s.store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) error {
		out = Admitted{MessageID: a.MessageID, Delivery: Immediate, Delivered: true}
		ord, err := tx.SessionNextInbox(ctx, db.SessionNextInboxParams{ID: string(a.SessionID)})
		if err != nil {
			return orAbsent(err, a.SessionID)
		}
		if earlier, found, err := findAdmission(ctx, tx.Reader, a.Admission); err != nil {
			return err
		} else if found {
			return replay(ctx, tx.Reader, earlier, hash, &out)
		}
		turn, err := tx.TurnOpen(ctx, db.TurnOpenParams{SessionID: string(a.SessionID)})
		if err == nil {
			return fault.New(fault.SessionBusy, "session %s runs a turn", a.SessionID).With("sessionID", a.SessionID).With("turnID", turn.ID)
		}
		if !store.IsNoRows(err) {
			return err
		}
		run, err := s.beginShell(ctx, tx, a, ord, hash)
		out.TurnID, out.Started = run.TurnID, &run
		return err
	})
	failpoint.After(failpoint.Admit)
	if err != nil {
		return Admitted{}, fmt.Errorf("admitting a command to %s: %w", a.SessionID, err)
	}
	return out, nil
}

func (s *Service) beginShell(ctx context.Context, tx *store.Tx, a ShellAdmission, ord int64, hash string) (Run, error) {
	ses, err := read(ctx, tx.Reader, a.SessionID)
	if err != nil {
		return Run{}, err
	}
	row := db.Inbox{SessionID: string(a.SessionID), Ord: ord, MessageID: string(a.MessageID), Kind: kindShell}
	run, err := s.startTurn(ctx, tx, ses, row, a.Owner, a.Generation)
	if err != nil {
		return run, err
	}
	p := db.InboxInsertParams{
		SessionID: row.SessionID, Ord: ord, MessageID: row.MessageID, Kind: kindShell, Delivery: string(Immediate), State: "delivered",
		BodyHash: hash, Prompt: mustJSON(stored{Prompt: a.Prompt, Agent: a.Agent, Model: a.Model}), TurnID: string(run.TurnID), Created: clock.Now(),
	}
	if a.Key != "" {
		p.IdempotencyKey = &a.Key
	}
	if err := tx.InboxInsert(ctx, p); err != nil {
		return run, err
	}
	return run, s.putShell(ctx, tx, run, a)
}

// putShell writes the two messages of a command.
func (s *Service) putShell(ctx context.Context, tx *store.Tx, run Run, a ShellAdmission) error {
	now := clock.Now()
	asked := chat.NewUser(chat.MessageHead{ID: a.MessageID, SessionID: a.SessionID}, a.Agent, a.Model, now)
	asked.TurnID = run.TurnID
	text := chat.NewText(s.partOf(asked.MessageHead), shellText)
	text.Synthetic = true
	if err := s.putWhole(ctx, tx, run, asked, text); err != nil {
		return err
	}
	answer := chat.NewAssistant(chat.MessageHead{ID: id.New[id.Message](s.ids), SessionID: a.SessionID}, now)
	answer.ParentID, answer.TurnID, answer.Path = asked.ID, run.TurnID, a.Path
	answer.ModelID, answer.ProviderID, answer.Variant = a.Model.ModelID, a.Model.ProviderID, a.Model.Variant
	answer.Agent, answer.Mode, answer.Finish = a.Agent, a.Agent, "stop"
	input, err := json.Marshal(map[string]any{"command": a.Prompt.Text, "timeout": shellTime.Milliseconds()})
	if err != nil {
		return err
	}
	call := chat.NewTyped(s.partOf(answer.MessageHead), string(id.New[id.Call](s.ids)), "bash", input)
	if err := s.putWhole(ctx, tx, run, answer, call); err != nil {
		return err
	}
	// It counts as a step, so that after a crash nobody takes it for not begun.
	return tx.StepInsert(ctx, db.StepInsertParams{TurnID: string(run.TurnID), Ord: 1, MessageID: string(answer.ID), Started: now})
}

func (s *Service) partOf(h chat.MessageHead) chat.PartHead {
	return chat.PartHead{ID: id.New[id.Part](s.ids), SessionID: h.SessionID, MessageID: h.ID}
}

// putWhole writes a message with its only part.
func (s *Service) putWhole(ctx context.Context, tx *store.Tx, run Run, m chat.Message, part chat.Part) error {
	seq, err := s.insertMessage(ctx, tx, run, m)
	if err != nil {
		return err
	}
	return s.putPart(ctx, tx, run, PartWrite{Seq: seq, Part: part, Event: true})
}
