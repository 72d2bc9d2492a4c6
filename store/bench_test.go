package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// spread calls fn n times from as many goroutines as said.
func spread(goroutines, n int, fn func(i int)) {
	var wait sync.WaitGroup
	var next atomic.Int64
	for range goroutines {
		wait.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				fn(int(i))
			}
		})
	}
	wait.Wait()
}

// BenchmarkWrite stores a small row and an event. Compare it with
// BenchmarkAppendAndSync, which is what the disk itself takes for a durable write.
// PostgreSQL's figures are those of a server that does sync.
func BenchmarkWrite(b *testing.B) {
	for _, engine := range []string{"sqlite", "postgres"} {
		for level, name := range []string{"relaxed", "durable"} {
			for _, goroutines := range []int{1, 8, 64} {
				b.Run(fmt.Sprintf("%s/%s/%d", engine, name, goroutines), func(b *testing.B) {
					benchmarkWrite(b, engine, store.Level(level), goroutines)
				})
			}
		}
	}
}

func benchmarkWrite(b *testing.B, engine string, level store.Level, goroutines int) {
	setup := setupLite
	if engine == "postgres" {
		setup = setupPostgres
	}
	d := setup(b, store.Config{}).db
	payload := []byte(`{"sessionID":"ses_0123456789abcdefghijklmnop","text":"a small payload"}`)
	b.ResetTimer()
	spread(goroutines, b.N, func(i int) {
		err := d.Write(b.Context(), level, func(ctx context.Context, tx *store.Tx) error {
			tx.Append(store.Event{Type: "message.part.updated", Time: later, Directory: "/d", SessionID: "s", Payload: payload})
			return tx.MetaInsert(ctx, db.MetaInsertParams{Name: fmt.Sprint(i), Value: "a small value"})
		})
		if err != nil {
			b.Error(err)
		}
	})
}

// BenchmarkAppendAndSync appends a small record to a file and waits for the disk,
// once per record.
func BenchmarkAppendAndSync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	record := make([]byte, 200)
	for b.Loop() {
		if _, err := f.Write(record); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}
