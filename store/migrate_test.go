package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/store"
)

// plain opens a database without the store.
func plain(t *testing.T, url string, lite bool) *sql.DB {
	t.Helper()
	driver := "pgx"
	if lite {
		driver, url = "sqlite", "file:"+url
	}
	handle, err := sql.Open(driver, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = handle.Close() })
	return handle
}

func column(t *testing.T, handle *sql.DB, query string) (out []string) {
	t.Helper()
	rows, err := handle.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func run(t *testing.T, handle *sql.DB, statement string) {
	t.Helper()
	if _, err := handle.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

const (
	liteSchema  = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name"
	pgSchema    = `SELECT concat_ws(' ', table_name, column_name, data_type, is_nullable, column_default, collation_name) FROM information_schema.columns WHERE table_schema = 'public' UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' UNION ALL SELECT conrelid::regclass || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace ORDER BY 1`
	liteColumns = "SELECT m.name || '.' || c.name || c.\"notnull\" FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name NOT LIKE 'goose%' AND m.name NOT LIKE 'sqlite%'"
	pgColumns   = `SELECT table_name || '.' || column_name || CASE is_nullable WHEN 'NO' THEN 1 ELSE 0 END FROM information_schema.columns WHERE table_schema = 'public' AND table_name NOT LIKE 'goose%'`
)

func schema(t *testing.T, b *bundle, handle *sql.DB) []string {
	t.Helper()
	if b.lite {
		return column(t, handle, liteSchema)
	}
	return column(t, handle, pgSchema)
}

func TestTakingTheSchemaDownAndUpGivesTheSame(t *testing.T) {
	t.Parallel()
	eachEngine(t, store.Config{}, func(t *testing.T, b *bundle) {
		handle := plain(t, b.url, b.lite)
		fresh := schema(t, b, handle)
		if err := b.db.Close(); err != nil {
			t.Fatal(err)
		}
		dialect, dir := goose.DialectPostgres, "migrations/pg"
		if b.lite {
			dialect, dir = goose.DialectSQLite3, "migrations/lite"
		}
		files, err := iofs.Sub(store.Migrations(), dir)
		if err != nil {
			t.Fatal(err)
		}
		p, err := goose.NewProvider(dialect, handle, files)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.DownTo(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		for _, line := range schema(t, b, handle) {
			if !strings.Contains(line, "goose_db_version") && !strings.Contains(line, "sqlite_sequence") {
				t.Errorf("left by the way down: %s", line)
			}
		}
		b.db = open(t, store.Config{URL: b.url})
		if again := schema(t, b, handle); !slices.Equal(again, fresh) || len(fresh) < 20 {
			t.Errorf("fresh:\n%s\nafter down and up:\n%s", strings.Join(fresh, "\n"), strings.Join(again, "\n"))
		}
		b.write(add("row", 1))
		if made, _ := filepath.Glob(b.url + "*.backup"); len(made) != 0 {
			t.Errorf("an empty store was backed up: %v", made)
		}
	})
}

func TestBothEnginesHaveTheSameColumns(t *testing.T) {
	t.Parallel()
	pg := setupPostgres(t, store.Config{})
	lite := setupLite(t, store.Config{})
	a, b := column(t, plain(t, lite.url, true), liteColumns), column(t, plain(t, pg.url, false), pgColumns)
	slices.Sort(a)
	slices.Sort(b)
	if !slices.Equal(a, b) || len(a) < 50 {
		t.Errorf("sqlite: %v\npostgres: %v", a, b)
	}
	for _, text := range column(t, plain(t, pg.url, false), `SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name NOT LIKE 'goose%' AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'`) {
		t.Errorf("%s sorts by the server's locale", text)
	}
}

func TestASchemaFromTheFutureIsRefused(t *testing.T) {
	t.Parallel()
	eachEngine(t, store.Config{}, func(t *testing.T, b *bundle) {
		if err := b.db.Close(); err != nil {
			t.Fatal(err)
		}
		handle := plain(t, b.url, b.lite)
		before := column(t, handle, "SELECT CAST(seq AS text) FROM event_head")
		run(t, handle, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (4711, TRUE)")
		_, err := store.Open(t.Context(), store.Config{URL: b.url})
		f, ok := fault.As(err)
		if !ok || f.Code != fault.StoreUnavailable || !strings.Contains(f.Detail, "schema version 4711") || !strings.Contains(f.Detail, "newer Switchyard") {
			t.Errorf("got %v", err)
		}
		if after := column(t, handle, "SELECT CAST(seq AS text) FROM event_head"); !slices.Equal(before, after) {
			t.Errorf("the head went from %v to %v", before, after)
		}
		run(t, handle, "DELETE FROM goose_db_version WHERE version_id = 4711")
		b.db = open(t, store.Config{URL: b.url}) // nothing was left locked
	})
}

func TestServersThatStartAtOnceMigrateOnce(t *testing.T) {
	t.Parallel()
	url := testkit.Postgres(t)
	var wait sync.WaitGroup
	boots := make([]store.Boot, 4)
	for i := range boots {
		wait.Go(func() {
			d, err := store.Open(t.Context(), store.Config{URL: url, Owner: fmt.Sprint(i)})
			if err != nil {
				t.Error(err)
				return
			}
			boots[i] = d.Boot()
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	slices.SortFunc(boots, func(a, b store.Boot) int { return int(a.Number - b.Number) })
	for i, boot := range boots {
		if boot.Number != int64(i+1) || boot.Head != int64(i+1)*store.BootGap || boot.Epoch != boots[0].Epoch {
			t.Errorf("start %d: %+v", i+1, boot)
		}
	}
}

// twoVersions are a schema and its successor.
func twoVersions(second string) (old, latest iofs.FS) {
	one := &fstest.MapFile{Data: []byte("-- +goose Up\nCREATE TABLE a (x INTEGER) STRICT;\nINSERT INTO a VALUES (7);\n")}
	two := &fstest.MapFile{Data: []byte("-- +goose Up\n" + second)}
	return fstest.MapFS{"migrations/lite/00001_one.sql": one},
		fstest.MapFS{"migrations/lite/00001_one.sql": one, "migrations/lite/00002_two.sql": two}
}

func TestAFileIsBackedUpBeforeItIsMigrated(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]string{
		"success": "ALTER TABLE a ADD COLUMN y INTEGER;\nUPDATE a SET y = x;\n",
		"failure": "UPDATE a SET x = 8;\nDROP TABLE there_is_none;\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "store.db")
			old, latest := twoVersions(second)
			handle := plain(t, path, true)
			if err := store.MigrateLite(t.Context(), handle, old, path); err != nil {
				t.Fatal(err)
			}
			err := store.MigrateLite(t.Context(), handle, latest, path)
			if (err == nil) != (name == "success") {
				t.Fatal(err)
			}
			if got := column(t, handle, "SELECT x FROM a"); !slices.Equal(got, []string{"7"}) {
				t.Errorf("the file holds %v", got)
			}
			backup := onlyBackup(t, path)
			if !strings.HasPrefix(filepath.Base(backup), "store.db.v1.") {
				t.Errorf("the backup is named %s", backup)
			}
			copied := plain(t, backup, true)
			columns := column(t, copied, "SELECT name FROM pragma_table_info('a')")
			if got := column(t, copied, "SELECT x FROM a"); !slices.Equal(got, []string{"7"}) || !slices.Equal(columns, []string{"x"}) {
				t.Errorf("the backup holds %v in %v", got, columns)
			}
			if name == "success" {
				if err := store.MigrateLite(t.Context(), handle, latest, path); err != nil {
					t.Error(err)
				}
				onlyBackup(t, path)
			}
		})
	}
}

// onlyBackup is the one backup of a store, which only its owner may read.
func onlyBackup(t *testing.T, path string) string {
	t.Helper()
	made, err := filepath.Glob(path + ".*.backup")
	if err != nil || len(made) != 1 {
		t.Fatalf("backups %v, %v", made, err)
	}
	onlyForTheOwner(t, made[0])
	return made[0]
}

func onlyForTheOwner(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v, %v", path, info, err)
	}
}

func TestFilesAreForTheirOwnerAndMayHaveAnyName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"store.db", "new/dir/store.db", "a b?c=d&e#f%41é'.db", "postgres.db"} {
		path := filepath.Join(dir, name)
		b := &bundle{t: t, url: path, lite: true, db: open(t, store.Config{URL: path})}
		b.write(add("row", 1))
		for _, file := range []string{path, path + "-wal", path + "-shm", path + ".lock"} {
			onlyForTheOwner(t, file)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 13 { // three stores of four files, one directory
		t.Errorf("%d files, %v", len(entries), err)
	}
}

func TestAStoreThatCannotBeMadeSaysWhy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testkit.WriteFile(t, dir, "file", "text")
	testkit.WriteFile(t, dir, "text.db", strings.Repeat("not a database ", 100))
	for name, url := range map[string]string{
		"below a file":   filepath.Join(dir, "file", "store.db"),
		"a directory":    dir,
		"not a database": filepath.Join(dir, "text.db"),
		"bad url":        "postgres://user:secret@[::1/db",
	} {
		d, err := store.Open(t.Context(), store.Config{URL: url})
		if err == nil {
			t.Errorf("%s: opened", name)
			err = d.Close()
		}
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text := testkit.ReadFile(t, dir, "text.db"); !strings.HasPrefix(text, "not a database") {
		t.Error("a foreign file was written to")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Open(ctx, store.Config{URL: filepath.Join(dir, "late.db")}); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
}
