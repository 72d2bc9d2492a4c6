package store

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"sync"

	"github.com/switchyard-dev/switchyard/store/litedb"
)

// maxCachedArgs keeps statements that are put together for many rows out of the
// cache: there is one for each number of rows, and each is large.
const maxCachedArgs = 64

// prepared compiles each statement once per connection or pool.
type prepared struct {
	to    litedb.DBTX
	mu    sync.RWMutex // protects stmts
	stmts map[string]*sql.Stmt
}

func newPrepared(to litedb.DBTX) *prepared {
	return &prepared{to: to, stmts: map[string]*sql.Stmt{}}
}

// close gives the statements back. One that stays open keeps SQLite from
// closing its file, and so from moving the log into it.
func (p *prepared) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, stmt := range p.stmts {
		errs = append(errs, stmt.Close())
	}
	clear(p.stmts)
	return errors.Join(errs...)
}

// PrepareContext is part of litedb.DBTX.
func (p *prepared) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	p.mu.RLock()
	stmt := p.stmts[query]
	p.mu.RUnlock()
	if stmt != nil {
		return stmt, nil
	}
	stmt, err := p.to.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if other := p.stmts[query]; other != nil {
		return other, stmt.Close()
	}
	p.stmts[query] = stmt
	return stmt, nil
}

// ExecContext is part of litedb.DBTX.
func (p *prepared) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if len(args) > maxCachedArgs {
		return p.to.ExecContext(ctx, query, args...)
	}
	stmt, err := p.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(ctx, args...)
}

// QueryContext is part of litedb.DBTX.
func (p *prepared) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if len(args) > maxCachedArgs {
		return p.to.QueryContext(ctx, query, args...)
	}
	stmt, err := p.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}

// QueryRowContext is part of litedb.DBTX.
func (p *prepared) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	stmt, err := p.PrepareContext(ctx, query)
	if err != nil {
		// Only database/sql can make a Row that carries an error, and what kept
		// the statement from being compiled keeps it from running too.
		return p.to.QueryRowContext(ctx, query, args...)
	}
	return stmt.QueryRowContext(ctx, args...)
}

func liteReader(p *prepared) Reader { return Reader{Querier: litedb.New(p), raw: liteRaw{p}} }

type liteRaw struct{ *prepared }

func (r liteRaw) placeholder(n int) string { return "?" + strconv.Itoa(n) }

func (r liteRaw) exec(ctx context.Context, query string, args []any) error {
	_, err := r.ExecContext(ctx, query, args...)
	return err
}

func (r liteRaw) queryText(ctx context.Context, query string, args []any) ([]string, error) {
	rows, err := r.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := []string{}
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, rows.Err()
}
