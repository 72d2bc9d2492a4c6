// Package store keeps the server's durable rows in an embedded SQLite file or
// in PostgreSQL, with one set of queries for both (design §8). It knows rows,
// not domains.
//
// Write is the only way to change anything: a DB has no query methods, so the
// outer handle cannot be used inside a transaction by mistake. Events are rows
// too: what a transaction appends is numbered by its last statement, so that the
// order of commits is the order of numbers on both engines.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/store/db"
)

// Level says how much a commit must survive.
type Level int

const (
	// Relaxed commits survive a crash of the process, not one of the machine.
	Relaxed Level = iota
	// Durable commits are on the disk when Write returns.
	Durable
)

// BootGap is how many event numbers each start of a server skips, so that
// numbers which were given out but lost with power are never given again.
const BootGap = 1 << 20

// Config says where the rows live.
type Config struct {
	// URL is a file path for SQLite or a postgres:// URL.
	URL string
	// Owner names this server process in the boot table.
	Owner string
	// Note is written into the lock file beside a SQLite file, e.g. pid and port.
	Note string
	// Relaxed lowers Durable to Relaxed for all writes (config durability: process).
	Relaxed bool
	// Retention bounds the event log; zero fields take the defaults.
	Retention Retention
	Log       *slog.Logger
	// Fault, for tests, makes writes fail: asked before a commit an error means
	// that nothing was stored, asked after it that the answer was lost.
	Fault func(committed bool) error
}

// Boot is what a start of the server found and made.
type Boot struct {
	// Epoch names the store; the first bit is 0.
	Epoch uint32
	// Number counts the starts; it is the generation of runs in single mode.
	Number int64
	// Head is the newest event number after the boot's gap.
	Head int64
	// Gaps are ranges of event numbers that starts skipped.
	Gaps []Gap
}

// Gap is a range of skipped event numbers, both ends included.
type Gap struct{ From, To int64 }

// Event is a row of the event log. Seq is given at commit.
type Event struct {
	Seq           int64
	Type          string
	Time          int64
	Directory     string
	WorkspaceID   string
	SessionID     string
	RootSessionID string
	Payload       []byte
}

// Reader reads rows. The queries are those of package db; a Reader that belongs
// to no transaction refuses the ones that write.
type Reader struct {
	db.Querier
	raw raw
}

// raw runs the few statements that are put together at run time.
type raw interface {
	queryText(ctx context.Context, sql string, args []any) ([]string, error)
	exec(ctx context.Context, sql string, args []any) error
	placeholder(n int) string
}

// Tx is a transaction that may write.
type Tx struct {
	Reader
	events []Event
}

// Append adds events to the transaction. They are numbered when it commits and
// then handed to the function given to OnCommit.
func (tx *Tx) Append(events ...Event) { tx.events = append(tx.events, events...) }

// engine is what differs between the databases.
type engine interface {
	write(ctx context.Context, level Level, fn func(context.Context, *Tx) error) ([]Event, error)
	reader() Reader
	close() error
}

// DB is an open store. It is safe for concurrent use.
type DB struct {
	engine    engine
	owner     string
	log       *slog.Logger
	fault     func(committed bool) error
	health    health
	retention *retention

	mu       sync.RWMutex // protects the fields below
	boot     Boot
	onCommit func([]Event)
	onGap    func(Gap)
}

// Open opens or makes the store, brings its schema up to date and counts a new
// start. It refuses a file that another process has open and a schema that is
// newer than this program; a database that is away is a store_unavailable fault,
// so that the caller can try again.
func Open(ctx context.Context, c Config) (*DB, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	open := openLite
	if IsPostgres(c.URL) {
		open = openPostgres
	}
	e, err := open(ctx, c)
	if err != nil {
		return nil, openFault(err)
	}
	d := &DB{engine: e, owner: c.Owner, log: c.Log, fault: c.Fault, retention: newRetention(c.Retention)}
	d.health.begin(ctx)
	if d.boot, err = d.start(ctx); err != nil {
		d.health.end()
		return nil, openFault(errors.Join(fmt.Errorf("starting on the store: %w", err), e.close()))
	}
	if _, err := d.Trim(ctx); err != nil {
		d.log.Warn("trimming the event log", "error", err)
	}
	return d, nil
}

func openFault(err error) error {
	if _, ok := fault.As(err); ok {
		return err
	}
	if code := trouble(err); code != "" {
		return troubleFault(code, "the store cannot be opened at the moment", err)
	}
	return err
}

// Boot tells what this start found and made. Where the database went away later
// and came back, its Head and Gaps are of that moment.
func (d *DB) Boot() Boot {
	d.mu.RLock()
	defer d.mu.RUnlock()
	boot := d.boot
	boot.Gaps = slices.Clone(boot.Gaps)
	return boot
}

// OnCommit names the function that receives the events of each commit, after
// it. It is called from many goroutines and must not block.
func (d *DB) OnCommit(fn func([]Event)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.onCommit = fn
}

// OnGap names the function that hears of the numbers that are skipped after Open,
// when a database server that was away is back. It must not block.
func (d *DB) OnGap(fn func(Gap)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.onGap = fn
}

type insideKey struct{}

// Write runs fn in a transaction and commits it at the level. fn does database
// work only and may run again after a conflict; what it decides must be set
// anew each time. It may run on another goroutine, which it must not end. The
// context that fn gets is the transaction's: a cancel of ctx counts only before
// fn begins. An error of fn undoes what fn did and is returned as it is, a panic
// becomes an error; a Write with fn's context panics.
//
// While the database cannot take writes the error is a store_unavailable or
// store_full fault.
func (d *DB) Write(ctx context.Context, level Level, fn func(context.Context, *Tx) error) error {
	if ctx.Value(insideKey{}) != nil {
		panic("store: Write inside a Write")
	}
	if d.closing() {
		return errClosed()
	}
	if err := d.health.gate(); err != nil {
		return err
	}
	events, err := d.write(ctx, level, func(ctx context.Context, tx *Tx) error {
		return fn(context.WithValue(ctx, insideKey{}, true), tx)
	})
	if p, ok := errors.AsType[*panicked](err); ok {
		d.log.Error("panic in a transaction", "value", p.value, "stack", string(p.stack))
	}
	if err = d.note(err); err != nil {
		return err
	}
	if len(events) == 0 {
		return nil
	}
	d.mu.RLock()
	deliver := d.onCommit
	d.mu.RUnlock()
	if deliver != nil {
		deliver(events)
	}
	if p, ok := d.engine.(*postgres); ok {
		p.wire.committed()
	}
	d.trimAfter(ctx, len(events))
	return nil
}

// write lets the engine write, between the faults that a test may want.
func (d *DB) write(ctx context.Context, level Level, fn func(context.Context, *Tx) error) ([]Event, error) {
	if d.fault == nil {
		return d.engine.write(ctx, level, fn)
	}
	if err := d.fault(false); err != nil {
		return nil, writeFault(fault.StoreUnavailable, err)
	}
	events, err := d.engine.write(ctx, level, fn)
	if err != nil {
		return nil, err
	}
	if err := d.fault(true); err != nil {
		return nil, writeFault(fault.StoreUnavailable, err)
	}
	return events, nil
}

// Read runs fn outside of any transaction.
func (d *DB) Read(ctx context.Context, fn func(context.Context, Reader) error) error {
	if err := fn(ctx, d.engine.reader()); err != nil {
		return d.readFault(err)
	}
	return nil
}

// Get reads one value: fn's result, outside of any transaction.
func Get[T any](ctx context.Context, d *DB, fn func(context.Context, Reader) (T, error)) (T, error) {
	v, err := fn(ctx, d.engine.reader())
	return v, d.readFault(err)
}

// Health is nil while the store takes writes, else the fault that writes get.
func (d *DB) Health() error { return d.health.gate() }

// closing: Close was called.
func (d *DB) closing() bool { return d.health.life.Err() != nil }

// Close ends the store's work: writes that wait are committed, later calls get a
// stopping fault.
func (d *DB) Close() error {
	d.health.close()
	return d.engine.close()
}

// Clean makes text storable: PostgreSQL has no NUL in text, so that it becomes
// U+FFFD on both engines; invalid UTF-8 does too.
func Clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}
