package store

import (
	"context"
	"strings"

	"github.com/switchyard-dev/switchyard/store/db"
)

// SessionFilter selects sessions. Nil and zero fields do not filter.
type SessionFilter struct {
	Directory   *string
	WorkspaceID *string
	ProjectID   *string
	// PathPrefix is a slash path below the work tree; it matches the path itself
	// and everything below it.
	PathPrefix *string
	// Search is a folded piece of the title.
	Search       string
	Roots        bool
	Archived     Archived
	UpdatedSince int64
	// ByUpdated orders by (updated, ord), else by ord: the order of creation.
	ByUpdated bool
	Ascending bool
	// After is where the page starts, not included; nil is the beginning.
	After *SessionPosition
	Limit int
}

// Archived says which of the archived sessions a list holds.
type Archived int

// The choices of a SessionFilter.
const (
	ArchivedExclude Archived = iota
	ArchivedOnly
	ArchivedInclude
)

// SessionPosition is a place in a list of sessions.
type SessionPosition struct{ Updated, Ord int64 }

// SessionList gives a page of sessions in the order asked for. The statement is
// put together here, because a condition that is not asked for would keep the
// engines from using an index.
func (r Reader) SessionList(ctx context.Context, f SessionFilter) ([]db.Session, error) {
	statement, args := r.sessionStatement(f)
	ids, err := r.raw.queryText(ctx, statement, args)
	if err != nil || len(ids) == 0 {
		return []db.Session{}, err
	}
	rows, err := r.SessionGetMany(ctx, db.SessionGetManyParams{Ids: ids})
	if err != nil {
		return nil, err
	}
	byID := make(map[string]db.Session, len(rows))
	for _, row := range rows {
		byID[row.ID] = row
	}
	out := make([]db.Session, 0, len(ids))
	for _, id := range ids {
		if row, ok := byID[id]; ok { // gone between the two statements otherwise
			out = append(out, row)
		}
	}
	return out, nil
}

// sessionStatement selects the ids alone: the indexes hold all that it needs.
func (r Reader) sessionStatement(f SessionFilter) (statement string, args []any) {
	q := r.sessionQuery(f)
	q.after(f)
	direction := " DESC"
	if f.Ascending {
		direction = ""
	}
	q.sql.WriteString(" ORDER BY ")
	if f.ByUpdated {
		q.sql.WriteString("updated" + direction + ", ")
	}
	q.sql.WriteString("ord" + direction + " LIMIT " + q.arg(f.Limit))
	return "SELECT id FROM session" + q.sql.String(), q.args
}

// SessionCount counts what a filter selects; its page and order do not matter.
func (r Reader) SessionCount(ctx context.Context, f SessionFilter) (int64, error) {
	q := r.sessionQuery(f)
	text, err := r.raw.queryText(ctx, "SELECT CAST(COUNT(*) AS text) FROM session"+q.sql.String(), q.args)
	if err != nil {
		return 0, err
	}
	var n int64
	for _, c := range text[0] {
		n = n*10 + int64(c-'0')
	}
	return n, nil
}

type sessionQuery struct {
	sql  strings.Builder
	args []any
	raw  raw
}

func (r Reader) sessionQuery(f SessionFilter) *sessionQuery {
	q := &sessionQuery{raw: r.raw}
	equal := func(column string, v *string) {
		if v != nil {
			q.where(column + " = " + q.arg(*v))
		}
	}
	equal("directory", f.Directory)
	equal("workspace_id", f.WorkspaceID)
	equal("project_id", f.ProjectID)
	if f.PathPrefix != nil && *f.PathPrefix != "" {
		// A range, since SQLite's LIKE takes "A" for "a". "0" is what follows "/".
		p := *f.PathPrefix
		q.where("(path = " + q.arg(p) + " OR (path > " + q.arg(p+"/") + " AND path < " + q.arg(p+"0") + "))")
	}
	if f.Roots {
		// So that the index by parent is not taken, which holds all roots of the
		// server and not the columns of the order.
		q.where("COALESCE(parent_id, '') = ''")
	}
	switch f.Archived {
	case ArchivedExclude:
		q.where("archived IS NULL")
	case ArchivedOnly:
		q.where("archived IS NOT NULL")
	case ArchivedInclude:
	}
	if f.Search != "" {
		q.where("title_fold LIKE " + q.arg("%"+likeEscape(f.Search)+"%") + ` ESCAPE '\'`)
	}
	if f.UpdatedSince > 0 {
		q.where("updated >= " + q.arg(f.UpdatedSince))
	}
	return q
}

func (q *sessionQuery) after(f SessionFilter) {
	if f.After == nil {
		return
	}
	than := " < "
	if f.Ascending {
		than = " > "
	}
	if f.ByUpdated {
		q.where("(updated, ord)" + than + "(" + q.arg(f.After.Updated) + ", " + q.arg(f.After.Ord) + ")")
		return
	}
	q.where("ord" + than + q.arg(f.After.Ord))
}

func (q *sessionQuery) where(condition string) {
	if q.sql.Len() == 0 {
		q.sql.WriteString(" WHERE ")
	} else {
		q.sql.WriteString(" AND ")
	}
	q.sql.WriteString(condition)
}

func (q *sessionQuery) arg(v any) string {
	if s, ok := v.(string); ok {
		v = Clean(s) // what is stored is clean too
	}
	q.args = append(q.args, v)
	return q.raw.placeholder(len(q.args))
}

func likeEscape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s)
}
