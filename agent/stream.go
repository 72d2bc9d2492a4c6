package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/llm"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
)

// A growing text is checkpointed at most every checkpointEvery, or after
// checkpointBytes and checkpointGap (design §9 C3).
const (
	checkpointEvery = 250 * time.Millisecond
	checkpointBytes = 4 << 10
	checkpointGap   = 50 * time.Millisecond
)

// step is one model call and its assistant message while it is written.
type step struct {
	turn   *turn
	ord    int64
	seq    int64
	msg    *chat.AssistantMessage
	blocks map[int]*block
	parts  []*block // in the order of their rows
	calls  []llm.ToolCall
	finish *llm.Finish
	begun  map[id.Part]session.Begun // of an answer that a crash cut off: the calls that ran
}

// block is one part of the answer.
type block struct {
	ord    int64
	part   chat.Part
	open   *session.OpenPart
	text   strings.Builder // what came so far; part's text shares its bytes
	saved  int             // bytes at the last checkpoint
	savedT time.Time
	ended  bool // a call whose result is stored: nothing is written of it any more
}

// receive takes a model's answer as it comes: parts are stored before their
// first delta, deltas are published, partial text is checkpointed. A step that
// failed before its first part can be tried again as it is.
func (s *step) receive(ctx context.Context, model llm.Model, call llm.Call) error {
	for ev, err := range model.Stream(ctx, call) {
		if err != nil {
			return err
		}
		if err := s.take(ctx, ev); err != nil {
			return err
		}
	}
	if s.finish == nil {
		return &llm.Error{Kind: llm.KindTruncated, Message: "the answer ended without a finish", Retryable: true}
	}
	// Some models rightly say nothing after a tool's result, but they count it.
	if u := s.finish.Usage; len(s.parts) == 0 && s.finish.Reason == llm.ReasonStop && u.Output+u.Reasoning == 0 {
		return &llm.Error{Kind: llm.KindTruncated, Message: "the answer is empty", Retryable: true}
	}
	return nil
}

func (s *step) take(ctx context.Context, ev llm.Event) error {
	switch v := ev.(type) {
	case llm.TextStart:
		return s.begin(ctx, v.Index, chat.NewText(s.head(), ""))
	case llm.TextDelta:
		return s.grow(ctx, v.Index, "text", v.Text)
	case llm.TextEnd:
		return s.end(v.Index, nil)
	case llm.ReasoningStart:
		return s.begin(ctx, v.Index, chat.NewReasoning(s.head(), ""))
	case llm.ReasoningDelta:
		return s.grow(ctx, v.Index, "text", v.Text)
	case llm.ReasoningEnd:
		return s.end(v.Index, v.Metadata)
	case llm.ToolInputStart:
		return s.begin(ctx, v.Index, chat.NewTool(s.head(), v.CallID, v.Name))
	case llm.ToolInputDelta:
		return s.grow(ctx, v.Index, "state.raw", v.Text)
	case llm.ToolInputEnd:
		return s.end(v.Index, nil)
	case llm.ToolCall:
		s.calls = append(s.calls, v)
	case llm.Finish:
		s.finish = &v
	}
	return nil
}

func (s *step) head() chat.PartHead {
	return chat.PartHead{ID: id.New[id.Part](s.turn.engine.ids), SessionID: s.msg.SessionID, MessageID: s.msg.ID}
}

// begin stores a new part (C3) and opens it for deltas.
func (s *step) begin(ctx context.Context, index int, part chat.Part) error {
	now := clock.Now()
	switch v := part.(type) {
	case *chat.TextPart:
		v.Time = &chat.PartTime{Start: now}
	case *chat.ReasoningPart:
		v.Time = &chat.PartTime{Start: now}
	}
	b := &block{ord: int64(len(s.parts)) + 1, part: part, savedT: time.Now()}
	w := session.PartWrite{Seq: s.seq, Ord: b.ord, Part: part, Event: true}
	if err := s.turn.engine.sessions.PutParts(ctx, store.Relaxed, s.turn.run, w); err != nil {
		return err
	}
	b.open = s.turn.engine.sessions.Live().Open(s.turn.run, part)
	s.blocks[index] = b
	s.parts = append(s.parts, b)
	return nil
}

func (s *step) grow(ctx context.Context, index int, field, delta string) error {
	b := s.blocks[index]
	if b == nil {
		return fmt.Errorf("delta for block %d, which was not opened", index)
	}
	offset := int64(b.text.Len())
	b.text.WriteString(delta)
	err := b.open.Grow(field, offset, delta, func(p chat.Part) { setText(p, b.text.String()) })
	if err != nil {
		return err
	}
	since := time.Since(b.savedT)
	if since < checkpointEvery && (b.text.Len()-b.saved < checkpointBytes || since < checkpointGap) {
		return nil
	}
	b.saved, b.savedT = b.text.Len(), time.Now()
	w := session.PartWrite{Seq: s.seq, Ord: b.ord, Part: b.part}
	return s.turn.engine.sessions.PutParts(ctx, store.Relaxed, s.turn.run, w)
}

func setText(p chat.Part, text string) {
	switch v := p.(type) {
	case *chat.TextPart:
		v.Text = text
	case *chat.ReasoningPart:
		v.Text = text
	case *chat.ToolPart:
		if pending, ok := v.State.(*chat.ToolPending); ok {
			pending.Raw = text
		}
	}
}

// end closes a block's text; it is stored with the whole answer.
func (s *step) end(index int, metadata map[string]any) error {
	b := s.blocks[index]
	if b == nil {
		return fmt.Errorf("end of block %d, which was not opened", index)
	}
	b.finish(clock.Now(), metadata)
	return nil
}

func (b *block) finish(now int64, metadata map[string]any) {
	b.open.Change(func(p chat.Part) {
		switch v := p.(type) {
		case *chat.TextPart:
			v.Time.End = now
		case *chat.ReasoningPart:
			v.Time.End = now
			if metadata != nil {
				v.Metadata = metadata
			}
		}
	})
}

// close ends the growing of all parts; what they hold must be stored before.
func (s *step) close() {
	for _, b := range s.parts {
		if b.open != nil {
			b.open.Close()
			b.open = nil
		}
	}
}
