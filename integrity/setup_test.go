package integrity_test

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // the tests break stores behind the product's back

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/integrity"
	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/project"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"

	"github.com/switchyard-dev/switchyard/permission"
)

// bundle is a store with the sessions that the services themselves wrote.
type bundle struct {
	t       *testing.T
	lite    bool
	url     string
	store   *store.DB
	svc     *session.Service
	asks    *permission.Service
	ids     *id.Source
	project id.Project
	// names stand for ids in the statements that break the store.
	names map[string]string
}

func onBoth(t *testing.T, fn func(*testing.T, *bundle)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		fn(t, setup(t, filepath.Join(t.TempDir(), "s.db"), true))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		fn(t, setup(t, testkit.Postgres(t), false))
	})
}

func setup(t *testing.T, at string, lite bool) *bundle {
	t.Helper()
	d, err := store.Open(t.Context(), store.Config{URL: at, Owner: "test"})
	if err != nil {
		t.Fatal(err)
	}
	boot := d.Boot()
	bus := event.NewBus(t.Context(), event.Config{Epoch: boot.Epoch, Start: boot.Head, Gaps: boot.Gaps, Log: d})
	d.OnCommit(bus.Commit)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		bus.Close()
	})
	b := &bundle{t: t, lite: lite, url: at, store: d, ids: id.NewSource(time.Now, nil), names: map[string]string{}}
	b.svc, b.asks = session.NewService(d, b.ids, bus), permission.NewService(d, b.ids)
	b.project, err = project.NewService(d, b.ids).Ensure(t.Context(), project.Place{Root: "/r", Identity: "/r", Main: "/r", VCS: "none"})
	b.must(err)
	b.fill()
	return b
}

func (b *bundle) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// fill makes a session {s} with a turn {t} that ended, a child {c} of it with a
// turn that is open and asks a person, and a parked session {q} with a prompt
// that waits.
func (b *bundle) fill() {
	b.t.Helper()
	ses := b.session("")
	run, msg := b.turn(ses, "first")
	b.names["s"], b.names["t"], b.names["m"] = string(ses), string(run.TurnID), string(msg)
	b.step(run, "{a}", "{p}", "{call}")
	_, _, err := b.svc.End(b.t.Context(), run, session.EndInput{Outcome: session.Completed})
	b.must(err)

	child := b.session(ses)
	open, _ := b.turn(child, "second")
	b.names["c"], b.names["o"] = string(child), string(open.TurnID)
	b.ask(child, ses, open)

	parked := b.session("")
	stopped, _ := b.turn(parked, "third")
	b.names["q"] = string(parked)
	waiting := b.admit(parked, "fourth", session.Deferred, "key")
	b.names["w"] = string(waiting.MessageID)
	_, _, err = b.svc.Interrupt(b.t.Context(), parked)
	b.must(err)
	_, _, err = b.svc.End(b.t.Context(), stopped, session.EndInput{Outcome: session.Cancelled, Error: chat.NewError(chat.ErrAborted, "stopped")})
	b.must(err)
}

func (b *bundle) session(parent id.Session) id.Session {
	b.t.Helper()
	ses, err := b.svc.Create(b.t.Context(), session.CreateInput{
		ProjectID: b.project, Context: event.Context{Directory: "/r"}, ParentID: parent,
	})
	b.must(err)
	return ses.ID
}

func (b *bundle) admit(ses id.Session, text string, how session.Delivery, key string) session.Admitted {
	b.t.Helper()
	out, err := b.svc.Admit(b.t.Context(), session.Admission{
		SessionID: ses, Prompt: session.Prompt{Text: text}, Delivery: how, Agent: "build",
		Key: key, Body: []byte(text), Owner: "me", Generation: 1,
	})
	b.must(err)
	return out
}

func (b *bundle) turn(ses id.Session, text string) (session.Run, id.Message) {
	b.t.Helper()
	out := b.admit(ses, text, session.Immediate, "")
	return *out.Started, out.MessageID
}

// step answers with one call, which runs and has its result.
func (b *bundle) step(run session.Run, answer, part, call string) {
	b.t.Helper()
	ctx, now := b.t.Context(), clock.Now()
	msg := chat.NewAssistant(chat.MessageHead{ID: id.New[id.Message](b.ids), SessionID: run.SessionID}, now)
	msg.TurnID = run.TurnID
	head := func() chat.PartHead {
		return chat.PartHead{ID: id.New[id.Part](b.ids), SessionID: run.SessionID, MessageID: msg.ID}
	}
	seq, err := b.svc.BeginStep(ctx, run, session.StepInput{Ord: 1, Message: msg, First: chat.NewStepStart(head())})
	b.must(err)
	tool := chat.NewTool(head(), "call_1", "bash")
	w := session.PartWrite{Seq: seq, Ord: 1, Part: tool, Event: true}
	msg.Finish = "tool-calls"
	b.must(b.svc.PutAnswer(ctx, run, session.AnswerInput{Seq: seq, Message: msg, Parts: []session.PartWrite{w}, Usage: chat.Usage{Input: 1}}))
	row := id.New[id.Call](b.ids)
	b.must(b.svc.Own(ctx, store.Durable, run, func(ctx context.Context, tx *store.Tx) error {
		return tx.ToolCallInsert(ctx, db.ToolCallInsertParams{
			ID: string(row), SessionID: string(run.SessionID), TurnID: string(run.TurnID), MessageID: string(msg.ID), PartID: string(tool.ID),
			Tool: "bash", Class: "effect", State: "running", Pre: []byte("{}"), Post: []byte("{}"), Started: now,
		})
	}))
	tool.State = chat.Completed(nil, "ls", "files", nil, chat.PartTime{Start: now, End: now})
	msg.Time.Completed = now
	b.must(b.svc.Own(ctx, store.Durable, run, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.ToolCallEnd(ctx, db.ToolCallEndParams{ID: string(row), State: "completed", Post: []byte("{}"), Ended: now})
		return errors.Join(err, b.svc.PutPart(ctx, tx, run, w), b.svc.PutMessage(ctx, tx, run, seq, msg))
	}))
	b.names[strings.Trim(answer, "{}")], b.names[strings.Trim(part, "{}")] = string(msg.ID), string(tool.ID)
	b.names[strings.Trim(call, "{}")] = string(row)
}

func (b *bundle) ask(ses, root id.Session, run session.Run) {
	b.t.Helper()
	per := b.asks.NewID()
	ask := permission.Ask{
		ID: per, Origin: run.Origin, Context: event.Context{Directory: "/r"}, ProjectID: b.project, TurnID: run.TurnID,
		Request: rule.Request{ID: per, SessionID: ses, RootSessionID: root, Permission: "bash"},
	}
	b.must(b.svc.Own(b.t.Context(), store.Durable, run, func(ctx context.Context, tx *store.Tx) error {
		if err := b.asks.Add(ctx, tx, []permission.Ask{ask}); err != nil {
			return err
		}
		return b.svc.SetState(ctx, tx, run, session.TurnAwaitingPermission)
	}))
	b.names["ask"] = string(per)
}

// exec runs statements on a connection of the test's own; {name} stands for an
// id, and nothing checks what they break.
func (b *bundle) exec(statements string) {
	b.t.Helper()
	for name, value := range b.names {
		statements = strings.ReplaceAll(statements, "{"+name+"}", value)
	}
	if !b.lite {
		conn, err := pgx.Connect(b.t.Context(), b.url)
		b.must(err)
		defer conn.Close(b.t.Context())
		_, err = conn.Exec(b.t.Context(), statements)
		b.must(err)
		return
	}
	handle, err := sql.Open("sqlite", "file:"+(&url.URL{Path: b.url}).EscapedPath()+"?_pragma=busy_timeout(5000)&_pragma=foreign_keys(0)")
	b.must(err)
	defer handle.Close()
	_, err = handle.ExecContext(b.t.Context(), statements)
	b.must(err)
}

// check gives the faults that are found.
func (b *bundle) check() []integrity.Finding {
	b.t.Helper()
	all, err := store.Get(b.t.Context(), b.store, func(ctx context.Context, r store.Reader) ([]integrity.Finding, error) {
		return integrity.Check(ctx, r, integrity.Options{})
	})
	b.must(err)
	faults := []integrity.Finding{}
	for _, f := range all {
		if !f.Note {
			faults = append(faults, f)
		}
	}
	return faults
}
