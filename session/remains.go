package session

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// Remains is what a lost run left of a turn.
type Remains struct {
	// Steps is the number of the last step that began; 0 when the model was never
	// called.
	Steps int64
	// Answer is the last message while it is not completed, else nil. It is Whole
	// when the model had said everything (C4).
	Answer *chat.AssistantMessage
	Whole  bool
	// Seq is Answer's place, Parts are its parts in order.
	Seq   int64
	Parts []PartWrite
	// Begun has the calls that began and did not end, by part.
	Begun map[id.Part]Begun
}

// Begun is a tool call that began (C5) and has no result.
type Begun struct {
	ID    id.Call
	Class string
	// Pre and Post are the sha256 of the files that the call replaces, before and
	// after, by absolute path.
	Pre, Post map[string]string
}

// Remains reads what a lost run left.
func (s *Service) Remains(ctx context.Context, t Turn) (Remains, error) {
	out, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) (Remains, error) { return remains(ctx, r, t) })
	if err != nil {
		return out, fmt.Errorf("reading what is left of %s: %w", t.ID, err)
	}
	return out, nil
}

func remains(ctx context.Context, r store.Reader, t Turn) (Remains, error) {
	out := Remains{Begun: map[id.Part]Begun{}}
	steps, err := r.StepList(ctx, db.StepListParams{TurnID: string(t.ID)})
	if err != nil {
		return out, err
	}
	if n := len(steps); n > 0 {
		out.Steps = steps[n-1].Ord
	}
	calls, err := r.ToolCallList(ctx, db.ToolCallListParams{TurnID: string(t.ID)})
	if err != nil {
		return out, err
	}
	for _, c := range calls {
		if c.Ended != nil {
			continue
		}
		b := Begun{ID: id.Call(c.ID), Class: c.Class}
		if err := json.Unmarshal(c.Pre, &b.Pre); err != nil {
			return out, err
		}
		if err := json.Unmarshal(c.Post, &b.Post); err != nil {
			return out, err
		}
		out.Begun[id.Part(c.PartID)] = b
	}
	return out, out.readAnswer(ctx, r, t)
}

// readAnswer finds the turn's last message, if it is an open answer.
func (out *Remains) readAnswer(ctx context.Context, r store.Reader, t Turn) error {
	rows, err := r.MessageByTurn(ctx, db.MessageByTurnParams{SessionID: string(t.SessionID), TurnID: string(t.ID)})
	if err != nil {
		return err
	}
	for _, row := range slices.Backward(rows) {
		info, err := chat.DecodeMessage(row.Info)
		if err != nil {
			return err
		}
		answer, ok := info.(*chat.AssistantMessage)
		if !ok {
			continue
		}
		if answer.Time.Completed != 0 {
			return nil
		}
		out.Answer, out.Seq, out.Whole = answer, row.Seq, answer.Finish != ""
		return out.readParts(ctx, r, t)
	}
	return nil
}

func (out *Remains) readParts(ctx context.Context, r store.Reader, t Turn) error {
	rows, err := r.PartRange(ctx, db.PartRangeParams{SessionID: string(t.SessionID), FromSeq: out.Seq, ToSeq: out.Seq})
	if err != nil {
		return err
	}
	for _, row := range rows {
		part, err := chat.DecodePart(row.Data)
		if err != nil {
			return err
		}
		out.Parts = append(out.Parts, PartWrite{Seq: out.Seq, Ord: row.Ord, Part: part, Event: true})
	}
	return nil
}

// Tools gives the tool parts.
func (out *Remains) Tools() []*chat.ToolPart {
	var tools []*chat.ToolPart
	for _, w := range out.Parts {
		if p, ok := w.Part.(*chat.ToolPart); ok {
			tools = append(tools, p)
		}
	}
	return tools
}

// Calls gives the tool parts that have no result yet.
func (out *Remains) Calls() []*chat.ToolPart {
	return slices.DeleteFunc(out.Tools(), func(p *chat.ToolPart) bool { return chat.Terminal(p.State) })
}
