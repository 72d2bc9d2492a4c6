package transfer_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
	"github.com/switchyard-dev/switchyard/transfer"
)

func encoded(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// compactedSession has a conversation, a compaction with a tail, and a rest.
func compactedSession(b *bundle) (session.Session, []message) {
	ses := b.session("Long")
	first := b.prompt(ses, text("first"))
	tail := b.prompt(ses, text("tail"))
	mark := b.prompt(ses, func(h chat.PartHead) chat.Part {
		return &chat.CompactionPart{PartHead: h, Type: "compaction", TailStartID: tail.info.Head().ID}
	})
	summary := b.answer(ses, mark, text("summary"))
	summary.info.(*chat.AssistantMessage).Summary = true
	last := b.prompt(ses, text("last"))
	all := []message{
		first, b.answer(ses, first, text("one")), tail, b.answer(ses, tail, text("two")), mark, summary, last, b.answer(ses, last, text("three")),
	}
	b.put(ses, 5, all...)
	return ses, all
}

func TestAForkKeepsTheCompaction(t *testing.T) {
	t.Parallel()
	onBoth(t, func(b *bundle) {
		ses, all := compactedSession(b)
		fork, err := b.Fork(b.t.Context(), transfer.ForkInput{SessionID: ses.ID})
		if err != nil {
			b.t.Fatal(err)
		}
		if fork.Cost != 2 || fork.Tokens.Input != 8 || fork.Tokens.Output != 4 {
			b.t.Errorf("usage %v %+v, want that of four answers", fork.Cost, fork.Tokens)
		}
		got := b.context(fork)
		if len(got) != len(b.context(ses)) {
			b.t.Fatalf("the model sees %d messages of the fork, %d of the source", len(got), len(b.context(ses)))
		}
		i := slices.IndexFunc(got, func(item chat.Item) bool { return chat.PartType(item.Parts[0]) == "compaction" })
		tail := got[i].Parts[0].(*chat.CompactionPart).TailStartID
		raw, err := b.sessions.MessageGet(b.t.Context(), fork.ID, tail)
		if err != nil || !bytes.Contains(raw, []byte(`"tail"`)) {
			b.t.Errorf("the tail starts at %s, %v", raw, err)
		}
		// Before the summary there is no compaction, nor its mark.
		for cut, want := range map[int]int{5: 4, 4: 4, 1: 1} {
			part, err := b.Fork(b.t.Context(), transfer.ForkInput{SessionID: ses.ID, Before: all[cut].info.Head().ID})
			if err != nil {
				b.t.Fatal(err)
			}
			if n := len(b.context(part)); n != want {
				b.t.Errorf("before message %d the model sees %d messages, want %d", cut, n, want)
			}
		}
		// The other way round: a document has no pointer, and needs none.
		var moved transfer.Imported
		doc := bytes.ReplaceAll(b.exported(fork), []byte(fork.ID), []byte(id.New[id.Session](b.ids)))
		if moved, err = b.Import(b.t.Context(), b.place(), bytes.NewReader(doc)); err != nil || moved.Imported != 1 {
			b.t.Fatal(moved, err)
		}
		if n := len(b.context(moved.Sessions[0])); n != len(got) {
			b.t.Errorf("the model sees %d messages of the import, want %d", n, len(got))
		}
	})
}

func TestWhatToolsKeepIsRenamedToo(t *testing.T) {
	t.Parallel()
	onBoth(t, func(b *bundle) {
		ses, other := b.session("Here"), b.session("Child")
		first := b.prompt(ses, text("x"))
		call := b.answer(ses, first, func(h chat.PartHead) chat.Part {
			p := chat.NewTool(h, "call_of_the_model", "task")
			p.State = chat.Completed(json.RawMessage(`{"a":1}`), "t", "out", map[string]any{
				"sessionID": other.ID, "list": []any{ses.ID, other.ID}, "deep": map[string]any{"messageID": first.info.Head().ID, "part": h.ID}, "n": 5,
			}, chat.PartTime{})
			return p
		})
		b.put(ses, 0, first, call)
		fork, err := b.Fork(b.t.Context(), transfer.ForkInput{SessionID: ses.ID})
		if err != nil {
			b.t.Fatal(err)
		}
		items := b.context(fork)
		part := items[1].Parts[0].(*chat.ToolPart)
		got := string(encoded(b.t, part.State.(*chat.ToolCompleted).Metadata))
		want := `{"deep":{"messageID":"` + string(items[0].Info.Head().ID) + `","part":"` + string(part.ID) + `"},"list":["` + string(fork.ID) + `"],"n":5}`
		if got != want || part.CallID != "call_of_the_model" {
			b.t.Errorf("%s %s, want %s", part.CallID, got, want)
		}
		if answer := items[1].Info.(*chat.AssistantMessage); answer.ParentID != items[0].Info.Head().ID || part.MessageID != answer.ID {
			b.t.Errorf("%+v", answer)
		}
	})
}

func TestTitlesOfForks(t *testing.T) {
	t.Parallel()
	b := setup(t, t.TempDir()+"/s.db")
	ses := b.session("A (fork of mine)")
	for _, want := range []string{"A (fork of mine) (fork)", "A (fork of mine) (fork 2)", "A (fork of mine) (fork 3)"} {
		fork, err := b.Fork(t.Context(), transfer.ForkInput{SessionID: ses.ID})
		if err != nil || fork.Title != want {
			t.Fatalf("%q, %v, want %q", fork.Title, err, want)
		}
		ses = fork
	}
	chosen := transfer.ForkInput{SessionID: ses.ID, ID: id.New[id.Session](b.ids)}
	first, err := b.Fork(t.Context(), chosen)
	if err != nil || first.ID != chosen.ID {
		t.Fatal(first, err)
	}
	if again, err := b.Fork(t.Context(), chosen); err != nil || again.Title != first.Title {
		t.Fatal(again, err)
	}
	if _, err := b.Fork(t.Context(), transfer.ForkInput{SessionID: id.New[id.Session](b.ids)}); !fault.Is(err, fault.SessionNotFound) {
		t.Fatal(err)
	}
}

func TestTheSameDocumentAtOnceIsStoredOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(b *bundle) {
		ses, _ := compactedSession(b)
		doc := b.exported(ses)
		b.remove(ses)
		var mu sync.Mutex // protects sum
		sum := 0
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				got, err := b.Import(b.t.Context(), b.place(), bytes.NewReader(doc))
				if err != nil || len(got.Sessions) != 1 {
					b.t.Errorf("%+v, %v", got, err)
				}
				mu.Lock()
				defer mu.Unlock()
				sum += got.Imported
			})
		}
		wg.Wait()
		if sum != 1 {
			b.t.Errorf("%d times imported", sum)
		}
		if again := b.exported(ses); !bytes.Equal(stripUpdated(doc), stripUpdated(again)) {
			b.t.Errorf("exported again:\n%s\nwas:\n%s", again, doc)
		}
	})
}

// stripUpdated cuts what an import pins anew or recounts.
func stripUpdated(doc []byte) []byte { return doc[bytes.Index(doc, []byte(`"messages"`)):] }

func TestAPromptCannotTakeTheNameOfAnImportedOne(t *testing.T) {
	t.Parallel()
	b := setup(t, t.TempDir()+"/s.db")
	ses, _ := compactedSession(b)
	fork, err := b.Fork(t.Context(), transfer.ForkInput{SessionID: ses.ID})
	if err != nil {
		t.Fatal(err)
	}
	items := b.context(fork)
	_, err = b.sessions.Admit(t.Context(), session.Admission{
		SessionID: fork.ID, MessageID: items[len(items)-2].Info.Head().ID, Delivery: session.Immediate, Body: []byte("x"), Owner: "me",
	})
	if !fault.Is(err, fault.IdempotencyConflict) {
		t.Fatal(err)
	}
}

func TestALongConversationIsExportedAsItIsRead(t *testing.T) {
	t.Parallel()
	onBoth(t, func(b *bundle) {
		ses := b.session("Very long")
		const count = 5_000
		long := strings.Repeat("x", 1<<10)
		messages := make([]message, 0, count)
		for range count {
			messages = append(messages, b.prompt(ses, text(long)))
		}
		b.put(ses, 0, messages...)
		r, w := io.Pipe()
		done := make(chan error, 1)
		go func() {
			err := b.Export(b.t.Context(), ses.ID, transfer.JSON, w)
			done <- errors.Join(err, w.CloseWithError(err))
		}()
		in := bufio.NewReaderSize(r, 16)
		if _, err := in.Peek(16); err != nil {
			b.t.Fatal(err)
		}
		// The document has begun and waits for its reader. What comes much later in
		// it is not read yet, or a change of it could not show.
		last := messages[count-1].parts[0].(*chat.TextPart)
		last.Text = "changed meanwhile"
		err := b.store.Write(b.t.Context(), store.Relaxed, func(ctx context.Context, tx *store.Tx) error {
			return tx.PartUpsert(ctx, db.PartUpsertParams{
				SessionID: string(ses.ID), MessageSeq: count, ID: string(last.ID), Type: "text", Data: encoded(b.t, last),
			})
		})
		if err != nil {
			b.t.Fatal(err)
		}
		doc, err := io.ReadAll(in)
		if err = errors.Join(err, <-done); err != nil {
			b.t.Fatal(err)
		}
		if n := bytes.Count(doc, []byte(long)); n != count-1 || !bytes.Contains(doc, []byte("changed meanwhile")) {
			b.t.Errorf("%d long messages, the last one is %.300s", n, doc[len(doc)-300:])
		}
		again := bytes.ReplaceAll(doc, []byte(ses.ID), []byte(id.New[id.Session](b.ids)))
		got, err := b.Import(b.t.Context(), b.place(), bytes.NewReader(again))
		if err != nil || got.Imported != 1 {
			b.t.Fatalf("%+v, %v", got, err)
		}
	})
}

func TestAReaderThatGoesAwayEndsTheExport(t *testing.T) {
	t.Parallel()
	b := setup(t, t.TempDir()+"/s.db")
	ses := b.session("x")
	messages := make([]message, 0, 100)
	for range 100 {
		messages = append(messages, b.prompt(ses, text(strings.Repeat("x", 4<<10))))
	}
	b.put(ses, 0, messages...)
	for _, format := range []transfer.Format{transfer.JSON, transfer.Markdown} {
		gone := errors.New("gone")
		w := &limited{left: 100_000, err: gone}
		if err := b.Export(t.Context(), ses.ID, format, w); !errors.Is(err, gone) || w.left > 0 {
			t.Errorf("%s: %v, %d left", format, err, w.left)
		}
	}
}

type limited struct {
	left int
	err  error
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left <= 0 {
		return 0, l.err
	}
	return len(p), nil
}

// FuzzImport feeds documents that are nearly right: an import either stores what
// can be exported again, or says what is wrong.
func FuzzImport(f *testing.F) {
	b := setup(f, f.TempDir()+"/s.db")
	ses, _ := compactedSession(b)
	doc := b.exported(ses)
	b.remove(ses)
	f.Add(doc)
	f.Add([]byte(`{"format":"switchyard.session","version":1,"sessions":[]}`))
	f.Add([]byte(`{"format":"switchyard.session","version":1,"sessions":[{"info":{},"messages":[]}]}`))
	f.Add(bytes.Replace(doc, []byte(`"role":"user"`), []byte(`"role":"\u0000"`), 1))
	f.Add(bytes.Replace(doc, []byte(`"text":"one"`), []byte(`"text":"\ud800\u0000"`), 1))
	f.Add(bytes.Replace(doc, []byte(`"created":1`), []byte(`"created":1e3`), 1))
	f.Add([]byte(`{"format":"switchyard.session","version":1,"attachments":[{"id":"att_01K3ZZZZZZZZZZZZZZZZZZZZZZ","mime":"","data":"QQ=="}],"sessions":[{}]}`))
	f.Add([]byte(strings.Repeat("[", 20_000)))
	f.Fuzz(func(t *testing.T, doc []byte) {
		got, err := b.Import(t.Context(), b.place(), bytes.NewReader(doc))
		if err != nil {
			switch fault.CodeOf(err) {
			case fault.MalformedJSON, fault.ValidationFailed, fault.ImportConflict:
			default:
				t.Fatalf("%v", err)
			}
			return
		}
		for _, ses := range got.Sessions {
			if err := b.Export(t.Context(), ses.ID, transfer.JSON, io.Discard); err != nil {
				t.Fatal(err)
			}
		}
		if again, err := b.Import(t.Context(), b.place(), bytes.NewReader(doc)); err != nil || again.Imported != 0 {
			t.Fatalf("again: %d, %v", again.Imported, err)
		}
		b.sound(t)
		for _, ses := range got.Sessions {
			if _, err := b.sessions.Delete(t.Context(), ses.ID); err != nil && !fault.Is(err, fault.SessionNotFound) {
				t.Fatal(err)
			}
		}
	})
}
