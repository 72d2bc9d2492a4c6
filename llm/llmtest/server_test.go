package llmtest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/llm"
	"github.com/switchyard-dev/switchyard/llm/llmtest"
)

// ask makes a request as curl would and gives status and body.
func ask(t *testing.T, srv *llmtest.Server, path, body string) (int, string) {
	t.Helper()
	res, err := http.Post(srv.URL()+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(data)
}

func model(t *testing.T, srv *llmtest.Server) llm.Model {
	t.Helper()
	p, err := llm.New(srv.Config("fake", llm.ProviderOpenAICompatible))
	if err != nil {
		t.Fatal(err)
	}
	m, err := p.Model(t.Context(), "m")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func text(t *testing.T, m llm.Model, c llm.Call) string {
	t.Helper()
	var out strings.Builder
	for e, err := range m.Stream(t.Context(), c) {
		if err != nil {
			t.Error(err)
		}
		if d, ok := e.(llm.TextDelta); ok {
			out.WriteString(d.Text)
		}
	}
	return out.String()
}

func TestWholeAnswers(t *testing.T) {
	t.Parallel()
	srv := llmtest.New(t)
	turn := llmtest.Turn{Steps: []llmtest.Step{llmtest.Reasoning("hm", "sig"), llmtest.Text("hello"), llmtest.Call("read", `{"a":1}`)}}
	bodies := map[string]string{
		"/chat/completions": `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"go"}]}]}`,
		"/responses":        `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"go"}]}]}`,
		"/messages":         `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"go"}]}`,
	}
	for path, body := range bodies {
		srv.Enqueue(turn)
		status, got := ask(t, srv, path, body)
		if status != 200 || !json.Valid([]byte(got)) || !strings.Contains(got, `"hello"`) || !strings.Contains(got, `"read"`) || strings.Contains(got, "data:") {
			t.Errorf("%s: %d %s", path, status, got)
		}
	}
	for _, r := range srv.Requests() {
		if texts := r.UserTexts(); len(texts) != 1 || texts[0] != "go" || r.Stream || r.Model != "m" {
			t.Errorf("%+v", r)
		}
	}
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	srv := llmtest.New(t)
	if status, body := ask(t, srv, "/chat/completions", `{`); status != 400 || !strings.Contains(body, "no request") {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := ask(t, srv, "/elsewhere", `{}`); status != 404 {
		t.Errorf("%d", status)
	}
	srv.RequireKey("k")
	if status, body := ask(t, srv, "/messages", `{"model":"m"}`); status != 401 || !strings.Contains(body, `"type":"error"`) {
		t.Errorf("%d %s", status, body)
	}
}

func TestQueueTitlesAndMatches(t *testing.T) {
	t.Parallel()
	srv := llmtest.New(t)
	m := model(t, srv)
	srv.Enqueue(
		llmtest.Turn{Steps: []llmtest.Step{llmtest.Text("for b")}, Match: func(r llmtest.Request) bool { return r.Session == "b" }},
		llmtest.Turn{Steps: []llmtest.Step{llmtest.Text("my title")}, Title: true},
		llmtest.Say("first"),
	)
	call := llm.Call{Messages: []llm.Message{llm.UserText("hello")}, SessionKey: "a"}
	title := call
	title.System = []string{"You are a title generator."}
	other := call
	other.SessionKey = "b"
	for _, step := range []struct {
		call llm.Call
		want string
	}{{call, "first"}, {title, "my title"}, {title, llmtest.TitleText}, {other, "for b"}, {other, "ok"}} {
		if got := text(t, m, step.call); got != step.want {
			t.Errorf("got %q, want %q", got, step.want)
		}
	}
	if srv.Pending() != 0 || len(srv.Requests()) != 3 || !srv.Titles()[0].Title {
		t.Errorf("%d pending", srv.Pending())
	}
}

func TestHangReleaseAndCounters(t *testing.T) {
	t.Parallel()
	srv := llmtest.New(t)
	m := model(t, srv)
	var wg sync.WaitGroup
	for _, session := range []string{"a", "a", "b"} {
		wg.Go(func() {
			text(t, m, llm.Call{Messages: []llm.Message{llm.UserText("hang")}, SessionKey: session})
		})
	}
	if err := srv.WaitHanging(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	if a := srv.Active(); a["a"] != 2 || a["b"] != 1 {
		t.Errorf("active %v", a)
	}
	srv.Release()
	wg.Wait()
	if err := srv.WaitRequests(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	if srv.MaxConcurrent("a") != 2 || srv.MaxConcurrent("b") != 1 || srv.MaxConcurrent("c") != 0 {
		t.Errorf("most %d, %d", srv.MaxConcurrent("a"), srv.MaxConcurrent("b"))
	}
}

func TestSlowAnswers(t *testing.T) {
	t.Parallel()
	srv := llmtest.New(t)
	m := model(t, srv)
	srv.Enqueue(llmtest.Turn{
		Steps: []llmtest.Step{llmtest.Text("0123456789"), llmtest.Pause(10 * time.Millisecond), llmtest.Text("x")},
		Delay: 10 * time.Millisecond, ChunkDelay: 10 * time.Millisecond, Chunk: 2,
	})
	start := time.Now()
	if got := text(t, m, llm.Call{Messages: []llm.Message{llm.UserText("go")}}); got != "0123456789x" {
		t.Errorf("%q", got)
	}
	if d := time.Since(start); d < 70*time.Millisecond {
		t.Errorf("took only %v", d)
	}
}

func TestCloseEndsHangingRequests(t *testing.T) {
	t.Parallel()
	srv := llmtest.Start()
	m := model(t, srv)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, err := range m.Stream(t.Context(), llm.Call{Messages: []llm.Message{llm.UserText("hang")}}) {
			_ = err
		}
	}()
	if err := srv.WaitHanging(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	srv.Close()
	<-done
}
