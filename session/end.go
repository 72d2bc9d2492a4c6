package session

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/failpoint"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// EndInput ends a turn (C7).
type EndInput struct {
	Outcome Outcome
	Error   *chat.Error
	// Settle writes what belongs to the same moment, such as aborted parts and
	// cancelled requests; nil for nothing.
	Settle func(context.Context, *store.Tx) error
}

// End ends a turn and says session.idle, or tells that it must go on: a prompt
// that came in time is never lost. Of a turn that completed it first looks for
// immediate prompts (again is true, nothing ended). Afterwards the next waiting
// prompt starts the next turn in the same transaction (next).
func (s *Service) End(ctx context.Context, run Run, in EndInput) (again bool, next *Run, err error) {
	failpoint.Before(failpoint.End)
	defer failpoint.After(failpoint.End)
	err = s.Own(ctx, store.Durable, run, func(ctx context.Context, tx *store.Tx) error {
		again, next = false, nil
		// The session's row is the lock that admissions take too.
		row, err := tx.SessionTouch(ctx, db.SessionTouchParams{ID: string(run.SessionID), Updated: clock.Now()})
		if err != nil {
			return err
		}
		if in.Outcome == Completed {
			at, err := s.join1(ctx, tx, run)
			if err != nil || at.Joined > 0 || at.Compact != nil || at.Interrupt {
				again = true
				return err
			}
		}
		if in.Settle != nil {
			if err := in.Settle(ctx, tx); err != nil {
				return err
			}
		}
		if err := clearCompacting(ctx, tx, run.Origin, row); err != nil {
			return err
		}
		if err := s.end(ctx, tx, run, in); err != nil {
			return err
		}
		next, err = s.startNext(ctx, tx, run)
		return err
	})
	if err != nil {
		return false, nil, fmt.Errorf("ending a turn: %w", err)
	}
	return again, next, nil
}

func (s *Service) end(ctx context.Context, tx *store.Tx, run Run, in EndInput) error {
	n, err := tx.TurnEnd(ctx, db.TurnEndParams{
		ID: string(run.TurnID), Owner: run.Owner, Generation: run.Generation, State: string(in.Outcome),
		Error: mustJSON(in.Error), Ended: clock.Now(),
	})
	if err != nil {
		return err
	}
	if n == 0 {
		return ErrLost
	}
	return s.publishEnd(ctx, tx, run, in.Outcome, in.Error)
}

// publishEnd says that a turn is over: the error if there is one, the status,
// and last the one session.idle.
func (s *Service) publishEnd(ctx context.Context, tx *store.Tx, run Run, outcome Outcome, failure *chat.Error) error {
	if failure != nil && outcome == TurnFailed {
		if err := Failed.Append(tx, run.Origin, ErrorPayload{SessionID: run.SessionID, Error: failure}); err != nil {
			return err
		}
	}
	idle := StatusPayload{SessionID: run.SessionID, Status: Status{Type: "idle"}}
	if err := StatusChanged.Append(tx, run.Origin, idle); err != nil {
		return err
	}
	err := BecameIdle.Append(tx, run.Origin, Idle{SessionID: run.SessionID, TurnID: run.TurnID, Outcome: outcome, Error: failure})
	if err != nil {
		return err
	}
	return s.tellAbove(ctx, tx, run)
}

// startNext begins the turn of the first waiting prompt, unless an interrupt
// parked the inbox.
func (s *Service) startNext(ctx context.Context, tx *store.Tx, run Run) (*Run, error) {
	ses, err := read(ctx, tx.Reader, run.SessionID)
	if err != nil || ses.row.InboxParked != 0 {
		return nil, err
	}
	rows, err := tx.InboxQueued(ctx, db.InboxQueuedParams{SessionID: string(run.SessionID)})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	next, err := s.startTurn(ctx, tx, ses, firstWaiting(rows), run.Owner, run.Generation)
	return &next, err
}

// ForceEnd ends a turn whose run is gone: the generation is raised, so that the
// run, if it still lives, can write nothing more.
func (s *Service) ForceEnd(ctx context.Context, turn Turn, outcome Outcome, failure *chat.Error,
	settle func(run Run, reason string, failure *chat.Error) func(context.Context, *store.Tx) error,
) error {
	failpoint.Before(failpoint.Recover)
	defer failpoint.After(failpoint.Recover)
	err := s.store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) error {
		ses, err := read(ctx, tx.Reader, turn.SessionID)
		if err != nil {
			return err
		}
		n, err := tx.TurnForceEnd(ctx, db.TurnForceEndParams{
			ID: string(turn.ID), State: string(outcome), Error: mustJSON(failure), Ended: clock.Now(),
		})
		if err != nil || n == 0 {
			return err
		}
		run := Run{SessionID: ses.ID, TurnID: turn.ID, Origin: ses.Origin()}
		if settle != nil {
			if err := settle(run, "aborted", failure)(ctx, tx); err != nil {
				return err
			}
		}
		if err := clearCompacting(ctx, tx, ses.Origin(), ses.row); err != nil {
			return err
		}
		return s.publishEnd(ctx, tx, run, outcome, failure)
	})
	if err != nil {
		return fmt.Errorf("ending turn %s: %w", turn.ID, err)
	}
	return nil
}

// LastTurn gives the newest turn of a session, if it ever had one.
func (s *Service) LastTurn(ctx context.Context, ses id.Session) (Turn, bool, error) {
	row, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) (db.Turn, error) {
		return r.TurnLast(ctx, db.TurnLastParams{SessionID: string(ses)})
	})
	if store.IsNoRows(err) {
		return Turn{}, false, nil
	}
	if err != nil {
		return Turn{}, false, fmt.Errorf("reading the last turn: %w", err)
	}
	return turnOf(row), true, nil
}

// Unanswered tells whether the newest message of a session is a user's.
func (s *Service) Unanswered(ctx context.Context, ses id.Session) (bool, error) {
	rows, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) ([]db.Message, error) {
		return pageRows(ctx, r, ses, math.MaxInt64, false, 1)
	})
	if err != nil {
		return false, fmt.Errorf("reading the newest message of %s: %w", ses, err)
	}
	return len(rows) == 1 && rows[0].Role == "user", nil
}

func decodeError(data []byte) *chat.Error {
	var e *chat.Error
	_ = json.Unmarshal(data, &e) // our own writing; null is no error
	return e
}

// Busy reports whether a session runs a turn, or has a prompt that will start
// one: a parked inbox starts nothing.
func (s *Service) Busy(ctx context.Context, ses id.Session) (bool, error) {
	return store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) (bool, error) {
		row, err := read(ctx, r, ses)
		if err != nil {
			return false, err
		}
		_, err = r.TurnOpen(ctx, db.TurnOpenParams{SessionID: string(ses)})
		if err == nil {
			return true, nil
		}
		if !store.IsNoRows(err) {
			return false, fmt.Errorf("reading the turn of %s: %w", ses, err)
		}
		queued, err := r.InboxQueuedCount(ctx, db.InboxQueuedCountParams{SessionID: string(ses)})
		return queued > 0 && row.row.InboxParked == 0, err
	})
}

// SettleMessages closes the messages that a turn left open, as part of the write
// that ends it. Answers without an error of their own get failure; closePart
// alters what is not finished and tells whether it did.
func (s *Service) SettleMessages(ctx context.Context, tx *store.Tx, run Run, failure *chat.Error, closePart func(chat.Part) bool) error {
	rows, err := tx.MessageByTurn(ctx, db.MessageByTurnParams{SessionID: string(run.SessionID), TurnID: string(run.TurnID)})
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := s.settleMessage(ctx, tx, run, row, failure, closePart); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) settleMessage(
	ctx context.Context, tx *store.Tx, run Run, row db.Message, failure *chat.Error, closePart func(chat.Part) bool,
) error {
	info, err := chat.DecodeMessage(row.Info)
	if err != nil {
		return err
	}
	answer, ok := info.(*chat.AssistantMessage)
	if !ok || answer.Time.Completed != 0 {
		return nil
	}
	if err := s.CloseParts(ctx, tx, run, row.Seq, closePart); err != nil {
		return err
	}
	answer.Time.Completed = clock.Now()
	if answer.Error == nil {
		answer.Error = failure
	}
	return s.PutMessage(ctx, tx, run, row.Seq, answer)
}

// CloseParts lets closePart alter the stored parts of a message, and stores those
// that it says it altered.
func (s *Service) CloseParts(ctx context.Context, tx *store.Tx, run Run, seq int64, closePart func(chat.Part) bool) error {
	parts, err := tx.PartRange(ctx, db.PartRangeParams{SessionID: string(run.SessionID), FromSeq: seq, ToSeq: seq})
	if err != nil {
		return err
	}
	for _, p := range parts {
		part, err := chat.DecodePart(p.Data)
		if err != nil {
			return err
		}
		if !closePart(part) {
			continue
		}
		if err := s.putPart(ctx, tx, run, PartWrite{Seq: seq, Ord: p.Ord, Part: part, Event: true}); err != nil {
			return err
		}
	}
	return nil
}
