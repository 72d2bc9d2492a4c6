package store

import (
	"context"
	"database/sql"
	iofs "io/fs"

	"github.com/switchyard-dev/switchyard/fault"
)

// Migrations are the embedded ones.
func Migrations() iofs.FS { return migrations }

// MigrateLite brings the file of handle to the newest version in files.
func MigrateLite(ctx context.Context, handle *sql.DB, files iofs.FS, path string) error {
	return migrateLite(ctx, handle, files, path)
}

// QueryText runs a statement with one text column where r reads.
func QueryText(ctx context.Context, r Reader, query string, args ...any) ([]string, error) {
	return r.raw.queryText(ctx, query, args)
}

// Exec runs a statement in a transaction.
func Exec(ctx context.Context, tx *Tx, query string, args ...any) error {
	return tx.raw.exec(ctx, query, args)
}

// SessionStatement is the statement behind SessionList.
func SessionStatement(r Reader, f SessionFilter) (string, []any) { return r.sessionStatement(f) }

// Queued is how many writes wait for SQLite's writer.
func Queued(d *DB) int { return len(d.engine.(*lite).jobs) }

// Writers is how many writes can be at work at once.
func Writers(d *DB) int {
	if p, ok := d.engine.(*postgres); ok {
		return cap(p.writers)
	}
	return 1
}

// Trouble classifies an error of a database.
func Trouble(err error) fault.Code { return trouble(err) }

// TrimRows bounds one step of trimming, TrimEvery is how many events lie between
// two of them.
const (
	TrimRows  = trimRows
	TrimEvery = trimEvery
)
