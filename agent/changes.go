package agent

import (
	"context"
	"maps"
	"slices"

	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/snapshot"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/tool"
)

// ChangedFiles is the payload of session.diff.
type ChangedFiles struct {
	SessionID id.Session          `json:"sessionID"`
	Diff      []snapshot.FileDiff `json:"diff" doc:"What the calls of the whole session changed, without patches."`
}

// DiffChanged is published at the end of a turn that changed files.
var DiffChanged = event.Define[ChangedFiles]("session.diff")

// watch looks at what a call may change, before it does. Without it nothing can be
// undone, but the call is none the worse: trouble is logged.
func (r *callRun) watch(ctx context.Context) *snapshot.Watch {
	t, class := r.of.turn, r.tool.Info().Class
	if t.engine.snapshots == nil || r.of.set.NoSnapshots || class != tool.Write && class != tool.Effect || r.tool.Info().Name == taskName {
		return nil
	}
	at := snapshot.Place{Env: t.place.Environment(), Git: t.place.Git()}
	w, err := t.engine.snapshots.Before(ctx, at, slices.Sorted(maps.Keys(r.plan.Before)), class == tool.Effect)
	if err != nil {
		t.engine.log.Warn("looking at files before a call", "session", t.run.SessionID, "tool", r.part.Tool, "error", err)
		return nil
	}
	return w
}

// changed gives what a call has changed, also one that was stopped.
func (r *callRun) changed(ctx context.Context, w *snapshot.Watch) []snapshot.Change {
	if w == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	changes, err := w.After(ctx)
	if err != nil {
		r.of.turn.engine.log.Warn("looking at files after a call", "session", r.of.turn.run.SessionID, "tool", r.part.Tool, "error", err)
	}
	return changes
}

// record writes the changes with the call's result.
func (r *callRun) record(ctx context.Context, tx *store.Tx) error {
	if len(r.changes) == 0 {
		return nil
	}
	t := r.of.turn
	t.changedFiles.Store(true)
	return t.engine.snapshots.Record(ctx, tx, snapshot.Call{
		SessionID: t.run.SessionID, TurnID: t.run.TurnID, Seq: r.of.step.seq, PartID: r.part.ID,
	}, r.changes)
}

// summarize gives what the end of a turn that changed files also writes.
func (t *turn) summarize(ctx context.Context) func(context.Context, *store.Tx) error {
	nothing := func(context.Context, *store.Tx) error { return nil }
	if !t.changedFiles.Load() {
		return nothing
	}
	diff, err := t.engine.snapshots.Diff(ctx, snapshot.Query{SessionID: t.run.SessionID, Directory: t.row.Directory})
	if err != nil {
		t.engine.log.Warn("summing a session's changes up", "session", t.run.SessionID, "error", err)
		return nothing
	}
	sum := snapshot.Summarize(diff)
	return func(ctx context.Context, tx *store.Tx) error {
		in := session.Summary{Additions: sum.Additions, Deletions: sum.Deletions, Files: sum.Files}
		if err := t.engine.sessions.SetSummary(ctx, tx, t.run, in); err != nil {
			return err
		}
		return DiffChanged.Append(tx, t.run.Origin, ChangedFiles{SessionID: t.run.SessionID, Diff: diff})
	}
}
