package crashtest

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/integrity"
	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// check holds the world against the promises, right after a restart. A server
// that dies meanwhile, at the commit point that was chosen for it, ends the look.
func (w *world) check(s *server) {
	w.t.Helper()
	w.children()
	w.settle(s)
	if s.gone() {
		return
	}
	w.rows(true)
	w.effects()
	w.files()
	w.answers(s)
}

// rows looks at the store from outside, while a server uses it or after.
func (w *world) rows(served bool) []integrity.Finding {
	w.t.Helper()
	seen, err := store.Inspect(w.t.Context(), w.database())
	if err != nil {
		w.t.Fatal(err)
	}
	defer seen.Close()
	var found []integrity.Finding
	err = seen.Read(w.t.Context(), func(ctx context.Context, r store.Reader) (err error) {
		if found, err = integrity.Check(ctx, r, integrity.Options{Served: served}); err != nil {
			return err
		}
		return w.acknowledged(ctx, r)
	})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range found {
		if !f.Note {
			w.t.Errorf("integrity: %s", f)
		}
	}
	return found
}

func (w *world) database() string { return filepath.Join(w.state, "switchyard.db") }

// acknowledged: each such prompt waits in the inbox or is a message.
func (w *world) acknowledged(ctx context.Context, r store.Reader) error {
	for msg, ses := range w.acked {
		_, err := r.MessageByID(ctx, db.MessageByIDParams{SessionID: ses, ID: msg})
		if store.IsNoRows(err) {
			var row db.Inbox
			if row, err = r.InboxByMessage(ctx, db.InboxByMessageParams{SessionID: ses, MessageID: msg}); err == nil && row.State != "queued" {
				w.t.Errorf("the prompt %s is %s and no message", msg, row.State)
			}
		}
		if store.IsNoRows(err) {
			w.t.Errorf("the acknowledged prompt %s of %s is lost", msg, ses)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// children: no process of an earlier server lives.
func (w *world) children() {
	w.t.Helper()
	epoch, boot := w.run()
	names, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended, or is another user's
		}
		for variable := range strings.SplitSeq(string(data), "\x00") {
			mark, ok := strings.CutPrefix(variable, "SWITCHYARD_CALL="+epoch+".")
			number, _, _ := strings.Cut(mark, ":")
			if of, err := strconv.ParseInt(number, 10, 64); ok && err == nil && of < boot && !ending(name) {
				line, _ := os.ReadFile(strings.TrimSuffix(name, "environ") + "cmdline")
				w.t.Errorf("a child of start %d lives in start %d: %s %q", of, boot, name, line)
			}
		}
	}
}

// ending tells of a process that is being taken away.
func ending(name string) bool {
	data, err := os.ReadFile(strings.TrimSuffix(name, "environ") + "stat")
	_, after, found := strings.Cut(string(data), ") ")
	return err != nil || !found || after[0] == 'Z' || after[0] == 'X'
}

// run gives the store's epoch and the number of the server's start.
func (w *world) run() (epoch string, boot int64) {
	w.t.Helper()
	seen, err := store.Inspect(w.t.Context(), w.database())
	if err != nil {
		w.t.Fatal(err)
	}
	defer seen.Close()
	err = seen.Read(w.t.Context(), func(ctx context.Context, r store.Reader) error {
		if epoch, err = r.MetaGet(ctx, db.MetaGetParams{Name: "epoch"}); err != nil {
			return err
		}
		boot, err = r.BootLast(ctx)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return epoch, boot
}

// settle waits until every session is idle, or waits for a person who is asked.
// Commands that take long are stopped: that they may run is no fault.
func (w *world) settle(s *server) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		busy := w.busy(s)
		if len(busy) == 0 || s.gone() {
			return
		}
		if time.Now().After(deadline) {
			w.t.Errorf("sessions are stuck: %v\n%s", busy, s.errs.String())
			return
		}
		for ses := range busy {
			if w.sleeping(ses) {
				s.call("POST", "/api/session/"+ses+"/interrupt", map[string]any{}, nil)
			}
		}
		<-time.After(15 * time.Millisecond)
	}
}

// sleeping tells whether a session may run a long command.
func (w *world) sleeping(ses string) bool { return w.sleeps[ses] }

// busy are the sessions that neither are idle nor wait for an answer to what is
// listed.
func (w *world) busy(s *server) map[string]string {
	w.t.Helper()
	var active map[string]struct{ Type, Waiting string }
	if status := s.call("GET", "/api/session/active?scope=server", nil, &active); status != http.StatusOK && !s.gone() {
		w.t.Errorf("the server answers %d\n%s", status, s.errs.String())
	}
	// The lists come after: what was asked meanwhile is in them.
	listed := map[string]bool{}
	for _, what := range []string{"permission", "question"} {
		var asked []struct{ SessionID, RootSessionID string }
		s.call("GET", "/api/"+what+"?scope=server", nil, &asked)
		for _, a := range asked {
			listed[a.SessionID], listed[a.RootSessionID] = true, true // the parent runs its child
		}
	}
	busy := map[string]string{}
	for ses, status := range active {
		if !listed[ses] {
			busy[ses] = status.Type + " " + status.Waiting
		}
	}
	return busy
}

// effects: each command ran at most once.
func (w *world) effects() {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, "effects"))
	if err != nil {
		return // nothing ran yet
	}
	count := map[string]int{}
	for line := range strings.Lines(string(data)) {
		if count[line]++; count[line] == 2 {
			w.t.Errorf("the effect %q happened twice", line)
		}
	}
}

// files: each is as some call wrote it, whole.
func (w *world) files() {
	w.t.Helper()
	names, err := filepath.Glob(filepath.Join(w.dir, "out*"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		first, _, _ := strings.Cut(string(data), "\n")
		if err != nil || string(data) != strings.Repeat(first+"\n", written) {
			w.t.Errorf("%s is half written: %d bytes, %v", name, len(data), err)
		}
	}
	notes, err := os.ReadFile(filepath.Join(w.dir, "notes"))
	if text := string(notes); err != nil || !strings.HasPrefix(text, "alpha ") || !strings.HasSuffix(text, " one omega\n") {
		w.t.Errorf("the edited file is %q, %v", text, err)
	}
}

// answers: some session that is idle takes a new prompt and completes it.
func (w *world) answers(s *server) {
	w.t.Helper()
	var active map[string]struct{ Type string }
	s.call("GET", "/api/session/active?scope=server", nil, &active)
	for range min(len(w.sessions), 2) {
		ses := w.sessions[w.rng.IntN(len(w.sessions))]
		if _, busy := active[ses]; busy || s.gone() {
			continue
		}
		w.answer(s, ses)
	}
}

func (w *world) answer(s *server, ses string) {
	w.t.Helper()
	in := map[string]any{"prompt": map[string]any{"text": "say:again"}}
	var waited struct{ Outcome string }
	var turn struct{ TurnID, State string }
	if status := s.call("POST", "/api/session/"+ses+"/prompt", in, &turn); status != http.StatusOK {
		if s.gone() {
			return
		}
		w.t.Errorf("a new prompt got %d\n%s", status, s.errs.String())
		return
	}
	// Prompts that an interrupt held back go on with the new one, and may ask.
	in = map[string]any{"timeout": 250, "turnID": turn.TurnID}
	for end := time.Now().Add(patience); time.Now().Before(end) && !s.gone(); w.reply(s, false) {
		if s.call("POST", "/api/session/"+ses+"/wait", in, &waited); waited.Outcome != "timeout" {
			break
		}
	}
	if waited.Outcome != "completed" && !s.gone() {
		w.t.Errorf("a new prompt of %s ended %q\n%s", ses, waited.Outcome, s.errs.String())
	}
}

// lastAnswers is how many sessions must answer at the end.
const lastAnswers = 8

// finish answers everything, stops the server and looks at the store at rest.
func (w *world) finish(s *server) {
	w.t.Helper()
	w.rest(s)
	for _, n := range w.rng.Perm(len(w.sessions))[:min(len(w.sessions), lastAnswers)] {
		w.answer(s, w.sessions[n])
	}
	w.rest(s)
	s.stop()
	if found := w.rows(false); len(found) > 0 {
		w.t.Errorf("at rest: %v", found)
	}
	w.effects()
	w.files()
}

// rest answers what is asked until nothing runs.
func (w *world) rest(s *server) {
	w.t.Helper()
	testkit.Eventually(w.t, patience, "everything was answered", func() bool {
		w.answerAll(s)
		w.settle(s)
		var active map[string]struct{ Type string }
		return s.call("GET", "/api/session/active?scope=server", nil, &active) == http.StatusOK && len(active) == 0 || w.t.Failed()
	})
}

func TestTheSeedDecides(t *testing.T) {
	t.Parallel()
	one, two := newWorld(t, 7), newWorld(t, 7)
	for range 50 {
		if a, b := one.words("")+one.moment(), two.words("")+two.moment(); a != b {
			t.Fatalf("%q and %q", a, b)
		}
	}
}
