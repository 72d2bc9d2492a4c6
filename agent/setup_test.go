package agent_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/agent/definition"

	"go.uber.org/goleak"

	"github.com/switchyard-dev/switchyard/agent"
	"github.com/switchyard-dev/switchyard/catalog"
	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/llm"
	"github.com/switchyard-dev/switchyard/permission"
	"github.com/switchyard-dev/switchyard/project"
	"github.com/switchyard-dev/switchyard/question"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/snapshot"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bundle is an engine over a real store, a real directory and the scripted demo
// model.
type bundle struct {
	t        *testing.T
	dir      string
	store    *store.DB
	sessions *session.Service
	perms    *permission.Service
	asks     *question.Service
	engine   *agent.Engine
	project  id.Project
	place    *place
	ids      *id.Source
	boots    int
}

// place is a workplace whose settings the test chooses.
type place struct {
	env      env.Environment
	settings agent.Settings
	gone     bool
	limits   catalog.Limit
}

func (p *place) Acquire(context.Context, event.Context) (agent.Workplace, error) {
	if p.gone {
		return nil, fault.New(fault.DirectoryMissing, "gone")
	}
	return p, nil
}
func (p *place) Environment() env.Environment                     { return p.env }
func (p *place) Settings(context.Context) (agent.Settings, error) { return p.settings, nil }
func (p *place) Outputs() tool.OutputStore                        { return nil }
func (p *place) Git() snapshot.Git                                { return nil }
func (p *place) Release()                                         {}
func (p *place) Model(ctx context.Context, r chat.ModelRef) (llm.Model, error) {
	return llm.Demo().Model(ctx, r.ModelID)
}
func (p *place) Cost(chat.ModelRef, chat.Usage) float64 { return 0 }
func (p *place) Intake(chat.ModelRef) catalog.Intake    { return catalog.Intake{} }
func (p *place) Limits(chat.ModelRef) catalog.Limit     { return p.limits }

func setup(t *testing.T, rules ...rule.Rule) *bundle {
	t.Helper()
	return setupStore(t, store.Config{}, rules...)
}

func setupStore(t *testing.T, c store.Config, rules ...rule.Rule) *bundle {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c.URL, c.Owner = filepath.Join(t.TempDir(), "s.db"), "test"
	db, err := store.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	boot := db.Boot()
	bus := event.NewBus(t.Context(), event.Config{Epoch: boot.Epoch, Start: boot.Head, Gaps: boot.Gaps, Log: db})
	db.OnCommit(bus.Commit)
	local, err := env.Local(dir)
	if err != nil {
		t.Fatal(err)
	}
	ids := id.NewSource(time.Now, nil)
	p := &place{env: local}
	p.settings = agent.Settings{
		Agents: definition.Builtin(), DefaultAgent: definition.DefaultAgent, Rules: rules, Models: p,
		DefaultModel: chat.ModelRef{ProviderID: "demo", ModelID: "demo"},
		Instructions: func(context.Context) ([]string, error) { return nil, nil },
	}
	b := &bundle{
		t: t, dir: dir, store: db, sessions: session.NewService(db, ids, bus), perms: permission.NewService(db, ids),
		asks: question.NewService(db, ids), place: p, ids: ids,
	}
	b.project, err = project.NewService(db, ids).Ensure(t.Context(), project.Locate(dir))
	if err != nil {
		t.Fatal(err)
	}
	b.engine = agent.New(t.Context(), agent.Config{
		Sessions: b.sessions, Permissions: b.perms, Questions: b.asks, Tools: tool.NewRegistry(tool.Builtin()...), Workplaces: p,
		IDs: ids, Owner: "test", Generation: boot.Number, Retry: llm.RetryPolicy{Base: 5 * time.Millisecond, Max: time.Second},
	})
	t.Cleanup(func() {
		for _, err := range []error{b.engine.Close(), local.Close(), db.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
		bus.Close()
	})
	return b
}

func (b *bundle) session() session.Session {
	b.t.Helper()
	ses, err := b.sessions.Create(b.t.Context(), session.CreateInput{ProjectID: b.project, Context: event.Context{Directory: b.dir}})
	if err != nil {
		b.t.Fatal(err)
	}
	return ses
}

func (b *bundle) prompt(ses session.Session, text string) session.Admitted {
	b.t.Helper()
	out, err := b.engine.Prompt(b.t.Context(), admission(ses, text))
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func admission(ses session.Session, text string) session.Admission {
	return session.Admission{
		SessionID: ses.ID, Prompt: session.Prompt{Text: text}, Delivery: session.Immediate, Agent: definition.DefaultAgent, Body: []byte(text),
	}
}

// wait waits until a session has nothing to do and gives the last outcome.
func (b *bundle) wait(ses session.Session) agent.WaitResult {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 20*time.Second)
	defer cancel()
	out, err := b.engine.Wait(ctx, agent.WaitInput{SessionID: ses.ID})
	if err != nil {
		b.t.Fatalf("waiting: %v", err)
	}
	return out
}

func (b *bundle) items(ses session.Session) []chat.Item {
	b.t.Helper()
	raw, err := b.sessions.Context(b.t.Context(), ses.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	items, err := session.Items(raw)
	if err != nil {
		b.t.Fatal(err)
	}
	return items
}

// texts joins the text parts of all answers.
func (b *bundle) texts(ses session.Session) string {
	var out []string
	for _, item := range b.items(ses) {
		if _, ok := item.Info.(*chat.AssistantMessage); !ok {
			continue
		}
		for _, p := range item.Parts {
			if text, ok := p.(*chat.TextPart); ok {
				out = append(out, text.Text)
			}
		}
	}
	return strings.Join(out, "|")
}

// tools gives all tool parts in order.
func (b *bundle) tools(ses session.Session) []*chat.ToolPart {
	var out []*chat.ToolPart
	for _, item := range b.items(ses) {
		for _, p := range item.Parts {
			if tool, ok := p.(*chat.ToolPart); ok {
				out = append(out, tool)
			}
		}
	}
	return out
}

// asked waits for n pending permission requests.
func (b *bundle) asked(n int) []rule.Request {
	b.t.Helper()
	var out []rule.Request
	b.eventually("permission requests", func() bool {
		var err error
		if out, err = b.perms.List(b.t.Context(), permission.Filter{}); err != nil {
			b.t.Fatal(err)
		}
		return len(out) == n
	})
	return out
}

func (b *bundle) eventually(what string, ok func() bool) {
	b.t.Helper()
	deadline := time.After(10 * time.Second)
	for !ok() {
		select {
		case <-deadline:
			b.t.Fatalf("no %s in time", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// events gives the durable events of a session as "type" with a few details.
func (b *bundle) events(ses session.Session) []store.Event {
	b.t.Helper()
	_, head, err := b.store.EventBounds(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	all, err := b.store.Events(b.t.Context(), 0, head, 10_000)
	if err != nil {
		b.t.Fatal(err)
	}
	var out []store.Event
	for _, e := range all {
		if e.SessionID == string(ses.ID) {
			out = append(out, e)
		}
	}
	return out
}

func count(events []store.Event, typ string) int {
	n := 0
	for _, e := range events {
		if e.Type == typ {
			n++
		}
	}
	return n
}

func payload[P any](t *testing.T, e store.Event) P {
	t.Helper()
	var p P
	if err := json.Unmarshal(e.Payload, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

func pendingQuestion(b *bundle) question.Request {
	b.t.Helper()
	var out []question.Request
	b.eventually("question", func() bool {
		var err error
		if out, err = b.asks.List(b.t.Context(), question.Filter{}); err != nil {
			b.t.Fatal(err)
		}
		return len(out) == 1
	})
	return out[0]
}

func response(answers ...[]string) question.Response { return question.Response{Answers: answers} }

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
