package store_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/switchyard-dev/switchyard/store"
)

func TestCloseLeavesEverythingInTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.db")
	d, err := store.Open(t.Context(), store.Config{URL: path, Owner: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.EventBounds(t.Context()); err != nil { // a reader with a statement of its own
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 {
		t.Errorf("%d bytes are left in the log", info.Size())
	}
	if info, err := os.Stat(path); err != nil || info.Size() < 16<<10 {
		t.Errorf("the file alone is not the store: %v, %v", info, err)
	}
}
