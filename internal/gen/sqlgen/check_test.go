package sqlgen

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestSharedQueriesKeepToTheSubset(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		sql  string
		want string // part of the fault; empty: none
	}{
		"plain":             {"SELECT * FROM session WHERE id = @id;", ""},
		"array":             {"SELECT 1 WHERE id = any (@ids);", "override folders"},
		"json operator":     {"SELECT data->>'a' FROM part;", `"->>"`},
		"json function":     {"SELECT json_extract(data, '$.a') FROM part;", "read the document in Go"},
		"now":               {"SELECT Now();", "pass the time in"},
		"now as a column":   {"SELECT now FROM clock;", ""},
		"current time":      {"SELECT CURRENT_TIMESTAMP;", "pass the time in"},
		"ilike":             {"SELECT 1 WHERE a ILIKE @b;", "folded in Go"},
		"fold":              {"SELECT lower(title) FROM session;", "fold in Go"},
		"colon cast":        {"SELECT @a::text;", "CAST("},
		"row lock":          {"SELECT 1 FROM a FOR UPDATE;", "override folders"},
		"upsert":            {"INSERT INTO a (b) VALUES (@b) ON CONFLICT (b) DO UPDATE SET b = @b;", ""},
		"slice":             {"SELECT 1 WHERE id IN (sqlc.slice('ids'));", "override folders"},
		"positional":        {"SELECT 1 WHERE id = $1;", "@name"},
		"limit by name":     {"SELECT 1 LIMIT @n;", "LIMIT needs a number"},
		"limit by number":   {"SELECT 1 LIMIT 1;", ""},
		"limit cast":        {"SELECT 1 LIMIT CAST(@n AS bigint) OFFSET CAST(sqlc.arg('m') AS bigint);", ""},
		"limit cast wrong":  {"SELECT 1 LIMIT CAST(@n AS int);", "LIMIT needs a number"},
		"offset by name":    {"SELECT 1 LIMIT 1 OFFSET @n;", "OFFSET needs a number"},
		"in a comment":      {"-- uses now() and ->> elsewhere\nSELECT 1 /* :: */;", ""},
		"in a literal":      {"SELECT 'it''s now()' AS a;", ""},
		"behind a literal":  {"SELECT 'it''s', now();", "pass the time in"},
		"open literal ends": {"SELECT 'now()", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := checkQueries(fstest.MapFS{"q/a.sql": {Data: []byte(test.sql)}}, "q")
			expect(t, err, test.want)
		})
	}
}

func TestFaultsNameFileAndLine(t *testing.T) {
	t.Parallel()
	sql := "-- name: A :one\nSELECT 1;\n\n-- name: B :one\nSELECT now();\nSELECT a::text;\n"
	err := checkQueries(fstest.MapFS{"q/a.sql": {Data: []byte(sql)}}, "q")
	expect(t, err, "q/a.sql:5: ")
	expect(t, err, "q/a.sql:6: ")
}

func TestMigrationsAreOfOneForm(t *testing.T) {
	t.Parallel()
	const (
		up   = "-- +goose Up\n"
		pg   = up + `CREATE TABLE a (id text COLLATE "C" NOT NULL PRIMARY KEY, data json);`
		lite = up + "CREATE TABLE a (id TEXT NOT NULL PRIMARY KEY, data TEXT /*json*/) STRICT;"
	)
	for name, test := range map[string]struct{ pg, lite, want string }{
		"good":            {pg, lite, ""},
		"no header":       {strings.TrimPrefix(pg, up), lite, "+goose Up"},
		"no collation":    {up + "CREATE TABLE a (id text NOT NULL);", lite, `migrations/pg/1.sql:2: a text column needs COLLATE "C"`},
		"other collation": {up + `CREATE TABLE a (id text COLLATE "en_US");`, lite, `COLLATE "C"`},
		"varchar":         {up + "CREATE TABLE a (id varchar(10));", lite, `a varchar column needs`},
		"text in a cast":  {pg + "\nUPDATE a SET data = CAST('x' AS text);", lite, ""},
		"lax table":       {pg, up + "CREATE TABLE a (id TEXT CHECK (length(id) > 0));\n", "must be STRICT"},
		"second is lax":   {pg, lite + "\nCREATE TABLE IF NOT EXISTS b (id TEXT);\nCREATE INDEX strict ON b (id);", "1.sql:3: the table must be STRICT"},
		"both options":    {pg, up + "CREATE TABLE a (id TEXT PRIMARY KEY) WITHOUT ROWID, STRICT;", ""},
		"unknown mark":    {pg, up + "CREATE TABLE a (id TEXT /*bool*/) STRICT;", `mark "TEXT /*bool*/" is unknown`},
		"remark":          {pg, up + "CREATE TABLE a (id TEXT /* our own id */) STRICT;", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := fstest.MapFS{pgSchema + "/1.sql": {Data: []byte(test.pg)}, liteSchema + "/1.sql": {Data: []byte(test.lite)}}
			expect(t, check(root), test.want)
		})
	}
}

func TestMigrationsComeInPairs(t *testing.T) {
	t.Parallel()
	up := &fstest.MapFile{Data: []byte("-- +goose Up\n")}
	err := check(fstest.MapFS{pgSchema + "/1.sql": up, pgSchema + "/2.sql": up, liteSchema + "/1.sql": up, liteSchema + "/3.sql": up})
	expect(t, err, pgSchema+"/2.sql: no counterpart in "+liteSchema)
	expect(t, err, liteSchema+"/3.sql: no counterpart in "+pgSchema)
	expect(t, check(fstest.MapFS{}), "no migrations")
}

func TestBlankKeepsOffsets(t *testing.T) {
	t.Parallel()
	const sql = "a 'b''c' \"d\" -- e\n/* f\ng */ h 'i"
	if got, want := blank(sql, true), "a ' '' ' \" \"     \n    \n     h ' "; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := blank(sql, false); !strings.Contains(got, `"d"`) || strings.ContainsAny(got, "bcefgi") {
		t.Errorf("names kept: got %q", got)
	}
}

// expect checks that err mentions want, or is nil where want is empty.
func expect(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("unexpected: %v", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("got %v; want something with %q", err, want)
	}
}
