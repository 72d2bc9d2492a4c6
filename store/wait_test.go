package store_test

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/store"
)

func TestCloseCommitsWhatWaitsAndRefusesWhatComes(t *testing.T) {
	t.Parallel()
	eachEngine(t, store.Config{}, func(t *testing.T, b *bundle) {
		release := occupy(t, b.db)
		waiting := make(chan error, 1)
		if b.lite {
			go func() { waiting <- b.db.Write(t.Context(), store.Durable, add("waited", 1)) }()
			testkit.Eventually(t, waitLimit, "the write waits", func() bool { return store.Queued(b.db) == 1 })
		} else {
			waiting <- b.db.Health()
		}
		closed := make(chan error, 1)
		go func() { closed <- b.db.Close() }()
		release()
		if err := errors.Join(<-waiting, <-closed, b.db.Close()); err != nil {
			t.Error(err)
		}
		write := b.db.Write(t.Context(), store.Durable, add("late", 1))
		_, _, read := b.db.EventBounds(t.Context())
		for _, err := range []error{write, read} {
			if !fault.Is(err, fault.Stopping) {
				t.Errorf("after the end: %v", err)
			}
		}
		b.db = open(t, store.Config{URL: b.url})
		if rows := b.rows(); b.lite && !slices.Equal(rows, []string{"waited"}) || !b.lite && len(rows) != 0 {
			t.Errorf("rows %v", rows)
		}
	})
}

func TestDeadlocksAreTriedAgain(t *testing.T) {
	t.Parallel()
	address, err := url.Parse(testkit.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	query := address.Query()
	query.Set("deadlock_timeout", "20ms")
	address.RawQuery = query.Encode()
	b := &bundle{t: t, url: address.String(), db: open(t, store.Config{URL: address.String()})}
	b.write(add("a", 0))
	b.write(add("b", 0))
	var both, wait sync.WaitGroup
	both.Add(2)
	runs := make([]int, 2)
	for i, order := range [][]string{{"a", "b"}, {"b", "a"}} {
		wait.Go(func() {
			b.write(func(ctx context.Context, tx *store.Tx) error {
				for k, name := range order {
					if err := store.Exec(ctx, tx, "UPDATE meta SET value = value || 'y' WHERE name = $1", name); err != nil {
						return err
					}
					if runs[i]++; k == 0 && runs[i] == 1 {
						both.Done()
						both.Wait()
					}
				}
				return nil
			})
		})
	}
	wait.Wait()
	if values := b.text("SELECT value FROM meta WHERE name IN ('a', 'b')"); !slices.Equal(values, []string{"xyy", "xyy"}) {
		t.Errorf("values %v", values)
	}
	if runs[0]+runs[1] <= 4 {
		t.Errorf("there was no deadlock: %v statements", runs)
	}
}

func TestWritesWaitForAForeignLock(t *testing.T) {
	t.Parallel()
	b := setupLite(t, store.Config{})
	other, err := sql.Open("sqlite", "file:"+b.url)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	conn, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	result := make(chan error)
	go func() { result <- b.db.Write(t.Context(), store.Durable, add("row", 1)) }()
	select {
	case err := <-result:
		t.Errorf("it did not wait: %v", err)
	case <-time.After(1300 * time.Millisecond): // more than one busy_timeout
	}
	if _, err := conn.ExecContext(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(<-result, conn.Close(), b.db.Health()); err != nil {
		t.Error(err)
	}
	if len(b.rows()) != 1 {
		t.Errorf("rows %v", b.rows())
	}
}
