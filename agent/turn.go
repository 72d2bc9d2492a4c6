package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/switchyard-dev/switchyard/agent/definition"
	"github.com/switchyard-dev/switchyard/agent/transcript"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/llm"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
)

// settleTime bounds the writes that end a turn after its context ended.
const settleTime = 20 * time.Second

// turn is one running turn.
type turn struct {
	engine *Engine
	// changedFiles is set once a call of this run changed a file.
	changedFiles atomic.Bool
	run          session.Run
	cancel       context.CancelCauseFunc

	row   session.Row
	place Workplace
	steps int64
	level int // sessions above this one
	files *seenFiles
	lost  *lost // set until a turn that lost its run was taken up
	shell bool  // begins with a command that a person typed

	set      *setting // of the last step
	room     room
	entitled bool

	mu    sync.Mutex // protects retry
	retry *session.Status
}

// errRejected ends a turn because a person refused without a word.
var errRejected = errors.New("the user refused")

// work runs the turn to its end and gives the run of the next one, if a prompt
// waited.
func (t *turn) work(ctx context.Context) *session.Run {
	err := t.run1(ctx)
	defer t.leave()
	for {
		if isLost(ctx, err) || errors.Is(err, errParked) {
			return nil
		}
		again, next, endErr := t.end(ctx, err)
		if endErr != nil {
			return nil
		}
		if !again {
			return next
		}
		err = t.loop(ctx)
	}
}

// isLost tells whether the run may write nothing more.
func isLost(ctx context.Context, err error) bool {
	return errors.Is(err, session.ErrLost) || errors.Is(context.Cause(ctx), session.ErrLost)
}

// run1 takes a lost turn up, if it is one, and runs its steps.
func (t *turn) run1(ctx context.Context) error {
	if t.lost != nil {
		err := t.revive(ctx)
		if err != nil && t.lost != nil && t.lost.resume && stopping(ctx) {
			return errParked // it was not taken up yet, so that nothing is lost
		}
		if err != nil {
			return err
		}
	}
	if t.shell {
		if err := t.runShell(ctx); err != nil {
			return err
		}
	}
	return t.loop(ctx)
}

// finish writes the end of the turn (C7).
func (t *turn) finish(ctx context.Context, err error) (again bool, next *session.Run, endErr error) {
	in := session.EndInput{Outcome: session.Completed, Settle: t.engine.settle(t.run.TurnID)}
	if err != nil {
		in.Outcome, in.Error = t.outcome(ctx, err)
		// Closing the failed step may not have been stored.
		in.Settle = t.engine.settleParts(t.run, abortReason(in.Outcome), in.Error)
	}
	settle, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	parts, sum := in.Settle, t.summarize(settle)
	in.Settle = func(ctx context.Context, tx *store.Tx) error {
		if err := parts(ctx, tx); err != nil {
			return err
		}
		return sum(ctx, tx)
	}
	again, next, endErr = t.engine.sessions.End(settle, t.run, in)
	t.engine.trouble(endErr)
	return again, next, endErr
}

// outcome says how an error ends a turn.
func (t *turn) outcome(ctx context.Context, err error) (session.Outcome, *chat.Error) {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errStopping):
		return session.Interrupted, chat.NewError(chat.ErrAborted, "the server stopped")
	case errors.Is(err, errGone):
		return session.Interrupted, chat.NewError(chat.ErrAborted, "%s", errGone)
	case cause != nil, errors.Is(err, errRejected), errors.Is(err, errCancelled):
		return session.Cancelled, chat.NewError(chat.ErrAborted, "the turn was interrupted")
	}
	return session.TurnFailed, t.failure(err)
}

// failure turns an error into what clients may see.
func (t *turn) failure(err error) *chat.Error {
	var model *llm.Error
	if errors.As(err, &model) {
		return model.Chat()
	}
	var told *chat.Error
	if errors.As(err, &told) {
		return told
	}
	if f, ok := fault.As(err); ok {
		e := chat.NewError(chat.ErrUnknown, "%s", f.Detail)
		if provider, ok := f.Fields["providerID"].(string); ok {
			e.Name, e.Data.ProviderID = chat.ErrProviderAuth, provider
		}
		return e
	}
	ref := "err_" + string(id.New[id.Call](t.engine.ids))[5:]
	t.engine.log.Error("a turn failed", "session", t.run.SessionID, "turn", t.run.TurnID, "ref", ref, "error", err)
	e := chat.NewError(chat.ErrUnknown, "something went wrong in the server")
	e.Data.Ref = ref
	return e
}

// enter takes the lease on the place where the turn works.
func (t *turn) enter(ctx context.Context) error {
	if t.place != nil {
		return nil
	}
	row, err := t.engine.sessions.Get(ctx, t.run.SessionID)
	if err != nil {
		return err
	}
	t.row = row
	above, err := t.engine.sessions.Ancestors(ctx, row.ID)
	if err != nil {
		return err
	}
	t.level = len(above)
	t.place, err = t.engine.places.Acquire(ctx, row.Context())
	return err
}

func (t *turn) leave() {
	if t.place != nil {
		t.place.Release()
	}
}

// loop runs steps until the model has nothing more to do.
func (t *turn) loop(ctx context.Context) error {
	if err := t.enter(ctx); err != nil {
		return err
	}
	for {
		at, err := t.engine.sessions.Join(ctx, t.run)
		if err != nil {
			return err
		}
		if at.Interrupt {
			return errCancelled
		}
		if at.Compact != nil {
			if err := t.obey(ctx, at.Compact); err != nil {
				return err
			}
		}
		more, err := t.step(ctx)
		if err != nil {
			return err
		}
		if !more {
			return nil
		}
	}
}

// setting is what one step runs with.
type setting struct {
	agent definition.Agent
	ref   chat.ModelRef
	model llm.Model
	call  llm.Call
	rules rule.Sets
	user  *chat.UserMessage
	items []chat.Item
	Settings
}

// attempt runs one model call and its tools; more tells that the model wants to
// see the results.
func (t *turn) attempt(ctx context.Context) (more bool, err error) {
	set, err := t.prepare(ctx)
	if err != nil || set == nil {
		return false, err
	}
	t.set = set
	if t.full(set) {
		return false, errFull
	}
	s, err := t.answer(ctx, set)
	if s != nil {
		defer s.close()
	}
	if err != nil {
		if s != nil {
			t.trouble("storing a failed step", t.abandon(ctx, s, err))
		}
		return false, err
	}
	t.entitle(set)
	if len(s.calls) == 0 {
		return false, nil
	}
	err = t.runCalls(ctx, s, set)
	if err != nil && !errors.Is(err, errParked) {
		t.trouble("storing a failed step", t.abandon(ctx, s, err))
	}
	return err == nil, err
}

// prepare reads the conversation and the configuration as they are now. It gives
// nil when no answer is due.
func (t *turn) prepare(ctx context.Context) (*setting, error) {
	items, err := t.engine.conversation(ctx, t.run.SessionID)
	if err != nil {
		return nil, err
	}
	if !transcript.Due(items, t.run.TurnID) {
		return nil, nil
	}
	user := lastUser(items)
	if user == nil {
		return nil, fmt.Errorf("turn %s has no user message", t.run.TurnID)
	}
	settings, err := t.place.Settings(ctx)
	if err != nil {
		return nil, err
	}
	set := &setting{Settings: settings, user: user, items: items}
	var ok bool
	if set.agent, ok = settings.Agent(user.Agent); !ok {
		return nil, fault.New(fault.AgentUnknown, "there is no agent %q", user.Agent)
	}
	set.ref = settings.ModelFor(&user.Model, set.agent, t.row.Model)
	if set.model, err = settings.Models.Model(ctx, set.ref); err != nil {
		return nil, err
	}
	if set.rules, err = t.rules(ctx, set); err != nil {
		return nil, err
	}
	instructions, err := settings.Instructions(ctx)
	if err != nil {
		return nil, err
	}
	set.call = t.call(ctx, set, items, instructions)
	return set, nil
}

func lastUser(items []chat.Item) *chat.UserMessage {
	for i := len(items) - 1; i >= 0; i-- {
		if u, ok := items[i].Info.(*chat.UserMessage); ok {
			return u
		}
	}
	return nil
}

// call puts the request together.
func (t *turn) call(ctx context.Context, set *setting, items []chat.Item, instructions []string) llm.Call {
	c := llm.Call{
		System: systemPrompt(set, t.place.Environment(), t.row.Directory, instructions), Messages: t.messages(ctx, set, items),
		MaxOutputTokens: set.Models.Limits(set.ref).Output, Temperature: set.agent.Temperature,
		SessionKey: string(t.run.SessionID), Variant: set.ref.Variant,
	}
	if limit := set.agent.Steps; limit > 0 && t.steps >= int64(limit) {
		c.ToolChoice = llm.ToolNone
	}
	for _, spec := range t.engine.tools.Visible(set.rules) {
		info := spec.Info()
		if info.Name == taskName {
			if t.level >= set.depth() {
				continue
			}
			info.Description += definition.Offer(set.Agents)
		}
		c.Tools = append(c.Tools, llm.ToolSpec{Name: info.Name, Description: info.Description, Schema: info.Schema})
	}
	return c
}

// answer calls the model until it gives a whole answer, and stores that (C2–C4).
func (t *turn) answer(ctx context.Context, set *setting) (*step, error) {
	var s *step
	for attempt := 1; ; attempt++ {
		var err error
		if s == nil {
			if s, err = t.begin(ctx, set); err != nil {
				return nil, err
			}
		}
		err = s.receive(ctx, set.model, set.call)
		if err == nil {
			return s, t.store(ctx, s, set)
		}
		wait, retry := t.retryAfter(ctx, attempt, err)
		if !retry {
			return s, tooLong(err)
		}
		if len(s.parts) > 0 {
			// What was shown stays; the next attempt is a message of its own.
			if err := t.abandon(ctx, s, err); err != nil {
				return s, err
			}
			s.close()
			s = nil
		}
		if err := t.waitRetry(ctx, attempt, wait, err); err != nil {
			return s, err
		}
	}
}

func (t *turn) retryAfter(ctx context.Context, attempt int, err error) (time.Duration, bool) {
	var model *llm.Error
	if ctx.Err() != nil || !errors.As(err, &model) {
		return 0, false
	}
	return t.engine.retry.Next(attempt, model)
}

// begin opens the step (C2).
func (t *turn) begin(ctx context.Context, set *setting) (*step, error) {
	t.steps++
	msg := chat.NewAssistant(chat.MessageHead{ID: id.New[id.Message](t.engine.ids), SessionID: t.run.SessionID}, clock.Now())
	msg.ParentID, msg.TurnID = set.user.ID, t.run.TurnID
	msg.ModelID, msg.ProviderID, msg.Variant = set.ref.ModelID, set.ref.ProviderID, set.ref.Variant
	msg.Agent, msg.Mode = set.agent.Name, set.agent.Name
	msg.Path = chat.MessagePath{CWD: t.row.Directory, Root: t.place.Environment().Root()}
	s := &step{turn: t, ord: t.steps, msg: msg, blocks: map[int]*block{}}
	seq, err := t.engine.sessions.BeginStep(ctx, t.run, session.StepInput{
		Ord: t.steps, Message: msg, RequestHash: requestHash(set.call), First: chat.NewStepStart(s.head()),
	})
	s.seq = seq
	return s, err
}

func requestHash(c llm.Call) string {
	data, err := json.Marshal(c.Messages)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// store writes the whole answer (C4).
func (t *turn) store(ctx context.Context, s *step, set *setting) error {
	s.settleCalls()
	usage := s.finish.Usage
	cost := set.Models.Cost(set.ref, usage)
	s.msg.Finish, s.msg.Cost, s.msg.Tokens = string(s.finish.Reason), cost, usage
	if len(s.calls) == 0 {
		s.msg.Time.Completed = clock.Now()
	}
	writes := s.writes(nil)
	finish := chat.NewStepFinish(s.head(), s.msg.Finish, cost, usage)
	writes = append(writes, session.PartWrite{Seq: s.seq, Ord: int64(len(s.parts)) + 1, Part: finish, Event: true})
	return t.engine.sessions.PutAnswer(ctx, t.run, session.AnswerInput{
		Seq: s.seq, Message: s.msg, Parts: writes, Cost: cost, Usage: usage,
	})
}

// settleCalls gives the parts of calls their whole input, and marks inputs that
// came without a call: those were cut off and are never run.
func (s *step) settleCalls() {
	called := map[int]llm.ToolCall{}
	for _, c := range s.calls {
		called[c.Index] = c
	}
	for index, b := range s.blocks {
		part, ok := b.part.(*chat.ToolPart)
		if !ok {
			continue
		}
		call, whole := called[index]
		b.open.Change(func(chat.Part) {
			if whole {
				part.CallID, part.Tool = call.CallID, call.Name
				part.State = chat.Pending(call.Input, b.text.String())
				return
			}
			now := clock.Now()
			part.State = chat.Failed(nil, "The call was cut off and did not run.", map[string]any{"reason": "truncated"}, chat.PartTime{Start: now, End: now})
		})
	}
}

// writes gives the parts for storing, but for calls whose result is; change, when
// not nil, alters each first.
func (s *step) writes(change func(chat.Part)) []session.PartWrite {
	out := make([]session.PartWrite, 0, len(s.parts)+1)
	for _, b := range s.parts {
		if b.ended {
			continue
		}
		if change != nil {
			b.open.Change(change)
		}
		out = append(out, session.PartWrite{Seq: s.seq, Ord: b.ord, Part: b.part, Event: true})
	}
	return out
}
