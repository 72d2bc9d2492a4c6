// Package integrity holds a store against the invariants of design §9: what must
// be true of its rows after any crash, whoever wrote them. `switchyard doctor`
// runs it on a store at rest, and the crash tests after every restart.
//
// A rule is a value in a slice (Rules lists them): it finds the rows that break it
// and knows how to mend them, where that is possible without guessing. Memory is
// bounded by a page of rows and, for the event log, by one entry for each turn
// whose events the log still holds.
package integrity

import (
	"context"
	"errors"
	"fmt"

	"github.com/switchyard-dev/switchyard/store"
)

// Finding is one row, or group of rows, that breaks a rule.
type Finding struct {
	// Rule is the short name of the broken rule, see Rules.
	Rule string `json:"rule"`
	// SessionID and TurnID say where; either may be empty.
	SessionID string `json:"sessionID,omitempty"`
	TurnID    string `json:"turnID,omitempty"`
	// Subject is the id of the row, or what else it is called.
	Subject string `json:"subject,omitempty"`
	// Detail says what is wrong, in words.
	Detail string `json:"detail"`
	// Note marks what is no fault: the next start of a server takes care of it.
	Note bool `json:"note,omitempty"`
	// Repairable tells that Repair can mend it, Repaired that it did.
	Repairable bool `json:"repairable"`
	Repaired   bool `json:"repaired"`
}

// String gives the finding on one line.
func (f Finding) String() string {
	where := f.Subject
	for _, w := range []string{f.TurnID, f.SessionID} {
		if w != "" && w != f.Subject {
			where += " of " + w
		}
	}
	return fmt.Sprintf("%s: %s: %s", f.Rule, where, f.Detail)
}

// Faults counts the findings that are faults and were not mended.
func Faults(all []Finding) int {
	n := 0
	for _, f := range all {
		if !f.Note && !f.Repaired {
			n++
		}
	}
	return n
}

// Options say how to look. The zero value is for a store that no server uses.
type Options struct {
	// Served is set while a server uses the store: its open turns are no news.
	Served bool
	// Limit bounds the findings of each rule; 0 means 1,000.
	Limit int
}

const (
	defaultLimit = 1000
	// pageRows is how many rows with their JSON are read at once.
	pageRows = 200
	// smallRows is how many rows are read at once where they are small.
	smallRows = 2000
	// maxPasses bounds how often Repair looks again: what was mended can bring to
	// light what else is wrong, such as a child of a session that lost its parent.
	maxPasses = 20
)

// Rule is one invariant: its short name, which is stable, and what it says.
type Rule struct {
	Name string
	Says string
	find func(ctx context.Context, p *pass) error
}

// Rules lists all rules, in the order in which they are checked.
func Rules() []Rule {
	var all []Rule
	for _, group := range [][]Rule{turnRules(), callRules(), inboxRules(), messageRules(), sessionRules(), askRules(), eventRules()} {
		all = append(all, group...)
	}
	return all
}

// pass is one look at a store.
type pass struct {
	store.Reader
	Options
	rule  string
	found []problem
	count int // of the present rule
}

// problem is a finding and what mends it; nil when nothing does.
type problem struct {
	Finding
	mend mend
}

type mend func(context.Context, *store.Tx) error

// add keeps a finding of the present rule.
func (p *pass) add(f Finding, fix mend) {
	if p.count >= p.Limit {
		return
	}
	p.count++
	f.Rule, f.Repairable = p.rule, fix != nil
	p.found = append(p.found, problem{Finding: f, mend: fix})
}

// full tells that the present rule has found all it may.
func (p *pass) full() bool { return p.count >= p.Limit }

// rows is the Limit in the form that queries want.
func (p *pass) rows() int64 { return int64(p.Limit) }

// Check holds what r reads against all rules. r must see one state of the store:
// that of a transaction, or of a store that nobody writes to.
func Check(ctx context.Context, r store.Reader, o Options) ([]Finding, error) {
	found, err := look(ctx, r, o)
	if err != nil {
		return nil, err
	}
	out := make([]Finding, 0, len(found))
	for _, p := range found {
		out = append(out, p.Finding)
	}
	return out, nil
}

func look(ctx context.Context, r store.Reader, o Options) ([]problem, error) {
	if o.Limit <= 0 {
		o.Limit = defaultLimit
	}
	p := &pass{Reader: r, Options: o}
	for _, rule := range Rules() {
		p.rule, p.count = rule.Name, 0
		if err := rule.find(ctx, p); err != nil {
			return nil, fmt.Errorf("checking %s: %w", rule.Name, err)
		}
	}
	return p.found, nil
}

// Repair mends what can be mended, each finding in a durable transaction of its
// own, and looks again until nothing repairable is left. It gives all that it
// mended, and then what is left. The store must be the caller's alone; nobody is
// told of the changes by events, except that a missing end of a turn is published.
func Repair(ctx context.Context, d *store.DB, o Options) ([]Finding, error) {
	mended := []Finding{}
	for range maxPasses {
		found, err := read(ctx, d, o)
		if err != nil {
			return mended, err
		}
		left, progress := []Finding{}, false
		for _, p := range found {
			if p.mend == nil {
				left = append(left, p.Finding)
				continue
			}
			if err := d.Write(ctx, store.Durable, p.mend); err != nil {
				return mended, fmt.Errorf("mending %s: %w", p.Finding, err)
			}
			p.Repaired, progress = true, true
			mended = append(mended, p.Finding)
		}
		if !progress {
			return append(mended, left...), nil
		}
	}
	return mended, errors.New("the repair finds ever more to mend")
}

func read(ctx context.Context, d *store.DB, o Options) ([]problem, error) {
	return store.Get(ctx, d, func(ctx context.Context, r store.Reader) ([]problem, error) { return look(ctx, r, o) })
}

// each makes a finding of every row of a query.
func each[R any](p *pass, rows []R, err error, one func(R) (Finding, mend)) error {
	for _, row := range rows {
		p.add(one(row))
	}
	return err
}

// one gives the mend that is a single statement.
func one[A any](do func(*store.Tx, context.Context, A) (int64, error), arg A) mend {
	return func(ctx context.Context, tx *store.Tx) error {
		_, err := do(tx, ctx, arg)
		return err
	}
}
