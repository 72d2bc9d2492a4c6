package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/app/apptest"
	"github.com/switchyard-dev/switchyard/llm/llmtest"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/session"
)

// task is a call of the task tool whose agent is told script.
func task(script string) llmtest.Step {
	return llmtest.Call("task", fmt.Sprintf(`{"description":"a task","prompt":%q,"subagent_type":"general"}`, script))
}

// root answers the next request of a session that is no child.
func root(steps ...llmtest.Step) llmtest.Turn {
	return llmtest.Turn{Steps: steps, Match: func(r llmtest.Request) bool {
		return len(r.UserTexts()) > 0 && strings.HasPrefix(r.UserTexts()[0], "root")
	}}
}

func children(s *apptest.Server, ses session.Session) []session.Session {
	var out []session.Session
	for _, c := range apptest.Data[[]session.Session](s, "GET", "/api/session"+apptest.Query("scope", "server", "order", "asc"), nil) {
		if c.ParentID == ses.ID {
			out = append(out, c)
		}
	}
	return out
}

// eventually waits until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not in time: %s", what)
}

// TestSC28_ChildSessionRequest lets a subagent make two commands at once that
// ask: both show at the root, a refusal with a reason is told to the child, which
// goes on, and the root ends.
func TestSC28_ChildSessionRequest(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		o.Config = `{"permission": {"*": "allow", "bash": "ask"}}`
		s := apptest.Start(t, o)
		dir := apptest.Dir(t)
		stream := s.Events(apptest.Query("directory", dir))
		ses := s.Session(dir)
		s.Model.Enqueue(
			root(task("child")),
			llmtest.Turn{
				Steps: []llmtest.Step{llmtest.Call("bash", `{"command":"echo one"}`), llmtest.Call("bash", `{"command":"echo two"}`)},
				Match: func(r llmtest.Request) bool { return r.UserTexts()[0] == "child" },
			},
		)
		s.Prompt(ses, "root")
		stream.Until("permission.asked")
		asked := apptest.Data[[]rule.Request](s, "GET", "/api/permission"+apptest.Query("directory", dir, "sessionID", string(ses.ID)), nil)
		child := children(s, ses)
		if len(child) != 1 || len(asked) != 2 {
			t.Fatalf("%d children, %+v", len(child), asked)
		}
		for _, a := range asked {
			if a.SessionID != child[0].ID || a.RootSessionID != ses.ID {
				t.Errorf("asked by %s of %s", a.SessionID, a.RootSessionID)
			}
		}
		eventually(t, "a root that waits", func() bool {
			active := apptest.Data[map[string]session.Status](s, "GET", "/api/session/active"+apptest.Query("scope", "server"), nil)
			return active[string(ses.ID)].Waiting == "permission" && active[string(child[0].ID)].Waiting == "permission"
		})
		reply := func(a rule.Request, in map[string]any) {
			if got := s.Do("POST", "/api/permission/"+string(a.ID)+"/reply", in); got.Status != 204 {
				t.Fatalf("%d %s", got.Status, got.Body)
			}
		}
		reply(asked[0], map[string]any{"response": "reject", "message": "not that one"})
		reply(asked[1], map[string]any{"response": "once"})
		if got := s.Wait(ses); got.Outcome != "completed" {
			t.Fatalf("%+v", got)
		}
		parts := tools(s.Messages(child[0]))
		if len(parts) != 2 || parts[0].State.Status != "error" || !strings.Contains(parts[0].State.Error, "not that one") ||
			parts[1].State.Status != "completed" || !strings.Contains(parts[1].State.Output, "two") {
			t.Errorf("the child's calls: %+v", parts)
		}
		own := tools(s.Messages(ses))
		if len(own) != 1 || own[0].State.Status != "completed" || own[0].State.Metadata["sessionID"] != string(child[0].ID) {
			t.Errorf("the root's call: %+v", own)
		}
	})
}

func tools(messages []apptest.Message) []apptest.Part {
	var out []apptest.Part
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.Type == "tool" {
				out = append(out, p)
			}
		}
	}
	return out
}

// TestTasksRunSideBySide: two tasks of one answer are under way at the same time,
// a second call goes on with the first child, and a child may not delegate.
func TestTasksRunSideBySide(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	ses := s.Session("")
	s.Model.Enqueue(root(task("hang"), task("hang")))
	s.Prompt(ses, "root")
	if err := s.Model.WaitHanging(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	kids := children(s, ses)
	if len(kids) != 2 {
		t.Fatalf("%d children", len(kids))
	}
	s.Model.Enqueue(root(llmtest.Call("task", fmt.Sprintf(
		`{"description":"more","prompt":"say:again","subagent_type":"general","task_id":%q}`, kids[0].ID))))
	s.Model.Release()
	if got := s.Wait(ses); got.Outcome != "completed" {
		t.Fatalf("%+v", got)
	}
	if n := len(children(s, ses)); n != 2 {
		t.Errorf("%d children after going on with one", n)
	}
	calls := tools(s.Messages(ses))
	if len(calls) != 3 || !strings.Contains(calls[2].State.Output, "again") || !strings.Contains(calls[2].State.Output, string(kids[0].ID)) {
		t.Errorf("calls: %+v", calls)
	}
	if got := s.Messages(kids[0]); len(got) != 4 {
		t.Errorf("the child has %d messages", len(got))
	}
	for _, r := range s.Model.Requests() {
		for _, tool := range r.Tools {
			if tool == "task" && r.UserTexts()[0] == "hang" {
				t.Error("a child is offered the task tool")
			}
		}
	}
}

// TestTasksHaveADepth: an agent that may delegate meets the limit.
func TestTasksHaveADepth(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{Config: `{"permission": {"*": "allow"}, "subagent_depth": 2,
		"agent": {"deep": {"mode": "subagent", "description": "digs"}}}`})
	ses := s.Session("")
	deep := func(script string) string {
		return fmt.Sprintf(`tool:task:{"description":"d","prompt":%q,"subagent_type":"deep"}`, script)
	}
	s.Prompt(ses, deep(deep(deep("say:too deep"))))
	if got := s.Wait(ses); got.Outcome != "completed" {
		t.Fatalf("%+v", got)
	}
	first := children(s, ses)
	second := children(s, first[0])
	if len(first) != 1 || len(second) != 1 || len(children(s, second[0])) != 0 {
		t.Fatalf("children: %d, %d", len(first), len(second))
	}
	calls := tools(s.Messages(second[0]))
	if len(calls) != 1 || calls[0].State.Status != "error" || !strings.Contains(calls[0].State.Error, "2 levels") {
		t.Errorf("the call below the limit: %+v", calls)
	}
	s.Prompt(ses, `tool:task:{"description":"d","prompt":"x","subagent_type":"nobody"}`)
	s.Wait(ses)
	calls = tools(s.Messages(ses))
	if last := calls[len(calls)-1]; last.State.Status != "error" || !strings.Contains(last.State.Error, "deep, explore, general") {
		t.Errorf("an unknown agent: %+v", last.State)
	}
}

// TestSC12_AbortReachesChildren interrupts a root whose child runs a command that
// ignores INT and TERM and has a grandchild: all of it is gone within seconds,
// each end is told once, and repeating changes nothing.
func TestSC12_AbortReachesChildren(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	dir := apptest.Dir(t)
	stream := s.Events(apptest.Query("directory", dir))
	ses := s.Session(dir)
	s.Prompt(ses, `tool:task:{"description":"d","subagent_type":"general","prompt":`+
		strconv.Quote(`tool:bash:{"command":"trap '' INT TERM; (trap '' INT TERM; echo $BASHPID >> pids; sleep 300) & echo $$ >> pids; sleep 300; wait"}`)+`}`)
	var pids []string
	eventually(t, "a running command", func() bool {
		allow(s)
		data, err := os.ReadFile(filepath.Join(dir, "pids"))
		pids = strings.Fields(string(data))
		return err == nil && len(pids) == 2
	})
	interrupt := func() {
		if got := s.Do("POST", "/api/session/"+string(ses.ID)+"/interrupt", map[string]any{}); got.Status/100 != 2 {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
	}
	begun := time.Now()
	interrupt()
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("the interrupt was answered after %v", took)
	}
	if got := s.Wait(ses); got.Outcome != "cancelled" {
		t.Errorf("%+v", got)
	}
	for _, text := range pids {
		pid, err := strconv.Atoi(text)
		if err != nil || syscall.Kill(pid, 0) == nil && !zombie(pid) {
			t.Errorf("process %s is left, %v", text, err)
		}
	}
	interrupt()
	child := children(s, ses)
	idle := 0
	for _, e := range stream.Rest(500 * time.Millisecond) {
		if e.Type == "session.idle" {
			idle++
		}
	}
	if idle != 2 {
		t.Errorf("%d times idle, for the root and its child", idle)
	}
	for _, of := range []session.Session{ses, child[0]} {
		call := tools(s.Messages(of))[0]
		if call.State.Status != "error" {
			t.Errorf("call %+v", call.State)
		}
	}
	if got := s.Do("DELETE", "/api/session/"+string(child[0].ID), nil); got.Status != 204 {
		t.Errorf("deleting the child: %d", got.Status)
	}
	s.Prompt(ses, "say:again")
	if got := s.Wait(ses); got.Outcome != "completed" {
		t.Errorf("a new prompt: %+v", got)
	}
}

func allow(s *apptest.Server) {
	for _, a := range apptest.Data[[]rule.Request](s, "GET", "/api/permission"+apptest.Query("scope", "server"), nil) {
		s.Do("POST", "/api/permission/"+string(a.ID)+"/reply", map[string]any{"response": "once"})
	}
}

func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}
