package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/llm"
	"github.com/switchyard-dev/switchyard/llm/llmtest"
)

func TestTextIsExact(t *testing.T) {
	t.Parallel()
	texts := []string{"  a\n\tb  ", "héllo 日本語 👩‍👩‍👧 \"quoted\" \\ </file>\r\n", strings.Repeat("wörd ", 400)}
	each(t, func(t *testing.T, d dialect) {
		b := setup(t, d)
		for _, text := range texts {
			a := fine(t, b.model, ask("say:"+text))
			if a.text != text || a.finish.Reason != llm.ReasonStop {
				t.Errorf("got %q, %s; want %q", a.text, a.finish.Reason, text)
			}
		}
		b.srv.SetChunk(1)
		b.srv.Enqueue(llmtest.Turn{Steps: []llmtest.Step{llmtest.Text(texts[1])}, Drip: true})
		if a := fine(t, b.model, ask("go")); a.text != texts[1] || a.deltas != len([]rune(texts[1])) {
			t.Errorf("rune by rune: %q in %d deltas", a.text, a.deltas)
		}
		if info := b.model.Info(); info != (llm.Info{ProviderID: "acme", ModelID: d.model}) {
			t.Errorf("info %+v", info)
		}
	})
}

func TestUsageCountsEachTokenOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d dialect) {
		b := setup(t, d)
		told := llmtest.Usage{Input: 100, Output: 20, Reasoning: 7, CacheRead: 50}
		want := chat.Usage{Total: 177, Input: 100, Output: 20, Reasoning: 7, Cache: chat.CacheUsage{Read: 50}}
		if d.name == "anthropic" {
			told.CacheWrite = 30
			// Anthropic does not tell reasoning apart.
			want = chat.Usage{Total: 207, Input: 100, Output: 27, Cache: chat.CacheUsage{Read: 50, Write: 30}}
		}
		b.srv.Enqueue(llmtest.Turn{Usage: told})
		if a := fine(t, b.model, ask("go")); a.finish.Usage != want {
			t.Errorf("usage %+v, want %+v", a.finish.Usage, want)
		}
	})
}

func TestReasoningComesBackSigned(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d dialect) {
		b := setup(t, d)
		b.srv.Enqueue(llmtest.Turn{Steps: []llmtest.Step{
			llmtest.Reasoning("first\nthen", "sealed-signature"), llmtest.Text("so"), llmtest.CallWithID("call_a", "read", `{"path":"a"}`),
		}})
		a := fine(t, b.model, ask("go"))
		if a.thought != "first\nthen" || a.text != "so" {
			if d.name != "chat" { // has no reasoning
				t.Fatalf("thought %q, text %q", a.thought, a.text)
			}
		}
		fine(t, b.model, llm.Call{Messages: []llm.Message{
			llm.UserText("go"),
			{Role: llm.RoleAssistant, Parts: []llm.Part{
				llm.Reasoning{Text: a.thought, Metadata: throughJSON(t, a.meta)},
				llm.Text{Text: a.text},
				llm.ToolUse{CallID: a.calls[0].CallID, Name: "read", Input: a.calls[0].Input},
			}},
			{Role: llm.RoleTool, Parts: []llm.Part{llm.ToolResult{CallID: a.calls[0].CallID, Output: "x"}}},
		}})
		sent := string(b.srv.Requests()[1].Body)
		want := map[string][]string{
			"chat":       {`"tool_call_id":"call_a"`},
			"compatible": {`"reasoning_content":"first\nthen"`, `"tool_call_id":"call_a"`},
			"anthropic":  {`"signature":"sealed-signature"`, `"thinking":"first\nthen"`, `"tool_use_id":"call_a"`},
			"responses":  {`"encrypted_content":"sealed-signature"`, `"text":"first\nthen"`, `"type":"reasoning"`, `"call_id":"call_a"`},
		}
		for _, w := range want[d.name] {
			if !strings.Contains(sent, w) {
				t.Errorf("%s is not in %s", w, sent)
			}
		}
		if strings.Contains(sent, "early ") {
			t.Errorf("what the provider sealed last must win: %s", sent)
		}
	})
}

func TestHiddenReasoning(t *testing.T) {
	t.Parallel()
	for _, d := range dialects[1:3] {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, d)
			b.srv.Enqueue(llmtest.Turn{Steps: []llmtest.Step{llmtest.Reasoning("", "opaque"), llmtest.Text("hi")}})
			a := fine(t, b.model, ask("go"))
			if a.text != "hi" || a.thought != "" || a.meta == nil {
				t.Fatalf("%+v", a)
			}
			fine(t, b.model, llm.Call{Messages: []llm.Message{
				llm.UserText("go"),
				{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Reasoning{Metadata: a.meta}, llm.Text{Text: "hi"}}},
				llm.UserText("more"),
			}})
			if sent := string(b.srv.Requests()[1].Body); !strings.Contains(sent, `"opaque"`) {
				t.Error(sent)
			}
		})
	}
}

func TestForeignReasoningStaysHere(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d dialect) {
		b := setup(t, d)
		meta := map[string]any{"other": map[string]any{"signature": "foreign"}}
		fine(t, b.model, llm.Call{Messages: []llm.Message{
			llm.UserText("go"),
			{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Reasoning{Text: "secret thought", Metadata: meta}, llm.Text{Text: "hi"}}},
			llm.UserText("more"),
		}})
		if sent := string(b.srv.Requests()[0].Body); strings.Contains(sent, "secret thought") || strings.Contains(sent, "foreign") {
			t.Error(sent)
		}
	})
}

func TestToolCallsWithSplitInput(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d dialect) {
		b := setup(t, d)
		a := fine(t, b.model, ask("tool:read:{\"path\": \"ä/日本\", \"n\": [1, 2]}\ntool:list:\nsay:look"))
		if a.text != "look" || len(a.calls) != 2 || a.finish.Reason != llm.ReasonToolCalls {
			t.Fatalf("%+v", a)
		}
		first, second := a.calls[0], a.calls[1]
		if first.Name != "read" || string(first.Input) != `{"path": "ä/日本", "n": [1, 2]}` || first.Malformed || a.inputs[first.Index] != string(first.Input) {
			t.Errorf("first %+v, streamed %q", first, a.inputs[first.Index])
		}
		if second.Name != "list" || string(second.Input) != "{}" || second.Malformed || first.CallID == second.CallID {
			t.Errorf("second %+v", second)
		}
		done := fine(t, b.model, llm.Call{Messages: []llm.Message{
			llm.UserText("tool:read:{}"),
			{Role: llm.RoleAssistant, Parts: []llm.Part{llm.ToolUse{CallID: first.CallID, Name: "read", Input: first.Input}}},
			{Role: llm.RoleTool, Parts: []llm.Part{llm.ToolResult{CallID: first.CallID, Output: "the content"}}},
		}})
		if done.text != "done: the content" {
			t.Errorf("after the result: %q", done.text)
		}
	})
}

func TestMalformedInputIsFlagged(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d dialect) {
		b := setup(t, d)
		for _, input := range []string{`{"path":`, `not json`, `[1]`, `"text"`} {
			a := fine(t, b.model, ask("tool:read:"+input))
			if len(a.calls) != 1 || !a.calls[0].Malformed || a.calls[0].Raw != input || string(a.calls[0].Input) != "{}" {
				t.Errorf("%s: %+v", input, a.calls)
			}
		}
	})
}

func TestCallIDsAreUnique(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d dialect) {
		b := setup(t, d)
		for _, id := range []string{"call_1", "tool-call-0"} {
			b.srv.Enqueue(llmtest.Turn{Steps: []llmtest.Step{llmtest.CallWithID(id, "read", "{}")}})
			a := fine(t, b.model, llm.Call{Messages: []llm.Message{
				llm.UserText("go"),
				{Role: llm.RoleAssistant, Parts: []llm.Part{llm.ToolUse{CallID: "call_1", Name: "read"}}},
				{Role: llm.RoleTool, Parts: []llm.Part{llm.ToolResult{CallID: "call_1", Output: "x"}}},
			}})
			if got := a.calls[0].CallID; got == id || got == "" {
				t.Errorf("%s became %s", id, got)
			}
		}
	})
}

func TestCutAnswers(t *testing.T) {
	t.Parallel()
	partial := llmtest.PartialCall("write", `{"path": "a`)
	tests := map[string]llmtest.Turn{
		"in text":              {Steps: []llmtest.Step{llmtest.Text("half")}, Cut: true},
		"in a call":            {Steps: []llmtest.Step{llmtest.Text("half"), partial}, Cut: true},
		"after a whole call":   {Steps: []llmtest.Step{llmtest.Text("half"), llmtest.Call("write", "{}")}, Cut: true},
		"connection in a call": {Steps: []llmtest.Step{llmtest.Text("half"), partial}, Abort: true},
		"before all":           {Abort: true},
	}
	each(t, func(t *testing.T, d dialect) {
		b := setup(t, d)
		for name, turn := range tests {
			b.srv.Enqueue(turn)
			a := fails(t, b.model, ask("go"), llm.KindTruncated)
			if len(a.calls) != 0 || !a.err.Retryable {
				t.Errorf("%s: calls %+v, error %+v", name, a.calls, a.err)
			}
			if len(turn.Steps) > 0 && a.text != "half" {
				t.Errorf("%s: what came first is lost: %q", name, a.text)
			}
		}
		fails(t, b.model, ask("cut"), llm.KindTruncated)
	})
}

func TestLimitDropsTheCutCall(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d dialect) {
		b := setup(t, d)
		b.srv.Enqueue(llmtest.Turn{
			Steps:  []llmtest.Step{llmtest.Call("read", `{"a":1}`), llmtest.Call("write", `{"path": "a`)},
			Finish: "length",
		})
		a := fine(t, b.model, ask("go"))
		if a.finish.Reason != llm.ReasonLength || len(a.calls) != 1 || a.calls[0].Name != "read" {
			t.Errorf("%+v", a)
		}
	})
}

func TestFinishReasons(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d dialect) {
		b := setup(t, d)
		for told, want := range map[string]llm.Reason{
			"length": llm.ReasonLength, "content-filter": llm.ReasonContentFilter, "stop": llm.ReasonStop,
		} {
			b.srv.Enqueue(llmtest.Turn{Steps: []llmtest.Step{llmtest.Text("x")}, Finish: told})
			if a := fine(t, b.model, ask("go")); a.finish.Reason != want {
				t.Errorf("%s: %s", told, a.finish.Reason)
			}
		}
	})
}

func TestSC26_StatusIsSorted(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		turn  llmtest.Turn
		kind  llm.Kind
		retry bool
		wait  time.Duration
	}{
		{"rate", llmtest.Turn{Status: 429, RetryAfter: "1"}, llm.KindRateLimit, true, time.Second},
		{"long wait", llmtest.Turn{Status: 429, RetryAfter: "86400"}, llm.KindRateLimit, true, 24 * time.Hour},
		{"unavailable", llmtest.Turn{Status: 503}, llm.KindOverloaded, true, 0},
		{"failure", llmtest.Turn{Status: 500}, llm.KindServer, true, 0},
		{"html", llmtest.Turn{Status: 502, Body: "<html>bad gateway " + key + "</html>"}, llm.KindServer, true, 0},
		{"filter in a 500", llmtest.Turn{Status: 500, ErrorCode: "content_filter", Message: "The response was filtered due to the content policy: content_filter"}, llm.KindContentFilter, false, 0},
		{"overflow", llmtest.Turn{Status: 400, ErrorCode: "context_length_exceeded", Message: "prompt is too long: 210000 tokens > 200000 maximum"}, llm.KindOverflow, false, 0},
		{"quota", llmtest.Turn{Status: 429, ErrorType: "insufficient_quota"}, llm.KindQuota, false, 0},
		{"key", llmtest.Turn{Status: 401, Message: "Incorrect API key provided: " + key}, llm.KindAuth, false, 0},
		{"model", llmtest.Turn{Status: 404, Message: "no such model, " + key}, llm.KindInvalid, false, 0},
		{"redirect", llmtest.Turn{Status: 307, Header: http.Header{"Location": {"http://127.0.0.1:1/"}}}, llm.KindInvalid, false, 0},
	}
	each(t, func(t *testing.T, d dialect) {
		b := setup(t, d)
		for i, tt := range tests {
			b.srv.Enqueue(tt.turn)
			a := fails(t, b.model, ask("go"), tt.kind)
			if a.err.Retryable != tt.retry || a.err.RetryAfter != tt.wait || a.err.StatusCode != tt.turn.Status {
				t.Errorf("%s: %+v", tt.name, a.err)
			}
			if tt.wait > time.Minute && !strings.Contains(a.err.Message, "24h") {
				t.Errorf("%s: the wait is not told: %s", tt.name, a.err.Message)
			}
			if n := len(b.srv.Requests()); n != i+1 {
				t.Fatalf("%s: %d requests for %d calls", tt.name, n, i+1)
			}
		}
	})
}

func TestFailureInsideTheStream(t *testing.T) {
	t.Parallel()
	tests := []struct {
		kind, message string
		want          llm.Kind
		retry         bool
	}{
		{"overloaded_error", "Overloaded", llm.KindOverloaded, true},
		{"server_error", "it broke", llm.KindServer, true},
		{"rate_limit_exceeded", "slower", llm.KindRateLimit, true},
		{"context_length_exceeded", "too long", llm.KindOverflow, false},
		{"content_filter", "no", llm.KindContentFilter, false},
	}
	each(t, func(t *testing.T, d dialect) {
		b := setup(t, d)
		for _, tt := range tests {
			b.srv.Enqueue(llmtest.Turn{Steps: []llmtest.Step{llmtest.Text("half"), llmtest.PartialCall("read", "{"), llmtest.Fail(tt.kind, tt.message)}})
			a := fails(t, b.model, ask("go"), tt.want)
			if a.text != "half" || a.err.Retryable != tt.retry || len(a.calls) != 0 || !strings.Contains(a.err.Message, tt.message) {
				t.Errorf("%s: %q, %+v", tt.kind, a.text, a.err)
			}
		}
	})
}

func TestNotAnEventStream(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d dialect) {
		b := setup(t, d)
		page := http.Header{"Content-Type": {"text/html"}}
		b.srv.Enqueue(llmtest.Turn{Status: 200, Body: "<html>login</html>", Header: page})
		if a := fails(t, b.model, ask("go"), llm.KindInvalid); !strings.Contains(a.err.Message, "base URL") {
			t.Error(a.err.Message)
		}
		b.srv.Enqueue(llmtest.Turn{Status: 200, Body: `{"error":{"message":"Overloaded","type":"overloaded_error"}}`})
		fails(t, b.model, ask("go"), llm.KindOverloaded)
		b.srv.Enqueue(llmtest.Turn{Status: 200, Body: "data: garbage\n\n", Header: http.Header{"Content-Type": {"text/event-stream"}}})
		fails(t, b.model, ask("go"), llm.KindTruncated)
	})
}

func TestSC27_NoKey(t *testing.T) {
	t.Parallel()
	noKey := func(c *llm.ProviderConfig) { c.APIKey = llm.Secret{} }
	each(t, func(t *testing.T, d dialect) {
		b := setup(t, d, noKey)
		if d.kind == llm.ProviderOpenAICompatible {
			fine(t, b.model, ask("say:hi"))
			if h := b.srv.Requests()[0].Header; h.Get("Authorization") != "" {
				t.Errorf("a local server gets %v", h)
			}
			b.srv.RequireKey("other")
			fails(t, b.model, ask("say:hi"), llm.KindAuth)
			return
		}
		a := fails(t, b.model, ask("say:hi"), llm.KindAuth)
		if a.err.Retryable || len(b.srv.Requests()) != 0 {
			t.Errorf("%+v after %d requests", a.err, len(b.srv.Requests()))
		}
		if c := a.err.Chat(); c.Name != chat.ErrProviderAuth || c.Data.ProviderID != "acme" {
			t.Errorf("%+v", c)
		}
	})
}

func TestWrongKeyIsNotRepeated(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d dialect) {
		b := setup(t, d)
		b.srv.RequireKey("another")
		a := fails(t, b.model, ask("say:hi"), llm.KindAuth)
		if a.err.StatusCode != 401 || a.err.Retryable {
			t.Errorf("%+v", a.err)
		}
	})
}

func TestCancelIsQuick(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d dialect) {
		b := setup(t, d)
		b.srv.Enqueue(llmtest.Turn{Steps: []llmtest.Step{llmtest.Text("half"), llmtest.Hang()}})
		stop := errors.New("stopped by the user")
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		var cancelled time.Time
		var last error
		for e, err := range b.model.Stream(ctx, ask("go")) {
			if _, ok := e.(llm.TextDelta); ok && cancelled.IsZero() {
				if err := b.srv.WaitHanging(t.Context(), 1); err != nil {
					t.Fatal(err)
				}
				cancelled = time.Now()
				cancel(stop)
			}
			last = err
		}
		var e *llm.Error
		if !errors.As(last, &e) || e.Kind != llm.KindCanceled || !errors.Is(last, stop) || e.Chat().Name != chat.ErrAborted {
			t.Fatalf("%+v", last)
		}
		if d := time.Since(cancelled); d > time.Second {
			t.Errorf("took %v", d)
		}
	})
}

func TestLeavingDropsTheConnection(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d dialect) {
		b := setup(t, d)
		b.srv.Enqueue(llmtest.Turn{Steps: []llmtest.Step{llmtest.Text("half"), llmtest.Hang()}})
		call := ask("go")
		call.SessionKey = "ses_1"
		for e, err := range b.model.Stream(t.Context(), call) {
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := e.(llm.TextDelta); ok {
				break
			}
		}
		for len(b.srv.Active()) > 0 {
			if t.Context().Err() != nil {
				t.Fatal("the request goes on")
			}
		}
	})
}

func TestSilenceEnds(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d dialect) {
		b := setup(t, d, func(c *llm.ProviderConfig) { c.IdleTimeout = 60 * time.Millisecond })
		a := fails(t, b.model, ask("hang"), llm.KindNetwork)
		if !a.err.Retryable || !strings.Contains(a.err.Message, "60ms") {
			t.Errorf("%+v", a.err)
		}
	})
}

func TestUnreachableProvider(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d dialect) {
		m := open(t, llm.ProviderConfig{
			ID: "acme", Kind: d.kind, API: d.api, BaseURL: "http://user:hunter22@127.0.0.1:1/v1", APIKey: llm.NewSecret(key),
		}, d.model)
		a := fails(t, m, ask("go"), llm.KindNetwork)
		if !a.err.Retryable || strings.Contains(a.err.Message, "hunter22") {
			t.Errorf("%+v", a.err)
		}
	})
}

func TestRequestHoldsWhatTheCallSays(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d dialect) {
		b := setup(t, d, func(c *llm.ProviderConfig) {
			c.Headers = map[string]string{"X-Team": "blue"}
			c.UserAgent = "switchyard/test"
		})
		temperature := 0.5
		fine(t, b.model, llm.Call{
			System:   []string{"be brief", "", "be kind"},
			Messages: []llm.Message{llm.UserText("say:x")},
			Tools: []llm.ToolSpec{{
				Name: "read", Description: "Reads.",
				Schema: json.RawMessage(`{"type":"object","properties":{"path":{"$ref":"#/$defs/p"}},"required":["path"],"$defs":{"p":{"type":"string"}}}`),
			}, {Name: "bare"}},
			ToolChoice: llm.ToolNone, MaxOutputTokens: 1234, Temperature: &temperature, SessionKey: "ses_1", Variant: "high",
			Headers: map[string]string{"X-Trace": "t1", "Authorization": "Bearer stolen", "x-api-key": "stolen"},
			Options: map[string]any{"extra_member": map[string]any{"deep": true}},
		})
		r := b.srv.Requests()[0]
		body := string(r.Body)
		for _, want := range []string{`"required":["path"]`, `"$defs":`, "1234", `"none"`, `"extra_member":{"deep":true}`, `"stream":true`} {
			if !strings.Contains(body, want) {
				t.Errorf("%s is not in %s", want, body)
			}
		}
		if !strings.Contains(r.System, "be brief") || !strings.Contains(r.System, "be kind") || r.Session != "ses_1" || len(r.Tools) != 2 {
			t.Errorf("%+v", r)
		}
		h := r.Header
		if h.Get("User-Agent") != "switchyard/test" || h.Get("X-Team") != "blue" || h.Get("X-Trace") != "t1" {
			t.Errorf("headers %v", h)
		}
		if credential := h.Get("Authorization") + h.Get("X-Api-Key"); !strings.HasSuffix(credential, key) || strings.Contains(credential, "stolen") {
			t.Errorf("credential %q", credential)
		}
		for name := range h {
			if strings.HasPrefix(name, "X-Stainless") || strings.HasPrefix(name, "Openai-") {
				t.Errorf("the library tells %s", name)
			}
		}
	})
}

func TestConnectionIsUsedAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d dialect) {
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		b := setup(t, d, func(c *llm.ProviderConfig) { c.HTTPClient = &http.Client{Transport: transport} })
		seen := map[string]bool{}
		b.srv.Enqueue(llmtest.Say("a"), llmtest.Say("b"), llmtest.Say("c"))
		for range 3 {
			fine(t, b.model, ask("go"))
		}
		for _, r := range b.srv.Requests() {
			seen[r.RemoteAddr] = true
		}
		if len(seen) != 1 {
			t.Errorf("%d connections for three calls in a row", len(seen))
		}
	})
}

func TestNewRefusesBadConfigs(t *testing.T) {
	t.Parallel()
	for _, cfg := range []llm.ProviderConfig{
		{ID: "a", Kind: "other"},
		{ID: "a", Kind: llm.ProviderOpenAICompatible},
		{ID: "a", Kind: llm.ProviderOpenAI, BaseURL: "file:///etc"},
		{ID: "a", Kind: llm.ProviderAnthropic, BaseURL: "http://sk-secret-in-url@:x"},
	} {
		if _, err := llm.New(cfg); err == nil || strings.Contains(err.Error(), "sk-secret") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	for _, kind := range []llm.ProviderKind{llm.ProviderOpenAI, llm.ProviderAnthropic} {
		if p, err := llm.New(llm.ProviderConfig{ID: "a", Kind: kind}); err != nil || p.ID() != "a" {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// It cannot run beside other tests, because it sets the environment.
func TestEnvironmentDoesNotLeak(t *testing.T) {
	for name, v := range map[string]string{
		"OPENAI_API_KEY": "env-secret", "OPENAI_BASE_URL": "http://127.0.0.1:1", "OPENAI_ORG_ID": "env-secret",
		"OPENAI_PROJECT_ID": "env-secret", "OPENAI_CUSTOM_HEADERS": "X-Env: env-secret", "ANTHROPIC_API_KEY": "env-secret",
		"ANTHROPIC_AUTH_TOKEN": "env-secret", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1", "ANTHROPIC_CUSTOM_HEADERS": "X-Env: env-secret",
	} {
		t.Setenv(name, v)
	}
	for _, d := range dialects {
		b := setup(t, d, func(c *llm.ProviderConfig) {
			if d.kind == llm.ProviderOpenAICompatible {
				c.APIKey = llm.Secret{}
			}
		})
		fine(t, b.model, ask("say:x"))
		for name, values := range b.srv.Requests()[0].Header {
			if strings.Contains(strings.Join(values, " "), "env-secret") {
				t.Errorf("%s: header %s is from the environment", d.name, name)
			}
		}
	}
}
