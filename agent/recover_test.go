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
	"github.com/switchyard-dev/switchyard/llm"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
	"github.com/switchyard-dev/switchyard/tool"
)

// crash ends the engine as a kill does: nothing more is written. The next one is
// another server on the same store.
func (b *bundle) crash(resume bool) agent.Recovery {
	b.t.Helper()
	b.engine.Drop()
	return b.restart(resume)
}

func (b *bundle) restart(resume bool) agent.Recovery {
	b.t.Helper()
	if err := b.engine.Close(); err != nil {
		b.t.Fatal(err)
	}
	b.boots++
	b.engine = agent.New(b.t.Context(), agent.Config{
		Sessions: b.sessions, Permissions: b.perms, Questions: b.asks, Tools: tool.NewRegistry(tool.Builtin()...), Workplaces: b.place,
		IDs: b.ids, Owner: "test" + strings.Repeat("'", b.boots), Generation: int64(b.boots + 1), Resume: resume,
		Retry: llm.RetryPolicy{Base: 5 * time.Millisecond, Max: time.Second},
	})
	out, err := b.engine.Recover(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func reason(t *testing.T, p *chat.ToolPart) string {
	t.Helper()
	failed, ok := p.State.(*chat.ToolError)
	if !ok {
		t.Fatalf("the call is %s", p.State.Status())
	}
	r, _ := failed.Metadata["reason"].(string)
	return r
}

func TestACrashSettlesWhatRan(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script string
		reason string // of the call; "" for none
	}{
		"text":   {"hang", ""},
		"effect": {`tool:bash:{"command":"sleep 60"}`, "outcome_unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, rule.Rule{Permission: "*", Pattern: "*", Action: rule.Allow})
			ses := b.session()
			b.prompt(ses, tt.script)
			b.eventually("a running turn", func() bool {
				tools := b.tools(ses)
				return tt.reason == "" && len(b.items(ses)) == 2 || len(tools) == 1 && tools[0].State.Status() == "running"
			})
			queued := b.prompt2(ses, "say:next", session.Deferred)
			if out := b.crash(false); out != (agent.Recovery{Settled: 1}) {
				t.Fatalf("recovery: %+v", out)
			}
			if got := b.wait(ses); got.Outcome != "completed" || got.Turn.MessageID != queued.MessageID {
				t.Errorf("the waiting prompt: %+v", got)
			}
			events := b.events(ses)
			if n := count(events, "session.idle"); n != 2 {
				t.Errorf("%d times idle", n)
			}
			for _, e := range events {
				if e.Type != "session.idle" {
					continue
				}
				if p := payload[session.Idle](t, e); p.Outcome != session.Interrupted {
					t.Errorf("outcome %s", p.Outcome)
				}
				break
			}
			answer := b.items(ses)[1].Info.(*chat.AssistantMessage)
			if answer.Time.Completed == 0 || answer.Error == nil || answer.Error.Name != chat.ErrAborted {
				t.Errorf("answer: %+v", answer)
			}
			if tt.reason != "" && reason(t, b.tools(ses)[0]) != tt.reason {
				t.Errorf("reason: %s", reason(t, b.tools(ses)[0]))
			}
		})
	}
}

func (b *bundle) prompt2(ses session.Session, text string, d session.Delivery) session.Admitted {
	b.t.Helper()
	a := admission(ses, text)
	a.Delivery = d
	out, err := b.engine.Prompt(b.t.Context(), a)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func TestACrashedTurnGoesOnWhereTheConfigurationSaysSo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ses := b.session()
	b.prompt(ses, "hang")
	for n := range 4 {
		b.eventually("another answer", func() bool { return len(b.items(ses)) == n+2 })
		want := agent.Recovery{Resumed: 1}
		if n == 3 {
			want = agent.Recovery{Settled: 1} // three times are enough
		}
		if out := b.crash(true); out != want {
			t.Fatalf("recovery %d: %+v", n, out)
		}
	}
	if got := b.wait(ses); got.Outcome != "interrupted" {
		t.Errorf("outcome %s", got.Outcome)
	}
}

func TestAPromptThatHadNotBegunStartsAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ses := b.session()
	a := admission(ses, "say:hello")
	a.Owner, a.Generation = "dead", 1
	if _, err := b.sessions.Admit(t.Context(), a); err != nil { // the crash came right after the answer
		t.Fatal(err)
	}
	if out := b.restart(false); out != (agent.Recovery{Resumed: 1}) {
		t.Fatalf("recovery: %+v", out)
	}
	if got := b.wait(ses); got.Outcome != "completed" || b.texts(ses) != "hello" {
		t.Errorf("%+v %q", got, b.texts(ses))
	}
}

// TestSC29_AnAskedPermissionSurvives crashes and stops the server while a call
// waits for a person; the reply then resumes the turn.
func TestSC29_AnAskedPermissionSurvives(t *testing.T) {
	t.Parallel()
	for name, orderly := range map[string]bool{"crash": false, "stop": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			ses := b.session()
			b.prompt(ses, `tool:write:{"path":"f","content":"new"}`)
			before := b.asked(1)[0]
			for range 5 { // more often than a turn goes on by itself
				if orderly {
					b.restart(false)
				} else if out := b.crash(false); out != (agent.Recovery{Resumed: 1}) {
					t.Fatalf("recovery: %+v", out)
				}
			}
			status, err := b.engine.Active(t.Context())
			if err != nil || status[ses.ID].Waiting != "permission" {
				t.Errorf("status %+v %v", status, err)
			}
			after := b.asked(1)[0]
			if after.ID != before.ID {
				t.Errorf("asked %s, then %s", before.ID, after.ID)
			}
			if _, err := b.perms.Reply(t.Context(), after.ID, rule.Once, ""); err != nil {
				t.Fatal(err)
			}
			if got := b.wait(ses); got.Outcome != "completed" {
				t.Errorf("outcome %s", got.Outcome)
			}
			if data, err := os.ReadFile(filepath.Join(b.dir, "f")); err != nil || string(data) != "new" {
				t.Errorf("file: %q %v", data, err)
			}
			if n := count(b.events(ses), "permission.asked"); n != 1 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

// TestSC31_AnAskedQuestionSurvives does the same with a question, and refuses
// one.
func TestSC31_AnAskedQuestionSurvives(t *testing.T) {
	t.Parallel()
	for name, orderly := range map[string]bool{"crash": false, "stop": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			ses := b.session()
			b.prompt(ses, `tool:question:{"questions":[{"question":"Which?","header":"W","options":[{"label":"a","description":""},{"label":"b","description":""}]}]}`)
			before := pendingQuestion(b)
			for range 2 {
				if orderly {
					b.restart(false)
				} else if out := b.crash(false); out != (agent.Recovery{Resumed: 1}) {
					t.Fatalf("recovery: %+v", out)
				}
			}
			if after := pendingQuestion(b); after.ID != before.ID || after.Tool.CallID != b.tools(ses)[0].CallID {
				t.Errorf("asked %+v, then %+v", before, after)
			}
			if _, err := b.asks.Reply(t.Context(), before.ID, response([]string{"b"})); err != nil {
				t.Fatal(err)
			}
			if got := b.wait(ses); got.Outcome != "completed" {
				t.Errorf("outcome %s", got.Outcome)
			}
			done, ok := b.tools(ses)[0].State.(*chat.ToolCompleted)
			if !ok || !strings.Contains(done.Output, "b") {
				t.Errorf("the call: %+v", b.tools(ses)[0].State)
			}
			if n := count(b.events(ses), "question.asked"); n != 1 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

// TestABegunWriteIsJudgedByItsFile crashes right before or after the effect of a
// write, or lets somebody else change the file.
func TestABegunWriteIsJudgedByItsFile(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		file   string
		status string
		reason string
	}{
		"not yet":       {"old", "error", "interrupted"},
		"written":       {"new", "completed", "recovered"},
		"somebody else": {"mine", "error", "outcome_unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			file := filepath.Join(b.dir, "f")
			write(t, file, "old")
			ses := b.session()
			b.prompt(ses, `tool:write:{"path":"f","content":"new"}`)
			b.asked(1)
			b.engine.Drop()
			b.begun(ses, file, "old", "new")
			write(t, file, tt.file)
			if out := b.restart(false); out != (agent.Recovery{Settled: 1}) {
				t.Fatalf("recovery: %+v", out)
			}
			if got := b.wait(ses); got.Outcome != "interrupted" {
				t.Errorf("outcome %s", got.Outcome)
			}
			state := b.tools(ses)[0].State
			var told struct{ Metadata struct{ Reason string } }
			if err := json.Unmarshal(mustJSON(t, state), &told); err != nil {
				t.Fatal(err)
			}
			if state.Status() != tt.status || told.Metadata.Reason != tt.reason {
				t.Errorf("%s %s", state.Status(), told.Metadata.Reason)
			}
		})
	}
}

// TestAWriteThatHappenedIsNotRepeated lets the turn go on after a crash: the file
// shows that the call did its work, so that it has its one result already.
func TestAWriteThatHappenedIsNotRepeated(t *testing.T) {
	t.Parallel()
	b := setup(t)
	file := filepath.Join(b.dir, "f")
	write(t, file, "old")
	ses := b.session()
	b.prompt(ses, `tool:write:{"path":"f","content":"new"}`)
	b.asked(1)
	b.engine.Drop()
	b.begun(ses, file, "old", "new")
	write(t, file, "new")
	if out := b.restart(true); out != (agent.Recovery{Resumed: 1}) {
		t.Fatalf("recovery: %+v", out)
	}
	if got := b.wait(ses); got.Outcome != "completed" {
		t.Errorf("outcome %s", got.Outcome)
	}
	done, ok := b.tools(ses)[0].State.(*chat.ToolCompleted)
	if !ok || done.Metadata["reason"] != "recovered" {
		t.Errorf("the call: %+v", b.tools(ses)[0].State)
	}
	turn, _, err := b.sessions.LastTurn(t.Context(), ses.ID)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := store.Get(t.Context(), b.store, func(ctx context.Context, r store.Reader) ([]db.ToolCall, error) {
		return r.ToolCallList(ctx, db.ToolCallListParams{TurnID: string(turn.ID)})
	})
	if err != nil || len(rows) != 1 || rows[0].State != "completed" {
		t.Errorf("it ran as %+v, %v", rows, err)
	}
}

// begun puts the store in the state right after C5 of the one asked call.
func (b *bundle) begun(ses session.Session, file, pre, post string) {
	b.t.Helper()
	part := b.tools(ses)[0]
	turn, _, err := b.sessions.OpenTurn(b.t.Context(), ses.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	err = b.store.Write(b.t.Context(), store.Durable, func(ctx context.Context, tx *store.Tx) error {
		if err := b.perms.Cancel(ctx, tx, turn.ID); err != nil {
			return err
		}
		return tx.ToolCallInsert(ctx, db.ToolCallInsertParams{
			ID: "cal_" + string(part.ID)[4:], SessionID: string(ses.ID), TurnID: string(turn.ID), MessageID: string(part.MessageID),
			PartID: string(part.ID), Tool: "write", Class: "write", State: "running",
			Pre: mustJSON(b.t, map[string]string{file: sha(pre)}), Post: mustJSON(b.t, map[string]string{file: sha(post)}), Started: 1,
		})
	})
	if err != nil {
		b.t.Fatal(err)
	}
}
