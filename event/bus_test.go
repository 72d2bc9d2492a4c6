package event_test

import (
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
	"github.com/switchyard-dev/switchyard/fault"
)

var everything = event.Filter{All: true}

func notes(t *testing.T, all []got) []int {
	t.Helper()
	out := []int{}
	for _, g := range events(all) {
		out = append(out, decode[notePayload](t, g).N)
	}
	return out
}

func TestE1_CommitsAreDeliveredInTheOrderOfNumbers(t *testing.T) {
	t.Parallel()
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {2, 0, 1}} {
		w := setup(t, nil)
		s := subscribe(w, event.Options{Filter: everything})
		rows := [][]event.Record{}
		for n := range 3 {
			rows = append(rows, w.log.add(row(t, noted, event.ServerWide(), notePayload{N: n})))
		}
		for _, i := range order {
			w.bus.Commit(rows[i])
		}
		if got := notes(t, take(t, s, 4)); !slices.Equal(got, []int{0, 1, 2}) {
			t.Errorf("committed as %v, delivered %v", order, got)
		}
	}
}

func TestEventsOfAnotherServerAreReadFirst(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *event.Config) { c.Page = 3 })
	s := subscribe(w, event.Options{Filter: everything})
	for n := range 10 { // written by the other server
		w.log.add(row(t, noted, event.ServerWide(), notePayload{N: n}))
	}
	commit(w, noted, event.ServerWide(), notePayload{N: 10})
	publish(w, partDelta, event.ServerWide(), deltaPayload{Delta: "after 10"})
	all := take(t, s, 13)
	if got := notes(t, all[:12]); !slices.Equal(got, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}) {
		t.Errorf("delivered %v", got)
	}
	if all[12].Type != "message.part.delta" {
		t.Errorf("the delta that was published after the commit came as %s", all[12].Type)
	}
	w.log.add(row(t, noted, event.ServerWide(), notePayload{N: 11}))
	w.bus.Advance(w.log.head)
	if got := notes(t, take(t, s, 1)); !slices.Equal(got, []int{11}) {
		t.Errorf("after Advance: %v", got)
	}
}

func TestGapsOfStartsAreNotReadNorWaitedFor(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	s := subscribe(w, event.Options{Filter: everything})
	_, gaps := w.log.boot() // another server starts
	w.bus.AddGap(gaps[1])
	commit(w, noted, event.ServerWide(), notePayload{N: 1})
	take(t, s, 2)
	if w.log.reads != 0 {
		t.Errorf("%d reads for a known gap", w.log.reads)
	}
	w.log.boot() // and again, but nobody tells
	commit(w, noted, event.ServerWide(), notePayload{N: 2})
	if got := notes(t, take(t, s, 1)); !slices.Equal(got, []int{2}) || w.log.reads == 0 {
		t.Errorf("got %v after %d reads", got, w.log.reads)
	}
	w.log.boot()
	w.sync()
}

func TestFillGoesOnWhenTheLogFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, nil)
		s := subscribe(w, event.Options{Filter: everything})
		w.log.fail(errors.New("no connection"))
		w.log.add(row(t, noted, event.ServerWide(), notePayload{N: 1}))
		commit(w, noted, event.ServerWide(), notePayload{N: 2})
		publish(w, partDelta, event.ServerWide(), deltaPayload{Delta: "x"})
		time.Sleep(time.Minute) //nolint:forbidigo // the bubble's clock
		if head := w.bus.Head(); head.Sub != 0 {
			t.Errorf("head %v: the delta overtook its durable events", head)
		}
		w.log.fail(nil)
		all := take(t, s, 4)
		if got := kinds(all); !slices.Equal(got, []string{"server.connected", "pty.created", "pty.created", "message.part.delta"}) {
			t.Errorf("delivered %v", got)
		}
	})
}

func TestDeltasThatWaitTooLongAreReplacedByWholeParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, func(c *event.Config) { c.RingBytes = 64 << 10 })
		s := subscribe(w, event.Options{Filter: everything})
		p := w.openPart("p", event.At(contextA, "ses_1", "ses_1"))
		w.log.fail(errors.New("no connection"))
		w.log.add(row(t, noted, event.ServerWide(), notePayload{N: 1}))
		commit(w, noted, event.ServerWide(), notePayload{N: 2})
		want := strings.Repeat("0123456789", 1000)
		for i := range 1000 {
			p.grow(want[i*10 : i*10+10])
		}
		w.log.fail(nil)
		time.Sleep(time.Minute) //nolint:forbidigo // the bubble's clock
		view := newScreen()
		p.grow("end")
		for view.text("p") != want+"end" {
			if err := view.apply(take(t, s, 1)[0]); err != nil {
				t.Fatal(err)
			}
		}
		p.close()
	})
}

func TestPublishersNeverWaitForStreams(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	for range 50 { // none of them ever reads
		subscribe(w, event.Options{Filter: everything})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 1000 {
			publish(w, partDelta, event.ServerWide(), deltaPayload{})
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("publishers wait")
	}
}

func TestHeadIsWhereAStreamWithoutCursorStarts(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	for range 3 {
		head := w.bus.Head()
		s := subscribe(w, event.Options{Filter: everything})
		if g := take(t, s, 1)[0]; g.ID != head.String() {
			t.Errorf("starts at %s, head %s", g.ID, head)
		}
		publish(w, partDelta, event.ServerWide(), deltaPayload{})
		// E4: what happens after the head was read comes to who resumes there.
		s = subscribe(w, event.Options{Filter: everything, Cursor: head.String()})
		if g := take(t, s, 2)[1]; g.Type != "message.part.delta" {
			t.Errorf("after the head: %s", g.Type)
		}
		commit(w, noted, event.ServerWide(), notePayload{})
	}
}

func TestE12_StopEndsStreamsAfterWhatTheyStillHave(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	s := subscribe(w, event.Options{Filter: everything})
	commit(w, noted, event.ServerWide(), notePayload{N: 1})
	stopped := make(chan error, 1)
	go func() { stopped <- w.bus.Stop(t.Context()) }()
	all := take(t, s, 3)
	if got := kinds(all); !slices.Equal(got, []string{"server.connected", "pty.created", "server.stopping"}) {
		t.Errorf("got %v", got)
	}
	if all[2].position(t).Compare(all[1].position(t)) <= 0 {
		t.Errorf("ids %v", ids(all))
	}
	if _, err := s.Next(t.Context()); !errors.Is(err, event.ErrStopping) {
		t.Errorf("then %v", err)
	}
	select {
	case err := <-stopped:
		t.Errorf("Stop returned %v before the stream was closed", err)
	default:
	}
	s.Close()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if _, err := w.bus.Subscribe(t.Context(), event.Options{}); !fault.Is(err, fault.Stopping) {
		t.Errorf("Subscribe after Stop: %v", err)
	}
}

func TestCloseWakesAReader(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	s := subscribe(w, event.Options{Filter: everything})
	take(t, s, 1)
	time.AfterFunc(10*time.Millisecond, s.Close)
	if _, err := s.Next(t.Context()); !errors.Is(err, event.ErrClosed) {
		t.Errorf("error %v", err)
	}
	s.Close()
}

// TestE1_IdsIncreaseUnderConcurrentCommits has 16 publishers that number and
// tell in any order, and one stream that sees all.
func TestE1_IdsIncreaseUnderConcurrentCommits(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	s := subscribe(w, event.Options{Filter: everything})
	const publishers, each = 16, 200
	var done sync.WaitGroup
	for p := range publishers {
		done.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(p)))
			for n := range each {
				batch := []event.Record{}
				for range 1 + r.IntN(3) {
					batch = append(batch, row(t, noted, event.ServerWide(), notePayload{N: n}))
				}
				w.bus.Commit(w.log.add(batch...))
				publish(w, partDelta, event.ServerWide(), deltaPayload{PartID: fmt.Sprint(p), Offset: n})
			}
		})
	}
	done.Wait()
	w.log.mu.Lock()
	durable := len(w.log.rows)
	w.log.mu.Unlock()
	all := take(t, s, 1+durable+publishers*each)
	offsets := map[string]int{}
	last := all[0].position(t)
	seqs := []int64{}
	for _, g := range all[1:] {
		at := g.position(t)
		if at.Compare(last) <= 0 {
			t.Fatalf("%v after %v", at, last)
		}
		last = at
		if at.Sub == 0 {
			seqs = append(seqs, at.Seq)
			continue
		}
		d := decode[deltaPayload](t, g)
		if d.Offset != offsets[d.PartID] {
			t.Fatalf("publisher %s: delta %d, want %d", d.PartID, d.Offset, offsets[d.PartID])
		}
		offsets[d.PartID]++
	}
	for i, seq := range seqs {
		if seq != w.log.rows[i].Seq {
			t.Fatalf("durable event %d has number %d, want %d", i, seq, w.log.rows[i].Seq)
		}
	}
}
