package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/failpoint"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// ErrLost says that a run does not own its turn any more: the session was
// deleted, the turn was ended by another, or another server took it. Whoever
// sees it stops at once and writes nothing more.
var ErrLost = errors.New("session: the turn belongs to another run")

// Run is the right to write a turn. Every write of a turn names it, and is
// refused with ErrLost once it does not hold any more (design §9).
type Run struct {
	SessionID  id.Session
	TurnID     id.Turn
	Owner      string
	Generation int64
	Origin     event.Origin
}

// TurnState says how far a turn is.
type TurnState string

// The states of a turn; those of an Outcome are terminal.
const (
	TurnRunning            TurnState = "running"
	TurnAwaitingPermission TurnState = "awaiting_permission"
	TurnAwaitingQuestion   TurnState = "awaiting_question"
)

// Outcome is how a turn ended.
type Outcome string

// The outcomes of a turn.
const (
	Completed   Outcome = "completed"
	TurnFailed  Outcome = "failed"
	Cancelled   Outcome = "cancelled"
	Interrupted Outcome = "interrupted"
)

// Turn is a run from a delivered prompt to idle.
type Turn struct {
	ID        id.Turn
	SessionID id.Session
	MessageID id.Message
	State     string
	Owner     string
	// Generation goes with Owner: the two together are the right to write.
	Generation int64
	// Attempt counts the runs of the turn, from 1.
	Attempt int64
	// Interrupt is set once somebody asked the turn to stop.
	Interrupt bool
	Ended     int64
	Error     *chat.Error
}

// Status gives a session's status while the turn is open.
func (t Turn) Status() Status {
	s := Status{Type: "busy", TurnID: t.ID}
	switch TurnState(t.State) {
	case TurnAwaitingPermission:
		s.Waiting = "permission"
	case TurnAwaitingQuestion:
		s.Waiting = "question"
	case TurnRunning:
	}
	return s
}

// Own runs one write of a run. It locks the turn's row first, so that the check
// and the write are one.
func (s *Service) Own(ctx context.Context, level store.Level, run Run, fn func(context.Context, *store.Tx) error) error {
	return s.store.Write(ctx, level, func(ctx context.Context, tx *store.Tx) error {
		n, err := tx.TurnHold(ctx, db.TurnHoldParams{ID: string(run.TurnID), Owner: run.Owner, Generation: run.Generation})
		if err != nil {
			return err
		}
		if n == 0 {
			return ErrLost
		}
		return fn(ctx, tx)
	})
}

// SetState moves a turn between running and waiting, as part of a write of the
// run, and publishes the session's status.
func (s *Service) SetState(ctx context.Context, tx *store.Tx, run Run, state TurnState) error {
	_, err := tx.TurnSetState(ctx, db.TurnSetStateParams{
		ID: string(run.TurnID), Owner: run.Owner, Generation: run.Generation, State: string(state),
	})
	if err != nil {
		return err
	}
	status := Turn{ID: run.TurnID, State: string(state)}.Status()
	if err := StatusChanged.Append(tx, run.Origin, StatusPayload{SessionID: run.SessionID, Status: status}); err != nil {
		return err
	}
	return s.tellAbove(ctx, tx, run)
}

// StepInput opens a step of a turn (C2).
type StepInput struct {
	Ord         int64
	Message     *chat.AssistantMessage
	RequestHash string
	First       chat.Part
}

// BeginStep stores the step and its empty assistant message before the provider
// is called. It gives the message's sequence.
func (s *Service) BeginStep(ctx context.Context, run Run, in StepInput) (int64, error) {
	var seq int64
	failpoint.Before(failpoint.Step)
	defer failpoint.After(failpoint.Step)
	err := s.Own(ctx, store.Relaxed, run, func(ctx context.Context, tx *store.Tx) (err error) {
		if seq, err = s.insertMessage(ctx, tx, run, in.Message); err != nil {
			return err
		}
		err = tx.StepInsert(ctx, db.StepInsertParams{
			TurnID: string(run.TurnID), Ord: in.Ord, MessageID: string(in.Message.ID), RequestHash: in.RequestHash, Started: clock.Now(),
		})
		if err != nil {
			return err
		}
		return s.putPart(ctx, tx, run, PartWrite{Seq: seq, Ord: 0, Part: in.First, Event: true})
	})
	if err != nil {
		return 0, fmt.Errorf("beginning a step: %w", err)
	}
	return seq, nil
}

func (s *Service) insertMessage(ctx context.Context, tx *store.Tx, run Run, m chat.Message) (int64, error) {
	seq, err := tx.SessionNextMessage(ctx, db.SessionNextMessageParams{ID: string(run.SessionID), Updated: clock.Now()})
	if store.IsNoRows(err) {
		return 0, ErrLost
	}
	if err != nil {
		return 0, err
	}
	role := "assistant"
	if _, ok := m.(*chat.UserMessage); ok {
		role = "user"
	}
	err = tx.MessageInsert(ctx, db.MessageInsertParams{
		SessionID: string(run.SessionID), Seq: seq, ID: string(m.Head().ID), Role: role, TurnID: string(run.TurnID), Info: mustJSON(m),
	})
	if err != nil {
		return 0, err
	}
	return seq, MessageUpdated.Append(tx, run.Origin, MessagePayload{SessionID: run.SessionID, Info: m})
}

// PartWrite is one part to store. Event publishes message.part.updated with it;
// checkpoints of a growing text do not.
type PartWrite struct {
	Seq   int64
	Ord   int64
	Part  chat.Part
	Event bool
}

// PutParts stores parts of a run (C3, C4).
func (s *Service) PutParts(ctx context.Context, level store.Level, run Run, writes ...PartWrite) error {
	point := failpoint.Save
	if len(writes) > 0 && writes[0].Event {
		point = failpoint.Part
	}
	failpoint.Before(point)
	defer failpoint.After(point)
	return s.Own(ctx, level, run, func(ctx context.Context, tx *store.Tx) error {
		for _, w := range writes {
			if err := s.putPart(ctx, tx, run, w); err != nil {
				return err
			}
		}
		return nil
	})
}

// PutPart stores a part inside a write of the run.
func (s *Service) PutPart(ctx context.Context, tx *store.Tx, run Run, w PartWrite) error {
	return s.putPart(ctx, tx, run, w)
}

func (s *Service) putPart(ctx context.Context, tx *store.Tx, run Run, w PartWrite) error {
	state := ""
	if tool, ok := w.Part.(*chat.ToolPart); ok {
		state = tool.State.Status()
	}
	err := tx.PartUpsert(ctx, db.PartUpsertParams{
		SessionID: string(run.SessionID), MessageSeq: w.Seq, Ord: w.Ord, ID: string(w.Part.Head().ID),
		Type: chat.PartType(w.Part), State: state, Data: mustJSON(w.Part),
	})
	if err != nil || !w.Event {
		return err
	}
	return PartUpdated.Append(tx, run.Origin, PartPayload{SessionID: run.SessionID, Part: ForEvent(w.Part), Time: clock.Now()})
}

// AnswerInput closes a model's answer (C4).
type AnswerInput struct {
	Seq     int64
	Message *chat.AssistantMessage
	Parts   []PartWrite
	Cost    float64
	Usage   chat.Usage
}

// PutAnswer stores the whole answer of a step: its parts with all tool calls
// pending, the message, and what it used.
func (s *Service) PutAnswer(ctx context.Context, run Run, in AnswerInput) error {
	failpoint.Before(failpoint.Answer)
	defer failpoint.After(failpoint.Answer)
	err := s.Own(ctx, store.Durable, run, func(ctx context.Context, tx *store.Tx) error {
		for _, w := range in.Parts {
			if err := s.putPart(ctx, tx, run, w); err != nil {
				return err
			}
		}
		if err := s.PutMessage(ctx, tx, run, in.Seq, in.Message); err != nil {
			return err
		}
		return s.addUsage(ctx, tx, run, in.Cost, in.Usage)
	})
	if err != nil {
		return fmt.Errorf("storing an answer: %w", err)
	}
	return nil
}

// PutMessage replaces a message's head inside a write of the run.
func (s *Service) PutMessage(ctx context.Context, tx *store.Tx, run Run, seq int64, m chat.Message) error {
	_, err := tx.MessageUpdate(ctx, db.MessageUpdateParams{SessionID: string(run.SessionID), Seq: seq, Info: mustJSON(m)})
	if err != nil {
		return err
	}
	return MessageUpdated.Append(tx, run.Origin, MessagePayload{SessionID: run.SessionID, Info: m})
}

func (s *Service) addUsage(ctx context.Context, tx *store.Tx, run Run, cost float64, usage chat.Usage) error {
	if usage == (chat.Usage{}) && cost == 0 {
		return nil
	}
	now := clock.Now()
	row, err := tx.SessionTouch(ctx, db.SessionTouchParams{ID: string(run.SessionID), Updated: now})
	if err != nil {
		return err
	}
	before, err := fromRow(row)
	if err != nil {
		return err
	}
	row, err = tx.SessionAddUsage(ctx, db.SessionAddUsageParams{
		ID: string(run.SessionID), Cost: cost, Tokens: mustJSON(before.Tokens.Add(usage)), Updated: now,
	})
	if err != nil {
		return err
	}
	after, err := fromRow(row)
	if err != nil {
		return err
	}
	return Updated.Append(tx, run.Origin, Info{SessionID: after.ID, Info: after.Session})
}

// Interrupt asks the open turn to stop and parks the inbox. It gives the turn,
// or false when the session has none; asking twice is no error.
func (s *Service) Interrupt(ctx context.Context, ses id.Session) (Turn, bool, error) {
	var turn Turn
	var open bool
	err := s.store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) error {
		turn, open = Turn{}, false
		if n, err := tx.SessionPark(ctx, db.SessionParkParams{ID: string(ses), InboxParked: 1}); err != nil || n == 0 {
			return orNotFound(err, ses)
		}
		if _, err := tx.TurnAskInterrupt(ctx, db.TurnAskInterruptParams{SessionID: string(ses)}); err != nil {
			return err
		}
		row, err := tx.TurnOpen(ctx, db.TurnOpenParams{SessionID: string(ses)})
		if store.IsNoRows(err) {
			return nil
		}
		turn, open = turnOf(row), err == nil
		return err
	})
	if err != nil {
		return Turn{}, false, fmt.Errorf("interrupting %s: %w", ses, err)
	}
	return turn, open, nil
}

func orNotFound(err error, ses id.Session) error {
	if err != nil {
		return err
	}
	return notFound(ses)
}

// OpenTurn gives the turn that a session is running, if any.
func (s *Service) OpenTurn(ctx context.Context, ses id.Session) (Turn, bool, error) {
	row, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) (db.Turn, error) {
		return r.TurnOpen(ctx, db.TurnOpenParams{SessionID: string(ses)})
	})
	if store.IsNoRows(err) {
		return Turn{}, false, nil
	}
	if err != nil {
		return Turn{}, false, fmt.Errorf("reading the turn of %s: %w", ses, err)
	}
	return turnOf(row), true, nil
}

// OpenTurns gives all turns that have not ended.
func (s *Service) OpenTurns(ctx context.Context) ([]Turn, error) {
	rows, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) ([]db.Turn, error) { return r.TurnOpenAll(ctx) })
	if err != nil {
		return nil, fmt.Errorf("reading the open turns: %w", err)
	}
	out := make([]Turn, 0, len(rows))
	for _, row := range rows {
		out = append(out, turnOf(row))
	}
	return out, nil
}

// TurnGet reads a turn of a session; an unknown one is a validation fault.
func (s *Service) TurnGet(ctx context.Context, ses id.Session, turn id.Turn) (Turn, error) {
	row, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) (db.Turn, error) {
		return r.TurnGet(ctx, db.TurnGetParams{ID: string(turn)})
	})
	if store.IsNoRows(err) || err == nil && row.SessionID != string(ses) {
		return Turn{}, fault.New(fault.TurnNotFound, "session %s has no turn %q", ses, turn).With("sessionID", ses).With("turnID", turn)
	}
	if err != nil {
		return Turn{}, fmt.Errorf("reading turn %s: %w", turn, err)
	}
	return turnOf(row), nil
}

func turnOf(row db.Turn) Turn {
	t := Turn{
		ID: id.Turn(row.ID), SessionID: id.Session(row.SessionID), MessageID: id.Message(row.MessageID),
		State: row.State, Owner: row.Owner, Generation: row.Generation, Attempt: row.Attempt, Interrupt: row.Interrupt != 0,
	}
	if row.Ended != nil {
		t.Ended = *row.Ended
	}
	t.Error = decodeError(row.Error)
	return t
}
