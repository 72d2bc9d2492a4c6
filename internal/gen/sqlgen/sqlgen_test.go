package sqlgen

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// TestMain makes the test binary stand in for sqlc, as Generate calls it.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "generate" && os.Args[2] == "--file" {
		if err := fakeSQLC(os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// fakeSQLC writes the canned output beside config, if the staged schema says json.
func fakeSQLC(config string) error {
	stage := filepath.Dir(config)
	schema, err := os.ReadFile(filepath.Join(stage, liteSchema, "1.sql"))
	if err != nil {
		return err
	}
	if !strings.Contains(string(schema), "data json NOT NULL, done boolean)") {
		return fmt.Errorf("relation broken: %s", schema)
	}
	for name, f := range engines() {
		if err := write(stage, name, string(f.Data)); err != nil {
			return err
		}
	}
	return nil
}

const inputs = `
-- sqlc.yaml --
version: "2"
-- store/migrations/pg/1.sql --
-- +goose Up
CREATE TABLE part (id text COLLATE "C" NOT NULL PRIMARY KEY, data json NOT NULL, done boolean);
-- store/migrations/lite/1.sql --
-- +goose Up
CREATE TABLE part (id TEXT NOT NULL PRIMARY KEY, data TEXT /*json*/ NOT NULL, done INTEGER /* bool */) STRICT;
-- store/queries/part.sql --
-- name: PartGet :one
SELECT * FROM part WHERE id = @id;
`

func setup(t *testing.T) (string, Options) {
	t.Helper()
	root := t.TempDir()
	for _, f := range txtar.Parse([]byte(inputs)).Files {
		if err := write(root, f.Name, string(f.Data)); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return root, Options{Root: root, SQLC: []string{self}}
}

func TestGenerateWritesWhatChanged(t *testing.T) {
	t.Parallel()
	root, o := setup(t)
	for name, text := range map[string]string{
		"store/pgdb/old.sql.go": headerMarker + "sqlc. DO NOT EDIT.\n\npackage pgdb\n",
		"store/pgdb/hand.go":    "package pgdb\n",
	} {
		if err := write(root, name, text); err != nil {
			t.Fatal(err)
		}
	}
	changed, err := Generate(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(changed) != 10 || !slices.Contains(changed, "store/pgdb/old.sql.go") || !slices.Contains(changed, "store/db/models.go") {
		t.Errorf("changed %v", changed)
	}
	if _, err := os.Stat(filepath.Join(root, "store/pgdb/old.sql.go")); !os.IsNotExist(err) {
		t.Errorf("old generated code stays: %v", err)
	}
	if _, err := os.Stat(filepath.Join(root, "store/pgdb/hand.go")); err != nil {
		t.Errorf("hand-written code is gone: %v", err)
	}
	if again, err := Generate(t.Context(), o); err != nil || len(again) != 0 {
		t.Errorf("second run changed %v, %v", again, err)
	}
}

func TestGenerateLeavesTheTreeAloneOnError(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ file, text, want string }{
		"banned SQL":   {"store/queries/bad.sql", "SELECT now();", "store/queries/bad.sql:1: "},
		"sqlc refuses": {"store/migrations/lite/1.sql", "-- +goose Up\nCREATE TABLE part (id TEXT) STRICT;", "relation broken"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, o := setup(t)
			if err := write(root, test.file, test.text); err != nil {
				t.Fatal(err)
			}
			_, err := Generate(t.Context(), o)
			expect(t, err, test.want)
			if _, err := os.Stat(filepath.Join(root, baseDir)); !os.IsNotExist(err) {
				t.Errorf("the tree was touched: %v", err)
			}
		})
	}
}

func write(root, name, text string) error {
	file := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}
