package store_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/integrity"
	projects "github.com/switchyard-dev/switchyard/project"
	sessions "github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
)

const (
	walHeader   = 32
	frameHeader = 24
)

// receipt is an acknowledgement: what was stored, and how long the log was when
// the caller heard of it.
type receipt struct {
	row     string
	message id.Message
	session id.Session
	log     int64
}

// TestTheLogCutAnywhereKeepsWhatWasAcknowledged does with the write-ahead log what
// a loss of power can do: the disk has it up to some byte. Whatever that is, the
// store opens, is whole, and has all that was acknowledged when the log ended
// there.
func TestTheLogCutAnywhereKeepsWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	b := setupLite(t, store.Config{})
	b.reopen(store.Config{}) // what came before is in the file now
	receipts := b.shortRun(t)
	file, err := os.ReadFile(b.url)
	if err != nil {
		t.Fatal(err)
	}
	wal, err := os.ReadFile(b.url + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	frame := int(binary.BigEndian.Uint32(wal[8:])) + frameHeader
	last := receipts[len(receipts)-1]
	if frames := (len(wal) - walHeader) / frame; frames < len(receipts) || last.log != int64(len(wal)) {
		t.Fatalf("%d frames for %d acknowledgements, the log ended at %d of %d", frames, len(receipts), last.log, len(wal))
	}
	for at := walHeader; at <= len(wal); at += frame {
		cut := wal[:at]
		cutAndOpen(t, file, cut, nil, receipts)
		if (at-walHeader)/frame%5 != 0 || at == len(wal) {
			continue
		}
		cutAndOpen(t, file, cut, wal[at:at+frameHeader+frame/3], receipts)
		// What a disk has where nothing was written yet: an old frame, or noise.
		cutAndOpen(t, file, cut, wal[walHeader:walHeader+frame], receipts)
		noise := make([]byte, 2*frame)
		for i := range noise {
			noise[i] = byte(rand.Uint32())
		}
		cutAndOpen(t, file, cut, noise, receipts)
	}
	cutAndOpen(t, file, nil, nil, receipts)
	cutAndOpen(t, file, nil, wal[:walHeader/2], receipts)
}

// shortRun writes rows at both levels, a few of them with the services of a turn.
func (b *bundle) shortRun(t *testing.T) []receipt {
	t.Helper()
	var receipts []receipt
	note := func(r receipt) {
		info, err := os.Stat(b.url + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		r.log = info.Size()
		receipts = append(receipts, r)
	}
	ids := id.NewSource(time.Now, nil)
	boot := b.db.Boot()
	bus := event.NewBus(t.Context(), event.Config{Epoch: boot.Epoch, Start: boot.Head, Gaps: boot.Gaps, Log: b.db})
	defer bus.Close()
	svc := sessions.NewService(b.db, ids, bus)
	at, err := projects.NewService(b.db, ids).Ensure(t.Context(), projects.Place{Root: "/r", Identity: "/r", Main: "/r", VCS: "none"})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 12 {
		row := fmt.Sprintf("row%02d", n)
		if err := b.db.Write(t.Context(), store.Level(n%2), add(row, 2)); err != nil {
			t.Fatal(err)
		}
		note(receipt{row: row})
		if n%4 == 0 {
			ses, msg := oneTurn(t, svc, ids, at)
			note(receipt{session: ses, message: msg})
		}
	}
	return receipts
}

// oneTurn is a session with a turn that said something.
func oneTurn(t *testing.T, svc *sessions.Service, ids *id.Source, at id.Project) (id.Session, id.Message) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ses, err := svc.Create(ctx, sessions.CreateInput{ProjectID: at, Context: event.Context{Directory: "/r"}})
	must(err)
	out, err := svc.Admit(ctx, sessions.Admission{
		SessionID: ses.ID, Prompt: sessions.Prompt{Text: "hello"}, Delivery: sessions.Immediate, Agent: "build", Body: []byte("{}"), Owner: "me", Generation: 1,
	})
	must(err)
	run := *out.Started
	msg := chat.NewAssistant(chat.MessageHead{ID: id.New[id.Message](ids), SessionID: ses.ID}, clock.Now())
	msg.TurnID = run.TurnID
	head := func() chat.PartHead {
		return chat.PartHead{ID: id.New[id.Part](ids), SessionID: ses.ID, MessageID: msg.ID}
	}
	seq, err := svc.BeginStep(ctx, run, sessions.StepInput{Ord: 1, Message: msg, First: chat.NewStepStart(head())})
	must(err)
	msg.Finish, msg.Time.Completed = "stop", clock.Now()
	text := sessions.PartWrite{Seq: seq, Ord: 1, Part: chat.NewText(head(), "said"), Event: true}
	must(svc.PutAnswer(ctx, run, sessions.AnswerInput{Seq: seq, Message: msg, Parts: []sessions.PartWrite{text}, Usage: chat.Usage{Input: 1}}))
	_, _, err = svc.End(ctx, run, sessions.EndInput{Outcome: sessions.Completed})
	must(err)
	return ses.ID, out.MessageID
}

// cutAndOpen opens a copy of a store whose log is cut, and has a tail that is not
// of it, and looks what it has.
func cutAndOpen(t *testing.T, file, wal, tail []byte, receipts []receipt) {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), "cut")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "store.db")
	for name, data := range map[string][]byte{path: file, path + "-wal": slices.Concat(wal, tail)} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := store.Open(t.Context(), store.Config{URL: path, Owner: "after"})
	if err != nil {
		t.Fatalf("a log of %d bytes: %v", len(wal), err)
	}
	c := &bundle{t: t, url: path, lite: true, db: d}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	if bad := c.text("PRAGMA integrity_check"); !slices.Equal(bad, []string{"ok"}) {
		t.Errorf("a log of %d bytes: %v", len(wal), bad)
	}
	found, err := store.Get(t.Context(), d, func(ctx context.Context, r store.Reader) ([]integrity.Finding, error) {
		return integrity.Check(ctx, r, integrity.Options{Served: true})
	})
	if err != nil || len(found) > 0 {
		t.Errorf("a log of %d bytes: %v %v", len(wal), found, err)
	}
	c.has(receipts, int64(len(wal)))
}

// has looks for all that was acknowledged while the log was no longer than it is,
// and wants no half of anything.
func (b *bundle) has(receipts []receipt, log int64) {
	b.t.Helper()
	rows, told := b.rows(), map[string]int{}
	for _, e := range b.events() {
		told[e.Type]++
	}
	for _, r := range receipts {
		if r.log > log {
			continue
		}
		if r.message != "" {
			query := "SELECT id FROM message WHERE session_id = ? AND id = ?"
			if found := b.text(query, string(r.session), string(r.message)); len(found) != 1 {
				b.t.Errorf("a log of %d bytes has lost the prompt that was acknowledged at %d", log, r.log)
			}
			continue
		}
		if !slices.Contains(rows, r.row) {
			b.t.Errorf("a log of %d bytes has lost %s, which was acknowledged at %d", log, r.row, r.log)
		}
	}
	for _, row := range rows {
		if told[row] != 2 {
			b.t.Errorf("a log of %d bytes has %d events of %s", log, told[row], row)
		}
	}
}
