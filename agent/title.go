package agent

import (
	"context"
	"time"

	"github.com/switchyard-dev/switchyard/agent/summary"
	"github.com/switchyard-dev/switchyard/agent/transcript"
	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/llm"
)

// titleTime bounds the making of one title.
const titleTime = 30 * time.Second

// entitle makes a title in the background once a turn has an answer, unless the
// session has a better one than its first words. What goes wrong is tried again
// in the next turn.
func (t *turn) entitle(set *setting) {
	opening := transcript.Opening(set.items)
	own, wanted := set.Agent("title")
	if t.entitled || !wanted || opening == "" || !t.row.WantsTitle() || t.row.ParentID != "" || set.ref.ProviderID == llm.DemoProviderID {
		return
	}
	t.entitled = true
	ref := set.ref
	if small := set.SmallModel; !small.IsZero() {
		ref = small
	}
	if own.Model != nil {
		ref = *own.Model
	}
	t.engine.background(t, func(ctx context.Context) error {
		return t.makeTitle(ctx, set, ref, own.Prompt, opening)
	})
}

func (t *turn) makeTitle(ctx context.Context, set *setting, ref chat.ModelRef, prompt, opening string) error {
	ctx, cancel := context.WithTimeout(ctx, titleTime)
	defer cancel()
	model, err := set.Models.Model(ctx, ref)
	if err != nil {
		return err
	}
	title, err := summary.Title(ctx, summary.Asking(model), opening, summary.Request{
		Prompt: prompt, Output: set.Models.Limits(ref).Output, SessionKey: string(t.run.SessionID), Variant: ref.Variant,
	})
	if err != nil || title == "" {
		return err
	}
	return t.engine.sessions.SetGeneratedTitle(ctx, t.run.SessionID, title)
}

// background runs a title's making until Close, one at a time per session.
func (e *Engine) background(t *turn, make func(context.Context) error) {
	ses := t.run.SessionID
	e.mu.Lock()
	if e.closing || e.entitling[ses] {
		e.mu.Unlock()
		return
	}
	e.entitling[ses] = true
	e.wg.Add(1)
	e.mu.Unlock()
	go func() {
		defer e.wg.Done()
		err := make(e.ctx)
		e.mu.Lock()
		delete(e.entitling, ses)
		e.mu.Unlock()
		if err != nil && e.ctx.Err() == nil {
			e.log.Info("making a title", "session", ses, "error", err)
		}
	}()
}
