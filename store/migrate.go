package store

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/switchyard-dev/switchyard/fault"
)

//go:embed migrations
var migrations embed.FS //nolint:gochecknoglobals // the embed directive needs a variable

func migrateLite(ctx context.Context, handle *sql.DB, files iofs.FS, path string) error {
	p, err := provider(goose.DialectSQLite3, handle, files, "migrations/lite")
	if err != nil {
		return err
	}
	return migrate(ctx, p, func(version int64) error {
		if version == 0 {
			return nil
		}
		_, err := backupLite(ctx, handle, path, fmt.Sprintf("v%d", version))
		return err
	})
}

// private makes an empty file that only its owner may read, unless there is one
// already. SQLite fills it, and gives the files beside it the same mode.
func private(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("making the store's file: %w", err)
	}
	return f.Close()
}

// Servers that start at once migrate one after the other: each asks for the lock
// this often, for this long.
const (
	pgLockSeconds = 1
	pgLockTries   = 300
)

func migratePostgres(ctx context.Context, pool *pgxpool.Pool, files iofs.FS) (err error) {
	handle := stdlib.OpenDBFromPool(pool)
	defer func() { err = errors.Join(err, handle.Close()) }()
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(pgLockSeconds, pgLockTries))
	if err != nil {
		return fmt.Errorf("preparing migrations: %w", err)
	}
	p, err := provider(goose.DialectPostgres, handle, files, "migrations/pg", goose.WithSessionLocker(locker))
	if err != nil {
		return err
	}
	return migrate(ctx, p, func(int64) error { return nil })
}

func provider(dialect goose.Dialect, handle *sql.DB, files iofs.FS, dir string, opts ...goose.ProviderOption) (*goose.Provider, error) {
	sub, err := iofs.Sub(files, dir)
	if err != nil {
		return nil, fmt.Errorf("preparing migrations: %w", err)
	}
	p, err := goose.NewProvider(dialect, handle, sub, opts...)
	if err != nil {
		return nil, fmt.Errorf("preparing migrations: %w", err)
	}
	return p, nil
}

// migrate brings the schema up to date. A schema that a newer program made is
// refused: this one would not know what it means.
func migrate(ctx context.Context, p *goose.Provider, before func(version int64) error) error {
	version, target, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("reading the store's schema version: %w", err)
	}
	if version > target {
		return fault.New(fault.StoreUnavailable,
			"the store has schema version %d, this program knows %d: it was written by a newer Switchyard", version, target)
	}
	if version == target {
		return nil
	}
	if err := before(version); err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrating the store from version %d: %w", version, err)
	}
	return nil
}

// lockFile takes the lock that lets one process use a SQLite file. The holder's
// note is in the file, so that the second can say who the first is.
func lockFile(path, note string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the store: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("locking the store: %w", err), f.Close())
		}
		holder, _ := os.ReadFile(path) // empty for a moment while the holder starts
		return nil, errors.Join(fault.New(fault.StoreUnavailable, "the store is in use by another process (%s)",
			cmp.Or(strings.TrimSpace(string(holder)), "it is just starting")), f.Close())
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(note+"\n"), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking the store: %w", err), f.Close())
	}
	return f, nil
}
