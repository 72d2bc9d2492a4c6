package crashtest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/failpoint"
	"github.com/switchyard-dev/switchyard/llm/llmtest"
)

// world is one store with what a client knows of it.
type world struct {
	t     *testing.T
	rng   *rand.Rand
	model *llmtest.Server
	// state, home and dir are the server's state, its owner's home and the
	// directory in which the sessions work.
	state, home, dir string
	sessions         []string
	// acked are the prompts that the server acknowledged, by message.
	acked map[string]string
	// sleeps are the sessions that were told to run a command for long.
	sleeps map[string]bool
	serial int
	seed   uint64
}

// newWorld makes a world whose every choice follows from the seed.
func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), model: llmtest.New(t), seed: seed,
		state: t.TempDir(), home: t.TempDir(), acked: map[string]string{}, sleeps: map[string]bool{},
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w.dir = dir
	w.model.SetChunk(20)
	w.file(filepath.Join(dir, "notes"), "alpha one omega\n", 0o600)
	// One line for each time that the command ran.
	w.file(filepath.Join(dir, "effect"), "#!/bin/sh\necho \"$1\" >> effects\n[ -z \"$2\" ] || sleep \"$2\"\n", 0o700)
	w.configure()
	return w
}

func (w *world) file(name, text string, mode os.FileMode) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) configure() {
	w.t.Helper()
	config := map[string]any{
		"model": "fake/scripted", "recover": []string{"settle", "resume"}[w.rng.IntN(2)],
		"permission": map[string]any{"*": "allow", "bash": map[string]any{"*": "allow", "./effect ask*": "ask"}},
		"provider": map[string]any{"fake": map[string]any{
			"npm": "@ai-sdk/openai-compatible", "options": map[string]any{"baseURL": w.model.URL(), "apiKey": "sk-canary-of-the-test"},
			"models": map[string]any{"scripted": map[string]any{"name": "Scripted"}},
		}},
	}
	text, err := json.Marshal(config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.file(filepath.Join(w.home, ".config", "switchyard", "switchyard.json"), string(text), 0o600)
}

// written is how often a line of a file is repeated: enough for more than one
// page, so that half a write shows.
const written = 400

// words is the script of the next prompt; unique names what it does.
func (w *world) words(ses string) string {
	w.serial++
	unique := fmt.Sprintf("t%d-%d", w.seed, w.serial)
	effect := fmt.Sprintf(`tool:bash:{"command":"./effect %s"}`, unique)
	read := `tool:read:{"path":"notes"}`
	switch w.rng.IntN(12) {
	case 0:
		return "say:hello"
	case 1: // long enough for checkpoints
		text := "say:" + strings.Repeat(unique+" ", 40)
		w.model.Enqueue(llmtest.Turn{
			Steps: []llmtest.Step{llmtest.Text(text)}, ChunkDelay: 15 * time.Millisecond,
			Match: func(r llmtest.Request) bool { return len(r.UserTexts()) > 0 && r.UserTexts()[0] == text },
		})
		return text
	case 2:
		return read
	case 3:
		return w.write(unique)
	case 4:
		return fmt.Sprintf(`tool:edit:{"path":"notes","oldString":"alpha","newString":"alpha %s"}`, unique)
	case 5:
		return effect
	case 6:
		w.sleeps[ses] = true
		return fmt.Sprintf(`tool:bash:{"command":"./effect %s 10"}`, unique)
	case 7:
		return strings.Join([]string{read, effect, read, w.write(unique)}, "\n")
	case 8:
		return fmt.Sprintf(`tool:bash:{"command":"./effect ask-%s"}`, unique)
	case 9:
		return `tool:question:{"questions":[{"question":"Which?","header":"Which","options":[{"label":"this"},{"label":"that"}]}]}`
	case 10:
		return fmt.Sprintf(`tool:task:{"description":"work","subagent_type":"general","prompt":%q}`, effect)
	default:
		return `tool:todowrite:{"todos":[{"content":"x","status":"pending","priority":"low"}]}` + "\n" + effect
	}
}

func (w *world) write(unique string) string {
	content, err := json.Marshal(strings.Repeat(unique+"\n", written))
	if err != nil {
		w.t.Fatal(err)
	}
	return fmt.Sprintf(`tool:write:{"path":"out%d","content":%s}`, w.rng.IntN(3), content)
}

// act sends prompts of all kinds, as long as the server lives.
func (w *world) act(s *server) {
	for range 3 + w.rng.IntN(4) {
		ses := w.session(s)
		if ses == "" {
			return
		}
		w.serial++
		msg := fmt.Sprintf("msg_%d_%d", w.seed, w.serial)
		in := map[string]any{"messageID": msg, "prompt": map[string]any{"text": w.words(ses)}}
		if w.rng.IntN(3) == 0 {
			in["delivery"] = "deferred"
		}
		switch status := s.call("POST", "/api/session/"+ses+"/prompt", in, nil); status {
		case http.StatusOK:
			w.acked[msg] = ses
		case 0:
			return
		default:
			w.t.Errorf("a prompt got %d", status)
		}
		if w.rng.IntN(4) == 0 {
			w.answerAll(s)
		}
	}
}

// session gives an old session or a new one; "" when the server is gone.
func (w *world) session(s *server) string {
	if n := len(w.sessions); n > 0 && w.rng.IntN(3) > 0 {
		return w.sessions[n-1-w.rng.IntN(min(n, 4))]
	}
	var ses struct{ ID string }
	if status := s.call("POST", "/api/session", map[string]any{}, &ses); status != http.StatusOK {
		return ""
	}
	w.sessions = append(w.sessions, ses.ID)
	return ses.ID
}

// answerAll answers what is asked, some one way, some the other.
func (w *world) answerAll(s *server) { w.reply(s, true) }

// reply answers what is asked; refuse lets it also say no.
func (w *world) reply(s *server, refuse bool) {
	var permissions, questions []struct{ ID string }
	s.call("GET", "/api/permission?scope=server", nil, &permissions)
	for _, p := range permissions {
		in := map[string]any{"response": "once"}
		if refuse && w.rng.IntN(3) == 0 {
			in["response"] = "reject"
		}
		s.call("POST", "/api/permission/"+p.ID+"/reply", in, nil)
	}
	s.call("GET", "/api/question?scope=server", nil, &questions)
	for _, q := range questions {
		if refuse && w.rng.IntN(4) == 0 {
			s.call("POST", "/api/question/"+q.ID+"/reject", map[string]any{"message": "no"}, nil)
			continue
		}
		s.call("POST", "/api/question/"+q.ID+"/reply", map[string]any{"response": map[string]any{"answers": [][]string{{"this"}}}}, nil)
	}
}

// moment chooses where the server dies: at a commit point, or "" for any moment.
func (w *world) moment() string {
	if w.rng.IntN(2) == 0 {
		return ""
	}
	points := failpoint.Points()
	point := points[w.rng.IntN(len(points))]
	when := []string{"before", "after"}[w.rng.IntN(2)]
	return fmt.Sprintf("%s.%s:%d", point, when, 1+w.rng.IntN(5))
}
