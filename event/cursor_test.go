package event_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/store"
)

var ses1 = event.At(contextA, "ses_1", "ses_1")

// restart ends the bus and boots another one on the same log.
func (w *world) restart(change func(*event.Config)) {
	w.bus.Close()
	w.start(change)
}

func TestSC02_E3_CursorsThatCannotBeContinued(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	firstStart := w.bus.Head()
	for n := range 5 {
		commit(w, noted, ses1, notePayload{N: n})
	}
	early, beforeRestart := w.bus.Head(), w.bus.Head()
	early.Seq -= 3
	w.restart(nil)
	w.log.trim(early.Seq + 2)
	at := func(seq, sub int64) string { return event.Position{Epoch: epoch, Seq: seq, Sub: sub}.String() }

	for _, c := range []struct {
		name, cursor string
		want         event.Reason
	}{
		{"no id", "zzz", event.ReasonMalformed},
		{"lower case", strings.ToLower(early.String()), event.ReasonMalformed},
		{"another store", event.Position{Epoch: epoch + 1, Seq: early.Seq}.String(), event.ReasonUnknown},
		{"the future", at(w.bus.Head().Seq+100, 0), event.ReasonUnknown},
		{"lost with power", at(beforeRestart.Seq+1, 0), event.ReasonLost},
		{"lost with power, a delta", at(beforeRestart.Seq+7, 2), event.ReasonLost},
		{"before the first event", at(17, 0), event.ReasonLost},
		{"not kept any more", early.String(), event.ReasonExpired},
		{"a delta of then", at(early.Seq, 8), event.ReasonExpired},
		{"the start, and events after it were trimmed", firstStart.String(), event.ReasonExpired},
		{"just kept", at(early.Seq+2, 0), ""},
		{"newest before the restart", beforeRestart.String(), ""},
		{"a delta before the restart", at(beforeRestart.Seq, 1<<30|2), ""},
		{"the head", w.bus.Head().String(), ""},
		{"none", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			head := w.bus.Head()
			s := subscribe(w, event.Options{Cursor: c.cursor, Filter: everything, Contexts: []event.Requested{{Requested: "/a", Directory: "/a"}}})
			first := take(t, s, 1)[0]
			r := decode[event.Resync](t, first)
			if r.Reason != c.want || r.Version != "test" || r.Epoch != epoch || len(r.Contexts) != 1 {
				t.Fatalf("first frame %s %s, want reason %q", first.Type, first.Payload, c.want)
			}
			if c.want == "" {
				if first.Type != "server.connected" || (c.cursor != "" && first.ID != c.cursor) {
					t.Errorf("first frame %s %s", first.Type, first.ID)
				}
				return
			}
			if first.Type != "server.resync" || first.ID != head.String() || r.Earliest != at(early.Seq+3, 0) {
				t.Errorf("first frame %s %s, earliest %s", first.Type, first.ID, r.Earliest)
			}
			commit(w, noted, ses1, notePayload{N: 99})
			if got := notes(t, take(t, s, 1)); !slices.Equal(got, []int{99}) {
				t.Errorf("after the resync came %v, want only what is new", got)
			}
		})
	}
}

func TestStartsWithoutEventsExpireNoCursor(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	cursor := w.bus.Head().String()
	w.restart(nil)
	w.restart(nil)
	commit(w, noted, ses1, notePayload{N: 1})
	s := subscribe(w, event.Options{Cursor: cursor, Filter: everything})
	if all := take(t, s, 2); all[0].Type != "server.connected" || all[1].Type != "pty.created" {
		t.Errorf("got %v", kinds(all))
	}
	w.log.trim(w.log.head) // now there was one, and it is gone
	w.restart(nil)
	s = subscribe(w, event.Options{Cursor: cursor, Filter: everything})
	if g := take(t, s, 1)[0]; g.Type != "server.resync" || decode[event.Resync](t, g).Earliest != w.bus.Head().String() {
		t.Errorf("got %s %s", g.Type, g.Payload)
	}
}

func TestSubscribeWithoutLog(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	head := w.bus.Head().String()
	w.log.fail(errors.New("no connection"))
	subscribe(w, event.Options{Cursor: head}) // the ring covers it
	if _, err := w.bus.Subscribe(t.Context(), event.Options{Cursor: "zzz"}); !fault.Is(err, fault.StoreUnavailable) {
		t.Errorf("error %v", err)
	}
}

func TestReplayEndsWithAnErrorOfTheLog(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	cursor := w.bus.Head().String()
	commit(w, noted, ses1, notePayload{})
	w.restart(nil)
	s := subscribe(w, event.Options{Cursor: cursor, Filter: everything})
	broken := errors.New("no connection")
	w.log.fail(broken)
	take(t, s, 1)
	if _, err := s.Next(t.Context()); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func TestE2_ReplayPagesThroughTheLog(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *event.Config) { c.Page = 7; c.RingBytes = 2000 })
	cursor := w.bus.Head().String()
	want := []int{}
	for n := range 100 {
		at := ses1
		if n%2 == 1 {
			at = event.At(contextB, "", "")
		} else {
			want = append(want, n)
		}
		commit(w, noted, at, notePayload{N: n})
	}
	s := subscribe(w, event.Options{Cursor: cursor, Filter: event.Filter{Contexts: []event.Context{contextA}}})
	all := take(t, s, 1+len(want))
	if got := notes(t, all); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	commit(w, noted, ses1, notePayload{N: 100})
	if got := notes(t, take(t, s, 1)); !slices.Equal(got, []int{100}) {
		t.Errorf("then live: %v", got)
	}
}

func TestReplayThatIsOvertakenByRetentionSaysSo(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *event.Config) { c.Page = 7; c.RingBytes = 1 })
	cursor := w.bus.Head()
	for n := range 100 {
		commit(w, noted, ses1, notePayload{N: n})
	}
	s := subscribe(w, event.Options{Cursor: cursor.String(), Filter: everything})
	take(t, s, 1+7)
	w.log.trim(cursor.Seq + 50)
	last := take(t, s, 1)[0]
	if last.Type != "server.lagged" || decode[event.Lagged](t, last).Reason != "expired" {
		t.Fatalf("got %s %s", last.Type, last.Payload)
	}
	if _, err := s.Next(t.Context()); !errors.Is(err, event.ErrLagged) {
		t.Errorf("then %v", err)
	}
	s = subscribe(w, event.Options{Cursor: last.ID, Filter: everything})
	if g := take(t, s, 1)[0]; decode[event.Resync](t, g).Reason != event.ReasonExpired {
		t.Errorf("resumed with %s %s", g.Type, g.Payload)
	}
}

func TestE7_OpenPartsComeWholeWithoutRingCover(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	cursor := w.bus.Head().String()
	one, two := w.openPart("one", ses1), w.openPart("two", ses1)
	other := w.openPart("other", event.At(contextB, "ses_2", "ses_2"))
	for _, p := range []*part{one, two, other} {
		p.grow("some text")
		defer p.close()
	}
	deltas, err := event.ParseTypes("message.part.delta")
	if err != nil {
		t.Fatal(err)
	}
	inA := event.Filter{Contexts: []event.Context{contextA}}
	wantWhole := func(name string, all []got) {
		t.Helper()
		view := newScreen()
		for _, g := range all {
			if err := view.apply(g); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if view.text("one") != "some text" || view.text("two") != "some text" || len(view.parts) != 2 {
			t.Errorf("%s: %v", name, view.parts)
		}
	}
	fresh := take(t, subscribe(w, event.Options{Filter: inA}), 3)
	wantWhole("a new stream", fresh)

	covered := take(t, subscribe(w, event.Options{Filter: inA, Cursor: cursor}), 5)
	if got := kinds(covered); !slices.Equal(got[3:], []string{"message.part.delta", "message.part.delta"}) {
		t.Errorf("with ring cover: %v", got)
	}
	// Whoever was cut off between the whole parts has not seen the second.
	wantWhole("cut off in between", append(fresh[:2], take(t, subscribe(w, event.Options{Filter: inA, Cursor: fresh[1].ID}), 3)[1:]...))
	// Behind the last one the ring goes on.
	s := subscribe(w, event.Options{Filter: inA, Cursor: fresh[2].ID})
	one.grow("!")
	if got := kinds(take(t, s, 2)); !slices.Equal(got, []string{"server.connected", "message.part.delta"}) {
		t.Errorf("behind the whole parts: %v", got)
	}
	s = subscribe(w, event.Options{Filter: event.Filter{All: true, Types: deltas}})
	take(t, s, 1)
	one.grow("?")
	if g := take(t, s, 1)[0]; g.Type != "message.part.delta" {
		t.Errorf("types without message.part.updated: %s", g.Type)
	}
}

// TestE7_APartThatEndsWhileItsDeltasWait starts a stream while an earlier event is
// still to be told: deltas wait for it, and the part they belong to is closed.
func TestE7_APartThatEndsWhileItsDeltasWait(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	p := w.openPart("p", ses1)
	p.grow("some ")
	w.log.fail(errors.New("the log cannot be read"))
	late := w.log.add(row(t, noted, ses1, notePayload{N: 1}))
	commit(w, noted, ses1, notePayload{N: 2})
	p.grow("text")
	p.finish()
	s := subscribe(w, event.Options{Filter: everything})
	w.log.fail(nil)
	w.bus.Commit(late)
	view := newScreen()
	for _, g := range take(t, s, 6) { // connected, whole, two notes, delta, last form
		if err := view.apply(g); err != nil {
			t.Error(err)
		}
	}
	if view.text("p") != "some text" {
		t.Errorf("the text is %q", view.text("p"))
	}
	if got := kinds(take(t, subscribe(w, event.Options{Filter: everything}), 1)); got[0] != "server.connected" {
		t.Error(got)
	}
	again := subscribe(w, event.Options{Filter: everything})
	commit(w, wentIdle, ses1, idlePayload{SessionID: ses1.SessionID})
	if got := kinds(take(t, again, 2)); !slices.Equal(got, []string{"server.connected", "session.idle"}) {
		t.Errorf("a part that has ended came again: %v", got)
	}
}

// TestE7_CutOffInAReplayLeavesNoHole cuts a stream that is served from the log
// behind each of its frames. What it holds then must be enough to go on from,
// although the ring covers the position.
func TestE7_CutOffInAReplayLeavesNoHole(t *testing.T) {
	t.Parallel()
	for cut := 1; cut <= 8; cut++ {
		w := setup(t, func(c *event.Config) { c.RingBytes = 12_000 })
		cursor := w.bus.Head().String()
		p, q := w.openPart("p", ses1), w.openPart("q", ses1)
		for range 20 { // more than the ring holds
			p.grow("abcde")
			q.grow("fghij")
		}
		for n := range 3 { // durable events in the ring, between deltas
			commit(w, noted, ses1, notePayload{N: n})
			p.grow("12345")
		}
		view := newScreen()
		read := func(enough func(n int, g got) bool) {
			s := subscribe(w, event.Options{Cursor: cursor, Filter: everything})
			defer s.Close()
			view.connected()
			for n := 1; ; n++ {
				g := take(t, s, 1)[0]
				if err := view.apply(g); err != nil {
					t.Fatalf("cut behind %d frames: %v", cut, err)
				}
				if cursor = g.ID; enough(n, g) {
					return
				}
			}
		}
		read(func(n int, _ got) bool { return n == cut })
		p.grow("end")
		q.grow("end")
		read(func(int, got) bool { return view.text("p") == p.text() && view.text("q") == q.text() })
		p.close()
		q.close()
	}
}

func TestSharedStoreTreatsForeignCursorsAsUncovered(t *testing.T) {
	t.Parallel()
	shared := func(c *event.Config) { c.Shared = true }
	here := setup(t, shared)
	there := &world{t: t, log: here.log}
	there.start(shared)
	commit(there, noted, ses1, notePayload{N: 1})
	here.sync()
	p := here.openPart("p", ses1) // its deltas are not seen there
	defer p.close()
	there.sync()
	p.grow("some")
	publish(there, partDelta, ses1, deltaPayload{PartID: "x"})
	theirs := there.bus.Head()
	durable := theirs
	durable.Sub = 0
	p.grow("thing")
	for _, cursor := range []event.Position{theirs, durable} {
		s := subscribe(here, event.Options{Cursor: cursor.String(), Filter: everything})
		all := take(t, s, 2)
		if all[0].ID != durable.String() || all[1].Type != "message.part.updated" || decode[partPayload](t, all[1]).Text != "something" {
			t.Errorf("from %v: %v, %s", cursor, kinds(all), all[1].Payload)
		}
	}
}

func TestCursorAheadOfThisServerWaitsForTheLog(t *testing.T) {
	t.Parallel()
	here := setup(t, nil)
	there := &world{t: t, log: here.log}
	there.start(nil)
	commit(there, noted, ses1, notePayload{N: 1})
	cursor := there.bus.Head().String()
	commit(there, noted, ses1, notePayload{N: 2})
	s := subscribe(here, event.Options{Cursor: cursor, Filter: everything})
	all := take(t, s, 1)
	here.bus.Advance(there.log.head)
	all = append(all, take(t, s, 1)...)
	if got := notes(t, all); all[0].ID != cursor || !slices.Equal(got, []int{2}) {
		t.Errorf("started at %s with %v", all[0].ID, got)
	}
	if there.bus.Head().Seq <= store.BootGap {
		t.Errorf("head %v", there.bus.Head())
	}
}
