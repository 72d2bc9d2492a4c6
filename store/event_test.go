package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/switchyard-dev/switchyard/store"
)

func TestEventsAreNumberedAtCommitAndTold(t *testing.T) {
	t.Parallel()
	eachEngine(t, store.Config{}, func(t *testing.T, b *bundle) {
		told := collect(b.db)
		full := store.Event{
			Type: "session.created", Time: later + 17, Directory: "/d", WorkspaceID: "w", SessionID: "s", RootSessionID: "r",
			Payload: []byte(`{"a":1}`),
		}
		b.write(func(_ context.Context, tx *store.Tx) error {
			tx.Append(full, happened("second", 1))
			tx.Append(happened("third", 2))
			return nil
		})
		b.write(add("no events", 0))
		b.write(add("fourth", 1))
		first := b.db.Boot().Head + 1
		events := b.events()
		dense(t, events, first-1, 4)
		full.Seq = first
		if fmt.Sprint(events[0]) != fmt.Sprint(full) {
			t.Errorf("stored %+v, want %+v", events[0], full)
		}
		if got := told.all(); fmt.Sprint(got) != fmt.Sprint(events) {
			t.Errorf("told  %+v\nstored %+v", got, events)
		}
		some, err := b.db.Events(t.Context(), first, first+2, 1)
		if err != nil || len(some) != 1 || some[0].Seq != first+1 {
			t.Errorf("a part of the log: %+v, %v", some, err)
		}
		oldest, head, err := b.db.EventBounds(t.Context())
		if err != nil || oldest != first || head != first+3 {
			t.Errorf("bounds %d, %d, %v", oldest, head, err)
		}
	})
}

func TestOneWriteMayHaveThousandsOfEvents(t *testing.T) {
	t.Parallel()
	eachEngine(t, store.Config{}, func(t *testing.T, b *bundle) {
		head := b.head()
		b.write(add("many", 1234))
		events := b.events()
		dense(t, events, head, 1234)
		for i, e := range events {
			if e.Time != later+int64(i) {
				t.Fatalf("event %d is at place %d", e.Time-later, i)
			}
		}
	})
}

func TestTheCommittedOrderIsTheOrderOfNumbers(t *testing.T) {
	t.Parallel()
	eachEngine(t, store.Config{}, func(t *testing.T, b *bundle) {
		// A reader who polls for what is new must never see a number appear below
		// one that it has seen.
		ctx, cancel := context.WithCancel(t.Context())
		var reader, writers sync.WaitGroup
		start := b.head()
		seen := start
		reader.Go(func() {
			for ctx.Err() == nil {
				events, err := b.db.Events(t.Context(), seen, 1<<56, 1000)
				if err != nil {
					t.Error(err)
					return
				}
				for _, e := range events {
					if e.Seq != seen+1 {
						t.Errorf("number %d came after %d", e.Seq, seen)
					}
					seen = e.Seq
				}
			}
		})
		for w := range 4 {
			writers.Go(func() {
				for i := range 50 {
					b.write(add(fmt.Sprintf("w%d-%d", w, i), 1+i%2))
				}
			})
		}
		writers.Wait()
		cancel()
		reader.Wait()
		if b.head() != start+4*75 {
			t.Errorf("head %d after %d", b.head(), start)
		}
	})
}

func TestSixteenWritersLeaveNoHoleAndReuseNothing(t *testing.T) {
	t.Parallel()
	eachEngine(t, store.Config{}, func(t *testing.T, b *bundle) {
		const writers, each = 16, 24
		told := collect(b.db)
		head := b.head()
		var wait sync.WaitGroup
		for w := range writers {
			wait.Go(func() {
				for i := range each {
					name := fmt.Sprintf("w%d-%d", w, i)
					if i%8 == 7 { // undone: neither rows nor numbers
						err := b.db.Write(t.Context(), store.Durable, func(ctx context.Context, tx *store.Tx) error {
							return errors.Join(add(name, 3)(ctx, tx), errRefused)
						})
						if !errors.Is(err, errRefused) {
							t.Errorf("%s: %v", name, err)
						}
						continue
					}
					if err := b.db.Write(t.Context(), store.Level(i%2), add(name, 1+i%3)); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
			})
		}
		wait.Wait()
		rows, events := b.rows(), b.events()
		if len(rows) != writers*each*7/8 {
			t.Errorf("%d rows", len(rows))
		}
		dense(t, events, head, int(b.head()-head))
		matches(t, rows, events)
		all := told.all()
		slices.SortFunc(all, func(x, y store.Event) int { return int(x.Seq - y.Seq) })
		if fmt.Sprint(all) != fmt.Sprint(events) {
			t.Errorf("told of %d events, stored %d", len(all), len(events))
		}
	})
}

// matches wants each row's events to be there, one after the other, and no others.
func matches(t *testing.T, rows []string, events []store.Event) {
	t.Helper()
	var got []string
	for i := 0; i < len(events); {
		name := events[i].Type
		for k := 0; i < len(events) && events[i].Type == name; k, i = k+1, i+1 {
			if events[i].Time != later+int64(k) {
				t.Fatalf("event %d of %s is at place %d", events[i].Time-later, name, k)
			}
		}
		got = append(got, name)
	}
	slices.Sort(got)
	if !slices.Equal(got, rows) {
		t.Errorf("events of %d writes, rows of %d, or not the same", len(got), len(rows))
	}
}

func TestEachStartSkipsNumbers(t *testing.T) {
	t.Parallel()
	eachEngine(t, store.Config{Owner: "one"}, func(t *testing.T, b *bundle) {
		first := b.db.Boot()
		if first.Number != 1 || first.Head != store.BootGap || first.Epoch>>31 != 0 ||
			!slices.Equal(first.Gaps, []store.Gap{{From: 1, To: store.BootGap}}) {
			t.Errorf("first start: %+v", first)
		}
		b.write(add("a", 2))
		b.reopen(store.Config{Owner: "two"})
		second := b.db.Boot()
		gap := store.Gap{From: first.Head + 3, To: first.Head + 2 + store.BootGap}
		if second.Number != 2 || second.Epoch != first.Epoch || second.Head != gap.To || !slices.Equal(second.Gaps, append(first.Gaps, gap)) {
			t.Errorf("second start: %+v, want a gap of %+v", second, gap)
		}
		b.write(add("b", 1))
		if events := b.events(); len(events) != 3 || events[2].Seq != gap.To+1 {
			t.Errorf("events %+v", events)
		}
		if owners := strings.Join(b.text("SELECT owner FROM boot ORDER BY number"), " "); owners != "one two" {
			t.Errorf("owners %q", owners)
		}
	})
}

func TestStoresHaveTheirOwnEpochs(t *testing.T) {
	t.Parallel()
	a, b := setupLite(t, store.Config{}).db.Boot(), setupLite(t, store.Config{}).db.Boot()
	if a.Epoch == b.Epoch { // one in 2^31
		t.Errorf("both have %x", a.Epoch)
	}
}
