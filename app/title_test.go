package app_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/app/apptest"
	"github.com/switchyard-dev/switchyard/llm/llmtest"
	"github.com/switchyard-dev/switchyard/session"
)

func titlesAsked(t *testing.T, s *apptest.Server, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.Model.WaitTitles(ctx, n); err != nil {
		t.Fatal(err)
	}
}

// titled waits until a session has a title.
func titled(t *testing.T, s *apptest.Server, stream *apptest.Stream, title string) {
	t.Helper()
	for {
		e := stream.Until("session.updated")
		if apptest.Payload[session.Info](s, e[len(e)-1]).Info.Title == title {
			return
		}
	}
}

func TestSC20_TitleIsTriedAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		s := apptest.Start(t, o)
		ses := s.Session("")
		stream := s.Events("")
		s.Model.Enqueue(llmtest.Turn{Title: true, Status: http.StatusInternalServerError})
		converse(t, s, ses, "say:hello  there\nmore")
		titlesAsked(t, s, 1)
		if got := current(s, ses).Title; got != "say:hello there" {
			t.Fatalf("derived title %q", got)
		}
		s.Model.Enqueue(llmtest.Turn{Title: true, Steps: []llmtest.Step{llmtest.Text("<think>hm</think>\n\"A fine title\"\n")}})
		converse(t, s, ses, "say:again")
		titled(t, s, stream, "A fine title")
		if got := conversationOf(s.Model.Titles()[1]); got != "u:The message:\n\nsay:hello  there\nmore" {
			t.Fatalf("asked with %q", got)
		}
		converse(t, s, ses, "say:third") // a generated title is enough
		s = s.Restart(o)
		if got := current(s, ses).Title; got != "A fine title" || len(s.Model.Titles()) != 0 {
			t.Fatalf("%q", got)
		}
	})
}

func TestSC20_ManualTitleStays(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	stream := s.Events("")
	change := func(ses session.Session, title string) {
		apptest.Data[session.Session](s, "PATCH", "/api/session/"+string(ses.ID), map[string]any{"title": title})
	}
	// While a title is being made, a person chooses one; the turn did not wait.
	during := s.Session("")
	s.Model.Enqueue(llmtest.Turn{Title: true, Steps: []llmtest.Step{llmtest.Hang()}})
	converse(t, s, during, "say:one")
	titlesAsked(t, s, 1)
	hanging(t, s, 1)
	converse(t, s, during, "say:two") // one title at a time
	change(during, "Mine")
	s.Model.Release()
	// Between two prompts.
	between := s.Session("")
	s.Model.Enqueue(llmtest.Turn{Title: true, Status: http.StatusInternalServerError})
	converse(t, s, between, "say:one")
	titlesAsked(t, s, 2)
	change(between, "Also mine")
	converse(t, s, between, "say:two")
	// From the beginning.
	given := apptest.Data[session.Session](s, "POST", "/api/session", map[string]any{"title": "Given"})
	converse(t, s, given, "say:one")
	// A child gets none.
	child := apptest.Data[session.Session](s, "POST", "/api/session", map[string]any{"parentID": given.ID})
	converse(t, s, child, "say:child")
	other := s.Session("")
	converse(t, s, other, "say:other")
	titled(t, s, stream, llmtest.TitleText)
	asked := len(s.Model.Titles())
	s = s.Restart(apptest.Options{}) // all titles are made or given up now
	for want, ses := range map[string]session.Session{"Mine": during, "Also mine": between, "Given": given, "say:child": child, llmtest.TitleText: other} {
		if got := current(s, ses).Title; got != want {
			t.Errorf("title %q, want %q", got, want)
		}
	}
	if asked != 3 {
		t.Errorf("%d titles were asked for", asked)
	}
}

// Stopping does not wait for a title, and a disabled agent makes none.
func TestTitleEndsWithTheServer(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	ses := s.Session("")
	s.Model.Enqueue(llmtest.Turn{Title: true, Steps: []llmtest.Step{llmtest.Hang()}})
	converse(t, s, ses, "say:one")
	titlesAsked(t, s, 1)
	s = s.Restart(apptest.Options{Config: `{"permission": {"*": "allow"}, "agent": {"title": {"disable": true}}}`})
	converse(t, s, ses, "say:two")
	s.Stop()
	if len(s.Model.Titles()) != 0 {
		t.Fatal("a title was asked for although its agent is disabled")
	}
}
