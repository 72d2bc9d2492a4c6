package integrity

import (
	"context"
	"fmt"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

func sessionRules() []Rule {
	return []Rule{
		{"session-root", "a session's root is its parent's, or itself", sessionRoot},
		{"session-cycle", "no session is below itself", sessionCycle},
	}
}

func sessionRoot(ctx context.Context, p *pass) error {
	rows, err := p.IntegrityRoots(ctx, db.IntegrityRootsParams{MaxRows: p.rows()})
	return each(p, rows, err, func(r db.IntegrityRootsRow) (Finding, mend) {
		f := Finding{SessionID: r.ID, Subject: r.ID}
		to := db.MendTreeParams{ID: r.ID, RootID: r.ID}
		switch {
		case r.ParentID == nil:
			f.Detail = fmt.Sprintf("it has no parent, and %s as its root", r.RootID)
		case r.ParentRoot == "":
			f.Detail = fmt.Sprintf("its parent %s is gone", *r.ParentID)
		default:
			f.Detail = fmt.Sprintf("its root is %s, that of its parent is %s", r.RootID, r.ParentRoot)
			to.ParentID, to.RootID = r.ParentID, r.ParentRoot
		}
		return f, one((*store.Tx).MendTree, to)
	})
}

// sessionCycle climbs from every child. The way up is as long as the tree is
// deep, which is not far; a cycle is found when the way comes back.
func sessionCycle(ctx context.Context, p *pass) error {
	for after := ""; !p.full(); {
		rows, err := p.IntegrityChildren(ctx, db.IntegrityChildrenParams{After: after, MaxRows: smallRows})
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, r := range rows {
			after = r.ID
			back, err := p.comesBack(ctx, r.ID, *r.ParentID)
			if err != nil {
				return err
			}
			if back {
				p.add(Finding{SessionID: r.ID, Subject: r.ID, Detail: "it is below itself"}, p.uproot(r.ID))
			}
		}
	}
	return nil
}

// uproot makes a session a root, unless mending another one has broken its cycle
// by then.
func (p *pass) uproot(session string) mend {
	return func(ctx context.Context, tx *store.Tx) error {
		row, err := tx.SessionGet(ctx, db.SessionGetParams{ID: session})
		if err != nil || row.ParentID == nil {
			return err
		}
		inside := &pass{Reader: tx.Reader, Options: p.Options}
		if back, err := inside.comesBack(ctx, session, *row.ParentID); err != nil || !back {
			return err
		}
		_, err = tx.MendTree(ctx, db.MendTreeParams{ID: session, RootID: session})
		return err
	}
}

// comesBack climbs from parent and tells whether the way meets session.
func (p *pass) comesBack(ctx context.Context, session, parent string) (bool, error) {
	seen := map[string]bool{}
	for at := parent; !seen[at]; {
		if at == session {
			return true, nil
		}
		seen[at] = true
		row, err := p.SessionGet(ctx, db.SessionGetParams{ID: at})
		if store.IsNoRows(err) || err == nil && row.ParentID == nil {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		at = *row.ParentID
	}
	return false, nil // a cycle above: its own members tell
}

func askRules() []Rule {
	return []Rule{{"ask-open", "what asks a person belongs to an open turn", askOpen}}
}

func askOpen(ctx context.Context, p *pass) error {
	permissions, err := p.IntegrityPermissions(ctx, db.IntegrityPermissionsParams{MaxRows: p.rows()})
	err = each(p, permissions, err, func(r db.IntegrityPermissionsRow) (Finding, mend) {
		f := Finding{SessionID: r.SessionID, TurnID: r.TurnID, Subject: r.ID, Detail: "it asks for a turn that is over"}
		return f, one((*store.Tx).MendPermission, db.MendPermissionParams{ID: r.ID, Replied: clock.Now()})
	})
	if err != nil {
		return err
	}
	questions, err := p.IntegrityQuestions(ctx, db.IntegrityQuestionsParams{MaxRows: p.rows()})
	return each(p, questions, err, func(r db.IntegrityQuestionsRow) (Finding, mend) {
		f := Finding{SessionID: r.SessionID, TurnID: r.TurnID, Subject: r.ID, Detail: "it asks for a turn that is over"}
		return f, one((*store.Tx).MendQuestion, db.MendQuestionParams{ID: r.ID, Replied: clock.Now()})
	})
}
