package transfer_test

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/attachment"
	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/integrity"
	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/project"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
	"github.com/switchyard-dev/switchyard/transfer"
)

// bundle is a service over a real store and real files.
type bundle struct {
	*transfer.Service
	t        testing.TB
	store    *store.DB
	sessions *session.Service
	ids      *id.Source
	project  id.Project
	// raw are sessions with messages that no turn wrote.
	raw map[string]bool
}

// sound holds what was copied against the invariants of the store.
func (b *bundle) sound(t testing.TB) {
	t.Helper()
	found, err := store.Get(context.WithoutCancel(t.Context()), b.store, func(ctx context.Context, r store.Reader) ([]integrity.Finding, error) {
		return integrity.Check(ctx, r, integrity.Options{})
	})
	if err != nil {
		t.Error(err)
	}
	for _, f := range found {
		if !b.raw[f.SessionID] {
			t.Error(f)
		}
	}
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

func setup(t testing.TB, url string) *bundle {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{URL: url, Owner: "test"})
	if err != nil {
		t.Fatal(err)
	}
	boot := s.Boot()
	bus := event.NewBus(t.Context(), event.Config{Epoch: boot.Epoch, Start: boot.Head, Gaps: boot.Gaps, Log: s})
	s.OnCommit(bus.Commit)
	ids := id.NewSource(time.Now, nil)
	files, err := attachment.NewService(t.Context(), s, ids, attachment.Options{Dir: t.TempDir(), Log: testkit.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	b := &bundle{t: t, store: s, ids: ids, raw: map[string]bool{}}
	t.Cleanup(func() {
		b.sound(t)
		if err := files.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		bus.Close()
	})
	p, err := project.NewService(s, ids).Ensure(t.Context(), project.Place{Root: "/r", Identity: "/r", Main: "/r", VCS: "none"})
	if err != nil {
		t.Fatal(err)
	}
	sessions := session.NewService(s, ids, bus)
	b.Service, b.sessions, b.project = transfer.NewService(s, ids, sessions, files), sessions, p
	return b
}

func (b *bundle) place() transfer.Place {
	return transfer.Place{Context: event.Context{Directory: "/r"}, Project: func(context.Context) (id.Project, error) { return b.project, nil }}
}

func (b *bundle) session(title string) session.Session {
	b.t.Helper()
	ses, err := b.sessions.Create(b.t.Context(), session.CreateInput{ProjectID: b.project, Context: event.Context{Directory: "/r"}, Title: title})
	if err != nil {
		b.t.Fatal(err)
	}
	return ses
}

// message is one to be stored as a run would.
type message struct {
	info  chat.Message
	parts []chat.Part
}

func (b *bundle) head(ses session.Session) chat.MessageHead {
	return chat.MessageHead{ID: id.New[id.Message](b.ids), SessionID: ses.ID}
}

// prompt is a user message with parts that make fills in.
func (b *bundle) prompt(ses session.Session, parts ...func(chat.PartHead) chat.Part) message {
	return b.with(chat.NewUser(b.head(ses), "build", chat.ModelRef{ProviderID: "p", ModelID: "m"}, 1), parts)
}

// answer is a whole answer to a prompt.
func (b *bundle) answer(ses session.Session, to message, parts ...func(chat.PartHead) chat.Part) message {
	m := chat.NewAssistant(b.head(ses), 2)
	m.ParentID, m.Time.Completed, m.Finish = to.info.Head().ID, 3, "stop"
	m.Cost, m.Tokens = 0.5, chat.Usage{Input: 2, Output: 1}
	return b.with(m, parts)
}

func (b *bundle) with(info chat.Message, parts []func(chat.PartHead) chat.Part) message {
	m := message{info: info}
	for _, make := range parts {
		m.parts = append(m.parts, make(chat.PartHead{ID: id.New[id.Part](b.ids), SessionID: info.Head().SessionID, MessageID: info.Head().ID}))
	}
	return m
}

func text(s string) func(chat.PartHead) chat.Part {
	return func(h chat.PartHead) chat.Part { return chat.NewText(h, s) }
}

// put stores messages; contextFrom is the sequence that the model sees them from.
func (b *bundle) put(ses session.Session, contextFrom int64, messages ...message) {
	b.t.Helper()
	b.raw[string(ses.ID)] = true
	err := b.store.Write(b.t.Context(), store.Relaxed, func(ctx context.Context, tx *store.Tx) error {
		for _, m := range messages {
			seq, err := tx.SessionNextMessage(ctx, db.SessionNextMessageParams{ID: string(ses.ID), Updated: 9})
			if err != nil {
				return err
			}
			role := "user"
			if _, ok := m.info.(*chat.AssistantMessage); ok {
				role = "assistant"
			}
			err = tx.MessageInsert(ctx, db.MessageInsertParams{
				SessionID: string(ses.ID), Seq: seq, ID: string(m.info.Head().ID), Role: role, Info: encoded(b.t, m.info),
			})
			if err != nil {
				return err
			}
			for i, p := range m.parts {
				err := tx.PartUpsert(ctx, db.PartUpsertParams{
					SessionID: string(ses.ID), MessageSeq: seq, Ord: int64(i), ID: string(p.Head().ID), Type: chat.PartType(p), Data: encoded(b.t, p),
				})
				if err != nil {
					return err
				}
			}
		}
		if contextFrom == 0 {
			return nil
		}
		_, err := tx.SessionSeal(ctx, db.SessionSealParams{
			ID: string(ses.ID), Tokens: []byte("{}"), Messages: int64(len(messages)), ContextSeq: contextFrom, Updated: 9,
		})
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// remove deletes a session, so that its id is free for an import.
func (b *bundle) remove(ses session.Session) {
	b.t.Helper()
	if _, err := b.sessions.Delete(b.t.Context(), ses.ID); err != nil {
		b.t.Fatal(err)
	}
	delete(b.raw, string(ses.ID))
}

func (b *bundle) exported(ses session.Session) []byte {
	b.t.Helper()
	var out bytes.Buffer
	if err := b.Export(b.t.Context(), ses.ID, transfer.JSON, &out); err != nil {
		b.t.Fatal(err)
	}
	return out.Bytes()
}

// context gives what the model sees of a session.
func (b *bundle) context(ses session.Session) []chat.Item {
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
