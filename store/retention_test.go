package store_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/store"
)

// trim trims once.
func (b *bundle) trim() int64 {
	b.t.Helper()
	n, err := b.db.Trim(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

// totals wants the head row to know what the log holds.
func (b *bundle) totals() {
	b.t.Helper()
	counted := b.text("SELECT CAST(COUNT(*) AS text) || ' ' || CAST(COALESCE(SUM(size), 0) AS text) FROM event")
	known := b.text("SELECT CAST(total_rows AS text) || ' ' || CAST(total_bytes AS text) FROM event_head")
	if counted[0] != known[0] {
		b.t.Errorf("the log has %s rows and bytes, its head says %s", counted[0], known[0])
	}
}

func TestTheLogIsTrimmedByAgeRowsAndBytes(t *testing.T) {
	t.Parallel()
	eachEngine(t, store.Config{}, func(t *testing.T, b *bundle) {
		anHourAgo := func(_ context.Context, tx *store.Tx) error {
			for i := range 100 {
				e := happened("old", i)
				e.Time = clock.Now() - time.Hour.Milliseconds()
				tx.Append(e)
			}
			return nil
		}
		head := b.head()
		// Each start with other bounds trims what is beyond them.
		for _, step := range []struct {
			name  string
			write func(context.Context, *store.Tx) error
			keep  store.Retention
			left  int
		}{
			{"just within all", anHourAgo, store.Retention{Rows: 100, Bytes: 790, Age: 2 * time.Hour}, 100}, // ten have a byte less
			{"age", add("none", 0), store.Retention{Age: time.Minute}, 0},
			{"rows", add("new", 100), store.Retention{Rows: 30}, 30},
			{"bytes", add("none either", 0), store.Retention{Bytes: 80}, 10}, // 8 bytes each
		} {
			written := b.head()
			b.write(step.write)
			written = b.head() - written
			b.reopen(store.Config{Retention: step.keep})
			if n := len(b.events()); n != step.left {
				t.Errorf("%s: %d events are left, want %d", step.name, n, step.left)
			}
			if step.left > 0 {
				dense(t, b.events(), b.events()[0].Seq-1, step.left)
			}
			if n := b.trim(); n != 0 {
				t.Errorf("%s: %d more went", step.name, n)
			}
			b.totals()
			head += written + store.BootGap
			if b.head() != head {
				t.Errorf("%s: head %d, want %d", step.name, b.head(), head)
			}
		}
	})
}

func TestOneStepOfTrimmingIsBounded(t *testing.T) {
	t.Parallel()
	eachEngine(t, store.Config{Retention: store.Retention{Rows: 10}}, func(t *testing.T, b *bundle) {
		const written = 2*store.TrimRows + 100
		b.write(add("many", written)) // trims a step by itself
		b.totals()
		if n := len(b.events()); n != written-store.TrimRows {
			t.Errorf("%d are left after the write", n)
		}
		for _, want := range []int64{store.TrimRows, 90, 0} {
			if n := b.trim(); n != want {
				t.Errorf("%d went, want %d", n, want)
			}
			b.totals()
		}
	})
}

func TestTrimmingRidesOnWrites(t *testing.T) {
	t.Parallel()
	eachEngine(t, store.Config{Retention: store.Retention{Rows: 100}}, func(t *testing.T, b *bundle) {
		for i := range 13 {
			b.write(add(fmt.Sprintf("w%d", i), 100))
		}
		if n := len(b.events()); n > 100+store.TrimEvery {
			t.Errorf("%d events are left", n)
		}
		b.totals()
	})
}

func TestTwoServersTrimWithoutCountingTwice(t *testing.T) {
	t.Parallel()
	b := setupPostgres(t, store.Config{Retention: store.Retention{Rows: 50}})
	other := open(t, store.Config{URL: b.url, Retention: store.Retention{Rows: 50}})
	var wait sync.WaitGroup
	for w, d := range []*store.DB{b.db, other, b.db, other} {
		wait.Go(func() {
			for i := range 15 {
				if err := d.Write(t.Context(), store.Relaxed, add(fmt.Sprintf("w%d-%d", w, i), 20)); err != nil {
					t.Error(err)
				}
				if _, err := d.Trim(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	b.trim()
	b.totals()
	if n := len(b.events()); n != 50 {
		t.Errorf("%d events are left", n)
	}
}

func TestAnIdleStoreWritesNothing(t *testing.T) {
	t.Parallel()
	b := setupLite(t, store.Config{})
	b.write(add("row", 1))
	look := func() string {
		var all strings.Builder
		for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
			info, err := os.Stat(b.url + suffix)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&all, suffix, info.Size(), info.ModTime().UnixNano())
		}
		return all.String()
	}
	before := look()
	if b.trim() != 0 || b.db.Health() != nil { // what is asked for all the time
		t.Error("not well")
	}
	if err := clock.Sleep(t.Context(), 2*time.Second); err != nil {
		t.Fatal(err)
	}
	if after := look(); after != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
}
