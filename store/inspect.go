package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	iofs "io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/store/db"
)

// damageMax bounds what Damage tells.
const damageMax = 100

// Inspection is a store that is looked at and not used: nothing is written, no
// start is counted, no lock is taken, and the schema stays as it is. A server may
// use the store meanwhile.
type Inspection struct {
	path  string // of a SQLite file
	lite  *sql.DB
	pg    *pgx.Conn
	close func() error
}

// Inspect opens a store for looking at it. A SQLite file that is not there is an
// iofs.ErrNotExist, a database that does not answer a store_unavailable fault.
func Inspect(ctx context.Context, where string) (*Inspection, error) {
	if IsPostgres(where) {
		config, err := pgx.ParseConfig(where)
		if err != nil {
			return nil, fault.New(fault.ConfigInvalid, "the database URL is not a valid postgres:// URL")
		}
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return nil, openFault(fmt.Errorf("opening the store: %w", err))
		}
		end := context.WithoutCancel(ctx)
		return &Inspection{pg: conn, close: func() error { return conn.Close(end) }}, nil
	}
	name, err := filepath.EvalSymlinks(where)
	if err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	handle, err := openReadOnly(name, "&_pragma=query_only(1)")
	if err != nil {
		return nil, err
	}
	return &Inspection{path: name, lite: handle, close: handle.Close}, nil
}

// openReadOnly opens a SQLite file that it does not change.
func openReadOnly(name, extra string) (*sql.DB, error) {
	dsn := "file:" + (&url.URL{Path: name}).EscapedPath() + "?mode=ro&_pragma=busy_timeout(5000)&_pragma=temp_store(MEMORY)" + extra
	handle, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	handle.SetMaxOpenConns(1)
	return handle, nil
}

// Close ends the inspection.
func (i *Inspection) Close() error { return i.close() }

// Holder tells whether a server uses the store, and which.
func (i *Inspection) Holder(ctx context.Context) (who string, held bool, err error) {
	if i.pg == nil {
		return lockHolder(i.path + ".lock")
	}
	var live []db.Server
	err = i.Read(ctx, func(ctx context.Context, r Reader) error {
		now, err := r.DatabaseTime(ctx)
		if err != nil {
			return err
		}
		live, err = r.ServerLive(ctx, db.ServerLiveParams{Now: now})
		return err
	})
	if err != nil || len(live) == 0 {
		return "", false, err
	}
	names := make([]string, 0, len(live))
	for _, s := range live {
		names = append(names, s.Owner)
	}
	return strings.Join(names, ", "), true, nil
}

// lockHolder looks whether a lock file is held and what its holder says of
// itself. The lock is shared and given back at once.
func lockHolder(name string) (who string, held bool, err error) {
	f, err := os.Open(name)
	if errors.Is(err, iofs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("looking at the store's lock: %w", err)
	}
	defer f.Close() // which gives the lock back
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if err == nil {
		return "", false, nil
	}
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return "", false, fmt.Errorf("looking at the store's lock: %w", err)
	}
	note, err := os.ReadFile(name)
	return strings.TrimSpace(string(note)), true, err
}

// Schema gives the version of the store's schema and the one that this program
// knows. Only where they are equal can Read be used.
func (i *Inspection) Schema(ctx context.Context) (have, known int64, err error) {
	const query = "SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE is_applied"
	if i.pg != nil {
		err = i.pg.QueryRow(ctx, query).Scan(&have)
	} else {
		err = i.lite.QueryRowContext(ctx, query).Scan(&have)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("reading the store's schema version: %w", err)
	}
	files, err := iofs.Glob(migrations, "migrations/lite/*.sql") // equal numbers in both
	for _, f := range files {
		number, _, _ := strings.Cut(path.Base(f), "_")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("the migration %s has no number: %w", f, err)
		}
		known = max(known, n)
	}
	return have, known, err
}

// Damage reads a SQLite file from end to end and tells what SQLite finds wrong
// with it, and which rows refer to others that are gone. PostgreSQL takes care of
// both itself.
func (i *Inspection) Damage(ctx context.Context) ([]string, error) {
	if i.pg != nil {
		return nil, nil
	}
	found, err := i.pragma(ctx, "PRAGMA quick_check("+strconv.Itoa(damageMax)+")")
	if err != nil {
		return nil, err
	}
	if len(found) == 1 && found[0] == "ok" {
		found = nil
	}
	lost, err := i.pragma(ctx, `SELECT 'a row of ' || "table" || ' refers to one of ' || parent || ' that is gone (' || COUNT(*) || ' times)'
		FROM pragma_foreign_key_check GROUP BY "table", parent ORDER BY 1`)
	return append(found, lost...), err
}

func (i *Inspection) pragma(ctx context.Context, query string) ([]string, error) {
	rows, err := i.lite.QueryContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("reading the store: %w", err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return nil, fmt.Errorf("reading the store: %w", err)
		}
		out = append(out, line)
	}
	return out, rows.Err()
}

// Read lets fn read one state of the store: what a server writes meanwhile does
// not show.
func (i *Inspection) Read(ctx context.Context, fn func(context.Context, Reader) error) error {
	if i.pg != nil {
		tx, err := i.pg.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
		if err != nil {
			return fmt.Errorf("reading the store: %w", err)
		}
		return errors.Join(fn(ctx, pgReader(tx)), tx.Rollback(ctx))
	}
	tx, err := i.lite.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("reading the store: %w", err)
	}
	statements := newPrepared(tx)
	return errors.Join(fn(ctx, liteReader(statements)), statements.close(), tx.Rollback())
}

// Backup copies a SQLite file into a new one beside it, as it is at this moment,
// and gives its name. For PostgreSQL it does nothing and gives "": that has tools
// of its own.
func (d *DB) Backup(ctx context.Context) (string, error) {
	l, ok := d.engine.(*lite)
	if !ok {
		return "", nil
	}
	handle, err := openReadOnly(l.path, "")
	if err != nil {
		return "", err
	}
	backup, err := backupLite(ctx, handle, l.path, "repair")
	return backup, errors.Join(err, handle.Close())
}

// backupLite copies a SQLite file into a new one beside it.
func backupLite(ctx context.Context, handle *sql.DB, path, before string) (string, error) {
	backup := fmt.Sprintf("%s.%s.%s.backup", path, before, time.Now().UTC().Format("20060102T150405.000"))
	if err := private(backup); err != nil {
		return "", err
	}
	if _, err := handle.ExecContext(ctx, "VACUUM INTO ?", backup); err != nil {
		return "", fmt.Errorf("backing up the store: %w", err)
	}
	return backup, nil
}
