package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/cli"
)

// serveInstead makes the test binary be the program, for tests that need a real
// process to kill.
const serveInstead = "SWITCHYARD_TEST_BE_THE_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(serveInstead) != "" {
		os.Exit(run())
	}
	os.Exit(m.Run())
}

// process is a server in a process of its own.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	url   string
	token string
}

func spawn(t *testing.T, state, home string, flags ...string) *process {
	t.Helper()
	p := &process{t: t, token: "swy_test-token-of-at-least-forty-characters-0123456789"}
	args := append([]string{"serve", "--port", "0", "--state", state, "--directory", home}, flags...)
	p.cmd = exec.Command(os.Args[0], args...) // killed by the test
	p.cmd.Env = []string{serveInstead + "=1", "HOME=" + home, "PATH=" + os.Getenv("PATH"), "SWITCHYARD_TOKEN=" + p.token}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	p.cmd.Stderr = &errs
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var at cli.Runtime
	if err != nil || json.Unmarshal(line, &at) != nil {
		p.kill()
		t.Fatalf("the server did not start: %q %v %s", line, err, errs.String())
	}
	p.url = at.URL
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// call sends JSON and decodes the "data" of the answer; a server that is gone is
// no failure here.
func (p *process) call(method, path string, in, out any) (status int) {
	data, err := json.Marshal(in)
	if err != nil {
		p.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, bytes.NewReader(data))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0
	}
	answer := struct {
		Data any `json:"data"`
	}{Data: out}
	if out != nil && res.StatusCode == http.StatusOK {
		if err := json.Unmarshal(body, &answer); err != nil {
			p.t.Fatalf("%s: %v", body, err)
		}
	}
	return res.StatusCode
}

// TestKillAtAnyMomentLeavesNoSessionStuck kills a server in the middle of turns
// and starts it again on the same store: what was acknowledged is there, nothing
// is busy, every answer is closed, and each session takes a new prompt.
func TestKillAtAnyMomentLeavesNoSessionStuck(t *testing.T) {
	t.Parallel()
	state, home := t.TempDir(), t.TempDir()
	p := spawn(t, state, home)
	defer func() { p.kill() }()
	scripts := []string{"say:hello", "hang", `tool:todowrite:{"todos":[]}`, `tool:bash:{"command":"sleep 60"}`, `tool:write:{"path":"x","content":"y"}`}
	for round := range 6 {
		accepted := map[string]string{} // message by session
		for n, script := range scripts {
			var ses struct {
				ID string `json:"id"`
			}
			if status := p.call("POST", "/api/session", map[string]any{}, &ses); status != http.StatusOK {
				t.Fatalf("creating a session: %d", status)
			}
			msg := fmt.Sprintf("msg_r%dn%d", round, n)
			in := map[string]any{"messageID": msg, "prompt": map[string]any{"text": script}}
			if p.call("POST", "/api/session/"+ses.ID+"/prompt", in, nil) == http.StatusOK {
				accepted[ses.ID] = msg
			}
		}
		<-time.After(time.Duration(rand.IntN(40)) * time.Millisecond)
		p.kill()
		p = spawn(t, state, home)
		checkSettled(t, p, accepted)
	}
}

func checkSettled(t *testing.T, p *process, accepted map[string]string) {
	t.Helper()
	refuseAsked(t, p)
	for ses, msg := range accepted {
		checkClosed(t, p, ses, msg)
		var waited struct{ Outcome string }
		p.call("POST", "/api/session/"+ses+"/prompt", map[string]any{"prompt": map[string]any{"text": "say:again"}}, nil)
		if p.call("POST", "/api/session/"+ses+"/wait", map[string]any{"timeout": 20_000}, &waited); waited.Outcome != "completed" {
			t.Fatalf("a new prompt ended %q", waited.Outcome)
		}
	}
}

// refuseAsked: what is busy waits for a person, whose answer ends the turn.
func refuseAsked(t *testing.T, p *process) {
	t.Helper()
	var active map[string]struct{ Waiting string }
	p.call("GET", "/api/session/active?scope=server", nil, &active)
	var asked []struct{ ID, SessionID string }
	p.call("GET", "/api/permission?scope=server", nil, &asked)
	refused := map[string]bool{}
	for _, a := range asked {
		if status := p.call("POST", "/api/permission/"+a.ID+"/reply", map[string]any{"response": "reject"}, nil); status != http.StatusNoContent {
			t.Fatalf("replying after a restart: %d", status)
		}
		refused[a.SessionID] = true
	}
	for ses, status := range active {
		if status.Waiting == "" {
			continue // a prompt that had not begun when the server died
		}
		if !refused[ses] {
			t.Fatalf("session %s waits for nobody: %+v", ses, status)
		}
	}
	for ses := range active {
		var waited struct{ Outcome string }
		if p.call("POST", "/api/session/"+ses+"/wait", map[string]any{"timeout": 2_000}, &waited); waited.Outcome == "timeout" && refused[ses] {
			t.Fatalf("the turn goes on after a refusal: %+v", waited)
		}
		p.call("POST", "/api/session/"+ses+"/interrupt", map[string]any{}, nil)
		p.call("POST", "/api/session/"+ses+"/wait", map[string]any{"timeout": 20_000}, &waited)
	}
}

// checkClosed: the prompt is there, and what answered it is over.
func checkClosed(t *testing.T, p *process, ses, msg string) {
	t.Helper()
	var items []struct {
		Info struct {
			ID, Role string
			Time     struct{ Completed int64 }
		}
		Parts []struct {
			Type  string
			State struct{ Status string }
		}
	}
	if status := p.call("GET", "/api/session/"+ses+"/context", nil, &items); status != http.StatusOK || len(items) == 0 || items[0].Info.ID != msg {
		t.Fatalf("an acknowledged prompt is gone: %d %+v", status, items)
	}
	for _, m := range items {
		if m.Info.Role == "assistant" && m.Info.Time.Completed == 0 {
			t.Fatalf("an answer is open after a restart: %+v", m)
		}
		for _, part := range m.Parts {
			if s := part.State.Status; s == "pending" || s == "running" {
				t.Fatalf("a call is %s after a restart", s)
			}
		}
	}
}

// TestAKilledServersChildrenAreEnded kills a server while a command runs; the
// next start ends the command, and what it started in a session of its own.
func TestAKilledServersChildrenAreEnded(t *testing.T) {
	t.Parallel()
	state, home := t.TempDir(), t.TempDir()
	p := spawn(t, state, home)
	defer func() { p.kill() }()
	var ses struct {
		ID string `json:"id"`
	}
	p.call("POST", "/api/session", map[string]any{}, &ses)
	pids := filepath.Join(home, "pids")
	script := `tool:bash:{"command":"setsid sh -c 'echo $$ >> pids; sleep 300' & echo $$ >> pids; sleep 300"}`
	p.call("POST", "/api/session/"+ses.ID+"/prompt", map[string]any{"prompt": map[string]any{"text": script}}, nil)
	var running []string
	for end := time.Now().Add(20 * time.Second); len(running) < 2 && time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		allowAsked(p)
		data, _ := os.ReadFile(pids)
		running = strings.Fields(string(data))
	}
	if len(running) != 2 {
		t.Fatalf("processes: %v", running)
	}
	p.kill()
	p = spawn(t, state, home)
	for _, pid := range running {
		if data, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && !strings.Contains(string(data), ") Z ") {
			t.Errorf("process %s is left: %s", pid, data)
		}
	}
}

// TestSC14_KeysAndPromptsOutliveAKill kills a server right after it has answered:
// the prompt is there, and the same key gives the same answer.
func TestSC14_KeysAndPromptsOutliveAKill(t *testing.T) {
	t.Parallel()
	state, home := t.TempDir(), t.TempDir()
	p := spawn(t, state, home)
	defer func() { p.kill() }()
	key := func() (string, bool) {
		var ses struct{ ID string }
		status, header := p.keyed("/api/session", "create", map[string]any{"title": "T"}, &ses)
		if status != http.StatusOK {
			t.Fatalf("creating with a key: %d", status)
		}
		return ses.ID, header.Get("Idempotent-Replayed") == "true"
	}
	ses, replayed := key()
	if replayed {
		t.Error("the first answer is marked as replayed")
	}
	in := map[string]any{"messageID": "msg_p2", "prompt": map[string]any{"text": "say:done"}}
	if status := p.call("POST", "/api/session/"+ses+"/prompt", in, nil); status != http.StatusOK {
		t.Fatalf("prompting: %d", status)
	}
	p.kill()
	p = spawn(t, state, home)
	if again, replayed := key(); again != ses || !replayed {
		t.Errorf("session %s, then %s, replayed %v", ses, again, replayed)
	}
	var prompted struct{ MessageID string }
	if status := p.call("POST", "/api/session/"+ses+"/prompt", in, &prompted); status != http.StatusOK || prompted.MessageID != "msg_p2" {
		t.Errorf("the prompt again: %d %+v", status, prompted)
	}
	// The kill came before the turn's end, or after.
	waited := p.wait(ses)
	if waited != "completed" && waited != "interrupted" {
		t.Errorf("the turn ended %q", waited)
	}
	items := p.items(ses)
	if items[0].Info.ID != "msg_p2" || waited == "completed" && items[len(items)-1].Info.Role != "assistant" {
		t.Errorf("messages: %+v", items)
	}
}

// TestAKilledCreationIsMadeOnce kills a server while it creates sessions with
// keys; sending each again gives one session, whether it was made before or not.
func TestAKilledCreationIsMadeOnce(t *testing.T) {
	t.Parallel()
	state, home := t.TempDir(), t.TempDir()
	p := spawn(t, state, home)
	defer func() { p.kill() }()
	made := map[string]string{} // session by key
	for round := range 6 {
		var wg sync.WaitGroup
		var mu sync.Mutex
		for n := range 8 {
			key := fmt.Sprintf("r%dn%d", round, n)
			wg.Go(func() {
				var ses struct{ ID string }
				status, _ := p.keyed("/api/session", key, map[string]any{}, &ses)
				mu.Lock()
				defer mu.Unlock()
				made[key] = ""
				if status == http.StatusOK {
					made[key] = ses.ID
				}
			})
		}
		<-time.After(time.Duration(rand.IntN(8000)) * time.Microsecond)
		p.kill()
		wg.Wait()
		p = spawn(t, state, home)
		for key, before := range made {
			var ses struct{ ID string }
			status, _ := p.keyed("/api/session", key, map[string]any{}, &ses)
			if status != http.StatusOK || before != "" && ses.ID != before {
				t.Fatalf("%s: %d, session %q, then %q", key, status, before, ses.ID)
			}
			made[key] = ses.ID
		}
	}
	var all []struct{ ID string }
	p.call("GET", "/api/session?scope=server&limit=200", nil, &all)
	different := map[string]bool{}
	for _, ses := range made {
		different[ses] = true
	}
	if len(all) != len(made) || len(different) != len(made) {
		t.Errorf("%d sessions, %d of them told, for %d keys", len(all), len(different), len(made))
	}
}

// keyed posts with an Idempotency-Key; 0 for a server that is gone.
func (p *process) keyed(path, key string, in, out any) (status int, header http.Header) {
	data, err := json.Marshal(in)
	if err != nil {
		p.t.Error(err)
		return 0, nil
	}
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.url+path, bytes.NewReader(data))
	if err != nil {
		p.t.Error(err)
		return 0, nil
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil
	}
	defer res.Body.Close()
	answer := struct {
		Data any `json:"data"`
	}{Data: out}
	if res.StatusCode == http.StatusOK && json.NewDecoder(res.Body).Decode(&answer) != nil {
		return 0, nil
	}
	return res.StatusCode, res.Header
}

func allowAsked(p *process) {
	var asked []struct{ ID string }
	p.call("GET", "/api/permission?scope=server", nil, &asked)
	for _, a := range asked {
		p.call("POST", "/api/permission/"+a.ID+"/reply", map[string]any{"response": "once"}, nil)
	}
}
