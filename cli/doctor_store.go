package cli

import (
	"context"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/switchyard-dev/switchyard/integrity"
	"github.com/switchyard-dev/switchyard/store"
)

// storeName is the file of the embedded store in the state directory.
const storeName = "switchyard.db"

const aboutStore = "store"

// cannot tells that something could not be checked or repaired.
func (d *doctor) cannot(what, format string, args ...any) {
	d.blind++
	d.fail(what, format, args...)
	d.failed--
}

// store looks at the store without opening it as a server does, which would
// count a start and might change the schema.
func (d *doctor) store(ctx context.Context) {
	where, name := d.database, "the database"
	if where == "" {
		where = filepath.Join(d.to.State, storeName)
	}
	if !store.IsPostgres(where) {
		name = where // a URL may hold a password
		if !d.storeFile(where) {
			return
		}
	}
	seen, err := store.Inspect(ctx, where)
	if err != nil {
		d.cannot(aboutStore, "%s: %v", name, err)
		return
	}
	defer func() {
		if err := seen.Close(); err != nil {
			d.cannot(aboutStore, "%s: %v", name, err)
		}
	}()
	if d.examine(ctx, seen, name) && d.repair {
		d.mend(ctx, where, name)
	}
}

// storeFile reports whether there is a file to look at.
func (d *doctor) storeFile(path string) bool {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, iofs.ErrNotExist) && d.database == "":
		d.ok(aboutStore, "there is none yet in the state directory; the server makes it")
		return false
	case err != nil:
		d.cannot(aboutStore, "%v", err)
		return false
	case info.Mode().Perm()&0o077 != 0:
		d.warn(aboutStore, "%s can be read by others (mode %o): chmod 600 it", path, info.Mode().Perm())
	}
	return true
}

// examine tells what is wrong with a store, and reports whether it may be
// repaired. With --repair the faults are left for mend to tell.
func (d *doctor) examine(ctx context.Context, seen *store.Inspection, name string) bool {
	who, held, err := seen.Holder(ctx)
	if err != nil {
		d.cannot(aboutStore, "%s: %v", name, err)
		return false
	}
	if held && d.repair {
		d.cannot(aboutStore, "%s is in use by a server (%s): stop it before repairing", name, who)
	} else if held {
		d.ok(aboutStore, "%s is in use by a server (%s), it is only read", name, who)
	}
	damage, err := seen.Damage(ctx)
	if err != nil {
		d.fail(aboutStore, "%s: %v", name, err)
		return false
	}
	d.damaged = len(damage) > 0
	for _, line := range damage {
		d.fail(aboutStore, "%s is damaged: %s", name, line)
	}
	have, known, err := seen.Schema(ctx)
	if err != nil {
		d.cannot(aboutStore, "%s: %v", name, err)
		return false
	}
	if have != known {
		d.cannot(aboutStore, "%s has schema version %d, this program knows %d: use the program that serves it", name, have, known)
		return false
	}
	if d.repair && !held {
		return true
	}
	var found []integrity.Finding
	err = seen.Read(ctx, func(ctx context.Context, r store.Reader) (err error) {
		found, err = integrity.Check(ctx, r, integrity.Options{Served: held})
		return err
	})
	if err != nil {
		d.cannot(aboutStore, "%s: %v", name, err)
		return false
	}
	d.tell(name, found)
	return false
}

// tell prints each finding on a line of its own.
func (d *doctor) tell(name string, found []integrity.Finding) {
	d.report.Findings = append(d.report.Findings, found...)
	for _, f := range found {
		switch {
		case f.Repaired:
			d.ok(aboutStore, "mended: %s", f)
		case f.Note:
			d.warn(aboutStore, "%s", f)
		case f.Repairable:
			d.fail(aboutStore, "%s (--repair mends it)", f)
		default:
			d.fail(aboutStore, "%s", f)
		}
	}
	if integrity.Faults(found) == 0 && !d.damaged {
		d.ok(aboutStore, "%s", name)
	}
}

// mend opens the store as its only user and repairs it, after a copy was made
// where there is something to mend.
func (d *doctor) mend(ctx context.Context, where, name string) {
	opened, err := store.Open(ctx, store.Config{URL: where, Owner: "doctor", Note: "switchyard doctor --repair"})
	if err != nil {
		d.cannot(aboutStore, "%s: %v", name, err)
		return
	}
	defer func() {
		if err := opened.Close(); err != nil {
			d.cannot(aboutStore, "%s: %v", name, err)
		}
	}()
	found, err := store.Get(ctx, opened, func(ctx context.Context, r store.Reader) ([]integrity.Finding, error) {
		return integrity.Check(ctx, r, integrity.Options{})
	})
	if err == nil && slices.ContainsFunc(found, func(f integrity.Finding) bool { return f.Repairable }) {
		found, err = d.mendFaults(ctx, opened)
	}
	d.tell(name, found)
	if err != nil {
		d.cannot(aboutStore, "%s: %v", name, err)
	}
}

func (d *doctor) mendFaults(ctx context.Context, opened *store.DB) ([]integrity.Finding, error) {
	backup, err := opened.Backup(ctx)
	if err != nil {
		return nil, err
	}
	if d.report.Backup = backup; backup != "" {
		d.ok(aboutStore, "a copy from before the repair is %s", backup)
	}
	return integrity.Repair(ctx, opened, integrity.Options{})
}
