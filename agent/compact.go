package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/switchyard-dev/switchyard/agent/summary"
	"github.com/switchyard-dev/switchyard/agent/transcript"
	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/llm"
	"github.com/switchyard-dev/switchyard/session"
)

const (
	// maxFutile is how often a conversation is compacted without becoming smaller.
	maxFutile = 3
	// tailTurns is how many whole turns stay where the configuration does not say.
	tailTurns = 2
)

// errFull says that the next request would leave the model no room.
var errFull = errors.New("the conversation fills the model's context")

// room is what a turn knows of its compactions since its last whole step.
type room struct {
	size   int64 // of the request that was too long
	tries  int
	futile int  // compactions after which the request was not smaller
	skip   bool // the next request goes out whatever its size
}

// Compacted tells what became of the wish to compact.
type Compacted struct {
	// TurnID is the turn that compacts; empty when there is nothing to compact.
	TurnID id.Turn
	// Queued is whether a running turn will do it at its next step boundary.
	Queued bool
}

// Compact summarises a session's conversation: at once when it is idle, else at
// the next step boundary of its turn. It returns once the wish is stored.
func (e *Engine) Compact(ctx context.Context, ses id.Session) (Compacted, error) {
	if err := e.mayAdmit(); err != nil {
		return Compacted{}, err
	}
	_, busy, err := e.sessions.OpenTurn(ctx, ses)
	if err != nil {
		return Compacted{}, err
	}
	if !busy {
		items, err := e.conversation(ctx, ses)
		if err != nil {
			return Compacted{}, err
		}
		if _, ok := transcript.Select(items, transcript.Keep{Asked: true}); !ok {
			return Compacted{}, nil
		}
	}
	out, err := e.sessions.AdmitCompact(ctx, ses, e.owner, e.generation.Load())
	e.trouble(err)
	if err != nil {
		return Compacted{}, err
	}
	if out.Started != nil {
		e.start(*out.Started, nil)
	}
	return Compacted{TurnID: out.TurnID, Queued: !out.Delivered}, nil
}

func (e *Engine) isClosing() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closing
}

func (e *Engine) conversation(ctx context.Context, ses id.Session) ([]chat.Item, error) {
	raw, err := e.sessions.Context(ctx, ses)
	if err != nil {
		return nil, err
	}
	return session.Items(raw)
}

// step runs one model call and its tools, and makes room where the conversation
// is too long for it.
func (t *turn) step(ctx context.Context) (more bool, err error) {
	for {
		if more, err = t.attempt(ctx); err == nil {
			t.room = room{}
			return more, nil
		}
		again, err := t.makeRoom(ctx, err)
		if !again {
			return false, err
		}
	}
}

func (s *setting) automatic() bool { return s.Compaction.Auto == nil || *s.Compaction.Auto }

// full tells whether the request is so long that the conversation is compacted
// first.
func (t *turn) full(set *setting) bool {
	if t.room.skip || !set.automatic() {
		return false
	}
	usable := transcript.Usable(set.Models.Limits(set.ref), set.Compaction.Reserved)
	used, counted := transcript.Used(set.items)
	if !counted {
		used = transcript.Size(set.call)
	}
	return usable > 0 && used > usable
}

// makeRoom compacts after a step that was too long and tells whether to try it
// again; else it gives the error that the turn fails with.
func (t *turn) makeRoom(ctx context.Context, cause error) (again bool, err error) {
	overflow, set := llm.IsOverflow(cause), t.set
	if !overflow && !errors.Is(cause, errFull) || !set.automatic() {
		return false, cause
	}
	if !t.progress(transcript.Size(set.call)) {
		return false, set.exceeds(fmt.Sprintf("also after %d compactions", t.room.tries))
	}
	done, err := t.compact(ctx, compaction{
		items: set.items, settings: set.Settings, ref: set.ref, user: set.user, auto: true, overflow: overflow,
	})
	switch {
	case done:
		return true, nil
	case err != nil && (overflow || ctx.Err() != nil || errors.Is(err, session.ErrLost)):
		return false, err
	case overflow:
		return false, set.exceeds("and there is nothing to compact")
	}
	// It may fit all the same; the provider has the last word.
	t.room.skip = true
	t.logCompaction(err)
	return true, nil
}

// progress counts a compaction that is about to begin. It reports false after
// too many that did not help. Becoming a little smaller is no help: that could
// go on for ever.
func (t *turn) progress(size int64) bool {
	switch {
	case t.room.tries == 0:
	case size < t.room.size-t.room.size/20:
		t.room.futile = 0
	default:
		t.room.futile++
	}
	if t.room.futile >= maxFutile {
		return false
	}
	t.room.size = size
	t.room.tries++
	return true
}

func (s *setting) exceeds(why string) error {
	limit := "unknown"
	if l := s.Models.Limits(s.ref); max(l.Context, l.Input) > 0 {
		limit = fmt.Sprintf("%d tokens", max(l.Context, l.Input))
	}
	e := chat.NewError(chat.ErrContextOverflow, "the conversation exceeds the limit of %s (%s), %s", s.ref.ModelID, limit, why)
	e.Data.ProviderID = s.ref.ProviderID
	return e
}

func (t *turn) logCompaction(err error) {
	if err != nil && !errors.Is(err, session.ErrLost) {
		t.engine.log.Warn("compacting a conversation", "session", t.run.SessionID, "turn", t.run.TurnID, "error", err)
	}
}

// obey compacts because a person wants it. When an answer is due in the same
// turn, a compaction that fails does not keep it from coming.
func (t *turn) obey(ctx context.Context, wish *session.CompactWish) error {
	c, err := t.wished(ctx, wish)
	done := false
	if err == nil {
		done, err = t.compact(ctx, c)
	}
	if done || errors.Is(err, session.ErrLost) || errors.Is(context.Cause(ctx), errStopping) {
		return err // when the server stops, the wish stays for the next one
	}
	t.drop(ctx, wish)
	if errors.Is(err, session.ErrWithdrawn) {
		return nil
	}
	if err != nil && ctx.Err() == nil && transcript.Due(c.items, t.run.TurnID) {
		t.logCompaction(err)
		return nil
	}
	return err
}

func (t *turn) wished(ctx context.Context, wish *session.CompactWish) (compaction, error) {
	c := compaction{wish: wish}
	var err error
	if c.items, err = t.engine.conversation(ctx, t.run.SessionID); err != nil {
		return c, err
	}
	if c.settings, err = t.place.Settings(ctx); err != nil {
		return c, err
	}
	if c.user = lastUser(c.items); c.user == nil {
		c.user = &chat.UserMessage{Agent: t.row.Agent}
	}
	chosen, _ := c.settings.Agent(c.user.Agent)
	c.ref = c.settings.ModelFor(&c.user.Model, chosen, t.row.Model)
	return c, nil
}

// drop takes back what a compaction began that did not come about.
func (t *turn) drop(ctx context.Context, wish *session.CompactWish) {
	keep, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	t.logCompaction(t.engine.sessions.DropCompaction(keep, t.run, wish))
}

// compaction is one try to shorten a conversation.
type compaction struct {
	items          []chat.Item
	settings       Settings
	ref            chat.ModelRef // of the conversation
	user           *chat.UserMessage
	auto, overflow bool
	wish           *session.CompactWish
}

// compact summarises what is not recent and stores that in one write. It reports
// false when there is nothing to summarise.
func (t *turn) compact(ctx context.Context, c compaction) (done bool, err error) {
	sel, ok := t.choose(c)
	if !ok {
		return false, nil
	}
	own, _ := c.settings.Agent("compaction")
	ref := c.settings.ModelFor(own.Model, own, &c.ref)
	model, err := c.settings.Models.Model(ctx, ref)
	if err != nil {
		return false, err
	}
	if err := t.engine.sessions.BeginCompacting(ctx, t.run); err != nil {
		return false, err
	}
	begun, limits := clock.Now(), c.settings.Models.Limits(ref)
	text, usage, err := summary.Summarise(ctx, t.patient(summary.Asking(model)), sel.Head, summary.Request{
		Prompt: own.Prompt, Room: transcript.Usable(limits, nil), Output: limits.Output, SessionKey: string(t.run.SessionID), Variant: ref.Variant,
	})
	if err == nil {
		err = t.engine.sessions.PutCompaction(ctx, t.run, t.pair(c, sel, ref, text, usage, begun))
	}
	if err != nil {
		t.drop(ctx, nil)
	}
	return err == nil, err
}

// choose selects what to summarise.
func (t *turn) choose(c compaction) (transcript.Selection, bool) {
	keep := transcript.Keep{Turns: tailTurns, Asked: c.wish != nil}
	if turns := c.settings.Compaction.TailTurns; turns != nil {
		keep.Turns = *turns
	}
	if transcript.Due(c.items, t.run.TurnID) {
		keep.Running = t.run.TurnID
	}
	usable := transcript.Usable(c.settings.Models.Limits(c.ref), c.settings.Compaction.Reserved)
	keep.Tokens = transcript.TailTokens(usable, c.settings.Compaction.PreserveRecentTokens)
	return transcript.SelectLess(c.items, keep, max(0, t.room.tries-1), c.overflow)
}

// patient adds the retries of a step.
func (t *turn) patient(ask summary.Ask) summary.Ask {
	return func(ctx context.Context, call llm.Call) (string, chat.Usage, error) {
		for attempt := 1; ; attempt++ {
			text, usage, err := ask(ctx, call)
			if err == nil {
				return text, usage, nil
			}
			wait, retry := t.retryAfter(ctx, attempt, err)
			if !retry {
				return "", usage, tooLong(err)
			}
			if err := t.waitRetry(ctx, attempt, wait, err); err != nil {
				return "", usage, err
			}
		}
	}
}

// pair puts together what is stored.
func (t *turn) pair(c compaction, sel transcript.Selection, ref chat.ModelRef, text string, usage chat.Usage, begun int64) session.CompactionInput {
	head := chat.MessageHead{ID: id.New[id.Message](t.engine.ids), SessionID: t.run.SessionID}
	if c.wish != nil {
		head.ID = c.wish.MessageID
	}
	mark := chat.NewUser(head, c.user.Agent, c.ref, begun)
	mark.TurnID = t.run.TurnID
	p := summary.NewPair(t.engine.ids, mark, ref, sel.Tail, text, begun, clock.Now())
	p.MarkPart.Auto, p.MarkPart.Overflow = c.auto, c.overflow
	p.Summary.Path = chat.MessagePath{CWD: t.row.Directory, Root: t.place.Environment().Root()}
	p.Summary.Cost, p.Summary.Tokens = c.settings.Models.Cost(ref, usage), usage
	return session.CompactionInput{
		Mark: p.Mark, MarkPart: p.MarkPart, Summary: p.Summary, Parts: []chat.Part{p.Text}, Wish: c.wish, Cost: p.Summary.Cost, Usage: usage,
	}
}
