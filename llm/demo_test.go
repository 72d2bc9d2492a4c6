package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchyard-dev/switchyard/llm"
)

func demo(t *testing.T) llm.Model {
	t.Helper()
	p := llm.Demo()
	m, err := p.Model(t.Context(), llm.DemoModelID)
	if err != nil || p.ID() != llm.DemoProviderID || m.Info() != (llm.Info{ProviderID: "demo", ModelID: "demo"}) {
		t.Fatalf("%v, %+v", err, m)
	}
	return m
}

var writeTool = llm.ToolSpec{Name: "write", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}}}`)}

func TestDemoProposesAnEdit(t *testing.T) {
	t.Parallel()
	m := demo(t)
	call := ask("Fix the\nbug in ünïcode.go")
	call.Tools = []llm.ToolSpec{{Name: "read"}, writeTool}
	a := fine(t, m, call)
	if !strings.Contains(a.text, "demo model") || len(a.calls) != 1 || a.finish.Reason != llm.ReasonToolCalls || a.finish.Usage.Output == 0 {
		t.Fatalf("%+v", a)
	}
	var input struct{ Path, Content string }
	if err := json.Unmarshal(a.calls[0].Input, &input); err != nil || input.Path != "switchyard-demo.md" || !strings.Contains(input.Content, "> Fix the bug in ünïcode.go\n") {
		t.Errorf("%s", a.calls[0].Input)
	}
	after := func(r llm.ToolResult) string {
		r.CallID = a.calls[0].CallID
		next := call
		next.Messages = append(next.Messages,
			llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.ToolUse{CallID: r.CallID, Name: "write", Input: a.calls[0].Input}}},
			llm.Message{Role: llm.RoleTool, Parts: []llm.Part{r}})
		b := fine(t, m, next)
		if len(b.calls) != 0 || b.finish.Reason != llm.ReasonStop {
			t.Errorf("the turn goes on: %+v", b)
		}
		return b.text
	}
	if text := after(llm.ToolResult{Output: "wrote 1 file"}); !strings.HasPrefix(text, "Done") {
		t.Error(text)
	}
	if text := after(llm.ToolResult{Output: "rejected: not now", IsError: true}); !strings.Contains(text, "not written: rejected: not now") {
		t.Error(text)
	}
}

func TestDemoWithoutTools(t *testing.T) {
	t.Parallel()
	m := demo(t)
	if a := fine(t, m, ask("hello")); len(a.calls) != 0 || !strings.Contains(a.text, "API key") {
		t.Errorf("%+v", a)
	}
	call := ask("hello")
	call.Tools, call.ToolChoice = []llm.ToolSpec{writeTool}, llm.ToolNone
	if a := fine(t, m, call); len(a.calls) != 0 {
		t.Errorf("%+v", a.calls)
	}
	title := ask("Fix the bug")
	title.System = []string{"You are a " + llm.TitleMarker + "."}
	if a := fine(t, m, title); a.text != "Demo: Fix the bug" {
		t.Errorf("title %q", a.text)
	}
}

func TestDemoObeysScripts(t *testing.T) {
	t.Parallel()
	m := demo(t)
	text := "  a\n\tb  日本語"
	a := fine(t, m, ask("say:"+text))
	if a.text != text || a.deltas < len(text)/5 {
		t.Errorf("%q in %d deltas", a.text, a.deltas)
	}
	a = fine(t, m, ask("tool:bash:{\"command\":\"ls\"}\ntool:read:oops\nsay:go"))
	if a.text != "go" || len(a.calls) != 2 || string(a.calls[0].Input) != `{"command":"ls"}` || !a.calls[1].Malformed || a.calls[1].Raw != "oops" || a.calls[0].CallID == a.calls[1].CallID {
		t.Errorf("%+v", a.calls)
	}
}

func TestDemoFailsAsTold(t *testing.T) {
	t.Parallel()
	m := demo(t)
	if a := collect(t, m, ask("http:429:86400")); a.err == nil || a.err.Kind != llm.KindRateLimit || a.err.RetryAfter != 24*time.Hour || !strings.Contains(a.err.Message, "24h") {
		t.Errorf("%+v", a.err)
	}
	if a := collect(t, m, ask("cut")); a.err == nil || a.err.Kind != llm.KindTruncated || len(a.calls) != 0 || len(a.inputs) != 1 {
		t.Errorf("%+v", a)
	}
}

func TestDemoRepeatsAScriptedResult(t *testing.T) {
	t.Parallel()
	m := demo(t)
	long := strings.Repeat("é", 150)
	a := fine(t, m, llm.Call{Messages: []llm.Message{
		llm.UserText("tool:bash:{}"),
		{Role: llm.RoleAssistant, Parts: []llm.Part{llm.ToolUse{CallID: "c", Name: "bash"}}},
		{Role: llm.RoleTool, Parts: []llm.Part{llm.ToolResult{CallID: "c", Output: long}}},
	}})
	if a.text != "done: "+strings.Repeat("é", 100) {
		t.Errorf("%q", a.text)
	}
}

func TestDemoHangsUntilCancelled(t *testing.T) {
	t.Parallel()
	m := demo(t)
	synctest.Test(t, func(t *testing.T) {
		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Hour, func() { cancel(stop) })
		start := time.Now()
		for e, err := range m.Stream(ctx, ask("hang")) {
			if e != nil || !errors.Is(err, stop) {
				t.Errorf("%+v, %v", e, err)
			}
		}
		if time.Since(start) != time.Hour {
			t.Errorf("ended after %v", time.Since(start))
		}
	})
	for _, err := range m.Stream(t.Context(), ask("say:a long text that is left in the middle")) {
		if err != nil {
			t.Error(err)
		}
		break
	}
}
