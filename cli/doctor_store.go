package cli

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	iofs "io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver of the embedded store
)

const (
	// storeName is the file of the embedded store in the state directory.
	storeName = "switchyard.db"
	// checkTime bounds the reading of the whole store.
	checkTime = 20 * time.Second
)

// store reads the embedded store from end to end. Opening it as a server does
// would count a start and might change the schema, so it is opened for reading
// only.
func (d *doctor) store(ctx context.Context) {
	const what = "store"
	path := filepath.Join(d.to.State, storeName)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		d.ok(what, "there is none yet; the server makes it")
		return
	case err != nil:
		d.fail(what, "%v", err)
		return
	case info.Mode().Perm()&0o077 != 0:
		d.warn(what, "%s can be read by others (mode %o): chmod 600 it", path, info.Mode().Perm())
	}
	bounded, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	found, err := checkStore(bounded, path)
	switch {
	case bounded.Err() != nil:
		d.warn(what, "%s opens; it is too large to be read within %s", path, checkTime)
	case err != nil:
		d.fail(what, "%s: %v", path, err)
	case found != "ok":
		d.fail(what, "%s is damaged: %s", path, found)
	default:
		d.ok(what, "%s", path)
	}
}

// checkStore gives "ok", or what SQLite finds wrong first.
func checkStore(ctx context.Context, path string) (found string, err error) {
	handle, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro&_pragma=query_only(1)&_pragma=busy_timeout(2000)")
	if err != nil {
		return "", fmt.Errorf("opening: %w", err)
	}
	defer func() { err = errors.Join(err, handle.Close()) }()
	if err := handle.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found); err != nil {
		return "", fmt.Errorf("reading: %w", err)
	}
	return strings.TrimSpace(found), nil
}
