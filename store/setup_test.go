package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// childEnv makes the test binary play another process of a server, see child_test.go.
const childEnv = "STORE_TEST_CHILD"

func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		os.Exit(child(role))
	}
	goleak.VerifyTestMain(m)
}

// waitLimit is ample for what takes milliseconds on an idle machine.
const waitLimit = 20 * time.Second

// bundle is a store of its own on one of the engines.
type bundle struct {
	t    testing.TB
	url  string
	lite bool
	db   *store.DB
}

// eachEngine runs a test on both engines, at the same time.
func eachEngine(t *testing.T, c store.Config, run func(t *testing.T, b *bundle)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		run(t, setupLite(t, c))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		run(t, setupPostgres(t, c))
	})
}

func setupLite(t testing.TB, c store.Config) *bundle {
	c.URL = filepath.Join(t.TempDir(), "store.db")
	return &bundle{t: t, url: c.URL, lite: true, db: open(t, c)}
}

func setupPostgres(t testing.TB, c store.Config) *bundle {
	c.URL = testkit.Postgres(t)
	return &bundle{t: t, url: c.URL, db: open(t, c)}
}

// open opens a store that closes with the test.
func open(t testing.TB, c store.Config) *store.DB {
	t.Helper()
	if c.Log == nil {
		c.Log = testkit.Logger(t)
	}
	d, err := store.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// reopen closes the store and opens it again, as a new start of the server.
func (b *bundle) reopen(c store.Config) {
	b.t.Helper()
	if err := b.db.Close(); err != nil {
		b.t.Fatal(err)
	}
	c.URL = b.url
	b.db = open(b.t, c)
}

// text runs a statement with one text column.
func (b *bundle) text(query string, args ...any) []string {
	b.t.Helper()
	out, err := store.Get(b.t.Context(), b.db, func(ctx context.Context, r store.Reader) ([]string, error) {
		return store.QueryText(ctx, r, query, args...)
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// number runs a statement that gives one number as text.
func (b *bundle) number(query string) int64 {
	b.t.Helper()
	out := b.text(query)
	n, err := strconv.ParseInt(out[0], 10, 64)
	if err != nil || len(out) != 1 {
		b.t.Fatalf("%s: %q, %v", query, out, err)
	}
	return n
}

// rows are the names of the rows that add made.
func (b *bundle) rows() []string {
	return b.text("SELECT name FROM meta WHERE name <> 'epoch' ORDER BY name")
}

// events are all events after the store's first start.
func (b *bundle) events() []store.Event {
	b.t.Helper()
	events, err := b.db.Events(b.t.Context(), 0, 1<<56, 1<<20)
	if err != nil {
		b.t.Fatal(err)
	}
	return events
}

// write writes and wants it to succeed.
func (b *bundle) write(fn func(context.Context, *store.Tx) error) {
	b.t.Helper()
	if err := b.db.Write(b.t.Context(), store.Relaxed, fn); err != nil {
		b.t.Fatal(err)
	}
}

// add makes a row with as many events of the same name.
func add(name string, events int) func(context.Context, *store.Tx) error {
	return func(ctx context.Context, tx *store.Tx) error {
		for i := range events {
			tx.Append(happened(name, i))
		}
		return row(ctx, tx, name)
	}
}

// row makes a row. The same name a second time is a conflict.
func row(ctx context.Context, tx *store.Tx, name string) error {
	query := "INSERT INTO meta (name, value) VALUES ($1, 'x')"
	return store.Exec(ctx, tx, query, name)
}

// later is a time that retention leaves alone.
const later = int64(1) << 42

// happened is an event whose time tells its place.
func happened(name string, i int) store.Event {
	return store.Event{Type: name, Time: later + int64(i), Payload: fmt.Appendf(nil, `{"i":%d}`, i)}
}

// head is the newest event number.
func (b *bundle) head() int64 {
	b.t.Helper()
	_, head, err := b.db.EventBounds(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return head
}

// committed collects what OnCommit tells.
type committed struct {
	mu     sync.Mutex // protects events
	events []store.Event
}

func collect(d *store.DB) *committed {
	c := &committed{}
	d.OnCommit(func(events []store.Event) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.events = append(c.events, events...)
	})
	return c
}

func (c *committed) all() []store.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]store.Event{}, c.events...)
}

// occupy keeps every writer of the store busy until the function it gives is called.
func occupy(t testing.TB, d *store.DB) (release func()) {
	t.Helper()
	free := make(chan struct{})
	var busy, done sync.WaitGroup
	for range store.Writers(d) {
		busy.Add(1)
		done.Go(func() {
			err := d.Write(t.Context(), store.Relaxed, func(context.Context, *store.Tx) error {
				busy.Done()
				<-free
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	busy.Wait()
	return func() {
		close(free)
		done.Wait()
	}
}

// session is what a SessionInsert needs, with the rest filled in.
func session(id string, ord int64) db.SessionInsertParams {
	return db.SessionInsertParams{
		ID: id, Ord: ord, ProjectID: "p0", RootID: id, Title: id, TitleFold: id, TitleSource: "client", Agent: "build",
		Model: []byte("null"), Permission: []byte("[]"), Metadata: []byte("{}"), Tokens: []byte("{}"), Created: ord, Updated: ord,
	}
}

func project(id string) db.ProjectUpsertParams {
	return db.ProjectUpsertParams{ID: id, Identity: id, Worktree: "/" + id, Vcs: "git", Commands: []byte("{}")}
}

func counter() db.CounterNextParams { return db.CounterNextParams{Name: "session"} }
