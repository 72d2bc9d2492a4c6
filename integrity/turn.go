package integrity

import (
	"context"
	"fmt"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

func turnRules() []Rule {
	return []Rule{
		{"turn-lost", "a turn belongs to a session that exists", turnLost},
		{"turn-state", "a turn has ended exactly when its state is terminal", turnState},
		{"turn-one", "a session has at most one open turn", turnOne},
		{"turn-open", "an open turn has a server; without one the next start settles it", turnOpen},
	}
}

func turnLost(ctx context.Context, p *pass) error {
	rows, err := p.IntegrityTurnsLost(ctx, db.IntegrityTurnsLostParams{MaxRows: p.rows()})
	return each(p, rows, err, func(r db.IntegrityTurnsLostRow) (Finding, mend) {
		f := Finding{SessionID: r.SessionID, TurnID: r.ID, Subject: r.ID, Detail: "its session is gone"}
		return f, one((*store.Tx).MendTurnDelete, db.MendTurnDeleteParams{ID: r.ID})
	})
}

// turnState: the state is what is believed where it is terminal, for nothing
// follows it; else the end is.
func turnState(ctx context.Context, p *pass) error {
	rows, err := p.IntegrityTurnStates(ctx, db.IntegrityTurnStatesParams{MaxRows: p.rows()})
	return each(p, rows, err, func(r db.IntegrityTurnStatesRow) (Finding, mend) {
		f := Finding{SessionID: r.SessionID, TurnID: r.ID, Subject: r.ID}
		if r.Ended == nil && terminal(r.State) {
			f.Detail = fmt.Sprintf("it is %s and has no end", r.State)
			return f, one((*store.Tx).MendTurn, db.MendTurnParams{ID: r.ID, State: r.State, Ended: max(r.Started, clock.Now())})
		}
		if r.Ended == nil {
			f.Detail = fmt.Sprintf("its state %q is not known", r.State)
			return f, one((*store.Tx).MendTurn, db.MendTurnParams{ID: r.ID, State: interrupted, Ended: clock.Now()})
		}
		f.Detail = fmt.Sprintf("it has ended and is %q", r.State)
		return f, one((*store.Tx).MendTurn, db.MendTurnParams{ID: r.ID, State: interrupted, Ended: *r.Ended})
	})
}

const interrupted = "interrupted"

func terminal(state string) bool {
	switch state {
	case "completed", "failed", "cancelled", interrupted:
		return true
	}
	return false
}

func turnOne(ctx context.Context, p *pass) error {
	rows, err := p.IntegrityTurnsTwice(ctx, db.IntegrityTurnsTwiceParams{MaxRows: p.rows()})
	return each(p, rows, err, func(r db.IntegrityTurnsTwiceRow) (Finding, mend) {
		f := Finding{SessionID: r.SessionID, TurnID: r.ID, Subject: r.ID, Detail: "a later turn of its session is open too"}
		return f, one((*store.Tx).MendTurn, db.MendTurnParams{ID: r.ID, State: interrupted, Ended: clock.Now()})
	})
}

func turnOpen(ctx context.Context, p *pass) error {
	if p.Served {
		return nil
	}
	for after := ""; !p.full(); {
		rows, err := p.IntegrityTurnsOpen(ctx, db.IntegrityTurnsOpenParams{After: after, MaxRows: smallRows})
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, r := range rows {
			p.add(Finding{
				SessionID: r.SessionID, TurnID: r.ID, Subject: r.ID, Note: true,
				Detail: fmt.Sprintf("it is %s; the next start of the server takes it up", r.State),
			}, nil)
			after = r.ID
		}
	}
	return nil
}
