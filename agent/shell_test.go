package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/agent"
	"github.com/switchyard-dev/switchyard/agent/definition"
	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/session"
)

func typed(ses session.Session, command string) session.ShellAdmission {
	return session.ShellAdmission{Admission: session.Admission{
		SessionID: ses.ID, Prompt: session.Prompt{Text: command}, Agent: definition.DefaultAgent, Body: []byte(command),
	}}
}

// TestAShellThatHadNotBegun crashes right after the command was stored: it is
// settled as not run, or runs where turns go on, and then no model is called.
func TestAShellThatHadNotBegun(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		resume  bool
		want    agent.Recovery
		outcome string
		reason  any
	}{
		"settle": {false, agent.Recovery{Settled: 1}, "interrupted", "interrupted"},
		"resume": {true, agent.Recovery{Resumed: 1}, "completed", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, rule.Rule{Permission: "*", Pattern: "*", Action: rule.Ask})
			ses := b.session()
			a := typed(ses, "echo ran >> f")
			a.Owner, a.Generation = "dead", 1
			if _, err := b.sessions.AdmitShell(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			if out := b.restart(tt.resume); out != tt.want {
				t.Fatalf("recovery: %+v", out)
			}
			if got := b.wait(ses); got.Outcome != tt.outcome {
				t.Errorf("outcome %s", got.Outcome)
			}
			data, err := os.ReadFile(filepath.Join(b.dir, "f"))
			if ran := err == nil && string(data) == "ran\n"; ran != tt.resume {
				t.Errorf("file %q, %v", data, err)
			}
			checkShell(t, b, ses, tt.reason)
		})
	}
}

// TestAShellThatHadBegunIsNeverRunAgain crashes while the command runs.
func TestAShellThatHadBegunIsNeverRunAgain(t *testing.T) {
	t.Parallel()
	for _, resume := range []bool{false, true} {
		b := setup(t)
		ses := b.session()
		if _, err := b.engine.Shell(t.Context(), typed(ses, "echo ran >> f; sleep 300")); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(b.dir, "f")
		b.eventually("a running command", func() bool {
			data, err := os.ReadFile(file)
			return err == nil && len(data) > 0
		})
		b.crash(resume)
		outcome := "interrupted"
		if resume {
			outcome = "completed"
		}
		if got := b.wait(ses); got.Outcome != outcome {
			t.Errorf("resume %v: outcome %s", resume, got.Outcome)
		}
		if data, err := os.ReadFile(file); err != nil || string(data) != "ran\n" {
			t.Errorf("resume %v: file %q, %v", resume, data, err)
		}
		checkShell(t, b, ses, "outcome_unknown")
	}
}

// checkShell: two whole messages, one call; reason nil is a call that ran.
func checkShell(t *testing.T, b *bundle, ses session.Session, reason any) {
	t.Helper()
	items := b.items(ses)
	if len(items) != 2 || len(items[1].Parts) != 1 {
		t.Fatalf("%d messages", len(items))
	}
	if answer, ok := items[1].Info.(*chat.AssistantMessage); !ok || answer.Time.Completed == 0 {
		t.Errorf("answer: %+v", items[1].Info)
	}
	switch state := b.tools(ses)[0].State.(type) {
	case *chat.ToolCompleted:
		if reason != nil {
			t.Errorf("the call ran, want %v", reason)
		}
	case *chat.ToolError:
		if state.Metadata["reason"] != reason {
			t.Errorf("the call: %+v, want %v", state, reason)
		}
	default:
		t.Errorf("the call: %+v", state)
	}
	for _, e := range b.events(ses) {
		if strings.HasPrefix(e.Type, "permission.") {
			t.Errorf("event %s", e.Type)
		}
	}
}
