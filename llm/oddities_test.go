package llm_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/llm"
	"github.com/switchyard-dev/switchyard/llm/llmtest"
)

// raw makes a turn of frames that a compatible server might send.
func raw(frames ...string) llmtest.Turn {
	return llmtest.Turn{
		Status: 200, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: "data: " + strings.Join(frames, "\n\ndata: ") + "\n\n",
	}
}

func delta(members string) string {
	return `{"id":"x","choices":[{"index":0,"delta":{` + members + `}}]}`
}

func finish(reason, more string) string {
	return `{"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]` + more + `}`
}

func TestCompatibleServersMayBeOdd(t *testing.T) {
	t.Parallel()
	b := setup(t, dialects[3])

	// Usage before the last chunk; null and empty reasoning; reasoning in turns
	// with text, never ended.
	b.srv.Enqueue(raw(
		delta(`"reasoning_content":null,"content":""`),
		delta(`"reasoning_content":"","content":"a"`),
		delta(`"reasoning_content":"why"`),
		delta(`"content":"b"`),
		delta(`"reasoning_content":"because"`),
		finish("eos", `,"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}`),
		`{"id":"x","choices":[]}`, "[DONE]",
	))
	a := fine(t, b.model, ask("go"))
	want := chat.Usage{Total: 10, Input: 7, Output: 3}
	if a.text != "ab" || a.thought != "whybecause" || a.finish.Usage != want || a.finish.Reason != llm.ReasonStop {
		t.Errorf("%+v", a)
	}

	// A call without id, and "stop" as the reason.
	b.srv.Enqueue(raw(
		delta(`"tool_calls":[{"index":0,"function":{"name":"read","arguments":"{}"}}]`), finish("stop", ""), "[DONE]",
	))
	a = fine(t, b.model, ask("go"))
	if len(a.calls) != 1 || !strings.HasPrefix(a.calls[0].CallID, "call_") || a.finish.Reason != llm.ReasonToolCalls {
		t.Errorf("%+v", a)
	}

	// Reasoning counted beside the output instead of within it.
	b.srv.Enqueue(raw(delta(`"content":"x"`), finish("stop",
		`,"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":15,"completion_tokens_details":{"reasoning_tokens":5}}`), "[DONE]"))
	want = chat.Usage{Total: 15, Input: 7, Output: 3, Reasoning: 5}
	if a = fine(t, b.model, ask("go")); a.finish.Usage != want {
		t.Errorf("%+v", a.finish.Usage)
	}

	// The provider breaks off with a reason of its own.
	b.srv.Enqueue(raw(delta(`"content":"x"`), finish("error", ""), "[DONE]"))
	if a = fails(t, b.model, ask("go"), llm.KindServer); !a.err.Retryable {
		t.Errorf("%+v", a.err)
	}
}

func TestStreamThatIsOverEndsThoughTheConnectionStays(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: "+delta(`"content":"x"`)+"\n\ndata: "+finish("stop", "")+"\n\ndata: [DONE]\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(srv.Close)
	m := open(t, llm.ProviderConfig{ID: "acme", Kind: llm.ProviderOpenAICompatible, BaseURL: srv.URL}, "m")
	start := time.Now()
	if a := fine(t, m, ask("go")); a.text != "x" || time.Since(start) > 5*time.Second {
		t.Errorf("%+v after %v", a, time.Since(start))
	}
}
