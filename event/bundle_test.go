package event_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The kinds of the tests, shaped like those of sessions.
var (
	partUpdated = event.Define[partPayload]("message.part.updated")
	partDelta   = event.Define[deltaPayload]("message.part.delta", event.Ephemeral, event.Merge(deltaPayload.key, joinDeltas))
	wentIdle    = event.Define[idlePayload]("session.idle")
	noted       = event.Define[notePayload]("pty.created")
)

type partPayload struct {
	PartID string `json:"partID"`
	Text   string `json:"text"`
}

type deltaPayload struct {
	PartID string `json:"partID"`
	Field  string `json:"field"`
	Delta  string `json:"delta"`
	Offset int    `json:"offset"`
}

type idlePayload struct {
	SessionID id.Session `json:"sessionID"`
}

type notePayload struct {
	N int `json:"n"`
}

func (d deltaPayload) key() event.MergeKey { return event.MergeKey{ID: d.PartID, Field: d.Field} }

func joinDeltas(run []deltaPayload) (deltaPayload, bool) {
	var text strings.Builder
	for _, d := range run {
		if d.Offset != run[0].Offset+text.Len() {
			return deltaPayload{}, false
		}
		text.WriteString(d.Delta)
	}
	joined := run[0]
	joined.Delta = text.String()
	return joined, true
}

const epoch = 0x1234abcd

var (
	contextA = event.Context{Directory: "/a"}
	contextB = event.Context{Directory: "/b", WorkspaceID: "ws_1"}
)

// memLog is a log in memory that numbers like the store.
type memLog struct {
	mu    sync.Mutex // protects all below
	rows  []event.Record
	head  int64
	gaps  []event.Gap
	fault error
	reads int
}

func (l *memLog) boot() (start int64, gaps []event.Gap) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gaps = append(l.gaps, event.Gap{From: l.head + 1, To: l.head + store.BootGap})
	l.head += store.BootGap
	return l.head, append([]event.Gap{}, l.gaps...)
}

func (l *memLog) add(rows ...event.Record) []event.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range rows {
		l.head++
		rows[i].Seq = l.head
	}
	l.rows = append(l.rows, rows...)
	return rows
}

func (l *memLog) trim(upTo int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.rows) > 0 && l.rows[0].Seq <= upTo {
		l.rows = l.rows[1:]
	}
}

func (l *memLog) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = err
}

func (l *memLog) Events(_ context.Context, after, upTo int64, limit int) ([]event.Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	out := []event.Record{}
	for _, r := range l.rows {
		if r.Seq > after && r.Seq <= upTo && len(out) < limit {
			out = append(out, r)
		}
	}
	return out, l.fault
}

func (l *memLog) EventBounds(context.Context) (oldest, head int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.rows) > 0 {
		oldest = l.rows[0].Seq
	}
	return oldest, l.head, l.fault
}

// transaction collects what a transaction would write.
type transaction []store.Event

func (tx *transaction) Append(events ...store.Event) { *tx = append(*tx, events...) }

// world is a server that only has events.
type world struct {
	t   testing.TB
	log *memLog
	bus *event.Bus
}

func setup(t testing.TB, change func(*event.Config)) *world {
	t.Helper()
	w := &world{t: t, log: &memLog{}}
	w.start(change)
	return w
}

// start boots a bus on the log, after the one before was closed.
func (w *world) start(change func(*event.Config)) {
	start, gaps := w.log.boot()
	c := event.Config{Epoch: epoch, Start: start, Gaps: gaps, Log: w.log, Version: "test"}
	if change != nil {
		change(&c)
	}
	bus := event.NewBus(w.t.Context(), c)
	w.bus = bus
	w.t.Cleanup(bus.Close)
}

// sync waits until the bus has what another server wrote.
func (w *world) sync() {
	w.t.Helper()
	w.bus.Advance(w.log.head)
	deadline := time.Now().Add(5 * time.Second)
	for w.bus.Head().Seq != w.log.head {
		if time.Now().After(deadline) {
			w.t.Fatalf("head %v, the log's %d", w.bus.Head(), w.log.head)
		}
		runtime.Gosched()
	}
}

func row[P any](t testing.TB, k event.Kind[P], at event.Origin, payload P) event.Record {
	t.Helper()
	var tx transaction
	if err := k.Append(&tx, at, payload); err != nil {
		t.Fatal(err)
	}
	return tx[0]
}

func commit[P any](w *world, k event.Kind[P], at event.Origin, payload P) {
	w.bus.Commit(w.log.add(row(w.t, k, at, payload)))
}

func publish[P any](w *world, k event.Kind[P], at event.Origin, payload P) {
	d, err := k.Draft(at, payload)
	if err != nil {
		w.t.Error(err)
	}
	w.bus.Publish(d)
}

// part is a growing part of a scripted publisher.
type part struct {
	w     *world
	id    string
	at    event.Origin
	mu    sync.Mutex // protects buf
	buf   []byte
	close func()
}

func (w *world) openPart(partID string, at event.Origin) *part {
	p := &part{w: w, id: partID, at: at}
	p.close = w.bus.OpenPart(at, partID, func() (event.Draft, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return partUpdated.Draft(at, partPayload{PartID: partID, Text: string(p.buf)})
	})
	commit(w, partUpdated, at, partPayload{PartID: partID})
	return p
}

func (p *part) grow(delta string) {
	p.mu.Lock()
	offset := len(p.buf)
	p.buf = append(p.buf, delta...)
	p.mu.Unlock()
	publish(p.w, partDelta, p.at, deltaPayload{PartID: p.id, Field: "text", Delta: delta, Offset: offset})
}

func (p *part) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.buf)
}

func (p *part) finish() {
	commit(p.w, partUpdated, p.at, partPayload{PartID: p.id, Text: p.text()})
	p.close()
}

// turn publishes a whole turn: a part that grows in pieces, and idle.
func (w *world) turn(partID, text string, piece int, at event.Origin) {
	p := w.openPart(partID, at)
	for i := 0; i < len(text); i += piece {
		p.grow(text[i:min(i+piece, len(text))])
	}
	p.finish()
	commit(w, wentIdle, at, idlePayload{SessionID: at.SessionID})
}

// got is a frame as a client decodes it.
type got struct {
	event.Envelope[json.RawMessage]
	comment string
}

func (g got) position(t testing.TB) event.Position {
	t.Helper()
	p, ok := event.ParsePosition(g.ID)
	if !ok {
		t.Fatalf("id %q is not a position", g.ID)
	}
	return p
}

func (g got) control() bool { return strings.HasPrefix(g.Type, "server.") }

func decode[P any](t testing.TB, g got) P {
	t.Helper()
	var p P
	if err := json.Unmarshal(g.Payload, &p); err != nil {
		t.Fatalf("%s: %v", g.Payload, err)
	}
	return p
}

// screen is a client that shows parts: it applies frames and finds holes.
type screen struct {
	parts map[string][]byte
	last  event.Position
}

func newScreen() *screen { return &screen{parts: map[string][]byte{}} }

func (s *screen) text(partID string) string { return string(s.parts[partID]) }

// connected forgets the order of ids, which holds per stream.
func (s *screen) connected() { s.last = event.Position{} }

func (s *screen) apply(g got) error {
	p, ok := event.ParsePosition(g.ID)
	if !ok || p.Compare(s.last) <= 0 {
		return fmt.Errorf("id %v of %s after %v", p, g.Type, s.last)
	}
	s.last = p
	switch g.Type {
	case partUpdated.Name():
		var u partPayload
		if err := json.Unmarshal(g.Payload, &u); err != nil {
			return err
		}
		s.parts[u.PartID] = []byte(u.Text)
	case partDelta.Name():
		var d deltaPayload
		if err := json.Unmarshal(g.Payload, &d); err != nil {
			return err
		}
		have := s.parts[d.PartID]
		if d.Offset > len(have) {
			return fmt.Errorf("hole in %s at %s: delta at %d, text of %d", d.PartID, g.ID, d.Offset, len(have))
		}
		if end := d.Offset + len(d.Delta); end > len(have) {
			s.parts[d.PartID] = append(have[:d.Offset], d.Delta...)
		}
	}
	return nil
}

// events are the frames without control frames.
func events(all []got) []got {
	out := []got{}
	for _, g := range all {
		if !g.control() && g.comment == "" {
			out = append(out, g)
		}
	}
	return out
}

func ids(all []got) []string {
	out := make([]string, len(all))
	for i, g := range all {
		out[i] = g.ID
	}
	return out
}

func subscribe(w *world, o event.Options) *event.Subscription {
	w.t.Helper()
	s, err := w.bus.Subscribe(w.t.Context(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(s.Close)
	return s
}

func frame(f *event.Frame) got {
	var g got
	if err := json.Unmarshal(f.Envelope(), &g); err != nil {
		panic(err)
	}
	return g
}

// take reads n frames in process.
func take(t testing.TB, s *event.Subscription, n int) []got {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	out := make([]got, 0, n)
	for range n {
		f, err := s.Next(ctx)
		if err != nil {
			t.Fatalf("after %d frames: %v", len(out), err)
		}
		out = append(out, frame(f))
	}
	return out
}

func kinds(all []got) []string {
	out := make([]string, len(all))
	for i, g := range all {
		out[i] = g.Type
	}
	return out
}
