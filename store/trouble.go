package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/switchyard-dev/switchyard/fault"
)

// errLost: the connection broke while a transaction ran.
var errLost = errors.New("the connection to the database was lost")

func errClosed() error { return fault.New(fault.Stopping, "the store is closed") }

// panicked is what a closure's panic becomes, so that one faulty caller cannot
// take the writer, and everyone else's writes, with it.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic in a transaction: %v", p.value) }

func guard(fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &panicked{value: r, stack: debug.Stack()}
		}
	}()
	return fn()
}

// readFault keeps faults and missing rows as they are and says of a database
// that is away that it is, so that no read answers 500 for it.
func (d *DB) readFault(err error) error {
	if err == nil || IsNoRows(err) || ended(err) {
		return err
	}
	if _, ok := fault.As(err); ok {
		return err
	}
	if d.closing() {
		return errClosed()
	}
	code := trouble(err)
	if code == "" && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
		code = fault.StoreUnavailable // how a connection that was cut looks
	}
	if code == "" {
		return err
	}
	return troubleFault(fault.StoreUnavailable, "the store cannot be read at the moment; try again", err)
}

// ended: the caller's own context is over, which says nothing about the database
// although its error is one of package net too.
func ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// trouble tells whether an error is the database's own: full, broken or away.
// It is "" for everything else, constraint failures included.
func trouble(err error) fault.Code {
	if err == nil {
		return ""
	}
	if lite, ok := errors.AsType[*sqlite.Error](err); ok {
		return liteTrouble(lite.Code())
	}
	lost := errors.Is(err, errLost) || errors.Is(err, errSilent)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		if code := pgTrouble(pg.Code); code != "" || !lost {
			return code
		}
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok || lost {
		return fault.StoreUnavailable
	}
	if ended(err) {
		return ""
	}
	if _, ok := errors.AsType[net.Error](err); ok || errors.Is(err, sql.ErrConnDone) || errors.Is(err, pgconn.ErrConnClosed) || pgconn.SafeToRetry(err) {
		return fault.StoreUnavailable
	}
	return ""
}

func liteTrouble(code int) fault.Code {
	switch code & 0xff {
	case sqlite3.SQLITE_FULL:
		return fault.StoreFull
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_CORRUPT,
		sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_PROTOCOL:
		return fault.StoreUnavailable
	}
	return ""
}

// pgTrouble reads the class of a SQLSTATE: 08 connection, 53 resources (53100 is
// a full disk), 57P shutdown, 58 system, XX corruption, 25006 read-only.
func pgTrouble(state string) fault.Code {
	if state == "53100" {
		return fault.StoreFull
	}
	if len(state) != 5 {
		return ""
	}
	switch state[:2] {
	case "08", "53", "58", "XX":
		return fault.StoreUnavailable
	}
	if state[:3] == "57P" || state == "25006" {
		return fault.StoreUnavailable
	}
	return ""
}

// IsNoRows reports whether a query found nothing, on either engine.
func IsNoRows(err error) bool { return errors.Is(err, sql.ErrNoRows) }

// IsConflict reports whether a write broke a uniqueness rule, on either engine.
func IsConflict(err error) bool {
	var lite *sqlite.Error
	if errors.As(err, &lite) {
		return lite.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || lite.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
	}
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23505"
}
