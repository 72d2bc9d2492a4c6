package agent_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/agent"
	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/session"
)

func TestTurnAnswersAndEndsOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ses := b.session()
	out := b.prompt(ses, "say:  a\n\tb é  ")
	if !out.Delivered || out.TurnID == "" {
		t.Fatalf("%+v", out)
	}
	if got := b.wait(ses); got.Outcome != "completed" || got.Turn.ID != out.TurnID {
		t.Fatalf("%+v", got)
	}
	if got := b.texts(ses); got != "  a\n\tb é  " {
		t.Fatalf("text %q", got)
	}
	events := b.events(ses)
	if count(events, "session.idle") != 1 || events[len(events)-1].Type != "session.idle" {
		t.Fatalf("idle is not the last: %v", events[len(events)-1].Type)
	}
	row, err := b.sessions.Get(t.Context(), ses.ID)
	if err != nil || !strings.HasPrefix(row.Title, "say:") {
		t.Fatalf("title %q, %v", row.Title, err)
	}
}

func TestEditIsAskedAndDone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ses := b.session()
	b.prompt(ses, `tool:write:{"path":"a.txt","content":"hello\n"}`)
	req := b.asked(1)[0]
	if req.Permission != "edit" || req.SessionID != ses.ID || req.RootSessionID != ses.ID || req.Patterns[0] != "a.txt" {
		t.Fatalf("%+v", req)
	}
	active, err := b.engine.Active(t.Context())
	if err != nil || active[ses.ID].Waiting != "permission" {
		t.Fatalf("%+v, %v", active, err)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "a.txt")); err == nil {
		t.Fatal("the file is there before the answer")
	}
	if _, err := b.perms.Reply(t.Context(), req.ID, rule.Once, ""); err != nil {
		t.Fatal(err)
	}
	if got := b.wait(ses); got.Outcome != "completed" {
		t.Fatalf("%+v", got)
	}
	data, err := os.ReadFile(filepath.Join(b.dir, "a.txt"))
	if err != nil || string(data) != "hello\n" {
		t.Fatalf("%q, %v", data, err)
	}
	states := []string{}
	for _, e := range b.events(ses) {
		if e.Type == "message.part.updated" {
			p := payload[struct {
				Part struct {
					Type  string `json:"type"`
					State struct {
						Status string `json:"status"`
					} `json:"state"`
				} `json:"part"`
			}](t, e)
			if p.Part.Type == "tool" {
				states = append(states, p.Part.State.Status)
			}
		}
	}
	if got := strings.Join(states, " "); got != "pending pending running completed" {
		t.Fatalf("states %q", got)
	}
	_, err = b.perms.Reply(t.Context(), req.ID, rule.Once, "")
	if f, _ := fault.As(err); !fault.Is(err, fault.AlreadyReplied) || f.Fields["recorded"] != "once" {
		t.Fatalf("second reply: %v", err)
	}
}

func TestAlwaysSavesWhatWasShown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ses := b.session()
	b.prompt(ses, `tool:write:{"path":"a.txt","content":"1"}`)
	if _, err := b.perms.Reply(t.Context(), b.asked(1)[0].ID, rule.Always, ""); err != nil {
		t.Fatal(err)
	}
	b.wait(ses)
	b.prompt(ses, `tool:write:{"path":"a.txt","content":"2"}`)
	if got := b.wait(ses); got.Outcome != "completed" {
		t.Fatalf("%+v", got)
	}
	b.prompt(ses, `tool:write:{"path":"b.txt","content":"2"}`)
	if req := b.asked(1)[0]; req.Patterns[0] != "b.txt" {
		t.Fatalf("%+v", req)
	}
}

func TestRejectWithMessageGoesOnWithoutEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ses := b.session()
	b.prompt(ses, `tool:write:{"path":"a.txt","content":"1"}`)
	if _, err := b.perms.Reply(t.Context(), b.asked(1)[0].ID, rule.Reject, "not that file"); err != nil {
		t.Fatal(err)
	}
	if got := b.wait(ses); got.Outcome != "completed" || !strings.Contains(b.texts(ses), "not that file") {
		t.Fatalf("%+v, %q", got, b.texts(ses))
	}
	b.prompt(ses, `tool:write:{"path":"b.txt","content":"1"}`)
	if _, err := b.perms.Reply(t.Context(), b.asked(1)[0].ID, rule.Reject, ""); err != nil {
		t.Fatal(err)
	}
	if got := b.wait(ses); got.Outcome != "cancelled" {
		t.Fatalf("%+v", got)
	}
	for _, p := range b.tools(ses) {
		if p.State.Status() != "error" {
			t.Fatalf("tool state %s", p.State.Status())
		}
	}
	if entries, _ := os.ReadDir(b.dir); len(entries) != 0 {
		t.Fatalf("files were written: %v", entries)
	}
}

func TestDenyIsTold(t *testing.T) {
	t.Parallel()
	b := setup(t, rule.Rule{Permission: "bash", Pattern: "rm *", Action: rule.Deny}, rule.Rule{Permission: "bash", Pattern: "echo *", Action: rule.Allow})
	ses := b.session()
	b.prompt(ses, `tool:bash:{"command":"echo hi && rm -rf x"}`)
	b.wait(ses)
	state, ok := b.tools(ses)[0].State.(*chat.ToolError)
	if !ok || !strings.Contains(state.Error, "rm *") {
		t.Fatalf("%+v", b.tools(ses)[0].State)
	}
}

func TestInterruptStopsModelAndCommand(t *testing.T) {
	t.Parallel()
	b := setup(t, rule.Rule{Permission: "bash", Pattern: "*", Action: rule.Allow})
	for _, script := range []string{"hang", `tool:bash:{"command":"echo begun; sleep 600"}`} {
		ses := b.session()
		b.prompt(ses, script)
		b.eventually("running turn", func() bool {
			if strings.HasPrefix(script, "tool") {
				tools := b.tools(ses)
				return len(tools) == 1 && tools[0].State.Status() == "running"
			}
			return len(b.items(ses)) == 2
		})
		start := time.Now()
		for range 2 {
			if err := b.engine.Interrupt(t.Context(), ses.ID); err != nil {
				t.Fatal(err)
			}
		}
		if got := b.wait(ses); got.Outcome != "cancelled" || time.Since(start) > 5*time.Second {
			t.Fatalf("%s: %+v after %v", script, got, time.Since(start))
		}
		if n := count(b.events(ses), "session.idle"); n != 1 {
			t.Fatalf("%s: %d idle events", script, n)
		}
		for _, p := range b.tools(ses) {
			if state, ok := p.State.(*chat.ToolError); !ok || state.Metadata["reason"] != "aborted" {
				t.Fatalf("%+v", p.State)
			}
		}
		b.prompt(ses, "say:again")
		if got := b.wait(ses); got.Outcome != "completed" {
			t.Fatalf("%+v", got)
		}
	}
}

func TestPromptsWhileBusy(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ses := b.session()
	b.prompt(ses, `tool:write:{"path":"a.txt","content":"1"}`)
	req := b.asked(1)[0]
	deferred := admission(ses, "say:third")
	deferred.Delivery = session.Deferred
	queued, err := b.engine.Prompt(t.Context(), deferred)
	if err != nil || queued.Delivered || queued.Position != 1 {
		t.Fatalf("%+v, %v", queued, err)
	}
	second := b.prompt(ses, "say:second")
	if second.Delivered || second.Position != 2 {
		t.Fatalf("%+v", second)
	}
	if _, err := b.perms.Reply(t.Context(), req.ID, rule.Once, ""); err != nil {
		t.Fatal(err)
	}
	b.wait(ses)
	if got := b.texts(ses); got != "second|third" {
		t.Fatalf("answers %q", got)
	}
	if n := count(b.events(ses), "session.idle"); n != 2 {
		t.Fatalf("%d idle events", n)
	}
}

func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ses := b.session()
	b.prompt(ses, "hang")
	for range session.MaxQueued {
		a := admission(ses, "say:x")
		a.Delivery = session.Deferred
		if _, err := b.engine.Prompt(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.engine.Prompt(t.Context(), admission(ses, "say:y")); !fault.Is(err, fault.QueueFull) {
		t.Fatalf("err %v", err)
	}
}

func TestSamePromptTwice(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ses := b.session()
	a := admission(ses, "say:once")
	a.MessageID = "msg_p1"
	first, err := b.engine.Prompt(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.engine.Prompt(t.Context(), a)
	if err != nil || !again.Replayed || again.TurnID != first.TurnID || again.MessageID != "msg_p1" {
		t.Fatalf("%+v, %v", again, err)
	}
	a.Body = []byte("other")
	if _, err := b.engine.Prompt(t.Context(), a); !fault.Is(err, fault.IdempotencyConflict) {
		t.Fatalf("err %v", err)
	}
	b.wait(ses)
	if got := b.texts(ses); got != "once" {
		t.Fatalf("answers %q", got)
	}
}

func TestQuestionWaitsForItsAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ses := b.session()
	input, _ := json.Marshal(map[string]any{"questions": []any{map[string]any{
		"question": "Which?", "header": "Pick", "options": []any{map[string]any{"label": "red", "description": "r"}, map[string]any{"label": "blue", "description": "b"}},
	}}})
	b.prompt(ses, "tool:question:"+string(input))
	que := pendingQuestion(b)
	active, err := b.engine.Active(t.Context())
	if err != nil || active[ses.ID].Waiting != "question" {
		t.Fatalf("%+v, %v", active, err)
	}
	if _, err := b.asks.Reply(t.Context(), que.ID, response()); !fault.Is(err, fault.ValidationFailed) {
		t.Fatalf("no answer for one question: %v", err)
	}
	if _, err := b.asks.Reply(t.Context(), que.ID, response([]string{"blue"})); err != nil {
		t.Fatal(err)
	}
	if got := b.wait(ses); got.Outcome != "completed" || !strings.Contains(b.texts(ses), "blue") {
		t.Fatalf("%+v, %q", got, b.texts(ses))
	}
}

func TestProviderTrouble(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for script, want := range map[string]string{"http:401": chat.ErrProviderAuth, "http:503": chat.ErrAPI, "cut": chat.ErrAPI} {
		ses := b.session()
		b.prompt(ses, script)
		got := b.wait(ses)
		if got.Outcome != "failed" || got.Turn.Error == nil || got.Turn.Error.Name != want {
			t.Fatalf("%s: %+v", script, got.Turn.Error)
		}
		for _, item := range b.items(ses) {
			if a, ok := item.Info.(*chat.AssistantMessage); ok && a.Time.Completed == 0 {
				t.Fatalf("%s: an answer is still open", script)
			}
		}
	}
}

func TestShutdownInterruptsAndNextStartSettles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ses := b.session()
	b.prompt(ses, "hang")
	b.eventually("open answer", func() bool { return len(b.items(ses)) == 2 })
	if err := b.engine.Close(); err != nil {
		t.Fatal(err)
	}
	last, ok, err := b.sessions.LastTurn(t.Context(), ses.ID)
	if err != nil || !ok || last.State != "interrupted" {
		t.Fatalf("%+v, %v", last, err)
	}
	if _, err := b.engine.Prompt(t.Context(), admission(ses, "say:x")); !fault.Is(err, fault.Stopping) {
		t.Fatalf("err %v", err)
	}
}

func TestDeletedSessionStopsItsTurn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ses := b.session()
	b.prompt(ses, "hang")
	done := make(chan agent.WaitResult, 1)
	go func() {
		out, _ := b.engine.Wait(context.WithoutCancel(t.Context()), agent.WaitInput{SessionID: ses.ID})
		done <- out
	}()
	gone, err := b.sessions.Delete(t.Context(), ses.ID)
	if err != nil || len(gone) != 1 {
		t.Fatalf("%v, %v", gone, err)
	}
	b.engine.Forget(gone)
	if out := <-done; out.Outcome != "deleted" {
		t.Fatalf("%+v", out)
	}
	if _, err := b.engine.Prompt(t.Context(), admission(ses, "say:x")); !fault.Is(err, fault.SessionNotFound) {
		t.Fatalf("err %v", err)
	}
}
