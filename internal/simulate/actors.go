package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/switchyard-dev/switchyard/agent"
	"github.com/switchyard-dev/switchyard/catalog"
	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/llm"
	"github.com/switchyard-dev/switchyard/snapshot"
	"github.com/switchyard-dev/switchyard/tool"
)

// maxCalls bounds the tool calls of one turn.
const maxCalls = 4

// script is the model, and decides what the tools do. It is safe for concurrent
// use.
type script struct {
	gates *gates

	mu   sync.Mutex // protects what follows
	rng  *rand.Rand
	next int            // numbers the calls
	done map[string]int // how often the effect of each call happened
}

func (s *script) roll(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.IntN(n)
}

// Info is part of llm.Model.
func (s *script) Info() llm.Info { return llm.Info{ProviderID: "sim", ModelID: "sim"} }

// Stream is part of llm.Model: a text, perhaps calls, perhaps trouble.
func (s *script) Stream(ctx context.Context, c llm.Call) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		if err := s.stream(ctx, c, func(e llm.Event) bool { return yield(e, nil) }); err != nil {
			yield(nil, err)
		}
	}
}

func (s *script) stream(ctx context.Context, c llm.Call, yield func(llm.Event) bool) error {
	ses := id.Session(c.SessionKey)
	if err := s.gates.pass(ctx, ses, "model"); err != nil {
		return err
	}
	if s.roll(12) == 0 {
		return &llm.Error{Kind: llm.KindServer, StatusCode: 503, Retryable: s.roll(3) > 0, Message: "scripted trouble"}
	}
	cutAt := -1
	if s.roll(12) == 0 {
		cutAt = s.roll(3)
	}
	if !yield(llm.TextStart{Index: 0}) {
		return nil
	}
	for n := range 1 + s.roll(3) {
		if n == cutAt {
			return &llm.Error{Kind: llm.KindTruncated, Retryable: true, Message: "scripted cut"}
		}
		if !yield(llm.TextDelta{Index: 0, Text: strings.Repeat("wörd ", 1+s.roll(40))}) {
			return nil
		}
		if s.roll(3) == 0 {
			if err := s.gates.pass(ctx, ses, "text"); err != nil {
				return err
			}
		}
	}
	if !yield(llm.TextEnd{Index: 0}) {
		return nil
	}
	return s.calls(c, yield)
}

// calls ends an answer, with tool calls while the turn has not made many.
func (s *script) calls(c llm.Call, yield func(llm.Event) bool) error {
	made := 0
	for i := len(c.Messages) - 1; i >= 0 && c.Messages[i].Role != llm.RoleUser; i-- {
		if c.Messages[i].Role == llm.RoleTool {
			made += len(c.Messages[i].Parts)
		}
	}
	var calls []llm.ToolCall
	if made < maxCalls && s.roll(2) == 0 {
		for n := range 1 + s.roll(2) {
			calls = append(calls, s.call(n+1))
		}
	}
	for _, call := range calls {
		for _, e := range []llm.Event{
			llm.ToolInputStart{Index: call.Index, CallID: call.CallID, Name: call.Name},
			llm.ToolInputDelta{Index: call.Index, Text: string(call.Input)},
			llm.ToolInputEnd{Index: call.Index},
		} {
			if !yield(e) {
				return nil
			}
		}
	}
	reason := llm.ReasonStop
	for _, call := range calls {
		reason = llm.ReasonToolCalls
		if !yield(call) {
			return nil
		}
	}
	yield(llm.Finish{Reason: reason, Usage: chat.Usage{Input: 10, Output: 5}})
	return nil
}

func (s *script) call(index int) llm.ToolCall {
	names := []string{"look", "keep", "act", "change", "question"}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	name := names[s.rng.IntN(len(names))]
	input := fmt.Sprintf(`{"text":"call %d"}`, s.next)
	if name == "question" {
		input = `{"questions":[{"question":"Which?","header":"W","options":[{"label":"a","description":""},{"label":"b","description":""}]}]}`
	}
	return llm.ToolCall{Index: index, CallID: fmt.Sprintf("call_%d", s.next), Name: name, Input: json.RawMessage(input)}
}

// scripted is a tool of one class. Its effect happens between two gates.
type scripted struct {
	script *script
	name   string
	class  tool.Class
}

// Info is part of tool.Tool.
func (t scripted) Info() tool.Info {
	return tool.Info{Name: t.name, Description: t.name, Schema: json.RawMessage(`{"type":"object"}`), Class: t.class, Permission: t.name}
}

// Plan is part of tool.Tool.
func (t scripted) Plan(_ context.Context, c *tool.Call) (tool.Plan, error) {
	p := tool.Plan{Asks: []tool.Ask{{Permission: t.name, Patterns: []string{"x"}, Always: []string{}, Metadata: map[string]any{}}}}
	if t.class == tool.Write {
		before, err := hashOf(c)
		if err != nil {
			return p, err
		}
		p.Before, p.After = map[string]string{fileOf(c): before}, map[string]string{fileOf(c): sum(c.Input)}
	}
	return p, nil
}

// Run is part of tool.Tool.
func (t scripted) Run(ctx context.Context, c *tool.Call) (tool.Result, error) {
	if err := t.script.gates.pass(ctx, c.SessionID, t.name); err != nil {
		return tool.Result{}, err
	}
	if t.class == tool.Write {
		if err := c.Env.Files().WriteFile(fileOf(c), c.Input, 0o600); err != nil {
			return tool.Result{}, err
		}
	}
	t.script.mu.Lock()
	t.script.done[string(t.class)+" "+c.ID]++
	t.script.mu.Unlock()
	if err := t.script.gates.pass(ctx, c.SessionID, t.name+" done"); err != nil {
		return tool.Result{Output: "half"}, err
	}
	res := tool.Result{Title: t.name, Output: "done", Metadata: map[string]any{}}
	if t.class == tool.Write {
		res.After = map[string]string{fileOf(c): sum(c.Input)}
	}
	return res, nil
}

func (s *script) tools() *tool.Registry {
	all := []tool.Tool{
		scripted{s, "look", tool.Read}, scripted{s, "keep", tool.Keyed}, scripted{s, "act", tool.Effect}, scripted{s, "change", tool.Write},
	}
	for _, t := range tool.Builtin() {
		if t.Info().Name == "question" {
			all = append(all, t)
		}
	}
	return tool.NewRegistry(all...)
}

// place is the one workplace of all sessions.
type place struct {
	env      env.Environment
	settings agent.Settings
	script   *script
}

// Acquire is part of agent.Workplaces.
func (p *place) Acquire(context.Context, event.Context) (agent.Workplace, error) { return p, nil }

// Environment is part of agent.Workplace.
func (p *place) Environment() env.Environment { return p.env }

// Settings is part of agent.Workplace.
func (p *place) Settings(context.Context) (agent.Settings, error) { return p.settings, nil }

// Git is part of agent.Workplace.
func (p *place) Git() snapshot.Git { return nil }

// Outputs is part of agent.Workplace.
func (p *place) Outputs() tool.OutputStore { return nil }

// Release is part of agent.Workplace.
func (p *place) Release() {}

// Model is part of agent.Models.
func (p *place) Model(context.Context, chat.ModelRef) (llm.Model, error) { return p.script, nil }

// Cost is part of agent.Models.
func (p *place) Cost(chat.ModelRef, chat.Usage) float64 { return 0 }

// Limits is part of agent.Models.
func (p *place) Limits(chat.ModelRef) catalog.Limit { return catalog.Limit{} }

// retryPolicy never makes a history wait long.
func retryPolicy() llm.RetryPolicy {
	return llm.RetryPolicy{Base: time.Microsecond, Max: 10 * time.Microsecond}
}

// Intake is part of agent.Models.
func (p *place) Intake(chat.ModelRef) catalog.Intake { return catalog.Intake{} }
