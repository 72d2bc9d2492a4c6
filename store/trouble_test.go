package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// diary is a log in memory.
type diary struct {
	mu   sync.Mutex // protects text
	text bytes.Buffer
}

func (d *diary) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(p)
}

func (d *diary) logger() *slog.Logger { return slog.New(slog.NewTextHandler(d, nil)) }

func (d *diary) count(piece string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Count(d.text.String(), piece)
}

// wants looks at a fault's code and its hint when to try again.
func wants(t *testing.T, what string, err error, code fault.Code) {
	t.Helper()
	f, ok := fault.As(err)
	if !ok || f.Code != code || f.Fields["retryAfter"] != 1 {
		t.Errorf("%s: got %v, want %s with a time to try again", what, err, code)
	}
}

// recovers waits until the store takes writes again, without writing.
func (b *bundle) recovers() {
	b.t.Helper()
	testkit.Eventually(b.t, waitLimit, "the store takes writes again", func() bool { return b.db.Health() == nil })
}

// big is a write that needs many pages.
func big(ctx context.Context, tx *store.Tx) error {
	for i := range 64 {
		err := tx.MetaInsert(ctx, db.MetaInsertParams{Name: fmt.Sprintf("big%d", i), Value: strings.Repeat("x", 32<<10)})
		if err != nil {
			return err
		}
	}
	return nil
}

func TestSC65AFullDiskStopsWritesAndNothingElse(t *testing.T) {
	t.Parallel()
	log := &diary{}
	b := setupLite(t, store.Config{Log: log.logger()})
	b.write(add("before", 1))
	limit := func(pages int64) {
		b.write(func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, fmt.Sprintf("PRAGMA max_page_count=%d", pages))
		})
	}
	limit(b.number("SELECT CAST(page_count AS text) FROM pragma_page_count") + 8)
	head := b.head()
	wants(t, "the write that found out", b.db.Write(t.Context(), store.Durable, func(ctx context.Context, tx *store.Tx) error {
		return errors.Join(add("lost", 1)(ctx, tx), big(ctx, tx))
	}), fault.StoreFull)
	wants(t, "the next write", b.db.Write(t.Context(), store.Durable, add("refused", 1)), fault.StoreFull)
	wants(t, "health", b.db.Health(), fault.StoreFull)
	if rows := b.rows(); !slices.Equal(rows, []string{"before"}) || b.head() != head {
		t.Errorf("reads give %v, head %d after %d", rows, b.head(), head)
	}
	b.recovers()
	limit(1 << 20)
	b.write(big)
	b.write(add("after", 1))
	if n := len(b.rows()); n != 66 || b.head() != head+1 {
		t.Errorf("%d rows, head %d after %d", n, b.head(), head)
	}
	if log.count("takes no writes") != 1 || log.count("takes writes again") != 1 {
		t.Errorf("log:\n%s", log.text.String())
	}
}

func TestSC65ADiskThatIsReallyFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("switchyard", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("no small disk to fill: mounting one: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "store.db")
	b := &bundle{t: t, url: path, lite: true, db: open(t, store.Config{URL: path})}
	b.write(add("before", 1))
	filler := fill(t, dir)
	// What the log file has room for is still written, and then nothing is.
	var stored []string
	var err error
	for i := 0; err == nil; i++ {
		name := fmt.Sprintf("row%04d", i)
		if err = b.db.Write(t.Context(), store.Durable, add(name, 1)); err == nil {
			stored = append(stored, name)
		}
	}
	wants(t, "the write that found out", err, fault.StoreFull)
	check := func() {
		t.Helper()
		if rows := b.rows(); len(rows) != len(stored)+1 || len(b.events()) != len(rows) {
			t.Errorf("%d rows, %d events, stored %d", len(rows), len(b.events()), len(stored)+1)
		}
	}
	check()
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	b.recovers()
	check()
	b.write(add("after", 1))
	stored = append(stored, "after")
	b.reopen(store.Config{})
	check()
}

// fill takes all the room that a disk has left, to the last byte.
func fill(t *testing.T, dir string) (file string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 64 << 10; size > 0; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return f.Name()
}

func TestSC65ADatabaseThatGoesAwayAndComesBack(t *testing.T) {
	t.Parallel()
	log, w := &diary{}, newWire(t)
	b := &bundle{t: t, url: w.url, db: open(t, store.Config{URL: w.url, Log: log.logger()})}
	gaps := make(chan store.Gap, 1)
	b.db.OnGap(func(g store.Gap) { gaps <- g })
	b.write(add("before", 1))
	boot, head := b.db.Boot(), b.head()
	w.cut()
	wants(t, "the write that found out", b.db.Write(t.Context(), store.Durable, add("lost", 1)), fault.StoreUnavailable)
	wants(t, "the next write", b.db.Write(t.Context(), store.Durable, add("refused", 1)), fault.StoreUnavailable)
	wants(t, "health", b.db.Health(), fault.StoreUnavailable)
	_, err := b.db.Events(t.Context(), 0, head, 1)
	wants(t, "a read", err, fault.StoreUnavailable)
	w.mend(t)
	if rows := b.rows(); !slices.Equal(rows, []string{"before"}) {
		t.Errorf("reads give %v", rows)
	}
	b.recovers()
	b.write(add("after", 1))
	// Commits that were not durable may have gone with the server, and their
	// numbers must not come again.
	gap := store.Gap{From: head + 1, To: head + store.BootGap}
	if got := <-gaps; got != gap {
		t.Errorf("told of %v, want %v", got, gap)
	}
	again := b.db.Boot()
	if again.Number != boot.Number || again.Head != gap.To || !slices.Contains(again.Gaps, gap) {
		t.Errorf("start %+v became %+v", boot, again)
	}
	if events := b.events(); len(events) != 2 || events[1].Seq != gap.To+1 {
		t.Errorf("events %+v", events)
	}
	if log.count("takes no writes") != 1 || log.count("takes writes again") != 1 || log.count("panic") != 0 {
		t.Errorf("log:\n%s", log.text.String())
	}
}

func TestAConnectionThatIsCutInTheMiddleStoresNothing(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	b := &bundle{t: t, url: w.url, db: open(t, store.Config{URL: w.url})}
	for _, sent := range []bool{true, false} { // whether the closure sees the cut
		err := b.db.Write(t.Context(), store.Durable, func(ctx context.Context, tx *store.Tx) error {
			if err := add("half", 1)(ctx, tx); err != nil {
				return err
			}
			w.cut()
			if sent {
				return row(ctx, tx, "other half")
			}
			return nil
		})
		wants(t, "the write", err, fault.StoreUnavailable)
		w.mend(t)
		b.recovers()
		if rows := b.rows(); len(rows) != 0 {
			t.Errorf("rows %v", rows)
		}
	}
}

func TestKilledServerProcessesAreReplaced(t *testing.T) {
	t.Parallel()
	b := setupPostgres(t, store.Config{})
	b.write(add("before", 1))
	handle := plain(t, b.url, false)
	run(t, handle, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	if err := b.db.Write(t.Context(), store.Durable, add("during", 1)); err != nil {
		wants(t, "the write", err, fault.StoreUnavailable)
	}
	b.recovers()
	b.write(add("after", 1))
	if rows := b.rows(); rows[0] != "after" || !slices.Contains(rows, "before") {
		t.Errorf("rows %v", rows)
	}
}

func TestADatabaseThatIsDownAtTheStartIsAFaultToTryAgain(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	w.cut()
	began := time.Now()
	_, err := store.Open(t.Context(), store.Config{URL: strings.Replace(w.url, "switchyard", "switchyard:s3cret", 1)})
	wants(t, "open", err, fault.StoreUnavailable)
	if err != nil && strings.Contains(err.Error(), "s3cret") || time.Since(began) > waitLimit {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
	w.mend(t)
	b := &bundle{t: t, db: open(t, store.Config{URL: w.url})}
	b.write(add("row", 1))
}

func TestAStoreInTroubleClosesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	d := open(t, store.Config{URL: w.url})
	w.cut()
	wants(t, "the write", d.Write(t.Context(), store.Durable, add("lost", 1)), fault.StoreUnavailable)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := d.Write(t.Context(), store.Durable, add("late", 1)); !fault.Is(err, fault.Stopping) {
		t.Errorf("after the end: %v", err)
	}
}

func TestWhichErrorsAreTheDatabasesOwn(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]fault.Code{
		"53100": fault.StoreFull, "53300": fault.StoreUnavailable, "57P01": fault.StoreUnavailable,
		"57P03": fault.StoreUnavailable, "08006": fault.StoreUnavailable, "58030": fault.StoreUnavailable,
		"25006": fault.StoreUnavailable, "XX001": fault.StoreUnavailable,
		"23505": "", "23503": "", "22P02": "", "42601": "", "57014": "", "40001": "", "": "",
	} {
		if got := store.Trouble(fmt.Errorf("doing x: %w", &pgconn.PgError{Code: state})); got != want {
			t.Errorf("%q: got %q, want %q", state, got, want)
		}
	}
	for _, err := range []error{nil, context.Canceled, context.DeadlineExceeded, errRefused, fault.New(fault.RouteNotFound, "x")} {
		if got := store.Trouble(err); got != "" {
			t.Errorf("%v: got %q", err, got)
		}
	}
}
