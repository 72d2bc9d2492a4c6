package store_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// titles and paths have what LIKE and prefixes could take for something else.
var (
	titles = []string{"plain", "100% sure", "a_b", `back\slash`, "axb", "100 sure", "ünïcode", "[a-z]*", ""}
	paths  = []string{"", "src", "src/lib", "src/lib/deep", "SRC/lib", "src2", "src%", "src%/x", "s_c", "src.d/x", "src-d/x"}
)

// seed makes n sessions of three projects and gives them in the order of ord.
func seed(b *bundle, n int) []db.Session {
	b.t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	all := make([]db.Session, 0, n)
	for ord := range n {
		all = append(all, invent(random, all, int64(ord+1)))
	}
	b.write(func(ctx context.Context, tx *store.Tx) error {
		for i := range 3 {
			if _, err := tx.ProjectUpsert(ctx, project(fmt.Sprintf("p%d", i))); err != nil {
				return err
			}
		}
		for some := range slices.Chunk(all, 250) {
			if err := insert(ctx, tx, some); err != nil {
				return err
			}
		}
		return nil
	})
	return all
}

func invent(random *rand.Rand, all []db.Session, ord int64) db.Session {
	s := db.Session{
		ID: fmt.Sprintf("s%09d", random.IntN(10_000)*10_000+int(ord)), Ord: ord,
		ProjectID: fmt.Sprintf("p%d", random.IntN(3)), Directory: fmt.Sprintf("/dir%d", random.IntN(6)),
		WorkspaceID: []string{"", "", "w1", "w2"}[random.IntN(4)],
		TitleFold:   titles[random.IntN(len(titles))], Path: paths[random.IntN(len(paths))],
		Updated: 1000 + random.Int64N(200), // many are equal
	}
	if len(all) > 0 && random.IntN(3) == 0 {
		s.ParentID = &all[random.IntN(len(all))].ID
	}
	if random.IntN(4) == 0 {
		s.Archived = &s.Updated
	}
	return s
}

// insert makes the rows with one statement: a round trip each would take most of
// the test's time.
func insert(ctx context.Context, tx *store.Tx, some []db.Session) error {
	var rows []string
	var args []any
	for _, s := range some {
		n := len(args)
		rows = append(rows, fmt.Sprintf(`($%d, $%d, $%d, $%d, $%d, $%d, $%d, $%d, $%d, $%d,
			'r', 't', 'client', 'build', 'null', '[]', '{}', 0, '{}', 0, 0, 0, 0, 0, 0, 1)`, n+1, n+2, n+3, n+4, n+5, n+6, n+7, n+8, n+9, n+10))
		args = append(args, s.ID, s.Ord, s.ProjectID, s.WorkspaceID, s.Directory, s.Path, s.ParentID, s.TitleFold, s.Updated, s.Archived)
	}
	return store.Exec(ctx, tx, `INSERT INTO session (id, ord, project_id, workspace_id, directory, path, parent_id, title_fold, updated, archived,
		root_id, title, title_source, agent, model, permission, metadata, cost, tokens, message_count, message_seq, context_seq, inbox_ord,
		inbox_parked, generation, created) VALUES `+strings.Join(rows, ","), args...)
}

// selects is what a filter means, in Go.
func selects(f store.SessionFilter, s db.Session) bool {
	is := func(want *string, have string) bool { return want == nil || *want == have }
	below := f.PathPrefix == nil || *f.PathPrefix == "" || s.Path == *f.PathPrefix || strings.HasPrefix(s.Path, *f.PathPrefix+"/")
	archived := f.Archived == store.ArchivedInclude || (s.Archived != nil) == (f.Archived == store.ArchivedOnly)
	return is(f.Directory, s.Directory) && is(f.WorkspaceID, s.WorkspaceID) && is(f.ProjectID, s.ProjectID) &&
		below && archived && (!f.Roots || s.ParentID == nil) && s.Updated >= f.UpdatedSince && strings.Contains(s.TitleFold, f.Search)
}

// expected are the ids that a filter selects, in its order.
func expected(f store.SessionFilter, all []db.Session) []string {
	var found []db.Session
	for _, s := range all {
		if selects(f, s) {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(x, y db.Session) int {
		order := cmp.Compare(x.Ord, y.Ord)
		if f.ByUpdated {
			order = cmp.Or(cmp.Compare(x.Updated, y.Updated), order)
		}
		if !f.Ascending {
			order = -order
		}
		return order
	})
	return ids(found)
}

func ids(sessions []db.Session) []string {
	out := []string{}
	for _, s := range sessions {
		out = append(out, s.ID)
	}
	return out
}

// filters are each alone, and some together.
func filters() map[string]store.SessionFilter {
	p := func(s string) *string { return &s }
	out := map[string]store.SessionFilter{
		"none": {}, "directory": {Directory: p("/dir1")}, "workspace": {WorkspaceID: p("w1")}, "no workspace": {WorkspaceID: p("")},
		"context": {Directory: p("/dir1"), WorkspaceID: p("")}, "project": {ProjectID: p("p1")}, "roots": {Roots: true},
		"archived": {Archived: store.ArchivedOnly}, "with archived": {Archived: store.ArchivedInclude}, "since": {UpdatedSince: 1150},
		"nothing": {Directory: p("/nowhere")}, "nul": {Search: "a\x00b"}, "empty prefix": {PathPrefix: p("")},
		"together": {Directory: p("/dir2"), WorkspaceID: p(""), ProjectID: p("p2"), Roots: true, UpdatedSince: 1050, Search: "a", PathPrefix: p("src")},
	}
	for _, s := range []string{"a", "%", "_", `\`, "a_b", "100%", "ï", "[", "*", "'"} {
		out["search "+s] = store.SessionFilter{Search: s}
	}
	for _, s := range paths[1:] {
		out["path "+s] = store.SessionFilter{PathPrefix: &s, Archived: store.ArchivedInclude}
	}
	return out
}

func TestSessionListFiltersOrdersAndPages(t *testing.T) {
	t.Parallel()
	eachEngine(t, store.Config{}, func(t *testing.T, b *bundle) {
		all := seed(b, 1200)
		for name, f := range filters() {
			// The page back takes the other direction of each.
			for _, order := range []struct{ byUpdated, ascending bool }{{false, false}, {true, true}} {
				f.ByUpdated, f.Ascending = order.byUpdated, order.ascending
				want := expected(f, all)
				got := pages(b, f, 401)
				if !slices.Equal(got, want) {
					t.Errorf("%s %+v: %d sessions, want %d, or another order", name, order, len(got), len(want))
				}
				if n := count(b, f); n != int64(len(want)) {
					t.Errorf("%s: counted %d, want %d", name, n, len(want))
				}
			}
		}
	})
}

// pages reads a list to its end, and the last but one page backwards too.
func pages(b *bundle, f store.SessionFilter, size int) []string {
	b.t.Helper()
	f.Limit = size
	all := []string{}
	for {
		page := list(b, f)
		all = append(all, ids(page)...)
		if len(page) < size {
			if len(page) > 0 && len(all) > size {
				before := all[len(all)-len(page)-size : len(all)-len(page)]
				f.Ascending, f.After = !f.Ascending, position(page[0])
				back := ids(list(b, f))
				slices.Reverse(back)
				if !slices.Equal(back, before) {
					b.t.Errorf("%+v: the page back is another", f)
				}
			}
			return all
		}
		f.After = position(page[size-1])
	}
}

func position(s db.Session) *store.SessionPosition {
	return &store.SessionPosition{Updated: s.Updated, Ord: s.Ord}
}

func list(b *bundle, f store.SessionFilter) []db.Session {
	b.t.Helper()
	out, err := store.Get(b.t.Context(), b.db, func(ctx context.Context, r store.Reader) ([]db.Session, error) {
		return r.SessionList(ctx, f)
	})
	if err != nil || out == nil {
		b.t.Fatalf("%+v: %v, %v", f, out, err)
	}
	return out
}

func count(b *bundle, f store.SessionFilter) int64 {
	b.t.Helper()
	n, err := store.Get(b.t.Context(), b.db, func(ctx context.Context, r store.Reader) (int64, error) {
		return r.SessionCount(ctx, f)
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

func TestSessionListGivesWholeRowsInsideAWriteToo(t *testing.T) {
	t.Parallel()
	eachEngine(t, store.Config{}, func(t *testing.T, b *bundle) {
		b.write(func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.ProjectUpsert(ctx, project("p0")); err != nil {
				return err
			}
			made, err := tx.SessionInsert(ctx, session("s1", 1))
			if err != nil {
				return err
			}
			got, err := tx.SessionList(ctx, store.SessionFilter{Limit: 5})
			if err != nil || len(got) != 1 || fmt.Sprint(got[0]) != fmt.Sprint(made) {
				t.Errorf("got %+v, %v; want %+v", got, err, made)
			}
			return nil
		})
	})
}

func TestListsOfAContextUseItsIndexAlone(t *testing.T) {
	t.Parallel()
	b := setupLite(t, store.Config{})
	seed(b, 2500)
	directory, workspace, project := "/dir1", "", "p1"
	start := &store.SessionPosition{Updated: 1100, Ord: 1200}
	for name, f := range map[string]store.SessionFilter{
		"session_by_context":         {Directory: &directory, WorkspaceID: &workspace, Roots: true},
		"session_by_context_updated": {Directory: &directory, WorkspaceID: &workspace, ByUpdated: true, After: start},
		"session_by_project":         {ProjectID: &project, Roots: true, After: start},
		"session_by_updated":         {ByUpdated: true, Roots: true},
	} {
		f.Limit = 50
		plan := explain(t, b, f)
		if !strings.Contains(plan, "USING COVERING INDEX "+name) || strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("%s:\n%s", name, plan)
		}
	}
}

// explain is SQLite's plan for a list.
func explain(t *testing.T, b *bundle, f store.SessionFilter) string {
	t.Helper()
	var query string
	var args []any
	if err := b.db.Read(t.Context(), func(_ context.Context, r store.Reader) error {
		query, args = store.SessionStatement(r, f)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	rows, err := plain(t, b.url, true).QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var lines []string
	for rows.Next() {
		var line string
		var skip any
		if err := rows.Scan(&skip, &skip, &skip, &line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}
