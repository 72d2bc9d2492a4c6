package agent

import (
	"context"
	"fmt"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/failpoint"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
	"github.com/switchyard-dev/switchyard/tool"
)

// maxResumes is how often a turn goes on by itself after a crash. The next crash
// ends it: it may be the turn that brings the server down.
const maxResumes = 3

// Recovery says what became of the turns that lost their server.
type Recovery struct {
	// Settled turns have ended as interrupted, or will once their files were
	// looked at.
	Settled int
	// Resumed turns go on: they wait for a person, had not begun, or the
	// configuration says so.
	Resumed int
}

// lost is a turn whose run is gone, with what must be done about it.
type lost struct {
	turn session.Turn
	left session.Remains
	// resume lets the turn go on; otherwise it ends with outcome.
	resume  bool
	outcome error
	// counted marks a resume that nobody asked for.
	counted bool
	state   session.TurnState
}

// Recover takes over the turns whose server is gone (design §9). What the store
// alone can settle is settled when it returns; turns that go on, and those whose
// files must be looked at, run in the background. It must run before the server
// listens, and then from time to time where servers share a store.
func (e *Engine) Recover(ctx context.Context) (Recovery, error) {
	var out Recovery
	turns, err := e.sessions.Orphans(ctx, e.owner, e.generation.Load())
	if err != nil {
		return out, err
	}
	for _, t := range turns {
		l, err := e.assess(ctx, t)
		if err != nil {
			return out, err
		}
		taken, err := e.takeOver(ctx, l)
		switch {
		case fault.Is(err, fault.SessionNotFound): // deleted meanwhile
		case err != nil:
			return out, fmt.Errorf("recovering turn %s: %w", t.ID, err)
		case taken && l.resume:
			out.Resumed++
		case taken:
			out.Settled++
		}
	}
	return out, e.startStranded(ctx)
}

// startStranded lets no prompt wait that nothing would start.
func (e *Engine) startStranded(ctx context.Context) error {
	sessions, err := e.sessions.Stranded(ctx)
	if err != nil {
		return err
	}
	for _, ses := range sessions {
		if err := e.StartQueued(ctx, ses); err != nil && !fault.Is(err, fault.SessionNotFound) {
			return err
		}
	}
	return nil
}

// assess decides whether a turn goes on. It does when a person was asked, when
// nothing had been done yet, or when the configuration says so.
func (e *Engine) assess(ctx context.Context, t session.Turn) (*lost, error) {
	left, err := e.sessions.Remains(ctx, t)
	if err != nil {
		return nil, err
	}
	l := &lost{turn: t, left: left, outcome: errGone, state: session.TurnRunning}
	if t.Interrupt {
		l.outcome = errCancelled
		return l, nil
	}
	asked, err := e.asked(ctx, l)
	if err != nil {
		return nil, err
	}
	if !asked {
		// Sessions below come first: a task whose turn goes on is waited for.
		below, err := e.sessions.OpenBelow(ctx, t.SessionID)
		if err != nil {
			return nil, err
		}
		asked = len(below) > 0
	}
	l.counted = !asked
	l.resume = asked || t.Attempt <= maxResumes && (left.Steps == 0 || e.resume)
	return l, nil
}

// asked tells whether a call of the turn waits for a person, or has an answer
// that was not taken up.
func (e *Engine) asked(ctx context.Context, l *lost) (bool, error) {
	open := map[string]bool{}
	for _, p := range l.left.Calls() {
		open[string(p.ID)] = true
	}
	permissions, err := e.permissions.OfTurn(ctx, l.turn.SessionID, l.turn.ID)
	if err != nil {
		return false, err
	}
	questions, err := e.questions.OfTurn(ctx, l.turn.SessionID, l.turn.ID)
	if err != nil {
		return false, err
	}
	asked := false
	for _, q := range questions {
		if q.Open() && open[string(q.PartID)] {
			asked = true
		}
		if q.State == "pending" {
			l.state = session.TurnAwaitingQuestion
		}
	}
	for _, p := range permissions {
		// Of a call that has begun the answer was taken up.
		if _, begun := l.left.Begun[p.PartID]; p.Open() && open[string(p.PartID)] && !begun {
			asked = true
		}
		if p.State == "pending" {
			l.state = session.TurnAwaitingPermission
		}
	}
	return asked, nil
}

// takeOver claims a turn and settles it, or lets it run. It reports whether this
// server got it.
func (e *Engine) takeOver(ctx context.Context, l *lost) (bool, error) {
	run, t, ok, err := e.sessions.Claim(ctx, l.turn, e.owner, e.generation.Load(), l.resume && l.counted)
	if err != nil || !ok {
		return false, err
	}
	l.turn = t
	failpoint.Before(failpoint.Recover)
	defer failpoint.After(failpoint.Recover)
	if !l.resume && !l.looksAtFiles() {
		work := &turn{engine: e, run: run, lost: l}
		_, next, err := work.finish(ctx, l.outcome)
		if err == nil && next != nil {
			e.start(*next, nil)
		}
		return true, err
	}
	if err := e.mend(ctx, run, l); err != nil {
		return true, err
	}
	e.start(run, l)
	return true, nil
}

// looksAtFiles tells whether the hashes of files decide what a call did.
func (l *lost) looksAtFiles() bool {
	for _, p := range l.left.Calls() {
		if b, ok := l.left.Begun[p.ID]; ok && b.Class == string(tool.Write) {
			return true
		}
	}
	return false
}

// mend settles what cannot go on in a turn that does: an answer that was cut
// off, and calls whose effect is not known.
func (e *Engine) mend(ctx context.Context, run session.Run, l *lost) error {
	return e.sessions.Own(ctx, store.Durable, run, func(ctx context.Context, tx *store.Tx) error {
		if err := e.endEffects(ctx, tx, l); err != nil {
			return err
		}
		if l.left.Answer != nil {
			if err := e.mendAnswer(ctx, tx, run, l); err != nil {
				return err
			}
		}
		return e.sessions.SetState(ctx, tx, run, l.state)
	})
}

// endEffects writes the end of the begun calls that are never run again.
func (e *Engine) endEffects(ctx context.Context, tx *store.Tx, l *lost) error {
	for _, b := range l.left.Begun {
		if !l.left.Whole || b.Class == string(tool.Effect) {
			if err := endCall(ctx, tx, b); err != nil {
				return err
			}
		}
	}
	return nil
}

func endCall(ctx context.Context, tx *store.Tx, b session.Begun) error {
	_, err := tx.ToolCallEnd(ctx, db.ToolCallEndParams{ID: string(b.ID), State: "error", Post: []byte("{}"), Ended: clock.Now()})
	return err
}

func (e *Engine) mendAnswer(ctx context.Context, tx *store.Tx, run session.Run, l *lost) error {
	for _, w := range l.left.Parts {
		reason := "interrupted"
		if p, ok := w.Part.(*chat.ToolPart); ok && l.left.Whole {
			b, begun := l.left.Begun[p.ID]
			if chat.Terminal(p.State) || !begun || b.Class != string(tool.Effect) {
				continue
			}
			reason = unknownOutcome
		}
		if !closeLost(w.Part, reason) {
			continue
		}
		if err := e.sessions.PutPart(ctx, tx, run, w); err != nil {
			return err
		}
	}
	if l.left.Whole {
		return nil
	}
	l.left.Answer.Time.Completed = clock.Now()
	l.left.Answer.Error = chat.NewError(chat.ErrAborted, "the server stopped while the model answered")
	return e.sessions.PutMessage(ctx, tx, run, l.left.Seq, l.left.Answer)
}
