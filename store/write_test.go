package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

var errRefused = errors.New("refused")

func TestAnErrorUndoesTheWriteAndItsEvents(t *testing.T) {
	t.Parallel()
	eachEngine(t, store.Config{}, func(t *testing.T, b *bundle) {
		told := collect(b.db)
		head := b.head()
		err := b.db.Write(t.Context(), store.Durable, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(add("lost", 3)(ctx, tx), errRefused)
		})
		if !errors.Is(err, errRefused) {
			t.Errorf("got %v", err)
		}
		if rows, events := b.rows(), b.events(); len(rows)+len(events)+len(told.all()) != 0 || b.head() != head {
			t.Errorf("something is left: %v, %v, %v, head %d after %d", rows, events, told.all(), b.head(), head)
		}
		b.write(add("kept", 1))
		if events := b.events(); len(events) != 1 || events[0].Seq != head+1 {
			t.Errorf("the undone write used up a number: %v after %d", events, head)
		}
	})
}

// faults are the writes that go wrong in the middle of others.
func faults() map[string]func(context.Context, *store.Tx) error {
	return map[string]func(context.Context, *store.Tx) error{
		"error": func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(add("error", 2)(ctx, tx), errRefused)
		},
		"panic": func(ctx context.Context, tx *store.Tx) error {
			_ = add("panic", 2)(ctx, tx)
			panic("on purpose")
		},
		"conflict": func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(add("conflict", 2)(ctx, tx), row(ctx, tx, "conflict"))
		},
		"bad event": func(_ context.Context, tx *store.Tx) error {
			e := happened("bad event", 0)
			e.Seq, e.Payload = 7, nil
			tx.Append(e)
			return errRefused
		},
	}
}

func TestAFaultyWriteLeavesItsNeighboursAlone(t *testing.T) {
	t.Parallel()
	eachEngine(t, store.Config{}, func(t *testing.T, b *bundle) {
		told := collect(b.db)
		head := b.head()
		release := occupy(t, b.db)
		var wait sync.WaitGroup
		var want []string
		for name, fn := range faults() {
			good := "before " + name
			want = append(want, good)
			for _, write := range []func(context.Context, *store.Tx) error{add(good, 2), fn} {
				queued := 0
				if b.lite {
					queued = store.Queued(b.db)
				}
				wait.Go(func() {
					err := b.db.Write(t.Context(), store.Durable, write)
					checkFaulty(t, name, err)
				})
				if b.lite {
					testkit.Eventually(t, waitLimit, "the write waits", func() bool { return store.Queued(b.db) > queued })
				}
			}
		}
		release()
		wait.Wait()
		slices.Sort(want)
		if rows := b.rows(); !slices.Equal(rows, want) {
			t.Errorf("rows %q, want %q", rows, want)
		}
		dense(t, b.events(), head, 2*len(want))
		if n := len(told.all()); n != 2*len(want) {
			t.Errorf("told of %d events", n)
		}
	})
}

// checkFaulty looks at the error of a faulty write; its neighbour's is nil.
func checkFaulty(t *testing.T, name string, err error) {
	t.Helper()
	switch {
	case err == nil:
	case name == "panic" && strings.Contains(err.Error(), "on purpose"):
	case name == "conflict" && store.IsConflict(err):
	case errors.Is(err, errRefused):
	default:
		t.Errorf("%s: %v", name, err)
	}
}

// dense wants n events with the numbers right after head.
func dense(t *testing.T, events []store.Event, head int64, n int) {
	t.Helper()
	if len(events) != n {
		t.Errorf("%d events, want %d", len(events), n)
	}
	for i, e := range events {
		if e.Seq != head+int64(i)+1 {
			t.Fatalf("event %d has number %d, want %d", i, e.Seq, head+int64(i)+1)
		}
	}
}

func TestWaitingWritesShareOneCommit(t *testing.T) {
	t.Parallel()
	b := setupLite(t, store.Config{})
	release := occupy(t, b.db)
	var wait sync.WaitGroup
	wait.Go(func() { b.write(add("first", 0)) })
	testkit.Eventually(t, waitLimit, "the first waits", func() bool { return store.Queued(b.db) == 1 })
	var inside, outside []string
	wait.Go(func() {
		b.write(func(ctx context.Context, tx *store.Tx) (err error) {
			outside = b.rows()
			inside, err = store.QueryText(ctx, tx.Reader, "SELECT name FROM meta WHERE name = 'first'")
			return err
		})
	})
	testkit.Eventually(t, waitLimit, "both wait", func() bool { return store.Queued(b.db) == 2 })
	release()
	wait.Wait()
	if len(inside) != 1 || len(outside) != 0 {
		t.Errorf("the second write saw %v, others %v", inside, outside)
	}
}

func TestACallerWhoLeavesBeforeTheBeginIsNotWrittenFor(t *testing.T) {
	t.Parallel()
	eachEngine(t, store.Config{}, func(t *testing.T, b *bundle) {
		release := occupy(t, b.db)
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		result := make(chan error)
		go func() {
			result <- b.db.Write(ctx, store.Durable, add("left", 1))
		}()
		cancel(gone)
		if err := <-result; !errors.Is(err, gone) { // while the writers are still busy
			t.Errorf("got %v", err)
		}
		release()
		for range 20 {
			if err := b.db.Write(ctx, store.Durable, add("left", 1)); !errors.Is(err, gone) {
				t.Fatalf("a free writer took it: %v", err)
			}
		}
		if rows := b.rows(); len(rows) != 0 {
			t.Errorf("written all the same: %v", rows)
		}
	})
}

func TestACallerWhoLeavesLaterIsWrittenFor(t *testing.T) {
	t.Parallel()
	eachEngine(t, store.Config{}, func(t *testing.T, b *bundle) {
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), bundle{}, "kept"))
		err := b.db.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) error {
			cancel()
			if ctx.Err() != nil || ctx.Value(bundle{}) != "kept" {
				t.Errorf("the transaction's context: %v", ctx)
			}
			return add("row", 1)(ctx, tx)
		})
		if err != nil || len(b.rows()) != 1 || len(b.events()) != 1 {
			t.Errorf("got %v, rows %v, events %v", err, b.rows(), b.events())
		}
	})
}

func TestAWriteInsideAWritePanics(t *testing.T) {
	t.Parallel()
	eachEngine(t, store.Config{}, func(t *testing.T, b *bundle) {
		err := b.db.Write(t.Context(), store.Relaxed, func(ctx context.Context, tx *store.Tx) error {
			if err := row(ctx, tx, "outer"); err != nil {
				return err
			}
			return b.db.Write(ctx, store.Relaxed, add("inner", 0))
		})
		if err == nil || !strings.Contains(err.Error(), "panic in a transaction: store: Write inside a Write") {
			t.Errorf("got %v", err)
		}
		b.write(add("next", 0))
		if rows := b.rows(); !slices.Equal(rows, []string{"next"}) {
			t.Errorf("rows %v", rows)
		}
	})
}

func TestACallersDeadlineIsNotTheStoresTrouble(t *testing.T) {
	t.Parallel()
	eachEngine(t, store.Config{}, func(t *testing.T, b *bundle) {
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer cancel()
		if err := b.db.Write(ctx, store.Durable, add("late", 1)); !errors.Is(err, context.DeadlineExceeded) || fault.CodeOf(err) != fault.Internal {
			t.Errorf("write: %v", err)
		}
		err := b.db.Write(t.Context(), store.Durable, func(context.Context, *store.Tx) error {
			return fmt.Errorf("looking: %w", ctx.Err())
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("closure: %v", err)
		}
		if err := b.db.Health(); err != nil {
			t.Errorf("the store feels unwell: %v", err)
		}
	})
}

func TestReadsWithAnEndedContextSayJustThat(t *testing.T) {
	t.Parallel()
	eachEngine(t, store.Config{}, func(t *testing.T, b *bundle) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, one := store.Get(ctx, b.db, func(ctx context.Context, r store.Reader) (db.Session, error) {
			return r.SessionGet(ctx, db.SessionGetParams{ID: "s"})
		})
		_, many := b.db.Events(ctx, 0, 1, 1)
		_, _, bounds := b.db.EventBounds(ctx)
		list := b.db.Read(ctx, func(ctx context.Context, r store.Reader) error {
			_, err := r.SessionList(ctx, store.SessionFilter{Limit: 1})
			return err
		})
		for _, err := range []error{one, many, bounds, list} {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		}
	})
}

func TestAReaderRefusesToWrite(t *testing.T) {
	t.Parallel()
	eachEngine(t, store.Config{}, func(t *testing.T, b *bundle) {
		head := b.head()
		err := b.db.Read(t.Context(), func(ctx context.Context, r store.Reader) error {
			_, update := r.EventHeadAdvance(ctx, db.EventHeadAdvanceParams{Numbers: 1})
			_, remove := r.EventDeleteUpTo(ctx, db.EventDeleteUpToParams{Seq: 1})
			_, many := r.PermissionCancel(ctx, db.PermissionCancelParams{})
			insert := r.MetaInsert(ctx, db.MetaInsertParams{Name: "n"})
			for _, err := range []error{update, remove, many, insert} {
				if err == nil {
					t.Error("it wrote")
				}
			}
			return nil
		})
		if err != nil || b.head() != head || len(b.rows()) != 0 {
			t.Errorf("got %v, head %d after %d, rows %v", err, b.head(), head, b.rows())
		}
	})
}

func TestMissingRowsAndConflictsLookAlikeOnBothEngines(t *testing.T) {
	t.Parallel()
	eachEngine(t, store.Config{}, func(t *testing.T, b *bundle) {
		_, err := store.Get(t.Context(), b.db, func(ctx context.Context, r store.Reader) (db.Turn, error) {
			return r.TurnGet(ctx, db.TurnGetParams{ID: "none"})
		})
		if !store.IsNoRows(err) || store.IsConflict(err) {
			t.Errorf("missing: %v", err)
		}
		b.write(add("row", 0))
		err = b.db.Write(t.Context(), store.Relaxed, add("row", 0))
		if !store.IsConflict(err) || store.IsNoRows(err) || fault.CodeOf(err) != fault.Internal {
			t.Errorf("conflict: %v", err)
		}
		err = b.db.Write(t.Context(), store.Relaxed, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.SessionInsert(ctx, session("s", 1)) // of a project that is not there
			return err
		})
		if err == nil || store.IsConflict(err) || b.db.Health() != nil {
			t.Errorf("broken reference: %v", err)
		}
	})
}

func TestTextAndDocumentsKeepTheirBytes(t *testing.T) {
	t.Parallel()
	eachEngine(t, store.Config{}, func(t *testing.T, b *bundle) {
		doc := "{\"b\": 1,  \"a\":\"\\u0000 é 😀\", \"b\":2}"
		name := store.Clean("a\x00b\xff'; -- 😀")
		b.write(func(ctx context.Context, tx *store.Tx) error {
			e := happened("x", 0)
			e.Directory, e.Payload = name, []byte(doc)
			tx.Append(e)
			return row(ctx, tx, name)
		})
		if rows := b.rows(); len(rows) != 1 || rows[0] != "a\ufffdb\ufffd'; -- 😀" {
			t.Errorf("rows %q", rows)
		}
		if events := b.events(); len(events) != 1 || string(events[0].Payload) != doc || events[0].Directory != name {
			t.Errorf("events %+v", events)
		}
	})
}
