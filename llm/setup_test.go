package llm_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/llm"
	"github.com/switchyard-dev/switchyard/llm/llmtest"
)

// dialect is a way to reach the scripted server.
type dialect struct {
	name  string
	kind  llm.ProviderKind
	api   llm.API
	model string
}

var dialects = []dialect{
	{"chat", llm.ProviderOpenAI, llm.APIChat, "gpt-4.1"},
	{"responses", llm.ProviderOpenAI, llm.APIResponses, "gpt-5.4"},
	{"anthropic", llm.ProviderAnthropic, llm.APIAuto, "claude-sonnet-4-5"},
	{"compatible", llm.ProviderOpenAICompatible, llm.APIAuto, "local"},
}

const key = "sk-test-0123456789abcdef"

// bench is one provider against one server.
type bench struct {
	srv   *llmtest.Server
	model llm.Model
}

func setup(t *testing.T, d dialect, change ...func(*llm.ProviderConfig)) bench {
	t.Helper()
	srv := llmtest.New(t)
	cfg := srv.Config("acme", d.kind)
	cfg.API, cfg.APIKey = d.api, llm.NewSecret(key)
	for _, f := range change {
		f(&cfg)
	}
	return bench{srv: srv, model: open(t, cfg, d.model)}
}

func open(t *testing.T, cfg llm.ProviderConfig, model string) llm.Model {
	t.Helper()
	p, err := llm.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m, err := p.Model(t.Context(), model)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// each runs a test once per dialect.
func each(t *testing.T, test func(*testing.T, dialect)) {
	t.Helper()
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			test(t, d)
		})
	}
}

func ask(text string) llm.Call { return llm.Call{Messages: []llm.Message{llm.UserText(text)}} }

// answer is what a Stream gave.
type answer struct {
	events []llm.Event
	err    *llm.Error

	text, thought string
	meta          map[string]any
	calls         []llm.ToolCall
	finish        llm.Finish
	inputs        map[int]string
	deltas        int
}

// collect reads an answer and checks the promises of Event on the way.
func collect(t *testing.T, m llm.Model, c llm.Call) answer {
	t.Helper()
	r := reader{t: t, a: answer{inputs: map[int]string{}}, open: map[int]string{}}
	for e, err := range m.Stream(t.Context(), c) {
		if r.a.err != nil || r.a.finish.Reason != "" {
			t.Fatalf("%#v after the end", e)
		}
		if err != nil {
			if e != nil || !errors.As(err, &r.a.err) {
				t.Fatalf("event %#v with error %#v", e, err)
			}
			continue
		}
		r.a.events = append(r.a.events, e)
		r.block(e)
		r.content(e)
	}
	if r.a.err == nil && (r.a.finish.Reason == "" || len(r.open) > 0) {
		t.Errorf("ended with %+v and open blocks %v", r.a.finish, r.open)
	}
	return r.a
}

// reader is an answer being read.
type reader struct {
	t    *testing.T
	a    answer
	open map[int]string // kind of the open blocks
	next int
}

// block checks starts and ends.
func (r *reader) block(e llm.Event) {
	switch e := e.(type) {
	case llm.TextStart:
		r.start(e.Index, "text")
	case llm.ReasoningStart:
		r.start(e.Index, "reasoning")
	case llm.ToolInputStart:
		r.start(e.Index, "tool")
	case llm.TextEnd:
		r.end(e.Index, "text")
	case llm.ReasoningEnd:
		r.end(e.Index, "reasoning")
		r.a.meta = e.Metadata
	case llm.ToolInputEnd:
		r.end(e.Index, "tool")
	}
}

// content takes what the blocks hold.
func (r *reader) content(e llm.Event) {
	switch e := e.(type) {
	case llm.TextDelta:
		r.inside(e.Index, "text", e.Text)
		r.a.text += e.Text
		r.a.deltas++
	case llm.ReasoningDelta:
		r.inside(e.Index, "reasoning", e.Text)
		r.a.thought += e.Text
	case llm.ToolInputDelta:
		r.inside(e.Index, "tool", e.Text)
		r.a.inputs[e.Index] += e.Text
	case llm.ToolCall:
		r.a.calls = append(r.a.calls, e)
	case llm.Finish:
		r.a.finish = e
	}
}

func (r *reader) start(index int, kind string) {
	r.t.Helper()
	if index != r.next {
		r.t.Errorf("block %d starts where %d is due", index, r.next)
	}
	r.next++
	for i, other := range r.open {
		if other != "tool" {
			r.t.Errorf("block %d is open when %d starts", i, index)
		}
	}
	r.open[index] = kind
}

func (r *reader) inside(index int, kind, text string) {
	r.t.Helper()
	if r.open[index] != kind || text == "" {
		r.t.Errorf("delta %q of block %d, which is %q", text, index, r.open[index])
	}
}

func (r *reader) end(index int, kind string) {
	r.t.Helper()
	if r.open[index] != kind {
		r.t.Errorf("end of block %d, which is %q", index, r.open[index])
	}
	delete(r.open, index)
}

// fine is collect for an answer that must be whole.
func fine(t *testing.T, m llm.Model, c llm.Call) answer {
	t.Helper()
	a := collect(t, m, c)
	if a.err != nil {
		t.Fatalf("error %+v", a.err)
	}
	return a
}

// fails is collect for an answer that must fail with the kind.
func fails(t *testing.T, m llm.Model, c llm.Call, kind llm.Kind) answer {
	t.Helper()
	a := collect(t, m, c)
	if a.err == nil || a.err.Kind != kind {
		t.Fatalf("got %q and error %+v, want kind %s", a.text, a.err, kind)
	}
	if a.err.ProviderID != "acme" || a.err.Message == "" || strings.ContainsAny(a.err.Message, "{}<\n") {
		t.Errorf("error %+v", a.err)
	}
	if strings.Contains(a.err.Error(), key) {
		t.Errorf("the key is in %q", a.err)
	}
	return a
}

// throughJSON gives metadata as it comes back from a store.
func throughJSON(t *testing.T, meta map[string]any) map[string]any {
	t.Helper()
	data, err := json.Marshal(meta)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
