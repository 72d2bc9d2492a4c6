package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSC11_CrashRecovery kills a server in the middle of three kinds of work: a
// command that runs, with a prompt that waits behind it, and a request that waits
// for a person.
func TestSC11_CrashRecovery(t *testing.T) {
	t.Parallel()
	state, home := t.TempDir(), t.TempDir()
	p := spawn(t, state, home)
	defer func() { p.kill() }()

	running := p.session()
	p.prompt(running, `tool:bash:{"command":"echo $$ > pid; exec sleep 600"}`, "immediate")
	pid := p.runningCommand(t, filepath.Join(home, "pid"))
	queued := p.prompt(running, "say:after", "deferred")
	asked := p.session()
	p.prompt(asked, `tool:write:{"path":"f","content":"x"}`, "immediate")
	before := p.pending(t, asked)

	p.kill()
	p = spawn(t, state, home)

	if waited := p.wait(running); waited != "completed" {
		t.Errorf("the waiting prompt ended %q", waited)
	}
	items := p.items(running)
	if len(items) < 4 || items[2].Info.ID != queued {
		t.Fatalf("messages: %+v", items)
	}
	call := items[1].tool()
	if call.Status != "error" || call.Metadata.Reason != "outcome_unknown" || items[1].Info.Time.Completed == 0 {
		t.Errorf("the call that ran: %+v of %+v", call, items[1].Info)
	}
	if stat, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && !strings.Contains(string(stat), ") Z ") {
		t.Errorf("the command is left: %s", stat)
	}
	after := p.pending(t, asked)
	if after != before {
		t.Errorf("asked %s, then %s", before, after)
	}
	if status := p.call("POST", "/api/permission/"+after+"/reply", map[string]any{"response": "once"}, nil); status != http.StatusNoContent {
		t.Errorf("replying: %d", status)
	}
	if waited := p.wait(asked); waited != "completed" {
		t.Errorf("the asked turn ended %q", waited)
	}
	if _, err := os.Stat(filepath.Join(home, "f")); err != nil {
		t.Error(err)
	}
	for _, ses := range []string{running, asked} {
		p.prompt(ses, "say:again", "immediate")
		if waited := p.wait(ses); waited != "completed" {
			t.Errorf("a new prompt ended %q", waited)
		}
	}
}

// item is a message with what these tests look at.
type item struct {
	Info struct {
		ID, Role string
		Time     struct{ Completed int64 }
	}
	Parts []struct {
		Type  string
		State callState
	}
}

type callState struct {
	Status   string
	Metadata struct{ Reason string }
}

// tool gives the state of the first call.
func (i item) tool() callState {
	for _, p := range i.Parts {
		if p.Type == "tool" {
			return p.State
		}
	}
	return callState{}
}

func (p *process) session() string {
	p.t.Helper()
	var ses struct{ ID string }
	if status := p.call("POST", "/api/session", map[string]any{}, &ses); status != http.StatusOK {
		p.t.Fatalf("creating a session: %d", status)
	}
	return ses.ID
}

// prompt gives the message's id.
func (p *process) prompt(ses, text, delivery string) string {
	p.t.Helper()
	var out struct{ MessageID string }
	in := map[string]any{"prompt": map[string]any{"text": text}, "delivery": delivery}
	if status := p.call("POST", "/api/session/"+ses+"/prompt", in, &out); status != http.StatusOK {
		p.t.Fatalf("prompting: %d", status)
	}
	return out.MessageID
}

func (p *process) wait(ses string) string {
	p.t.Helper()
	var out struct{ Outcome string }
	p.call("POST", "/api/session/"+ses+"/wait", map[string]any{"timeout": 20_000}, &out)
	return out.Outcome
}

func (p *process) items(ses string) []item {
	p.t.Helper()
	var out []item
	if status := p.call("GET", "/api/session/"+ses+"/context", nil, &out); status != http.StatusOK {
		p.t.Fatalf("reading messages: %d", status)
	}
	return out
}

// pending waits for the one request of a session and gives its id.
func (p *process) pending(t *testing.T, ses string) string {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		var asked []struct{ ID string }
		p.call("GET", "/api/permission?scope=server&sessionID="+ses, nil, &asked)
		if len(asked) == 1 {
			return asked[0].ID
		}
	}
	t.Fatalf("nothing is asked in %s", ses)
	return ""
}

// runningCommand allows what is asked and waits until the command has written its
// process id.
func (p *process) runningCommand(t *testing.T, file string) string {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		allowAsked(p)
		if data, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(data)) != "" {
			return strings.TrimSpace(string(data))
		}
	}
	t.Fatal("the command does not run")
	return ""
}
