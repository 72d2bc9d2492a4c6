package store_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/store"
)

// level asks the database how durable the transaction's commit will be.
func level(ctx context.Context, t *testing.T, b *bundle, tx *store.Tx) string {
	query := "SHOW synchronous_commit"
	if b.lite {
		query = "PRAGMA synchronous"
	}
	out, err := store.QueryText(ctx, tx.Reader, query)
	if err != nil {
		t.Error(err)
		return ""
	}
	switch out[0] {
	case "2", "on":
		return "durable"
	case "1", "off":
		return "relaxed"
	}
	return out[0]
}

func TestTheLevelReachesTheDatabase(t *testing.T) {
	t.Parallel()
	eachEngine(t, store.Config{}, func(t *testing.T, b *bundle) {
		levels := func() (got []string) {
			for _, l := range []store.Level{store.Durable, store.Relaxed, store.Relaxed, store.Durable, store.Durable, store.Relaxed} {
				err := b.db.Write(t.Context(), l, func(ctx context.Context, tx *store.Tx) error {
					got = append(got, level(ctx, t, b, tx))
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			return got
		}
		if got := levels(); !slices.Equal(got, []string{"durable", "relaxed", "relaxed", "durable", "durable", "relaxed"}) {
			t.Errorf("got %v", got)
		}
		b.reopen(store.Config{Relaxed: true})
		if got := levels(); !slices.Equal(got, slices.Repeat([]string{"relaxed"}, 6)) {
			t.Errorf("lowered for all: got %v", got)
		}
	})
}

func TestOneDurableWriteMakesItsWholeBatchDurable(t *testing.T) {
	t.Parallel()
	b := setupLite(t, store.Config{})
	release := occupy(t, b.db)
	levels := []store.Level{store.Relaxed, store.Durable, store.Relaxed}
	got := make([]string, len(levels))
	var wait sync.WaitGroup
	for i, l := range levels {
		wait.Go(func() {
			err := b.db.Write(t.Context(), l, func(ctx context.Context, tx *store.Tx) error {
				got[i] = level(ctx, t, b, tx)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		testkit.Eventually(t, waitLimit, "it waits", func() bool { return store.Queued(b.db) == i+1 })
	}
	release()
	wait.Wait()
	if !slices.Equal(got, []string{"durable", "durable", "durable"}) {
		t.Errorf("got %v", got)
	}
}
