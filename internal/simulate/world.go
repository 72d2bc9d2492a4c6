package simulate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	iofs "io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/switchyard-dev/switchyard/agent"
	"github.com/switchyard-dev/switchyard/agent/definition"
	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/permission"
	"github.com/switchyard-dev/switchyard/project"
	"github.com/switchyard-dev/switchyard/question"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/tool"
)

// stillFor bounds the wait for things to come to rest between two actions.
const stillFor = 150 * time.Millisecond

// world is one history while it happens.
type world struct {
	dir    string
	rng    *rand.Rand
	gates  *gates
	script *script
	place  *place
	skew   *skew
	resume bool
	trace  []string

	faults *faults
	server *server
	boots  int

	project  id.Project
	sessions []id.Session
	gone     map[id.Session]bool
	acked    []ack
	clients  []*client
}

// ack is a prompt that a caller was told is stored.
type ack struct {
	session id.Session
	message id.Message
}

// server is what one boot of the program has.
type server struct {
	store       *store.DB
	bus         *event.Bus
	sessions    *session.Service
	permissions *permission.Service
	questions   *question.Service
	engine      *agent.Engine
}

// faults makes writes fail on demand. It is safe for concurrent use.
type faults struct {
	mu     sync.Mutex // protects what follows
	before int        // writes that will fail
	after  int        // writes whose answer will be lost
	dead   bool       // nothing is written any more
}

var errFault = errors.New("scripted fault")

func (f *faults) fault(committed bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := &f.before
	if committed {
		n = &f.after
	}
	if f.dead && !committed {
		return errFault
	}
	if *n == 0 {
		return nil
	}
	*n--
	return errFault
}

func (f *faults) arm(before, after int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.after = before, after
}

// skew is a wall clock that jumps.
type skew struct {
	mu sync.Mutex // protects by
	by time.Duration
}

func (s *skew) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.by)
}

func (s *skew) jump(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by += by
}

// newWorld makes a world in dir over a store that is a copy of template.
func newWorld(ctx context.Context, seed uint64, dir, template string) (*world, error) {
	data, err := os.ReadFile(template)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "s.db"), data, 0o600); err != nil {
		return nil, err
	}
	w := &world{
		dir: dir, rng: rand.New(rand.NewPCG(seed, 1)), gates: newGates(), skew: &skew{}, faults: &faults{}, gone: map[id.Session]bool{},
	}
	w.script = &script{gates: w.gates, rng: rand.New(rand.NewPCG(seed, 2)), done: map[string]int{}}
	w.resume = w.rng.IntN(2) == 0
	files := filepath.Join(dir, "files")
	if err := os.Mkdir(files, 0o700); err != nil {
		return nil, err
	}
	local, err := env.Local(files)
	if err != nil {
		return nil, err
	}
	w.place = &place{env: local, script: w.script}
	w.place.settings = agent.Settings{
		Agents: definition.Builtin(), DefaultAgent: definition.DefaultAgent, Models: w.place, Rules: w.rules(),
		DefaultModel: chat.ModelRef{ProviderID: "sim", ModelID: "sim"},
		Instructions: func(context.Context) ([]string, error) { return nil, nil },
	}
	if err := w.boot(ctx); err != nil {
		return nil, err
	}
	w.project, err = project.NewService(w.server.store, id.NewSource(w.skew.now, nil)).Ensure(ctx, project.Locate(files))
	return w, err
}

// rules lets some tools act, and makes others ask.
func (w *world) rules() []rule.Rule {
	out := []rule.Rule{{Permission: "*", Pattern: "*", Action: rule.Allow}}
	for _, name := range []string{"act", "change", "keep", "look"} {
		if w.rng.IntN(3) == 0 {
			out = append(out, rule.Rule{Permission: name, Pattern: "*", Action: rule.Ask})
		}
	}
	return out
}

// boot starts a server on the store.
func (w *world) boot(ctx context.Context) error {
	w.boots++
	owner := fmt.Sprintf("sim%d", w.boots)
	w.faults.mu.Lock()
	w.faults.dead, w.faults.before, w.faults.after = false, 0, 0
	w.faults.mu.Unlock()
	db, err := store.Open(ctx, store.Config{URL: filepath.Join(w.dir, "s.db"), Owner: owner, Relaxed: true, Fault: w.faults.fault})
	if err != nil {
		return err
	}
	boot := db.Boot()
	s := &server{store: db}
	s.bus = event.NewBus(ctx, event.Config{Epoch: boot.Epoch, Start: boot.Head, Gaps: boot.Gaps, Log: db})
	db.OnCommit(func(events []store.Event) {
		s.bus.Commit(events)
		w.watch(events)
	})
	ids := id.NewSource(w.skew.now, nil)
	s.sessions, s.permissions, s.questions = session.NewService(db, ids, s.bus), permission.NewService(db, ids), question.NewService(db, ids)
	s.engine = agent.New(ctx, agent.Config{
		Sessions: s.sessions, Permissions: s.permissions, Questions: s.questions, Tools: w.script.tools(), Workplaces: w.place,
		IDs: ids, Owner: owner, Generation: boot.Number, Resume: w.resume, Retry: retryPolicy(),
	})
	w.server = s
	_, err = s.engine.Recover(ctx)
	return err
}

// watch follows the sessions' turns by their events.
func (w *world) watch(events []store.Event) {
	for _, e := range events {
		ses := id.Session(e.SessionID)
		switch e.Type {
		case "session.status":
			var p session.StatusPayload
			if json.Unmarshal(e.Payload, &p) == nil {
				w.gates.note(ses, e.Seq, p.Status.Type != "idle", p.Status.Waiting != "")
			}
		case "session.deleted":
			w.gates.note(ses, e.Seq, false, false)
		}
	}
}

// halt ends the server: by a crash nothing more is written, else in order.
func (w *world) halt(crash bool) error {
	s := w.server
	if crash {
		w.faults.mu.Lock()
		w.faults.dead = true
		w.faults.mu.Unlock()
		s.engine.Drop()
	}
	err := s.engine.Close()
	for _, c := range w.clients {
		c.disconnect()
	}
	s.bus.Close()
	w.gates.forget()
	return errors.Join(err, s.store.Close())
}

// fileOf is the file that a call of the write class replaces.
func fileOf(c *tool.Call) string { return filepath.Join(c.Directory, string(c.SessionID)) }

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

func hashOf(c *tool.Call) (string, error) {
	data, err := os.ReadFile(fileOf(c))
	if errors.Is(err, iofs.ErrNotExist) {
		return "", nil
	}
	return sum(data), err
}
