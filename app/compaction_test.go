package app_test

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/app/apptest"
	"github.com/switchyard-dev/switchyard/integrity"
	"github.com/switchyard-dev/switchyard/llm/llmtest"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
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

// compacting is the configuration of the tests: one whole turn may stay.
const compacting = `{"permission": {"*": "allow"}, "compaction": {"tail_turns": 1, "preserve_recent_tokens": 100, "reserved": 0}}`

// shape tells a conversation in words: who says what, oldest first.
func shape(messages []apptest.Message) string {
	var out []string
	for _, m := range messages {
		word := m.Info.Role[:1]
		for _, p := range m.Parts {
			switch p.Type {
			case "text":
				word += ":" + p.Text
			case "compaction":
				word += ":compaction"
			case "tool":
				word += ":" + p.Tool
			}
		}
		if m.Info.Error != nil {
			word += "!"
		}
		out = append(out, word)
	}
	return strings.Join(out, " ")
}

func compactedEvents(events []apptest.Event) (n int) {
	for _, e := range events {
		if e.Type == "session.compacted" {
			n++
		}
	}
	return n
}

// current reads a session.
func current(s *apptest.Server, ses session.Session) session.Session {
	return apptest.Data[session.Session](s, "GET", "/api/session/"+string(ses.ID), nil)
}

// converse runs prompts to their ends.
func converse(t *testing.T, s *apptest.Server, ses session.Session, texts ...string) {
	t.Helper()
	for _, text := range texts {
		s.Prompt(ses, text)
		if got := s.Wait(ses); got.Outcome != "completed" {
			t.Fatalf("%s: %+v", text, got)
		}
	}
}

// summaryRequests gives the requests for summaries.
func summaryRequests(s *apptest.Server) (out []llmtest.Request) {
	for _, r := range s.Model.Requests() {
		if r.Summary {
			out = append(out, r)
		}
	}
	return out
}

// conversationOf tells what a request says in words.
func conversationOf(r llmtest.Request) string {
	var out []string
	for _, m := range r.Messages {
		out = append(out, m.Role[:1]+":"+strings.Join(append(m.Texts, m.Results...), "+"))
	}
	return strings.Join(out, " ")
}

func TestCompactOnWish(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		o.Config = compacting
		s := apptest.Start(t, o)
		ses := s.Session("")
		if got := compact(s, ses); got != (compacted{}) {
			t.Fatalf("an empty session: %+v", got)
		}
		converse(t, s, ses, "say:one", "say:two")
		stream := s.Events("")
		got := compact(s, ses)
		if got.TurnID == "" || got.Queued {
			t.Fatalf("%+v", got)
		}
		if w := s.Wait(ses); w.Outcome != "completed" || w.TurnID != got.TurnID {
			t.Fatalf("%+v", w)
		}
		seen := stream.Until("session.idle")
		if compactedEvents(seen) != 1 || apptest.Payload[session.InboxItem](s, seen[1]).Kind != "compact" {
			t.Fatalf("events %v", kinds(seen))
		}
		messages := s.Messages(ses)
		if got := shape(messages); got != "u:compaction a:Scripted summary u:say:two a:two" {
			t.Fatalf("the model sees %s", got)
		}
		mark := messages[0].Parts[0]
		if mark.Auto || mark.Tail != messages[2].Info.ID || messages[1].Info.Sum != true || messages[0].Info.Turn != got.TurnID {
			t.Fatalf("%+v", messages[:2])
		}
		if asked := conversationOf(summaryRequests(s)[0]); !strings.Contains(asked, "one") || strings.Contains(asked, "two") {
			t.Fatalf("to sum up: %s", asked)
		}
		if len(summaryRequests(s)[0].Tools) != 0 {
			t.Fatal("a summary is offered tools")
		}
		// The next prompt goes out with the summary, the tail and nothing else.
		converse(t, s, ses, "say:three")
		if got := conversationOf(last(s)); got != "u:Sum up the conversation so far. a:Scripted summary u:say:two a:two u:say:three" {
			t.Fatalf("sent %s", got)
		}
		// All messages are still listed, and a second compaction sums up the first.
		page := apptest.List[apptest.Message](s, "/api/session/"+string(ses.ID)+"/message?order=asc")
		if got := shape(page.Data); got != "u:say:one a:one u:say:two a:two u:compaction a:Scripted summary u:say:three a:three" {
			t.Fatalf("the session has %s", got)
		}
		compact(s, ses)
		s.Wait(ses)
		if got := shape(s.Messages(ses)); got != "u:compaction a:Scripted summary u:say:three a:three" {
			t.Fatalf("after the second: %s", got)
		}
		if asked := conversationOf(newest(summaryRequests(s))); !strings.Contains(asked, "Scripted summary") || !strings.Contains(asked, "two") {
			t.Fatalf("to sum up again: %s", asked)
		}
		if now := current(s, ses); now.Time.Compacting != 0 || now.Tokens.Output != 25 {
			t.Fatalf("%+v", now)
		}
	})
}

func newest(requests []llmtest.Request) llmtest.Request { return requests[len(requests)-1] }

func kinds(events []apptest.Event) (out []string) {
	for _, e := range events {
		out = append(out, e.Type)
	}
	return out
}

func TestCompactWholeShortConversation(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	ses := s.Session("")
	converse(t, s, ses, "say:one")
	if got := compact(s, ses); got.TurnID == "" {
		t.Fatalf("%+v", got)
	}
	s.Wait(ses)
	if got := shape(s.Messages(ses)); got != "u:compaction a:Scripted summary" {
		t.Fatal(got)
	}
	if got := compact(s, ses); got != (compacted{}) {
		t.Fatalf("a summary alone: %+v", got)
	}
	converse(t, s, ses, "say:two")
}

func TestCompactJoinsTheRunningTurn(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{Config: compacting})
	ses := s.Session("")
	converse(t, s, ses, "say:one")
	s.Model.Enqueue(llmtest.Turn{Steps: []llmtest.Step{llmtest.Hang(), llmtest.Call("list", `{"path":"."}`)}})
	turn := s.Prompt(ses, "work")
	hanging(t, s, 1)
	stream := s.Events("")
	for range 3 { // repeating it changes nothing
		if got := compact(s, ses); got.TurnID != turn.TurnID || !got.Queued {
			t.Fatalf("%+v", got)
		}
	}
	s.Model.Release()
	if w := s.Wait(ses); w.Outcome != "completed" || w.TurnID != turn.TurnID {
		t.Fatalf("%+v", w)
	}
	if n := compactedEvents(stream.Until("session.idle")); n != 1 || len(summaryRequests(s)) != 1 {
		t.Fatalf("compacted %d times with %d requests", n, len(summaryRequests(s)))
	}
	got := shape(s.Messages(ses))
	if !strings.HasPrefix(got, "u:compaction a:Scripted summary u:work a:list a:done:") {
		t.Fatal(got)
	}
}

// A wish that comes during the last step is obeyed in the same turn, and makes no
// further answer.
func TestCompactAtTheEndOfATurn(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{Config: compacting})
	ses := s.Session("")
	converse(t, s, ses, "say:one")
	s.Model.Enqueue(llmtest.Turn{Steps: []llmtest.Step{llmtest.Hang(), llmtest.Text("two")}})
	turn := s.Prompt(ses, "work")
	hanging(t, s, 1)
	compact(s, ses)
	s.Model.Release()
	if w := s.Wait(ses); w.Outcome != "completed" || w.TurnID != turn.TurnID {
		t.Fatalf("%+v", w)
	}
	if got := shape(s.Messages(ses)); got != "u:compaction a:Scripted summary u:work a:two" {
		t.Fatal(got)
	}
}

func hanging(t *testing.T, s *apptest.Server, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.Model.WaitHanging(ctx, n); err != nil {
		t.Fatal(err)
	}
}

// Until the summary is whole the old conversation is valid, whatever ends the
// compaction.
func TestCompactInterruptedChangesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		o.Config = compacting
		s := apptest.Start(t, o)
		ses := s.Session("")
		converse(t, s, ses, "say:one", "say:two")
		before := shape(s.Messages(ses))
		s.Model.Enqueue(llmtest.Turn{Summary: true, Steps: []llmtest.Step{llmtest.Text("half"), llmtest.Hang()}})
		got := compact(s, ses)
		hanging(t, s, 1)
		if now := current(s, ses); now.Time.Compacting == 0 {
			t.Fatal("time.compacting is not set")
		}
		if shape(s.Messages(ses)) != before {
			t.Fatal("the conversation changed before the summary was whole")
		}
		s.Do("POST", "/api/session/"+string(ses.ID)+"/interrupt", nil)
		if w := s.Wait(ses); w.Outcome != "cancelled" || w.TurnID != got.TurnID {
			t.Fatalf("%+v", w)
		}
		if now := current(s, ses); now.Time.Compacting != 0 || shape(s.Messages(ses)) != before {
			t.Fatalf("%+v %s", now.Time, shape(s.Messages(ses)))
		}
		converse(t, s, ses, "say:three") // and the wish is gone
		if got := shape(s.Messages(ses)); got != before+" u:say:three a:three" || len(summaryRequests(s)) != 1 {
			t.Fatal(got)
		}
	})
}

func TestCompactSurvivesARestart(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{Config: compacting})
	ses := s.Session("")
	converse(t, s, ses, "say:one", "say:two")
	s.Model.Enqueue(llmtest.Turn{Summary: true, Steps: []llmtest.Step{llmtest.Hang()}})
	compact(s, ses)
	hanging(t, s, 1)
	again := s.Restart(apptest.Options{Config: compacting})
	again.Wait(ses)
	if got := shape(again.Messages(ses)); got != "u:compaction a:Scripted summary u:say:two a:two" {
		t.Fatal(got)
	}
	if now := current(again, ses); now.Time.Compacting != 0 {
		t.Fatal("time.compacting is still set")
	}
}

func TestCompactFails(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{Config: compacting})
	ses := s.Session("")
	converse(t, s, ses, "say:one", "say:two")
	before := shape(s.Messages(ses))
	s.Model.Enqueue(llmtest.Turn{Summary: true, Status: http.StatusUnauthorized})
	compact(s, ses)
	if w := s.Wait(ses); w.Outcome != "failed" || w.Error == nil || w.Error.Data.StatusCode != http.StatusUnauthorized {
		t.Fatalf("%+v", w)
	}
	if shape(s.Messages(ses)) != before || current(s, ses).Time.Compacting != 0 {
		t.Fatal("a failed compaction changed the session")
	}
	// While an answer is due, a compaction that fails does not keep it from coming.
	s.Model.Enqueue(llmtest.Turn{Steps: []llmtest.Step{llmtest.Hang(), llmtest.Call("list", `{"path":"."}`)}})
	s.Model.Enqueue(llmtest.Turn{Summary: true, Status: http.StatusUnauthorized})
	s.Prompt(ses, "work")
	hanging(t, s, 1)
	compact(s, ses)
	s.Model.Release()
	if w := s.Wait(ses); w.Outcome != "completed" {
		t.Fatalf("%+v", w)
	}
	if got := shape(s.Messages(ses)); !strings.HasPrefix(got, before+" u:work a:list a:done:") {
		t.Fatal(got)
	}
	converse(t, s, ses, "say:after")
	if n := len(summaryRequests(s)); n != 2 {
		t.Fatalf("%d requests for a summary", n)
	}
}

// A wish that is taken back while its summary is made changes nothing.
func TestCompactTakenBack(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{Config: compacting})
	ses := s.Session("")
	converse(t, s, ses, "say:one", "say:two")
	before := shape(s.Messages(ses))
	s.Model.Enqueue(llmtest.Turn{Summary: true, Steps: []llmtest.Step{llmtest.Hang()}})
	got := compact(s, ses)
	hanging(t, s, 1)
	inbox := "/api/session/" + string(ses.ID) + "/inbox"
	queue := apptest.Data[[]session.Queued](s, "GET", inbox, nil)
	if len(queue) != 1 || queue[0].Kind != "compact" {
		t.Fatalf("%+v", queue)
	}
	if a := s.Do("DELETE", inbox+"/"+string(queue[0].MessageID), nil); a.Status != http.StatusNoContent {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	s.Model.Release()
	if w := s.Wait(ses); w.Outcome != "completed" || w.TurnID != got.TurnID {
		t.Fatalf("%+v", w)
	}
	if shape(s.Messages(ses)) != before || current(s, ses).Time.Compacting != 0 {
		t.Fatal("the conversation changed")
	}
	compact(s, ses)
	s.Wait(ses)
	converse(t, s, ses, "say:three")
	s.Stop()
	db, err := store.Open(t.Context(), store.Config{URL: filepath.Join(s.State, "switchyard.db"), Owner: "test"})
	if err != nil {
		t.Fatal(err)
	}
	found, err := store.Get(t.Context(), db, func(ctx context.Context, r store.Reader) ([]integrity.Finding, error) {
		return integrity.Check(ctx, r, integrity.Options{})
	})
	if err != nil || len(found) != 0 {
		t.Errorf("%v %v", found, err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
