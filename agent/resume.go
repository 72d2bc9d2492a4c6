package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/llm"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
	"github.com/switchyard-dev/switchyard/tool"
)

// The ends of a call that a crash cut off, as metadata.reason tells them.
const (
	unknownOutcome = "outcome_unknown"
	recovered      = "recovered"
)

// revive takes up a turn that lost its run: the files tell what begun writes
// did, and then the calls of its last answer go on, or the turn ends.
func (t *turn) revive(ctx context.Context) error {
	l := t.lost
	t.steps = l.left.Steps
	if err := t.enter(ctx); err != nil {
		return err
	}
	left, err := t.engine.sessions.Remains(ctx, l.turn)
	if err != nil {
		return err
	}
	s := t.reopen(left)
	defer s.close()
	for _, b := range s.parts {
		if err := t.judge(ctx, s, b, left.Begun); err != nil {
			return err
		}
	}
	if !l.resume {
		return l.outcome
	}
	s.calls = s.openCalls()
	if left.Answer != nil {
		set, err := t.again(ctx, left)
		if err != nil {
			return err
		}
		if err := t.runCalls(ctx, s, set); err != nil {
			return err
		}
	}
	t.lost = nil // from here on it is a turn like any other
	return nil
}

// again gives what the calls of an open answer run with.
func (t *turn) again(ctx context.Context, left session.Remains) (*setting, error) {
	if typed(left) {
		return t.typedSetting(ctx)
	}
	set, err := t.prepare(ctx)
	if err == nil && set == nil {
		err = fmt.Errorf("turn %s has an open answer, but owes none", t.run.TurnID)
	}
	return set, err
}

// reopen makes the step of a stored answer again. Its parts keep their places.
func (t *turn) reopen(left session.Remains) *step {
	s := &step{turn: t, ord: left.Steps, seq: left.Seq, msg: left.Answer, blocks: map[int]*block{}, begun: left.Begun}
	for i, w := range left.Parts {
		b := &block{ord: w.Ord, part: w.Part, open: t.engine.sessions.Live().Open(t.run, w.Part)}
		s.blocks[i] = b
		s.parts = append(s.parts, b)
	}
	return s
}

// openCalls gives the calls of a reopened step that have no result: those that the
// files showed to be done have one by then.
func (s *step) openCalls() []llm.ToolCall {
	var calls []llm.ToolCall
	for i, b := range s.parts {
		if p, ok := b.part.(*chat.ToolPart); ok && !chat.Terminal(p.State) {
			calls = append(calls, storedCall(i, p))
		}
	}
	return calls
}

// storedCall gives a call as the model wrote it.
func storedCall(index int, p *chat.ToolPart) llm.ToolCall {
	c := llm.ToolCall{Index: index, CallID: p.CallID, Name: p.Tool, Input: chat.ToolInput(p.State)}
	if pending, ok := p.State.(*chat.ToolPending); ok && pending.Raw != "" {
		var object map[string]json.RawMessage
		c.Raw = pending.Raw
		c.Malformed = json.Unmarshal([]byte(pending.Raw), &object) != nil
	}
	return c
}

// judge tells by the hashes of the files what a begun call of the write class
// did. One that did not happen may run again.
func (t *turn) judge(ctx context.Context, s *step, b *block, begun map[id.Part]session.Begun) error {
	p, ok := b.part.(*chat.ToolPart)
	if !ok || chat.Terminal(p.State) {
		return nil
	}
	call, ok := begun[p.ID]
	if !ok || call.Class != string(tool.Write) {
		return nil
	}
	delete(begun, p.ID)
	span := startedAt(p.State, clock.Now())
	end := db.ToolCallEndParams{ID: string(call.ID), State: "error", Post: []byte("{}"), Ended: span.End}
	switch t.look(call) {
	case wasWritten:
		end.State, end.Post = "completed", mustJSON(call.Post)
		done := chat.Completed(chat.ToolInput(p.State), p.Tool, "The file was written. The server stopped right after it.",
			map[string]any{"reason": recovered}, span)
		b.open.Change(func(chat.Part) { p.State = done })
	case notWritten: // the call is as if it had not begun
	default:
		b.open.Change(func(chat.Part) { abortPart(p, span.End, unknownOutcome) })
	}
	w := session.PartWrite{Seq: s.seq, Ord: b.ord, Part: p, Event: true}
	return t.engine.sessions.Own(ctx, store.Durable, t.run, func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.ToolCallEnd(ctx, end); err != nil {
			return err
		}
		return t.engine.sessions.PutPart(ctx, tx, t.run, w)
	})
}

// written says what the files tell about a call that replaces them.
type written int

const (
	unknownWrite written = iota
	notWritten
	wasWritten
)

// look compares the files with what the call was about to do. Our writes are
// atomic: a file is as it was, as it should be, or somebody else's.
func (t *turn) look(call session.Begun) written {
	if len(call.Pre) == 0 {
		return unknownWrite
	}
	before, after := true, len(call.Post) > 0
	for path, pre := range call.Pre {
		now, err := fileHash(t.place.Environment(), path)
		if err != nil {
			return unknownWrite
		}
		before = before && now == pre
		after = after && now == call.Post[path]
	}
	switch {
	case after:
		return wasWritten
	case before:
		return notWritten
	}
	return unknownWrite
}

// fileHash gives the sha256 of a file in hex, "" for one that does not exist.
func fileHash(e env.Environment, path string) (string, error) {
	f, err := e.Files().Open(path)
	if errors.Is(err, iofs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
