package agent

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/failpoint"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/llm"
	"github.com/switchyard-dev/switchyard/permission"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/snapshot"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
	"github.com/switchyard-dev/switchyard/tool"
)

// parallelCalls is how many calls that only read, or may run beside others, run at once.
const parallelCalls = 8

// calls runs the tool calls of one answer.
type calls struct {
	turn *turn
	step *step
	set  *setting
	// held are the requests that an earlier run of the turn stored.
	held map[id.Part][]id.Permission

	mu      sync.Mutex // protects the counts, and orders the writes that follow from them
	running int
	waiting map[session.TurnState]int
}

// callRun is one call on its way.
type callRun struct {
	of    *calls
	block *block
	part  *chat.ToolPart
	call  llm.ToolCall
	tool  tool.Tool
	plan  tool.Plan
	input *tool.Call
	asks  []permission.Ask // to be stored
	waits []id.Permission  // all that the call waits for
	rowID id.Call
	begun bool // by an earlier run, which was allowed to
	// changes are what the call did to files.
	changes []snapshot.Change
}

// runCalls plans all calls, asks for what needs a person (together, in the order
// of the calls), then runs: those that only read side by side, the others one by
// one. It returns when every call has its one result.
func (t *turn) runCalls(ctx context.Context, s *step, set *setting) error {
	cs := &calls{turn: t, step: s, set: set, waiting: map[session.TurnState]int{}}
	runs, err := cs.plan(ctx)
	if err != nil {
		return err
	}
	if err := cs.ask(ctx, runs); err != nil {
		return err
	}
	if err := cs.runAll(ctx, runs); err != nil {
		return err
	}
	s.msg.Time.Completed = clock.Now()
	return t.engine.sessions.Own(ctx, store.Durable, t.run, func(ctx context.Context, tx *store.Tx) error {
		return t.engine.sessions.PutMessage(ctx, tx, t.run, s.seq, s.msg)
	})
}

// runAll runs the calls and gives the first error that ends the turn; the others
// are stopped then.
func (cs *calls) runAll(ctx context.Context, runs []*callRun) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var once sync.Once
	var first error
	var parked atomic.Bool
	fail := func(err error) {
		if errors.Is(err, errParked) {
			parked.Store(true)
		}
		if err != nil {
			once.Do(func() { first = err; cancel(err) })
		}
	}
	slots := make(chan struct{}, parallelCalls)
	var rest []*callRun
	for _, r := range runs {
		if info := r.tool.Info(); info.Class != tool.Read && !info.Concurrent {
			rest = append(rest, r)
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			fail(r.run(ctx))
		})
	}
	for _, r := range rest {
		fail(r.run(ctx)) // also when ctx has ended: each call says how it ends
	}
	wg.Wait()
	if parked.Load() {
		return errParked
	}
	return first
}

// run waits for the answers that a call needs, runs it, and stores its result.
func (r *callRun) run(ctx context.Context) error {
	refusal, err := r.await(ctx)
	if err != nil {
		return err
	}
	if refusal != "" {
		return r.refuse(ctx, refusal, map[string]any{"reason": "rejected"})
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	r.input.Before = r.plan.Before
	before := r.watch(ctx)
	result, err := tool.Execute(ctx, r.tool, r.input)
	r.changes = r.changed(ctx, before)
	return r.finish(ctx, result, err)
}

// await waits for all answers. A refusal with a message is for the model; one
// without ends the turn.
func (r *callRun) await(ctx context.Context) (refusal string, err error) {
	for _, per := range r.waits {
		answer, err := r.of.turn.engine.permissions.Await(ctx, per)
		if err != nil && stopping(ctx) {
			return "", errParked
		}
		if err != nil {
			return "", err
		}
		if err := r.of.answered(ctx, session.TurnAwaitingPermission); err != nil {
			return "", err
		}
		switch {
		case answer.State != "replied":
			return "", errCancelled
		case answer.Reply == rule.Reject && answer.Message == "":
			return "", errRejected
		case answer.Reply == rule.Reject:
			refusal = "The user refused: " + answer.Message
		}
	}
	return refusal, nil
}

// answered takes one wait off the count; when it was the last and nothing runs,
// the turn is running again.
func (cs *calls) answered(ctx context.Context, state session.TurnState) error {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.waiting[state]--
	return cs.writeState(ctx, nil)
}

// state derives what the turn is doing: it waits only while no call runs.
func (cs *calls) state() session.TurnState {
	if cs.running == 0 {
		for _, s := range []session.TurnState{session.TurnAwaitingPermission, session.TurnAwaitingQuestion} {
			if cs.waiting[s] > 0 {
				return s
			}
		}
	}
	return session.TurnRunning
}

// writeState stores the derived state together with what fn writes. The lock is
// held by the caller, so that no later state can be written first.
func (cs *calls) writeState(ctx context.Context, fn func(context.Context, *store.Tx) error) error {
	e := cs.turn.engine
	return e.sessions.Own(ctx, store.Durable, cs.turn.run, func(ctx context.Context, tx *store.Tx) error {
		if fn != nil {
			if err := fn(ctx, tx); err != nil {
				return err
			}
		}
		return e.sessions.SetState(ctx, tx, cs.turn.run, cs.state())
	})
}

// begin marks the call as running with what it is about to replace (C5), before
// its effect.
func (r *callRun) begin(ctx context.Context) error {
	now := clock.Now()
	r.block.open.Change(func(chat.Part) { r.part.State = chat.Running(r.call.Input, now) })
	cs := r.of
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.running++
	if r.begun {
		return nil
	}
	failpoint.Before(failpoint.Call)
	defer failpoint.After(failpoint.Call)
	return cs.write(ctx, r, func(ctx context.Context, tx *store.Tx) error {
		return tx.ToolCallInsert(ctx, db.ToolCallInsertParams{
			ID: string(r.rowID), SessionID: string(cs.turn.run.SessionID), TurnID: string(cs.turn.run.TurnID),
			MessageID: string(r.part.MessageID), PartID: string(r.part.ID), Tool: r.part.Tool, Class: string(r.tool.Info().Class),
			State: "running", Pre: hashes(r.plan.Before), Post: hashes(r.plan.After), Started: now,
		})
	})
}

// write stores the call's part with what fn adds. The turn's state is written
// with it only when somebody waits: else it is running before and after.
func (cs *calls) write(ctx context.Context, r *callRun, fn func(context.Context, *store.Tx) error) error {
	e := cs.turn.engine
	part := session.PartWrite{Seq: cs.step.seq, Ord: r.block.ord, Part: r.part, Event: true}
	both := func(ctx context.Context, tx *store.Tx) error {
		if err := fn(ctx, tx); err != nil {
			return err
		}
		return e.sessions.PutPart(ctx, tx, cs.turn.run, part)
	}
	if cs.waiting[session.TurnAwaitingPermission]+cs.waiting[session.TurnAwaitingQuestion] > 0 {
		return cs.writeState(ctx, both)
	}
	return e.sessions.Own(ctx, store.Durable, cs.turn.run, both)
}

// finish stores the result of a call (C6). An error of the call goes to the
// model; one that ends the turn is returned, after what came until then was
// stored.
func (r *callRun) finish(ctx context.Context, result tool.Result, err error) error {
	result = r.of.turn.takeFiles(ctx, result)
	now := clock.Now()
	state := "completed"
	ended := err != nil && ctx.Err() != nil
	if ended && isLost(ctx, err) {
		return session.ErrLost
	}
	if ended && stopping(ctx) && r.tool.Info().Class == tool.Keyed {
		return errParked // the next server runs it again, which is once
	}
	r.block.open.Change(func(chat.Part) {
		span := startedAt(r.part.State, now)
		switch {
		case ended:
			state = "error"
			r.part.State = interruptedState(r.call.Input, result, span, context.Cause(ctx))
		case err != nil:
			state = "error"
			r.part.State = chat.Failed(r.call.Input, tool.Message(err), result.Metadata, span)
		default:
			done := chat.Completed(r.call.Input, result.Title, result.Output, result.Metadata, span)
			done.Attachments = result.Attachments
			for _, a := range done.Attachments {
				a.PartHead = r.of.step.head()
			}
			r.part.State = done
		}
	})
	cs := r.of
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.running--
	// The result must be stored also when the turn was told to stop meanwhile.
	keep, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	failpoint.Before(failpoint.Result)
	defer failpoint.After(failpoint.Result)
	writeErr := cs.write(keep, r, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.ToolCallEnd(ctx, db.ToolCallEndParams{ID: string(r.rowID), State: state, Post: hashes(result.After), Ended: now})
		if err != nil {
			return err
		}
		return r.record(ctx, tx)
	})
	if writeErr != nil {
		return writeErr
	}
	r.block.ended = true
	if err != nil && errors.Is(err, errRejected) {
		return err
	}
	if ended {
		return context.Cause(ctx)
	}
	return nil
}

func interruptedState(input []byte, result tool.Result, span chat.PartTime, cause error) chat.ToolState {
	metadata := map[string]any{}
	for k, v := range result.Metadata {
		metadata[k] = v
	}
	metadata["reason"] = "aborted"
	if errors.Is(cause, errStopping) {
		metadata["reason"] = "interrupted"
	}
	message := "Tool execution aborted"
	if result.Output != "" {
		message += ". Output until then:\n" + result.Output
	}
	return chat.Failed(input, message, metadata, span)
}

// refuse gives a call that does not run its error.
func (r *callRun) refuse(ctx context.Context, message string, metadata map[string]any) error {
	now := clock.Now()
	r.block.open.Change(func(chat.Part) {
		r.part.State = chat.Failed(r.call.Input, message, metadata, chat.PartTime{Start: now, End: now})
	})
	cs := r.of
	err := cs.write(ctx, r, func(ctx context.Context, tx *store.Tx) error {
		if !r.begun {
			return nil
		}
		return endCall(ctx, tx, session.Begun{ID: r.rowID})
	})
	r.block.ended = err == nil
	return err
}

// stopping tells whether the server's stop is what ended ctx.
func stopping(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errStopping) }

func hashes(m map[string]string) []byte {
	if m == nil {
		return []byte("{}")
	}
	return mustJSON(m)
}
