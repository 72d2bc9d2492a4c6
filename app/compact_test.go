package app_test

import (
	"context"
	"net/http"
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

// compacted is the answer to a wish to compact.
type compacted struct {
	TurnID string `json:"turnID"`
	Queued bool   `json:"queued"`
}

func compact(s *apptest.Server, ses session.Session) compacted {
	return apptest.Data[compacted](s, "POST", "/api/session/"+string(ses.ID)+"/compact", map[string]any{})
}

// last gives the newest request that is for no title and no summary.
func last(s *apptest.Server) llmtest.Request {
	var out llmtest.Request
	for _, r := range s.Model.Requests() {
		if !r.Summary {
			out = r
		}
	}
	return out
}

func said(r llmtest.Request) string {
	var all []string
	for _, m := range r.Messages {
		all = append(all, m.Texts...)
	}
	return strings.Join(all, "|")
}

func summaries(s *apptest.Server) int {
	n := 0
	for _, r := range s.Model.Requests() {
		if r.Summary {
			n++
		}
	}
	return n
}

// TestCompactOnDemand: nothing to compact, then an idle session: the next request
// begins with the summary, and session.context is what was sent.
func TestCompactOnDemand(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		s := apptest.Start(t, o)
		ses := s.Session("")
		if got := compact(s, ses); got != (compacted{}) {
			t.Errorf("an empty session: %+v", got)
		}
		s.Prompt(ses, "say:first words")
		s.Wait(ses)
		s.Prompt(ses, "say:second words")
		s.Wait(ses)
		stream := s.Events(apptest.Query("session", string(ses.ID)))
		got := compact(s, ses)
		if got.TurnID == "" || got.Queued {
			t.Fatalf("%+v", got)
		}
		stream.Until("session.compacted")
		if w := s.Wait(ses); w.Outcome != "completed" || w.TurnID != got.TurnID {
			t.Fatalf("%+v", w)
		}
		if row := apptest.Data[session.Session](s, "GET", "/api/session/"+string(ses.ID), nil); row.Time.Compacting != 0 {
			t.Errorf("still compacting: %+v", row.Time)
		}
		s.Prompt(ses, "say:third words")
		s.Wait(ses)
		if all := said(last(s)); strings.Contains(all, "first words") || !strings.Contains(all, llmtest.SummaryText) || !strings.Contains(all, "third words") {
			t.Errorf("the model saw %q", all)
		}
		context := s.Messages(ses)
		if len(context) < 4 || context[0].Parts[0].Type != "compaction" || context[1].Parts[0].Text != llmtest.SummaryText {
			t.Errorf("context: %+v", context)
		}
		list := apptest.Data[[]apptest.Message](s, "GET", "/api/session/"+string(ses.ID)+"/message", nil)
		if len(list) != 8 {
			t.Errorf("%d messages are kept", len(list))
		}
	})
}

// TestCompactWhileBusy: the wish waits for the next step boundary, is not stored
// twice, and an interrupt during the summary leaves the old conversation.
func TestCompactWhileBusy(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	ses := s.Session("")
	s.Prompt(ses, "say:before")
	s.Wait(ses)
	s.Model.Enqueue(turnWith("working", "bash", `{"command":"true"}`), llmtest.Turn{Steps: []llmtest.Step{llmtest.Text("done")}})
	s.Model.Enqueue(llmtest.Turn{Summary: true, Steps: []llmtest.Step{llmtest.Hang()}})
	s.Prompt(ses, "hang")
	first, again := compact(s, ses), compact(s, ses)
	if first.TurnID == "" || again.TurnID != first.TurnID {
		t.Fatalf("%+v, then %+v", first, again)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := s.Model.WaitHanging(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if got := s.Do("POST", "/api/session/"+string(ses.ID)+"/interrupt", map[string]any{}); got.Status/100 != 2 {
		t.Fatalf("%d", got.Status)
	}
	if w := s.Wait(ses); w.Outcome != "cancelled" {
		t.Fatalf("%+v", w)
	}
	s.Prompt(ses, "say:after")
	s.Wait(ses)
	if all := said(last(s)); !strings.Contains(all, "before") {
		t.Errorf("the old conversation is gone: %q", all)
	}
	if row := apptest.Data[session.Session](s, "GET", "/api/session/"+string(ses.ID), nil); row.Time.Compacting != 0 {
		t.Errorf("still compacting: %+v", row.Time)
	}
}

// TestCompactByItself: a conversation that passes the threshold is summarised
// before the next request, and a setting that forbids it is obeyed.
func TestCompactByItself(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]string{"on": `{"permission": {"*": "allow"}}`, "off": `{"compaction": {"auto": false}}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apptest.Start(t, apptest.Options{Context: 8000, Config: config})
			ses := s.Session("")
			s.Model.Enqueue(llmtest.Turn{Steps: []llmtest.Step{llmtest.Text("one")}, Usage: llmtest.Usage{Input: 7000, Output: 100}})
			s.Prompt(ses, "the beginning "+strings.Repeat("words ", 3000))
			s.Wait(ses)
			s.Prompt(ses, "say:two")
			if w := s.Wait(ses); w.Outcome != "completed" {
				t.Fatalf("%+v", w)
			}
			compacted := !strings.Contains(said(last(s)), "the beginning")
			if want := name == "on"; compacted != want || summaries(s) > 0 != want {
				t.Errorf("compacted: %v, %d summaries", compacted, summaries(s))
			}
		})
	}
}

// TestCompactOnOverflow: the provider says that the request is too long. The
// conversation is compacted and the request sent again; where that never helps
// the turn ends with one error that names the limit.
func TestCompactOnOverflow(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{Context: 100_000})
	ses := s.Session("")
	for _, text := range []string{"say:one", "say:two", "say:three"} {
		s.Prompt(ses, text+" "+strings.Repeat("word ", 200))
		s.Wait(ses)
	}
	s.Model.Enqueue(llmtest.Overflow())
	s.Prompt(ses, "say:fits now")
	if w := s.Wait(ses); w.Outcome != "completed" || summaries(s) != 1 {
		t.Fatalf("%+v, %d summaries", w, summaries(s))
	}
	for range 40 {
		s.Model.Enqueue(llmtest.Overflow())
	}
	s.Prompt(ses, "say:never fits")
	w := s.Wait(ses)
	if w.Outcome != "failed" || w.Error == nil || !strings.Contains(w.Error.Data.Message, "100000 tokens") {
		t.Fatalf("%+v", w.Error)
	}
	if n := summaries(s); n > 12 {
		t.Errorf("%d summaries in vain", n)
	}
}

// TestDoomLoop: the third equal call in a row asks, whatever is allowed else.
func TestDoomLoop(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{Config: `{"permission": {"bash": "allow"}}`})
	ses := s.Session("")
	for range 3 {
		s.Model.Enqueue(turnWith("again", "bash", `{"command":"true"}`))
	}
	stream := s.Events(apptest.Query("session", string(ses.ID)))
	s.Prompt(ses, "go")
	asked := stream.Until("permission.asked")
	req := apptest.Payload[rule.Request](s, asked[len(asked)-1])
	if req.Permission != "doom_loop" || req.Metadata["tool"] != "bash" {
		t.Fatalf("%+v", req)
	}
	if n := len(tools(s.Messages(ses))); n != 3 {
		t.Errorf("asked at call %d", n)
	}
	if got := s.Do("POST", "/api/permission/"+string(req.ID)+"/reply", map[string]any{"response": "reject", "message": "stop it"}); got.Status != 204 {
		t.Fatalf("%d", got.Status)
	}
	if w := s.Wait(ses); w.Outcome != "completed" {
		t.Errorf("%+v", w)
	}
	if calls := tools(s.Messages(ses)); calls[2].State.Status != "error" || !strings.Contains(calls[2].State.Error, "stop it") {
		t.Errorf("%+v", calls[2].State)
	}
}

func title(s *apptest.Server, ses session.Session) string {
	return apptest.Data[session.Session](s, "GET", "/api/session/"+string(ses.ID), nil).Title
}

// TestSC20_Title: the first words are the title at once; a title that could not
// be made is made in a later turn; one that a person chose is never replaced.
func TestSC20_Title(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	ses := s.Session("")
	s.Model.Enqueue(llmtest.Turn{Title: true, Status: http.StatusInternalServerError})
	s.Prompt(ses, "say:the first words")
	s.Wait(ses)
	if err := s.Model.WaitTitles(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if got := title(s, ses); got != "say:the first words" {
		t.Errorf("title %q", got)
	}
	eventually(t, "a second try", func() bool {
		s.Prompt(ses, "say:more")
		s.Wait(ses)
		return title(s, ses) == llmtest.TitleText
	})

	manual := s.Session("")
	s.Model.Enqueue(llmtest.Turn{Title: true, Delay: 300 * time.Millisecond, Steps: []llmtest.Step{llmtest.Text("too late")}})
	asked := len(s.Model.Titles())
	s.Prompt(manual, "say:something")
	if err := s.Model.WaitTitles(t.Context(), asked+1); err != nil {
		t.Fatal(err)
	}
	if got := s.Do("PATCH", "/api/session/"+string(manual.ID), map[string]any{"title": "mine"}); got.Status != 200 {
		t.Fatalf("%d", got.Status)
	}
	for range 2 {
		s.Prompt(manual, "say:more")
		s.Wait(manual)
	}
	<-time.After(400 * time.Millisecond) // the late title has come by now
	if got := title(s, manual); got != "mine" {
		t.Errorf("a chosen title became %q", got)
	}
}

// TestSC26_RetryPolicy: trouble that passes, trouble that does not, a refusal of
// the content, and a provider that asks for a day.
func TestSC26_RetryPolicy(t *testing.T) {
	t.Parallel()
	quick := func(c *app.Config) { c.Retry = llm.RetryPolicy{Base: 20 * time.Millisecond, Max: 2 * time.Second} }
	s := apptest.Start(t, apptest.Options{Change: quick})
	busy := llmtest.Turn{Status: http.StatusTooManyRequests, RetryAfter: "1"}
	for name, tt := range map[string]struct {
		turns   []llmtest.Turn
		outcome string
		retries int
		message string
	}{
		"passes":       {[]llmtest.Turn{busy, busy}, "completed", 2, ""},
		"stays":        {many(10, llmtest.Turn{Status: http.StatusServiceUnavailable}), "failed", 4, ""},
		"content":      {many(10, llmtest.Turn{Status: http.StatusInternalServerError, ErrorCode: "content_filter", Message: "flagged"}), "failed", 4, ""},
		"asks for day": {[]llmtest.Turn{{Status: http.StatusTooManyRequests, RetryAfter: "86400"}}, "failed", 0, "24h0m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ses := s.Session("")
			for _, turn := range tt.turns {
				turn.Match = func(r llmtest.Request) bool { return r.Session == string(ses.ID) }
				s.Model.Enqueue(turn)
			}
			stream := s.Events(apptest.Query("session", string(ses.ID)))
			s.Prompt(ses, "say:ok")
			w := s.Wait(ses)
			if w.Outcome != tt.outcome || tt.message != "" && !strings.Contains(w.Error.Data.Message, tt.message) {
				t.Errorf("%+v %+v", w, w.Error)
			}
			var waits []session.Status
			for _, e := range stream.Until("session.idle") {
				if e.Type == "session.status" {
					if p := apptest.Payload[session.StatusPayload](s, e); p.Status.Type == "retry" {
						waits = append(waits, p.Status)
					}
				}
			}
			if len(waits) > 4 || tt.outcome == "completed" && len(waits) != tt.retries || name == "stays" && len(waits) != tt.retries {
				t.Errorf("%d retries: %+v", len(waits), waits)
			}
			for i, r := range waits {
				if r.Attempt != i+1 || r.Next == 0 || r.Message == "" {
					t.Errorf("retry %d: %+v", i, r)
				}
			}
		})
	}
}

func many(n int, t llmtest.Turn) []llmtest.Turn {
	out := make([]llmtest.Turn, n)
	for i := range out {
		out[i] = t
	}
	return out
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
