package event_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchyard-dev/switchyard/event"
)

// follower is a client that reads a stream, disconnects at random and resumes.
type follower struct {
	w      *world
	filter event.Filter
	random *rand.Rand
	cursor string
	view   *screen
	ids    []string
	seqs   []int64
}

// follow reads until the event that the publishers end with.
func (f *follower) follow() error {
	for {
		if ended, err := f.connection(); ended || err != nil {
			return err
		}
	}
}

// connection reads a random number of frames and tells whether the last event
// was among them.
func (f *follower) connection() (ended bool, err error) {
	ctx := f.w.t.Context()
	s, err := f.w.bus.Subscribe(ctx, event.Options{Cursor: f.cursor, Filter: f.filter})
	if err != nil {
		return false, err
	}
	defer s.Close()
	f.view.connected()
	for i := range 1 + f.random.IntN(200) {
		fr, err := s.Next(ctx)
		if err != nil {
			return false, err
		}
		if i == 0 && fr.Type != "server.connected" {
			return false, fmt.Errorf("resumed at %s with %s %s", f.cursor, fr.Type, fr.Payload())
		}
		if err := f.take(fr); err != nil {
			return false, err
		}
		if fr.Type == wentIdle.Name() {
			return true, nil
		}
	}
	return false, nil
}

func (f *follower) take(fr *event.Frame) error {
	g := frame(fr)
	f.cursor = g.ID
	if g.control() {
		return f.view.apply(g)
	}
	f.ids = append(f.ids, g.ID)
	if fr.Durable() {
		f.seqs = append(f.seqs, fr.Position.Seq)
	}
	return f.view.apply(g)
}

// resume lets 16 publishers write parts into a world while 50 followers come
// and go, and gives the followers, the first of which never disconnected.
func resume(t *testing.T, w *world, pieces int) ([]*follower, map[string]string) {
	t.Helper()
	start := w.bus.Head().String()
	var publishers, readers sync.WaitGroup
	var mu sync.Mutex // protects texts
	texts := map[string]string{}
	for n := range 16 {
		publishers.Go(func() {
			at := event.At([]event.Context{contextA, contextB}[n%2], "ses_1", "ses_1")
			for round := range 4 {
				p := w.openPart(fmt.Sprintf("%d.%d", n, round), at)
				for i := range pieces {
					p.grow(fmt.Sprintf("%d,", i))
					if i%16 == 15 {
						time.Sleep(time.Millisecond) //nolint:forbidigo // gives readers a turn
					}
				}
				p.finish()
				mu.Lock()
				texts[p.id] = p.text()
				mu.Unlock()
			}
		})
	}
	followers := make([]*follower, 50)
	errs := make([]error, len(followers))
	for i := range followers {
		f := &follower{w: w, filter: everything, random: rand.New(rand.NewPCG(7, uint64(i))), cursor: start, view: newScreen()}
		if i%5 == 4 {
			f.filter = event.Filter{Contexts: []event.Context{contextA}}
		}
		followers[i] = f
		readers.Go(func() { errs[i] = f.follow() })
	}
	publishers.Wait()
	commit(w, wentIdle, event.ServerWide(), idlePayload{})
	readers.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return followers, texts
}

func checkTexts(t *testing.T, f *follower, texts map[string]string) {
	t.Helper()
	for partID, want := range texts {
		var n, round int
		if _, err := fmt.Sscanf(partID, "%d.%d", &n, &round); err != nil {
			t.Fatal(err)
		}
		if !f.filter.All && n%2 == 1 {
			want = ""
		}
		if f.view.text(partID) != want {
			t.Errorf("part %s reads %.40q, want %.40q", partID, f.view.text(partID), want)
		}
	}
}

func TestE2_ResumingReadersMissNothingWithinTheRing(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *event.Config) { c.MergeAfter = 16 << 20 }) // the reference reads only at the end
	reference := subscribe(w, event.Options{Filter: everything})
	followers, texts := resume(t, w, 60)
	want := events(take(t, reference, 1+16*4*(60+2)+1))
	wantA := slices.DeleteFunc(slices.Clone(want), func(g got) bool { return g.Context == contextB })
	for i, f := range followers {
		all := want
		if !f.filter.All {
			all = wantA
		}
		if !slices.Equal(f.ids, ids(all)) {
			t.Errorf("reader %d got %d ids, want %d", i, len(f.ids), len(all))
		}
		checkTexts(t, f, texts)
	}
}

func TestE2_ResumingReadersMissNothingBeyondTheRing(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *event.Config) { c.RingBytes = 30_000; c.Page = 5 })
	followers, texts := resume(t, w, 60)
	for i, f := range followers {
		want := []int64{}
		for _, r := range w.log.rows {
			if f.filter.All || r.Directory != contextB.Directory {
				want = append(want, r.Seq)
			}
		}
		if !slices.Equal(f.seqs, want) {
			t.Errorf("reader %d got %d durable events, want %d", i, len(f.seqs), len(want))
		}
		checkTexts(t, f, texts)
	}
}

func TestE8_DeltasOfASlowStreamAreMerged(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *event.Config) { c.MergeAfter = 1000 })
	s := subscribe(w, event.Options{Filter: everything})
	one, two := w.openPart("one", ses1), w.openPart("two", ses1)
	for range 10 {
		one.grow("a")
	}
	for range 10 {
		two.grow("b")
	}
	commit(w, noted, ses1, notePayload{N: 1})
	for range 10 {
		one.grow("c")
	}
	head := w.bus.Head()
	all := take(t, s, 7)
	want := []string{"server.connected", "message.part.updated", "message.part.updated", "message.part.delta", "message.part.delta", "pty.created", "message.part.delta"}
	if got := kinds(all); !slices.Equal(got, want) {
		t.Fatalf("got %v", got)
	}
	if d := decode[deltaPayload](t, all[6]); d.Delta != strings.Repeat("c", 10) || d.Offset != 10 || all[6].ID != head.String() {
		t.Errorf("last delta %+v at %s, head %s", d, all[6].ID, head)
	}
	one.grow("d") // it keeps up again
	one.grow("e")
	if got := take(t, s, 2); decode[deltaPayload](t, got[0]).Delta != "d" || decode[deltaPayload](t, got[1]).Delta != "e" {
		t.Errorf("then %s %s", got[0].Payload, got[1].Payload)
	}
	one.close()
	two.close()
}

func TestE8_DeltasWithAHoleAreNotMerged(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *event.Config) { c.MergeAfter = 1 })
	s := subscribe(w, event.Options{Filter: everything})
	for _, offset := range []int{0, 5} {
		publish(w, partDelta, ses1, deltaPayload{PartID: "p", Field: "text", Delta: "x", Offset: offset})
	}
	if got := take(t, s, 3); decode[deltaPayload](t, got[2]).Offset != 5 {
		t.Errorf("got %v", kinds(got))
	}
}

func TestE8_AStreamThatFallsOutOfTheRingIsServedFromTheLog(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *event.Config) { c.RingBytes = 5000 })
	s := subscribe(w, event.Options{Filter: everything})
	p := w.openPart("p", ses1)
	view := newScreen()
	for _, g := range take(t, s, 2) {
		if err := view.apply(g); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 50 {
		p.grow("abc")
		if n%10 == 0 {
			commit(w, noted, ses1, notePayload{N: n})
		}
	}
	head := w.bus.Head()
	seen := []got{}
	for view.last.Compare(head) < 0 {
		g := take(t, s, 1)[0]
		if err := view.apply(g); err != nil {
			t.Fatal(err)
		}
		seen = append(seen, g)
	}
	if got := kinds(seen); !slices.Equal(got, []string{"pty.created", "pty.created", "pty.created", "pty.created", "pty.created", "message.part.updated"}) {
		t.Errorf("got %v", got)
	}
	p.finish()
	take(t, s, 1)
	if view.text("p") != p.text() {
		t.Errorf("the part reads %q", view.text("p"))
	}
}

func TestE8_BeyondItsBudgetAStreamIsGivenUpAndCanResume(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *event.Config) { c.LagBudget = 5000 })
	s := subscribe(w, event.Options{Filter: everything})
	take(t, s, 1)
	p := w.openPart("p", ses1)
	for range 50 {
		p.grow("abc")
	}
	lagged := take(t, s, 1)[0]
	if lagged.Type != "server.lagged" || decode[event.Lagged](t, lagged).Reason != "backlog" {
		t.Fatalf("got %s %s", lagged.Type, lagged.Payload)
	}
	if _, err := s.Next(t.Context()); !errors.Is(err, event.ErrLagged) {
		t.Errorf("then %v", err)
	}
	s = subscribe(w, event.Options{Filter: everything, Cursor: lagged.ID})
	all := take(t, s, 3)
	if got := kinds(all); !slices.Equal(got, []string{"server.connected", "message.part.updated", "message.part.updated"}) || decode[partPayload](t, all[2]).Text != p.text() {
		t.Errorf("resumed with %v: %s", got, all[2].Payload)
	}
	p.close()
}

func TestE2_TheRingForgetsAfterItsAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, nil)
		p := w.openPart("p", ses1)
		defer p.close()
		cursor := w.bus.Head().String()
		p.grow("text")
		for _, want := range []string{"message.part.delta", "message.part.updated"} {
			s := subscribe(w, event.Options{Filter: everything, Cursor: cursor})
			if got := take(t, s, 2)[1].Type; got != want {
				t.Errorf("after %s the stream begins with %s", time.Now().Format(time.TimeOnly), got)
			}
			time.Sleep(15 * time.Minute) //nolint:forbidigo // the bubble's clock
		}
	})
}

// replaying gives a stream that has read one of many pages of the log.
func replaying(t *testing.T, budget int) (*world, *event.Subscription) {
	t.Helper()
	w := setup(t, func(c *event.Config) { c.RingBytes = 4000; c.Page = 2; c.LagBudget = budget })
	s := subscribe(w, event.Options{Filter: everything})
	take(t, s, 1)
	for n := range 20 {
		commit(w, noted, ses1, notePayload{N: n})
	}
	take(t, s, 2)
	return w, s
}

func TestAReplayIsInterrupted(t *testing.T) {
	t.Parallel()
	t.Run("by Stop", func(t *testing.T) {
		t.Parallel()
		w, s := replaying(t, 0)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := w.bus.Stop(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Stop did not wait for the stream: %v", err)
		}
		last := take(t, s, 1)[0]
		w.restart(nil)
		again := subscribe(w, event.Options{Filter: everything, Cursor: last.ID})
		if got := notes(t, take(t, again, 19)); last.Type != "server.stopping" || len(got) != 18 || got[0] != 2 {
			t.Errorf("after %s came %v", last.Type, got)
		}
	})
	t.Run("by Close", func(t *testing.T) {
		t.Parallel()
		_, s := replaying(t, 0)
		s.Close()
		if _, err := s.Next(t.Context()); !errors.Is(err, event.ErrClosed) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("by its budget", func(t *testing.T) {
		t.Parallel()
		w, s := replaying(t, 12_000)
		for n := range 20 {
			commit(w, noted, ses1, notePayload{N: 20 + n})
		}
		last := take(t, s, 1)[0]
		again := subscribe(w, event.Options{Filter: everything, Cursor: last.ID})
		if got := notes(t, take(t, again, 39)); last.Type != "server.lagged" || len(got) != 38 || got[0] != 2 {
			t.Errorf("after %s came %v", last.Type, got)
		}
	})
}
