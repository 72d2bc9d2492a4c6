package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/project"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
)

type jsonText = json.RawMessage

// bundle is a service over a real store.
type bundle struct {
	t       *testing.T
	store   *store.DB
	svc     *session.Service
	project id.Project
}

func onBoth(t *testing.T, fn func(*bundle)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		fn(setup(t, filepath.Join(t.TempDir(), "s.db")))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		fn(setup(t, testkit.Postgres(t)))
	})
}

func setup(t *testing.T, url string) *bundle {
	t.Helper()
	db, err := store.Open(t.Context(), store.Config{URL: url, Owner: "test"})
	if err != nil {
		t.Fatal(err)
	}
	boot := db.Boot()
	bus := event.NewBus(t.Context(), event.Config{Epoch: boot.Epoch, Start: boot.Head, Gaps: boot.Gaps, Log: db})
	db.OnCommit(bus.Commit)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		bus.Close()
	})
	ids := id.NewSource(time.Now, nil)
	p, err := project.NewService(db, ids).Ensure(t.Context(), project.Place{Root: "/r", Identity: "/r", Main: "/r", VCS: "none"})
	if err != nil {
		t.Fatal(err)
	}
	return &bundle{t: t, store: db, svc: session.NewService(db, ids, bus), project: p}
}

func (b *bundle) session() session.Session {
	b.t.Helper()
	ses, err := b.svc.Create(b.t.Context(), session.CreateInput{ProjectID: b.project, Context: event.Context{Directory: "/r"}})
	if err != nil {
		b.t.Fatal(err)
	}
	return ses
}

func (b *bundle) admit(ses session.Session, text string) session.Admitted {
	b.t.Helper()
	out, err := b.svc.Admit(b.t.Context(), session.Admission{
		SessionID: ses.ID, Prompt: session.Prompt{Text: text}, Delivery: session.Immediate, Agent: "build",
		Body: []byte(text), Owner: "me", Generation: 1,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func TestWritesOfALostRunAreRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, func(b *bundle) {
		ses := b.session()
		run := *b.admit(ses, "hello").Started
		nothing := func(context.Context, *store.Tx) error { return nil }
		if err := b.svc.Own(b.t.Context(), store.Durable, run, nothing); err != nil {
			b.t.Fatal(err)
		}
		other := run
		other.Owner = "another"
		later := run
		later.Generation++
		for _, r := range []session.Run{other, later} {
			if err := b.svc.Own(b.t.Context(), store.Durable, r, nothing); !errors.Is(err, session.ErrLost) {
				b.t.Errorf("%+v: %v", r, err)
			}
		}
		open, busy, err := b.svc.OpenTurn(b.t.Context(), ses.ID)
		if err != nil || !busy {
			b.t.Fatalf("%v %v", busy, err)
		}
		if err := b.svc.ForceEnd(b.t.Context(), open, session.Interrupted, nil, nil); err != nil {
			b.t.Fatal(err)
		}
		if err := b.svc.Own(b.t.Context(), store.Durable, run, nothing); !errors.Is(err, session.ErrLost) {
			b.t.Errorf("after the end: %v", err)
		}
		if _, _, err := b.svc.End(b.t.Context(), run, session.EndInput{Outcome: session.Completed}); err == nil {
			b.t.Error("a turn ended twice")
		}
	})
}

func TestInterruptParksWhatWaits(t *testing.T) {
	t.Parallel()
	onBoth(t, func(b *bundle) {
		ses := b.session()
		run := *b.admit(ses, "first").Started
		if out := b.admit(ses, "second"); out.Delivered || out.Position != 1 || out.TurnID != run.TurnID {
			b.t.Fatalf("%+v", out)
		}
		if turn, open, err := b.svc.Interrupt(b.t.Context(), ses.ID); err != nil || !open || turn.ID != run.TurnID || !turn.Interrupt {
			b.t.Fatalf("%+v %v %v", turn, open, err)
		}
		if at, err := b.svc.Join(b.t.Context(), run); err != nil || !at.Interrupt {
			b.t.Fatalf("the owner is not told: %v", err)
		}
		again, next, err := b.svc.End(b.t.Context(), run, session.EndInput{Outcome: session.Cancelled})
		if err != nil || again || next != nil {
			b.t.Fatalf("%v %v %v", again, next, err)
		}
		if busy, err := b.svc.Busy(b.t.Context(), ses.ID); err != nil || busy {
			b.t.Fatalf("a parked inbox makes the session busy: %v", err)
		}
		third := b.admit(ses, "third")
		if !third.Delivered {
			b.t.Fatalf("%+v", third)
		}
		if at, err := b.svc.Join(b.t.Context(), *third.Started); err != nil || at.Joined != 1 {
			b.t.Fatalf("the parked prompt did not join: %+v %v", at, err)
		}
	})
}

func TestTitlesComeFromThePromptOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(b *bundle) {
		ses := b.session()
		b.admit(ses, "  Mend   the parser "+strings.Repeat("word ", 40)+"\nand more")
		row, err := b.svc.Get(b.t.Context(), ses.ID)
		if err != nil || !strings.HasPrefix(row.Title, "Mend the parser word") || len([]rune(row.Title)) != 60 || !row.WantsTitle() {
			b.t.Fatalf("%q %v", row.Title, err)
		}
		manual := "Mine"
		if _, err := b.svc.Update(b.t.Context(), ses.ID, session.Change{Title: &manual}); err != nil {
			b.t.Fatal(err)
		}
		if err := b.svc.SetGeneratedTitle(b.t.Context(), ses.ID, "Generated"); err != nil {
			b.t.Fatal(err)
		}
		if row, err := b.svc.Get(b.t.Context(), ses.ID); err != nil || row.Title != "Mine" || row.WantsTitle() {
			b.t.Fatalf("%q %v", row.Title, err)
		}
	})
}

func TestReadsShowWhatIsNotStoredYet(t *testing.T) {
	t.Parallel()
	b := setup(t, filepath.Join(t.TempDir(), "s.db"))
	ses := b.session()
	run := *b.admit(ses, "hello").Started
	msg := chat.NewAssistant(chat.MessageHead{ID: "msg_answer", SessionID: ses.ID}, 1)
	head := func(n string) chat.PartHead {
		return chat.PartHead{ID: id.Part("part_" + n), SessionID: ses.ID, MessageID: msg.ID}
	}
	seq, err := b.svc.BeginStep(t.Context(), run, session.StepInput{Ord: 1, Message: msg, First: chat.NewStepStart(head("0"))})
	if err != nil {
		t.Fatal(err)
	}
	part := chat.NewText(head("1"), "")
	if err := b.svc.PutParts(t.Context(), store.Relaxed, run, session.PartWrite{Seq: seq, Ord: 1, Part: part, Event: true}); err != nil {
		t.Fatal(err)
	}
	open := b.svc.Live().Open(run, part)
	if err := open.Grow("text", 0, "live", func(chat.Part) { part.Text = "live" }); err != nil {
		t.Fatal(err)
	}
	read := func() string {
		raw, err := b.svc.MessageGet(t.Context(), ses.ID, msg.ID)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if got := read(); !strings.Contains(got, `"text":"live"`) {
		t.Errorf("the live text is missing: %s", got)
	}
	open.Close()
	if got := read(); strings.Contains(got, "live") {
		t.Errorf("a closed part still covers the stored one: %s", got)
	}
	if _, err := b.svc.MessageGet(t.Context(), ses.ID, "msg_none"); !fault.Is(err, fault.MessageNotFound) {
		t.Errorf("err %v", err)
	}
}

func TestUnknownSessionsAreFaults(t *testing.T) {
	t.Parallel()
	onBoth(t, func(b *bundle) {
		ctx, none := b.t.Context(), id.Session("ses_none")
		_, get := b.svc.Get(ctx, none)
		_, update := b.svc.Update(ctx, none, session.Change{})
		_, del := b.svc.Delete(ctx, none)
		_, list := b.svc.MessageList(ctx, session.MessageListInput{SessionID: none})
		_, admit := b.svc.Admit(ctx, session.Admission{SessionID: none})
		_, _, interrupt := b.svc.Interrupt(ctx, none)
		for what, err := range map[string]error{"get": get, "update": update, "delete": del, "list": list, "admit": admit, "interrupt": interrupt} {
			if !fault.Is(err, fault.SessionNotFound) {
				b.t.Errorf("%s: %v", what, err)
			}
		}
	})
}
