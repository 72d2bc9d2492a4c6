package sqlgen

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A ban is SQL that one of the engines refuses or reads differently.
type ban struct {
	token  *regexp.Regexp
	advice string
}

// bans hold for the queries that both engines share.
var bans = []ban{
	{word(`(ANY|ALL)\s*\(`), "arrays are PostgreSQL's: use the override folders"},
	{regexp.MustCompile(`->>?`), "JSON operators differ: read the document in Go"},
	{word(`jsonb?(_\w+)?\s*\(`), "JSON functions differ: read the document in Go"},
	{word(`(now|datetime|date|strftime|julianday|unixepoch)\s*\(`), "pass the time in"},
	{word(`current_(timestamp|date|time)\b`), "pass the time in"},
	{word(`(ILIKE|SIMILAR\s+TO|GLOB|REGEXP)\b`), "use LIKE on a column folded in Go"},
	{word(`(lower|upper)\s*\(`), "SQLite folds ASCII only: fold in Go"},
	{word(`(greatest|least)\s*\(`), "PostgreSQL's only: compare in Go or with CASE"},
	{regexp.MustCompile(`::`), "write CAST(… AS type)"},
	{word(`FOR\s+(NO\s+KEY\s+UPDATE|UPDATE|KEY\s+SHARE|SHARE)\b`), "row locks are PostgreSQL's: use the override folders"},
	{word(`sqlc\.slice\b`), "slices are SQLite's: use the override folders"},
	{regexp.MustCompile(`\?|\$\d`), "name the parameter: @name"},
}

// limit finds every LIMIT and OFFSET; what follows must fit limited, or the two
// engines give the parameter different Go types.
var (
	limit   = word(`(LIMIT|OFFSET)\s+`)
	limited = regexp.MustCompile(`(?i)^(\d+\b|CAST\s*\([^()]*(\([^()]*\))?\s+AS\s+bigint\s*\))`)
)

func word(pattern string) *regexp.Regexp { return regexp.MustCompile(`(?i)\b` + pattern) }

// checkQueries refuses everything in dir's files outside the common subset.
func checkQueries(root fsys, dir string) error {
	names, err := sqlFiles(root, dir)
	if err != nil {
		return fmt.Errorf("listing %s: %w", dir, err)
	}
	var errs []error
	for _, name := range names {
		b, err := fs.ReadFile(root, name)
		if err != nil {
			return fmt.Errorf("reading the queries: %w", err)
		}
		errs = append(errs, queryFaults(name, string(b))...)
	}
	return errors.Join(errs...)
}

func queryFaults(name, sql string) []error {
	bare := blank(sql, true)
	var errs []error
	for _, b := range bans {
		for _, at := range b.token.FindAllStringIndex(bare, -1) {
			errs = append(errs, faultAt(name, bare, at[0], "%q is not for shared queries: %s", bare[at[0]:at[1]], b.advice))
		}
	}
	for _, at := range limit.FindAllStringIndex(bare, -1) {
		if !limited.MatchString(bare[at[1]:]) {
			errs = append(errs, faultAt(name, bare, at[0], "%s needs a number or CAST(@name AS bigint)", strings.TrimSpace(bare[at[0]:at[1]])))
		}
	}
	return errs
}

// Rules for migrations.
var (
	pgText  = word(`(?:AS\s+)?(text|varchar|char|character(?:\s+varying)?)\b(\s*\(\s*\d+\s*\))?(\s+COLLATE\s+"C")?`)
	liteDef = word(`CREATE\s+TABLE\b[^(;]*\(`)
	strict  = word(`STRICT\b`)
	gooseUp = regexp.MustCompile(`(?m)^-- \+goose Up\b`)
)

// checkSchemas compares the two migration folders and checks each file's form.
func checkSchemas(root fsys) []error {
	pg, err := sqlFiles(root, pgSchema)
	if err != nil {
		return []error{fmt.Errorf("listing %s: %w", pgSchema, err)}
	}
	lite, err := sqlFiles(root, liteSchema)
	if err != nil {
		return []error{fmt.Errorf("listing %s: %w", liteSchema, err)}
	}
	errs := missing(pg, lite, liteSchema)
	errs = append(errs, missing(lite, pg, pgSchema)...)
	if len(pg)+len(lite) == 0 {
		errs = append(errs, fmt.Errorf("no migrations in %s and %s", pgSchema, liteSchema))
	}
	errs = append(errs, eachFile(root, pg, pgFaults)...)
	return append(errs, eachFile(root, lite, liteFaults)...)
}

// missing tells which of names has no counterpart of the same base name in others.
func missing(names, others []string, dir string) []error {
	var errs []error
	for _, name := range names {
		base := path.Base(name)
		if !slices.ContainsFunc(others, func(o string) bool { return path.Base(o) == base }) {
			errs = append(errs, fmt.Errorf("%s: no counterpart in %s", name, dir))
		}
	}
	return errs
}

func eachFile(root fsys, names []string, faults func(name, sql string) []error) []error {
	var errs []error
	for _, name := range names {
		b, err := fs.ReadFile(root, name)
		if err != nil {
			return append(errs, fmt.Errorf("reading the migrations: %w", err))
		}
		if !gooseUp.Match(b) {
			errs = append(errs, fmt.Errorf("%s: no line `-- +goose Up`", name))
		}
		errs = append(errs, faults(name, string(b))...)
	}
	return errs
}

// pgFaults refuses text columns that would sort by the server's locale: SQLite
// sorts by bytes, and pages must not depend on where the server was set up.
func pgFaults(name, sql string) []error {
	bare := blank(sql, false)
	var errs []error
	for _, at := range pgText.FindAllStringSubmatchIndex(bare, -1) {
		cast := at[2] != at[0] // AS text
		if !cast && at[6] < 0 {
			errs = append(errs, faultAt(name, bare, at[0], `a %s column needs COLLATE "C"`, bare[at[2]:at[3]]))
		}
	}
	return errs
}

// liteFaults refuses tables that are not STRICT and marks that mean nothing.
func liteFaults(name, sql string) []error {
	var errs []error
	for _, at := range mark.FindAllStringSubmatchIndex(sql, -1) {
		key := strings.ToUpper(sql[at[2]:at[3]]) + " " + sql[at[6]:at[7]]
		if _, ok := marked[key]; !ok {
			errs = append(errs, faultAt(name, sql, at[0], "mark %q is unknown: TEXT /*json*/ or INTEGER /*bool*/", sql[at[0]:at[1]]))
		}
	}
	bare := blank(sql, true)
	for _, at := range liteDef.FindAllStringIndex(bare, -1) {
		tail, _, _ := strings.Cut(bare[closing(bare, at[1]):], ";")
		if !strict.MatchString(tail) {
			errs = append(errs, faultAt(name, bare, at[0], "the table must be STRICT"))
		}
	}
	return errs
}

// closing gives the index behind the parenthesis that closes the one before start.
func closing(sql string, start int) int {
	depth := 1
	for i := start; i < len(sql); i++ {
		switch sql[i] {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			return i + 1
		}
	}
	return len(sql)
}

func faultAt(name, sql string, offset int, format string, args ...any) error {
	line := 1 + strings.Count(sql[:offset], "\n")
	return fmt.Errorf("%s:%d: %s", name, line, fmt.Sprintf(format, args...))
}
