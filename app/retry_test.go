package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/app"
	"github.com/switchyard-dev/switchyard/app/apptest"
	"github.com/switchyard-dev/switchyard/llm"
	"github.com/switchyard-dev/switchyard/llm/llmtest"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/session"
)

// withRetry changes how long turns wait for a provider.
func withRetry(base, longest time.Duration) apptest.Options {
	return apptest.Options{Change: func(c *app.Config) { c.Retry = llm.RetryPolicy{Base: base, Max: longest} }}
}

// waits gives the retries that a stream told, with how long each was to wait.
func waits(s *apptest.Server, events []apptest.Event) (statuses []session.Status, delays []time.Duration) {
	for _, e := range events {
		if e.Type != "session.status" {
			continue
		}
		if st := apptest.Payload[session.StatusPayload](s, e).Status; st.Type == "retry" {
			statuses = append(statuses, st)
			delays = append(delays, time.Duration(st.Next-e.Time)*time.Millisecond)
		}
	}
	return statuses, delays
}

func TestSC26_RetryThenSuccess(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, withRetry(10*time.Millisecond, 5*time.Second))
	ses := s.Session("")
	stream := s.Events("")
	limited := llmtest.Turn{Status: http.StatusTooManyRequests, RetryAfter: "1"}
	s.Model.Enqueue(limited, limited)
	converse(t, s, ses, "say:ok")
	told, _ := waits(s, stream.Until("session.idle"))
	requests := s.Model.Requests()
	if len(told) != 2 || len(requests) != 3 || told[0].Attempt != 1 || told[1].Attempt != 2 || told[0].Message == "" {
		t.Fatalf("%d requests, told %+v", len(requests), told)
	}
	for i := range told {
		if gap := requests[i+1].Time.Sub(requests[i].Time); gap < time.Second {
			t.Errorf("attempt %d came %s after the one before, the provider asked to wait 1s", i+2, gap)
		}
	}
	if got := s.Text(ses); got != "ok" {
		t.Fatalf("%q: what failed before its first word is no message", got)
	}
}

func TestSC26_RetriesAreBounded(t *testing.T) {
	t.Parallel()
	const base = 50 * time.Millisecond
	s := apptest.Start(t, withRetry(base, 30*time.Second))
	ses := s.Session("")
	stream := s.Events("")
	s.Prompt(ses, "http:503")
	if w := s.Wait(ses); w.Outcome != "failed" || w.Error.Data.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("%+v", w)
	}
	events := stream.Until("session.idle")
	told, delays := waits(s, events)
	requests := s.Model.Requests()
	if len(requests) != 5 || len(told) != 4 {
		t.Fatalf("%d requests, %d retries", len(requests), len(told))
	}
	for i := range told {
		// Each wait is at least the doubled one before without its jitter, and the
		// next attempt does not come before the time that was told.
		if gap := requests[i+1].Time.Sub(requests[i].Time); gap < base<<i || delays[i] > 30*time.Second {
			t.Errorf("wait %d: %s between the requests, %s told", i+1, gap, delays[i])
		}
		if told[i].Attempt != i+1 || requests[i+1].Time.UnixMilli() < told[i].Next {
			t.Errorf("wait %d: %+v, tried again at %d", i+1, told[i], requests[i+1].Time.UnixMilli())
		}
	}
	if got := kinds(events[len(events)-3:]); strings.Join(got, " ") != "session.error session.status session.idle" {
		t.Fatalf("the turn ends with %v", got)
	}
}

func TestSC26_NoRetry(t *testing.T) {
	t.Parallel()
	filter := `{"error": {"message": "The response was filtered by the content management policy.", "code": "content_filter"}}`
	for name, tt := range map[string]struct {
		turn      llmtest.Turn
		kind, say string
	}{
		"a content filter in a 500": {llmtest.Turn{Status: 500, Body: filter}, "ContentFilterError", "content filter"},
		"a wait of a day":           {llmtest.Turn{Status: 429, RetryAfter: "86400"}, "APIError", "24h0m0s"},
		"a wrong key":               {llmtest.Turn{Status: 401}, "ProviderAuthError", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apptest.Start(t, withRetry(10*time.Millisecond, 30*time.Second))
			ses := s.Session("")
			s.Model.Enqueue(tt.turn)
			s.Prompt(ses, "say:never")
			w := s.Wait(ses)
			if w.Outcome != "failed" || w.Error.Name != tt.kind || strings.Count(w.Error.Data.Message, tt.say) == 0 {
				t.Fatalf("%+v", w)
			}
			if strings.Count(w.Error.Data.Message, "asks to wait") > 1 {
				t.Fatalf("told twice: %s", w.Error.Data.Message)
			}
			if n := len(s.Model.Requests()); n != 1 {
				t.Fatalf("%d requests", n)
			}
		})
	}
}

// An answer that breaks off, says nothing or cannot be read is asked for again;
// a call whose input was cut off never runs.
func TestBrokenAnswersAreTriedAgain(t *testing.T) {
	t.Parallel()
	garbled := http.Header{"Content-Type": {"text/event-stream"}}
	cutCall := llmtest.PartialCall("write", `{"path":"cut.txt","content":"par`)
	for name, tt := range map[string]struct {
		turn     llmtest.Turn
		messages string
	}{
		"empty":              {llmtest.Turn{Steps: []llmtest.Step{llmtest.Text("")}, Usage: llmtest.Usage{Input: 10}}, "u:say:whole a:whole"},
		"no stream":          {llmtest.Turn{Steps: []llmtest.Step{llmtest.Text("")}, Cut: true}, "u:say:whole a:whole"},
		"cut in a text":      {llmtest.Turn{Steps: []llmtest.Step{llmtest.Text("half")}, Cut: true}, "u:say:whole a:half! a:whole"},
		"connection dropped": {llmtest.Turn{Steps: []llmtest.Step{llmtest.Text("half")}, Abort: true}, "u:say:whole a:half! a:whole"},
		"cut in a call":      {llmtest.Turn{Steps: []llmtest.Step{cutCall}, Cut: true}, "u:say:whole a:write! a:whole"},
		"garbled":            {llmtest.Turn{Status: 200, Header: garbled, Body: "data: {\"choices\": [\n\n"}, "u:say:whole a:whole"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apptest.Start(t, apptest.Options{})
			ses := s.Session("")
			s.Model.Enqueue(tt.turn)
			converse(t, s, ses, "say:whole")
			messages := s.Messages(ses)
			if got := shape(messages); got != tt.messages {
				t.Fatal(got)
			}
			for _, m := range messages {
				for _, p := range m.Parts {
					if p.Type == "tool" && (p.State.Status != "error" || p.State.Metadata["reason"] == nil) {
						t.Fatalf("%+v", p)
					}
				}
			}
			if _, err := os.Stat(filepath.Join(s.Directory, "cut.txt")); err == nil {
				t.Fatal("a call ran that was cut off")
			}
			// Neither the model sees what came of the attempts that failed.
			converse(t, s, ses, "say:next")
			if got := conversationOf(last(s)); strings.Contains(got, "half") {
				t.Fatalf("sent %s", got)
			}
		})
	}
}

// Three equal calls in a row are asked about before the third one runs.
func TestDoomLoopRules(t *testing.T) {
	t.Parallel()
	same := func(input string) llmtest.Turn {
		return llmtest.Turn{Steps: []llmtest.Step{llmtest.Call("list", input)}}
	}
	start := func(t *testing.T, rules string) (*apptest.Server, session.Session) {
		t.Helper()
		s := apptest.Start(t, apptest.Options{Config: `{"permission": ` + rules + `}`})
		s.Model.Enqueue(same(`{"path":"."}`), same(`{ "path": "." }`), same(`{"path":"."}`), llmtest.Say("done"))
		return s, s.Session("")
	}
	outcomes := func(s *apptest.Server, ses session.Session) string {
		var out []string
		for _, m := range s.Messages(ses) {
			for _, p := range m.Parts {
				if p.Type == "tool" {
					out = append(out, p.State.Status)
				}
			}
		}
		return strings.Join(out, " ")
	}
	t.Run("asks by default", func(t *testing.T) {
		t.Parallel()
		s, ses := start(t, `{}`)
		stream := s.Events("")
		s.Prompt(ses, "go round")
		asked := stream.Until("permission.asked")
		req := apptest.Payload[rule.Request](s, asked[len(asked)-1])
		if req.Permission != "doom_loop" || req.Patterns[0] != "list" || req.Always[0] != "list" || outcomes(s, ses) != "completed completed pending" {
			t.Fatalf("%+v after %s", req, outcomes(s, ses))
		}
		s.Do("POST", "/api/permission/"+string(req.ID)+"/reply", map[string]any{"response": "once"})
		if w := s.Wait(ses); w.Outcome != "completed" || outcomes(s, ses) != "completed completed completed" {
			t.Fatalf("%+v %s", w, outcomes(s, ses))
		}
	})
	t.Run("a rule allows it", func(t *testing.T) {
		t.Parallel()
		s, ses := start(t, `{"doom_loop": "allow"}`)
		converse(t, s, ses, "go round")
		if got := outcomes(s, ses); got != "completed completed completed" {
			t.Fatal(got)
		}
	})
	t.Run("a rule denies it", func(t *testing.T) {
		t.Parallel()
		s, ses := start(t, `{"doom_loop": "deny"}`)
		converse(t, s, ses, "go round")
		if got := outcomes(s, ses); got != "completed completed error" {
			t.Fatal(got)
		}
	})
	t.Run("three in one answer", func(t *testing.T) {
		t.Parallel()
		s := apptest.Start(t, apptest.Options{Config: `{"permission": {"doom_loop": "deny"}}`})
		ses := s.Session("")
		call := llmtest.Call("list", `{"path":"."}`)
		s.Model.Enqueue(llmtest.Turn{Steps: []llmtest.Step{call, call, call}})
		converse(t, s, ses, "go round")
		if got := outcomes(s, ses); got != "completed completed error" {
			t.Fatal(got)
		}
		converse(t, s, ses, `tool:list:{"path":"."}`) // another turn begins anew
	})
}

// TestSC26_InterruptDuringADelay: a long wait for the provider ends at once.
func TestSC26_InterruptDuringADelay(t *testing.T) {
	t.Parallel()
	patient := func(c *app.Config) { c.Retry = llm.RetryPolicy{Max: 30 * time.Second} }
	s := apptest.Start(t, apptest.Options{Change: patient})
	ses := s.Session("")
	s.Model.Enqueue(llmtest.Turn{Status: http.StatusTooManyRequests, RetryAfter: "25"})
	stream := s.Events(apptest.Query("session", string(ses.ID)))
	s.Prompt(ses, "say:ok")
	eventually(t, "a retry", func() bool {
		active := apptest.Data[map[string]session.Status](s, "GET", "/api/session/active"+apptest.Query("scope", "server"), nil)
		return active[string(ses.ID)].Type == "retry" && active[string(ses.ID)].Attempt == 1
	})
	begun := time.Now()
	s.Do("POST", "/api/session/"+string(ses.ID)+"/interrupt", map[string]any{})
	stream.Until("session.idle")
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("idle after %v", took)
	}
	if w := s.Wait(ses); w.Outcome != "cancelled" {
		t.Errorf("%+v", w)
	}
}
