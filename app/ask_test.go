package app_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/switchyard-dev/switchyard/app/apptest"
	"github.com/switchyard-dev/switchyard/question"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/session"
)

// pending waits for the requests of a session and those below it.
func pending[T any](t *testing.T, s *apptest.Server, kind string, ses session.Session, n int) []T {
	t.Helper()
	var out []T
	eventually(t, "a "+kind, func() bool {
		out = apptest.Data[[]T](s, "GET", "/api/"+kind+apptest.Query("sessionID", string(ses.ID)), nil)
		return len(out) == n
	})
	return out
}

// TestSC29_ReplySemantics replies without a context, with another one, twice, and
// from two clients at once.
func TestSC29_ReplySemantics(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		o.Config = `{"permission": {"edit": "ask"}}`
		s := apptest.Start(t, o)
		dir, other := apptest.Dir(t), apptest.Dir(t)
		ask := func() (session.Session, string) {
			ses := s.Session(dir)
			s.Prompt(ses, `tool:write:{"path":"f","content":"x"}`)
			return ses, "/api/permission/" + string(pending[rule.Request](t, s, "permission", ses, 1)[0].ID) + "/reply"
		}
		once, reject := map[string]any{"response": "once"}, map[string]any{"response": "reject"}

		ses, path := ask()
		if a := s.Do("POST", path, once); a.Status != http.StatusNoContent {
			t.Errorf("without a directory: %d %s", a.Status, a.Body)
		}
		s.Wait(ses)
		if a := s.Do("POST", path, reject); a.Code() != "already_replied" || !strings.Contains(string(a.Body), `"recorded":"once"`) {
			t.Errorf("the second reply: %d %s", a.Status, a.Body)
		}
		if p := tools(s.Messages(ses)); p[0].State.Status != "completed" {
			t.Errorf("the call: %+v", p)
		}

		ses, path = ask()
		if a := s.Do("POST", path+apptest.Query("directory", other), reject); a.Status != http.StatusNoContent {
			t.Errorf("with another directory: %d %s", a.Status, a.Body)
		}
		if got := s.Wait(ses); got.Outcome != "cancelled" {
			t.Errorf("refused without a word: %+v", got)
		}

		ses, path = ask()
		status := make([]int, 2)
		var both sync.WaitGroup
		for i, body := range []map[string]any{once, {"response": "reject", "message": "no"}} {
			both.Go(func() { status[i] = s.Do("POST", path, body).Status })
		}
		both.Wait()
		if status[0]+status[1] != http.StatusNoContent+http.StatusConflict {
			t.Errorf("two at once: %v", status)
		}
		if got := s.Wait(ses); got.Outcome != "completed" {
			t.Errorf("after two at once: %+v", got)
		}
		if done := tools(s.Messages(ses))[0].State.Status == "completed"; done != (status[0] == http.StatusNoContent) {
			t.Errorf("the call is not as the reply that won: %v", status)
		}
		if a := s.Do("POST", "/api/permission/per_unknown/reply", once); a.Status != http.StatusNotFound {
			t.Errorf("unknown: %d %s", a.Status, a.Body)
		}
	})
}

// TestSC31_QuestionLifeCycle: a client that connects after the question finds it
// whole, with the call that asks, and its answer lets the run go on.
func TestSC31_QuestionLifeCycle(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		s := apptest.Start(t, o)
		dir := apptest.Dir(t)
		ses := s.Session(dir)
		stream := s.Events(apptest.Query("session", string(ses.ID)))
		s.Prompt(ses, `tool:question:{"questions":[{"question":"Which colour?","header":"Colour",`+
			`"options":[{"label":"red","description":"warm"},{"label":"blue","description":"cold"}]}]}`)
		asked := pending[question.Request](t, s, "question", ses, 1)[0]
		q := asked.Questions[0]
		if asked.SessionID != ses.ID || asked.RootSessionID != ses.ID || q.Question != "Which colour?" || len(q.Options) != 2 || q.Options[1].Description != "cold" {
			t.Errorf("asked: %+v", asked)
		}
		active := apptest.Data[map[string]session.Status](s, "GET", "/api/session/active"+apptest.Query("scope", "server"), nil)
		if active[string(ses.ID)].Waiting != "question" {
			t.Errorf("status: %+v", active)
		}
		item := s.Messages(ses)[1]
		if asked.Tool == nil || string(asked.Tool.MessageID) != item.Info.ID {
			t.Errorf("the call of %+v is not in %+v", asked.Tool, item)
		}
		path := "/api/question/" + string(asked.ID) + "/reply"
		if a := s.Do("POST", path, map[string]any{"response": map[string]any{"answers": [][]string{{"red"}, {"blue"}}}}); a.Code() != "validation_failed" {
			t.Errorf("two answers to one question: %d %s", a.Status, a.Body)
		}
		answer := map[string]any{"response": map[string]any{"answers": [][]string{{"blue"}}}}
		if a := s.Do("POST", path, answer); a.Status != http.StatusNoContent {
			t.Errorf("reply: %d %s", a.Status, a.Body)
		}
		if got := s.Wait(ses); got.Outcome != "completed" {
			t.Errorf("%+v", got)
		}
		if a := s.Do("POST", path, answer); a.Code() != "already_replied" {
			t.Errorf("again: %d %s", a.Status, a.Body)
		}
		if p := tools(s.Messages(ses)); len(p) != 1 || !strings.Contains(p[0].State.Output, "blue") {
			t.Errorf("the call: %+v", p)
		}
		var order []string
		for _, e := range stream.Until("session.idle") {
			if strings.HasPrefix(e.Type, "question.") {
				order = append(order, e.Type)
			}
		}
		if strings.Join(order, " ") != "question.asked question.replied" {
			t.Errorf("events: %v", order)
		}
	})
}

// TestARefusedChildEndsAlone: refusing a child's request without a word ends the
// child; its parent is told and goes on. A stream of the root tells all of it.
func TestARefusedChildEndsAlone(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{Config: `{"permission": {"*": "allow", "bash": "ask"}}`})
	ses := s.Session(apptest.Dir(t))
	stream := s.Events(apptest.Query("session", string(ses.ID)))
	s.Prompt(ses, `tool:task:{"description":"d","subagent_type":"general","prompt":"tool:bash:{\"command\":\"true\"}"}`)
	asked := pending[rule.Request](t, s, "permission", ses, 1)[0]
	if a := s.Do("POST", "/api/permission/"+string(asked.ID)+"/reply", map[string]any{"response": "reject"}); a.Status != http.StatusNoContent {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if got := s.Wait(ses); got.Outcome != "completed" {
		t.Errorf("the root: %+v", got)
	}
	if p := tools(s.Messages(ses)); p[0].State.Status != "error" || !strings.Contains(p[0].State.Error, "cancelled") ||
		p[0].State.Metadata["sessionID"] != string(asked.SessionID) {
		t.Errorf("the root's call: %+v", p)
	}
	var told []string
	for last := false; !last; {
		e := stream.Next()
		p := apptest.Payload[struct {
			SessionID string         `json:"sessionID"`
			Status    session.Status `json:"status"`
		}](s, e)
		who := "child"
		if p.SessionID == string(ses.ID) {
			who = "root"
		}
		switch e.Type {
		case "session.status":
			told = append(told, strings.TrimSpace(who+" "+p.Status.Type+" "+p.Status.Waiting))
		case "permission.asked", "permission.replied", "session.idle":
			told = append(told, who+" "+e.Type)
			last = who == "root" && e.Type == "session.idle"
		}
	}
	all := strings.Join(told, ", ")
	for _, want := range []string{
		"root busy, child busy, child permission.asked, child busy permission, root busy permission, child permission.replied, child busy, root busy",
		"child idle, child session.idle, root busy", "root idle, root session.idle",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("told %q, want %q in it", all, want)
		}
	}
}

// TestAChildMayNotDoWhatItsParentMayNot: plan mode edits nothing, and nobody
// does for it.
func TestAChildMayNotDoWhatItsParentMayNot(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	ses := s.Session(apptest.Dir(t))
	for _, file := range []string{"f", ".switchyard/plans/f.md"} {
		apptest.Data[apptest.Prompted](s, "POST", "/api/session/"+string(ses.ID)+"/prompt", map[string]any{
			"agent": "plan", "prompt": map[string]any{"text": `tool:task:{"description":"d","subagent_type":"general","prompt":"tool:write:{\"path\":\"` +
				file + `\",\"content\":\"x\"}"}`},
		})
		s.Wait(ses)
	}
	kids := apptest.Data[[]session.Session](s, "GET", "/api/session/"+string(ses.ID)+"/children", nil)
	if len(kids) != 2 {
		t.Fatalf("%d children", len(kids))
	}
	for _, kid := range kids {
		if p := tools(s.Messages(kid)); len(p) != 1 || p[0].State.Status != "error" || !strings.Contains(p[0].State.Error, "deny") {
			t.Errorf("the child's call: %+v", p)
		}
	}
}
