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
	"github.com/switchyard-dev/switchyard/session"
)

type shelled struct {
	MessageID string          `json:"messageID"`
	TurnID    string          `json:"turnID"`
	Message   apptest.Message `json:"message"`
}

func shellPath(ses session.Session) string { return "/api/session/" + string(ses.ID) + "/shell" }

func shell(s *apptest.Server, ses session.Session, command string) shelled {
	return apptest.Data[shelled](s, "POST", shellPath(ses), map[string]any{"command": command})
}

// TestShellRunsACommandOfTheUser: nobody is asked and no model is called, the
// output comes live, and the model sees it with the next prompt.
func TestShellRunsACommandOfTheUser(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		o.Config = `{"permission": {"*": "ask"}}`
		s := apptest.Start(t, o)
		dir := apptest.Dir(t)
		stream := s.Events(apptest.Query("directory", dir))
		ses := s.Session(dir)
		out := shell(s, ses, "pwd; sleep 0.3; echo two >&2; exit 3")
		if out.Message.Info.Role != "user" || out.Message.Info.ID != out.MessageID {
			t.Errorf("answer: %+v", out)
		}
		var states []string
		var live strings.Builder
		for _, e := range stream.Until("session.idle") {
			switch e.Type {
			case "permission.asked":
				t.Error("the user was asked")
			case "message.part.updated":
				p := apptest.Payload[struct{ Part apptest.Part }](s, e).Part
				if p.Type == "tool" {
					states = append(states, p.State.Status)
				}
			case "message.part.delta":
				live.WriteString(apptest.Payload[session.PartDelta](s, e).Delta)
			case "session.idle":
				if idle := apptest.Payload[session.Idle](s, e); string(idle.TurnID) != out.TurnID || idle.Outcome != session.Completed {
					t.Errorf("idle: %+v", idle)
				}
			}
		}
		if fmt.Sprint(states) != "[pending running completed]" || live.String() != dir+"\ntwo\n" {
			t.Errorf("states %v, live output %q", states, live.String())
		}
		messages := s.Messages(ses)
		if len(messages) != 2 || len(messages[1].Parts) != 1 || messages[1].Info.Time.Completed == 0 {
			t.Fatalf("messages: %+v", messages)
		}
		if p := messages[1].Parts[0]; p.Tool != "bash" || !strings.Contains(p.State.Output, dir+"\ntwo") || p.State.Metadata["exit"] != 3.0 {
			t.Errorf("part: %+v", p)
		}
		if n := len(s.Model.Requests()); n != 0 {
			t.Errorf("%d requests to the model", n)
		}
		s.Prompt(ses, "say:seen")
		s.Wait(ses)
		seen := ""
		for _, m := range s.Model.Requests()[0].Messages {
			seen += strings.Join(m.Results, "")
		}
		if !strings.Contains(seen, dir+"\ntwo") {
			t.Errorf("the model saw %q", seen)
		}
		if got := apptest.Data[session.Session](s, "GET", "/api/session/"+string(ses.ID), nil); strings.Contains(got.Title, "command") || got.Title == "New session" {
			t.Errorf("title %q", got.Title)
		}
	})
}

// TestShellMeetsATurn: a session runs one thing at a time, a command may be sent
// again, and a prompt that comes while it runs is answered after it.
func TestShellMeetsATurn(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	dir := apptest.Dir(t)
	ses := s.Session(dir)
	in := map[string]any{"command": "until test -e go; do sleep 0.02; done; echo went", "messageID": "msg_mine"}
	first := apptest.Data[shelled](s, "POST", shellPath(ses), in)
	if a := s.Do("POST", shellPath(ses), map[string]any{"command": "true"}); a.Code() != "session_busy" {
		t.Errorf("a second command: %d %s", a.Status, a.Body)
	}
	if again := apptest.Data[shelled](s, "POST", shellPath(ses), in); again.TurnID != first.TurnID || again.MessageID != "msg_mine" {
		t.Errorf("sent again: %+v, first %+v", again, first)
	}
	in["command"] = "true"
	if a := s.Do("POST", shellPath(ses), in); a.Code() != "idempotency_conflict" {
		t.Errorf("another command of the same id: %d %s", a.Status, a.Body)
	}
	if got := s.Prompt(ses, "say:after"); got.State != "queued" {
		t.Errorf("prompt: %+v", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := s.Wait(ses); got.Outcome != "completed" || s.Text(ses) != "after" {
		t.Errorf("%+v, %q", got, s.Text(ses))
	}
	messages := s.Messages(ses)
	if calls := tools(messages); len(messages) != 4 || len(calls) != 1 || !strings.Contains(calls[0].State.Output, "went") {
		t.Errorf("messages: %+v", messages)
	}
	if n := len(s.Model.Requests()); n != 1 {
		t.Errorf("%d requests to the model", n)
	}
	s.Prompt(ses, "hang")
	if err := s.Model.WaitHanging(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if a := s.Do("POST", shellPath(ses), map[string]any{"command": "true"}); a.Code() != "session_busy" {
		t.Errorf("beside a model: %d %s", a.Status, a.Body)
	}
	s.Model.Release()
	s.Wait(ses)
	for body, code := range map[string]string{`{"command":" "}`: "validation_failed", `{"command":"true","agent":"nobody"}`: "agent_unknown"} {
		if a := s.Do("POST", shellPath(ses), body); a.Code() != code {
			t.Errorf("%s: %d %s", body, a.Status, a.Body)
		}
	}
}

// TestSC12_Abort interrupts a command that ignores INT and TERM and has a
// grandchild, once typed by the user and once called by the model.
func TestSC12_Abort(t *testing.T) {
	t.Parallel()
	const stubborn = `trap '' INT TERM; echo shown; (trap '' INT TERM; echo $BASHPID >> pids; sleep 300) & echo $$ >> pids; sleep 300; wait`
	for name, begin := range map[string]func(*apptest.Server, session.Session){
		"shell": func(s *apptest.Server, ses session.Session) { shell(s, ses, stubborn) },
		"tool": func(s *apptest.Server, ses session.Session) {
			s.Prompt(ses, `tool:bash:{"command":`+strconv.Quote(stubborn)+`}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apptest.Start(t, apptest.Options{})
			dir := apptest.Dir(t)
			ses := s.Session(dir)
			interrupt := "/api/session/" + string(ses.ID) + "/interrupt"
			if a := s.Do("POST", interrupt, nil); a.Status/100 != 2 {
				t.Errorf("abort of an idle session: %d %s", a.Status, a.Body)
			}
			stream := s.Events(apptest.Query("directory", dir))
			begin(s, ses)
			pids := grown(t, s, dir)
			begun := time.Now()
			if a := s.Do("POST", interrupt, nil); a.Status/100 != 2 {
				t.Errorf("abort: %d %s", a.Status, a.Body)
			}
			answered := time.Since(begun)
			seen := stream.Until("session.idle")
			// 200 ms and 3 s on a quiet machine; this one may be busy.
			if gone := time.Since(begun); answered > 3*time.Second || gone > 10*time.Second {
				t.Errorf("answered after %v, idle after %v", answered, gone)
			}
			for _, pid := range pids {
				if syscall.Kill(pid, 0) == nil && !zombie(pid) {
					t.Errorf("process %d is left", pid)
				}
			}
			if a := s.Do("POST", interrupt, nil); a.Status/100 != 2 {
				t.Errorf("repeated abort: %d %s", a.Status, a.Body)
			}
			checkAborted(t, s, append(seen, stream.Rest(300*time.Millisecond)...))
			if p := tools(s.Messages(ses)); len(p) != 1 || p[0].State.Status != "error" || !strings.Contains(p[0].State.Error, "shown") {
				t.Errorf("part: %+v", p)
			}
			if got := s.Wait(ses); got.Outcome != "cancelled" || got.Status.Type != "idle" {
				t.Errorf("%+v", got)
			}
			s.Prompt(ses, "say:again")
			if got := s.Wait(ses); got.Outcome != "completed" {
				t.Errorf("a new prompt: %+v", got)
			}
			if a := s.Do("DELETE", "/api/session/"+string(ses.ID), nil); a.Status != 204 {
				t.Errorf("deleting: %d %s", a.Status, a.Body)
			}
		})
	}
}

// grown waits for the processes of a command that notes them, and lets it begin
// where it is asked for.
func grown(t *testing.T, s *apptest.Server, dir string) []int {
	t.Helper()
	var pids []int
	eventually(t, "a running command", func() bool {
		allow(s)
		data, err := os.ReadFile(filepath.Join(dir, "pids"))
		pids = nil
		for _, text := range strings.Fields(string(data)) {
			if pid, err := strconv.Atoi(text); err == nil {
				pids = append(pids, pid)
			}
		}
		return err == nil && len(pids) == 2
	})
	return pids
}

// checkAborted: one aborted part, one aborted message, one idle.
func checkAborted(t *testing.T, s *apptest.Server, events []apptest.Event) {
	t.Helper()
	parts, messages, idle := 0, 0, 0
	for _, e := range events {
		switch e.Type {
		case "message.part.updated":
			if apptest.Payload[struct{ Part apptest.Part }](s, e).Part.State.Status == "error" {
				parts++
			}
		case "message.updated":
			if m := apptest.Payload[apptest.Message](s, e); m.Info.Error != nil && m.Info.Error.Name == "MessageAbortedError" {
				messages++
			}
		case "session.idle":
			idle++
		}
	}
	if parts != 1 || messages != 1 || idle != 1 {
		t.Errorf("%d aborted parts, %d aborted messages, %d times idle", parts, messages, idle)
	}
}
