package workspace

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// Delete removes a workspace; one that is not there is none, as it should be. A
// work tree that the server made goes with it. Without force, changes that are in
// no commit are a workspace_dirty fault and a running turn is session_busy. Its
// sessions stay readable.
func (s *Service) Delete(ctx context.Context, ws string, force bool) error {
	w, err := s.Get(ctx, ws)
	if fault.Is(err, fault.WorkspaceNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if w.Status == Creating {
		return fault.New(fault.WorkspaceNotReady, "workspace %s is still being made", w.ID).With("workspaceID", w.ID)
	}
	busy, err := store.Get(ctx, s.c.Store, func(ctx context.Context, r store.Reader) (int64, error) {
		return r.WorkspaceBusy(ctx, db.WorkspaceBusyParams{WorkspaceID: string(w.ID)})
	})
	if err != nil {
		return fmt.Errorf("deleting workspace %s: %w", w.ID, err)
	}
	if busy > 0 && !force {
		return fault.New(fault.SessionBusy, "%d sessions of the workspace are working", busy).With("workspaceID", w.ID)
	}
	leftovers, err := s.drivers[w.Type].Remove(ctx, w, force)
	if err != nil {
		return err
	}
	err = s.c.Store.Write(context.WithoutCancel(ctx), store.Durable, func(ctx context.Context, tx *store.Tx) error {
		n, err := tx.WorkspaceDelete(ctx, db.WorkspaceDeleteParams{ID: string(w.ID)})
		if err != nil || n == 0 {
			return err
		}
		return Deleted.Append(tx, event.ServerWide(), Removed{WorkspaceID: w.ID, Leftovers: leftovers})
	})
	if err != nil {
		return fmt.Errorf("deleting workspace %s: %w", w.ID, err)
	}
	return nil
}

// Synced says what Sync found.
type Synced struct {
	Added   []id.Workspace `json:"added" doc:"Work trees that somebody made by hand."`
	Missing []id.Workspace `json:"missing" doc:"Workspaces whose directory is gone since the last time."`
	Updated []id.Workspace `json:"updated" doc:"Workspaces that are back, or on another branch."`
}

// Sync registers work trees that were made by hand, and notes which workspaces are
// gone, back or on another branch.
func (s *Service) Sync(ctx context.Context) (Synced, error) {
	out := Synced{Added: []id.Workspace{}, Missing: []id.Workspace{}, Updated: []id.Workspace{}}
	projects, err := s.c.Projects.List(ctx)
	if err != nil {
		return out, err
	}
	rows, err := store.Get(ctx, s.c.Store, func(ctx context.Context, r store.Reader) ([]db.Workspace, error) { return r.WorkspaceList(ctx) })
	if err != nil {
		return out, fmt.Errorf("listing workspaces: %w", err)
	}
	branches := map[string]string{}
	for _, p := range projects {
		for _, typ := range slices.Sorted(maps.Keys(s.drivers)) {
			found, err := s.drivers[typ].List(ctx, p)
			if err != nil {
				s.c.Log.Debug("looking for workspaces", "project", p.ID, "error", err) // its directory may be gone
				continue
			}
			for _, f := range found {
				branches[f.Directory] = f.Branch
				if slices.ContainsFunc(rows, func(r db.Workspace) bool { return r.Directory == f.Directory }) {
					continue
				}
				w, err := s.adopt(ctx, p, typ, f)
				if err != nil {
					return out, err
				}
				out.Added = append(out.Added, w.ID)
			}
		}
	}
	for _, row := range rows {
		if err := s.note(ctx, row, branches, &out); err != nil {
			return out, err
		}
	}
	return out, nil
}

// adopt registers a place that somebody else made.
func (s *Service) adopt(ctx context.Context, p Project, typ string, f Found) (Workspace, error) {
	now := clock.Now()
	return s.insert(ctx, db.WorkspaceInsertParams{
		ID: string(id.New[id.Workspace](s.c.IDs)), ProjectID: string(p.ID), Type: typ, Name: slug(f.Directory), Directory: f.Directory,
		Branch: f.Branch, Metadata: []byte("{}"), Status: string(Ready), Owner: s.c.Owner, Created: now, Updated: now,
	})
}

// note stores what became of a workspace.
func (s *Service) note(ctx context.Context, row db.Workspace, branches map[string]string, out *Synced) error {
	d, was := s.drivers[row.Type], Status(row.Status)
	if d == nil || was != Ready && was != Missing {
		return nil
	}
	w, err := fromRow(row)
	if err != nil {
		return err
	}
	now, reason := d.Status(ctx, w)
	branch, known := branches[row.Directory]
	if !known {
		branch = row.Branch
	}
	if now == was && branch == row.Branch {
		return nil
	}
	changed, err := s.become(ctx, w.ID, was, now, reason, branch)
	if err != nil || !changed {
		return err
	}
	if now == Missing {
		out.Missing = append(out.Missing, w.ID)
	} else {
		out.Updated = append(out.Updated, w.ID)
	}
	return nil
}
