package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/store/pgdb"
)

const (
	pgWriters = 8
	pgConns   = 12
	// pgRetry is how long one write is run again after conflicts, pgRetryWait the
	// longest wait in between.
	pgRetry     = 30 * time.Second
	pgRetryWait = time.Second
	// pgLimit bounds a write whose server says nothing any more, as when a network
	// swallows what is sent. It is well over the time that locks are waited for.
	pgLimit = 60 * time.Second
	// pgConnect bounds making a connection where the URL does not.
	pgConnect = 5 * time.Second
)

// errSilent: whether such a write was stored is not known.
var errSilent = errors.New("the database gave no answer in time")

// postgres is the PostgreSQL engine: one transaction per write, at most
// pgWriters at once, READ COMMITTED.
type postgres struct {
	pool    *pgxpool.Pool
	writers chan struct{}
	relaxed bool
	closed  atomic.Bool
	wire    *wire // to the other servers
}

func openPostgres(ctx context.Context, c Config) (engine, error) {
	config, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		// pgx's message may hold the password of the URL.
		return nil, fault.New(fault.ConfigInvalid, "the database URL is not a valid postgres:// URL")
	}
	config.MaxConns = max(config.MaxConns, pgConns)
	config.ConnConfig.ConnectTimeout = cmp.Or(config.ConnConfig.ConnectTimeout, pgConnect)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	if err := migratePostgres(ctx, pool, migrations); err != nil {
		pool.Close()
		return nil, err
	}
	return &postgres{
		pool: pool, writers: make(chan struct{}, pgWriters), relaxed: c.Relaxed, wire: newWire(ctx, pool, c.Owner, c.Log),
	}, nil
}

func (p *postgres) reader() Reader { return pgReader(pgReadOnly{p.pool}) }

func (p *postgres) write(ctx context.Context, level Level, fn func(context.Context, *Tx) error) ([]Event, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	select {
	case p.writers <- struct{}{}:
		defer func() { <-p.writers }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	// From here on a caller who leaves must not undo what others may have seen.
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), pgLimit, errSilent)
	defer cancel()
	wait, began := 5*time.Millisecond, time.Now()
	for {
		events, err := p.once(ctx, level, fn)
		if err != nil && ctx.Err() != nil {
			return nil, errors.Join(err, context.Cause(ctx))
		}
		if err == nil || !retryable(err) || time.Since(began) >= pgRetry {
			return events, err
		}
		if err := clock.Sleep(ctx, rand.N(wait)); err != nil {
			return nil, err
		}
		wait = min(2*wait, pgRetryWait)
	}
}

// begin opens a transaction in one round trip. A server that does not wait for
// its disk by default must do so for a Durable commit.
func (p *postgres) begin(ctx context.Context, level Level) (pgx.Tx, error) {
	query := "BEGIN; SET LOCAL synchronous_commit = on"
	if level == Relaxed || p.relaxed {
		query = "BEGIN; SET LOCAL synchronous_commit = off"
	}
	var err error
	for range pgConns {
		var tx pgx.Tx
		if tx, err = p.pool.BeginTx(ctx, pgx.TxOptions{BeginQuery: query}); err == nil {
			return tx, nil
		}
		if p.closed.Load() {
			return nil, errClosed()
		}
		if _, ok := errors.AsType[*pgconn.ConnectError](err); ok || ctx.Err() != nil {
			break
		}
		// A connection of before the server started anew: it is thrown away, and
		// the others may be no better.
	}
	return nil, errors.Join(errLost, err)
}

func (p *postgres) once(ctx context.Context, level Level, fn func(context.Context, *Tx) error) ([]Event, error) {
	pgtx, err := p.begin(ctx, level)
	if err != nil {
		return nil, err
	}
	conn := pgtx.Conn()
	defer func() { _ = pgtx.Rollback(ctx) }() // a no-op after the commit
	tx := &Tx{Reader: pgReader(pgtx)}
	err = guard(func() error {
		if err := fn(ctx, tx); err != nil {
			return err
		}
		return insertEvents(ctx, tx, tx.events)
	})
	if err == nil {
		if err = pgtx.Commit(ctx); err != nil {
			err = fmt.Errorf("committing: %w", err)
		}
	}
	if err != nil && conn.IsClosed() {
		return nil, errors.Join(errLost, err)
	}
	if err != nil {
		return nil, err
	}
	return tx.events, nil
}

// retryable: a serialisation failure or a deadlock undid the transaction whole.
func retryable(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
}

func (p *postgres) close() error {
	p.closed.Store(true)
	p.wire.close()
	p.pool.Close()
	return nil
}

// pgReadOnly refuses statements that write outside of a transaction: nothing
// would number their events or decide how durable they are.
type pgReadOnly struct{ pool *pgxpool.Pool }

var errReadOnly = errors.New("only Write may change rows")

func (r pgReadOnly) check(query string) error {
	for line := range strings.Lines(query) {
		if !strings.HasPrefix(line, "--") {
			if strings.HasPrefix(line, "SELECT ") {
				return nil
			}
			break
		}
	}
	return errReadOnly
}

// Exec is part of pgdb.DBTX.
func (r pgReadOnly) Exec(context.Context, string, ...any) (pgconn.CommandTag, error) {
	return pgconn.CommandTag{}, errReadOnly
}

// Query is part of pgdb.DBTX.
func (r pgReadOnly) Query(ctx context.Context, query string, args ...any) (pgx.Rows, error) {
	if err := r.check(query); err != nil {
		return nil, err
	}
	return r.pool.Query(ctx, query, args...)
}

// QueryRow is part of pgdb.DBTX.
func (r pgReadOnly) QueryRow(ctx context.Context, query string, args ...any) pgx.Row {
	if err := r.check(query); err != nil {
		return errRow{err}
	}
	return r.pool.QueryRow(ctx, query, args...)
}

type errRow struct{ err error }

func (r errRow) Scan(...any) error { return r.err }

func pgReader(to pgdb.DBTX) Reader { return Reader{Querier: pgdb.New(to), raw: pgRaw{to}} }

type pgRaw struct{ to pgdb.DBTX }

func (r pgRaw) placeholder(n int) string { return "$" + strconv.Itoa(n) }

func (r pgRaw) exec(ctx context.Context, query string, args []any) error {
	_, err := r.to.Exec(ctx, query, args...)
	return err
}

func (r pgRaw) queryText(ctx context.Context, query string, args []any) ([]string, error) {
	rows, err := r.to.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
