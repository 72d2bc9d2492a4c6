package store_test

import (
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/store"
)

func TestExclusiveDatabaseHasOneServer(t *testing.T) {
	t.Parallel()
	url := testkit.Postgres(t)
	first, err := store.Open(t.Context(), store.Config{URL: url, Owner: "first", Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Open(t.Context(), store.Config{URL: url, Owner: "second", Exclusive: true})
	if !fault.Is(err, fault.StoreUnavailable) || !strings.Contains(err.Error(), "another server") {
		t.Errorf("a second server: %v", err)
	}
	reader, err := store.Open(t.Context(), store.Config{URL: url, Owner: "reader"})
	if err != nil {
		t.Errorf("one that claims nothing: %v", err)
	} else if err := reader.Close(); err != nil {
		t.Error(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := store.Open(t.Context(), store.Config{URL: url, Owner: "again", Exclusive: true})
	if err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
