package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// CreateInput describes a new workspace.
type CreateInput struct {
	Type string
	// ProjectID or Directory (canonical; any one in the clone) is the source of a
	// work tree. For type directory, Directory is what is registered.
	ProjectID id.Project
	Directory string
	Name      string
	// Metadata is kept; of a work tree "branch" and "base" say what is checked out.
	Metadata map[string]any
}

// Create registers a directory, or begins to make a work tree and answers at once.
// Errors: validation_failed for unknown types and for what cannot be made,
// workspace_exists where the directory is registered already.
func (s *Service) Create(ctx context.Context, in CreateInput) (Workspace, error) {
	if in.Type == "local" {
		in.Type = "directory"
	}
	driver, ok := s.drivers[in.Type]
	if !ok {
		return Workspace{}, fault.New(fault.ValidationFailed, "there is no workspace type %q; there are: %s", in.Type, strings.Join(s.Types(), ", ")).
			At("body.type", "expected one of %s", strings.Join(s.Types(), ", "))
	}
	p, err := s.source(ctx, in)
	if err != nil {
		return Workspace{}, err
	}
	row, err := s.newRow(in, p)
	if err != nil {
		return Workspace{}, err
	}
	w, err := s.insert(ctx, row)
	if err != nil || w.Status != Creating {
		return w, err
	}
	s.wg.Go(func() { s.make(driver, w) })
	return w, nil
}

// source finds the project of a new workspace.
func (s *Service) source(ctx context.Context, in CreateInput) (Project, error) {
	var p Project
	var err error
	switch {
	case in.Directory != "":
		p, err = s.c.Projects.Of(ctx, in.Directory)
	case in.ProjectID != "" && in.Type == "worktree":
		p, err = s.c.Projects.Get(ctx, in.ProjectID)
	case in.Type == "worktree":
		err = fault.New(fault.ValidationFailed, "a work tree needs a projectID or a directory of its clone").At("body.projectID", "missing")
	default:
		err = fault.New(fault.ValidationFailed, "this type of workspace needs a directory").At("body.directory", "missing")
	}
	if err != nil {
		return p, err
	}
	if in.ProjectID != "" && in.ProjectID != p.ID {
		return p, fault.New(fault.ValidationFailed, "the directory is of project %s", p.ID).At("body.projectID", "another project")
	}
	if in.Type == "worktree" && !p.Git {
		return p, fault.New(fault.ValidationFailed, "%s is no git repository: it has no work trees", p.Worktree).At("body.type", "not a repository")
	}
	return p, nil
}

func (s *Service) newRow(in CreateInput, p Project) (db.WorkspaceInsertParams, error) {
	metadata, err := encode(in.Metadata)
	if err != nil {
		return db.WorkspaceInsertParams{}, err
	}
	now := clock.Now()
	row := db.WorkspaceInsertParams{
		ID: string(id.New[id.Workspace](s.c.IDs)), ProjectID: string(p.ID), Type: in.Type, Name: store.Clean(in.Name), Directory: in.Directory,
		Metadata: metadata, Status: string(Ready), Owner: s.c.Owner, Created: now, Updated: now,
	}
	if in.Type == "directory" {
		if row.Name == "" {
			row.Name = slug(in.Directory)
		}
		return row, nil
	}
	unique := strings.ToLower(rand.Text()[:6])
	if row.Name == "" {
		row.Name = "tree-" + unique
	}
	row.Directory = s.place(p.ID, slug(row.Name))
	if _, err := os.Lstat(row.Directory); err == nil {
		row.Directory += "-" + unique
	}
	if row.Branch, _ = in.Metadata["branch"].(string); row.Branch == "" {
		row.Branch = "switchyard/" + slug(row.Name)
	}
	row.Status, row.Owned = string(Creating), 1
	return row, nil
}

func (s *Service) insert(ctx context.Context, row db.WorkspaceInsertParams) (Workspace, error) {
	var out Workspace
	err := s.c.Store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) error {
		there, err := tx.WorkspaceByDirectory(ctx, db.WorkspaceByDirectoryParams{Directory: row.Directory})
		if err == nil {
			return fault.New(fault.WorkspaceExists, "%s is workspace %s already", row.Directory, there.ID).With("workspaceID", there.ID)
		}
		if !store.IsNoRows(err) {
			return err
		}
		made, err := tx.WorkspaceInsert(ctx, row)
		if err != nil {
			return err
		}
		if out, err = fromRow(made); err != nil {
			return err
		}
		info := Info{WorkspaceID: out.ID, Info: out}
		if err := Created.Append(tx, event.ServerWide(), info); err != nil || out.Status != Ready {
			return err
		}
		return BeReady.Append(tx, event.ServerWide(), info)
	})
	if err != nil {
		return Workspace{}, fmt.Errorf("creating a workspace: %w", err)
	}
	return out, nil
}

// make lets the driver make the place, and notes how it went.
func (s *Service) make(driver Driver, w Workspace) {
	err := driver.Create(s.ctx, w, func(line string) { s.say(w.ID, line) })
	status, reason := Ready, ""
	if err != nil {
		status, reason = Failed, reasonOf(err)
		s.c.Log.Warn("making a workspace", "workspace", w.ID, "error", err)
	}
	// The result is kept also when the server is about to stop.
	if _, err := s.become(context.WithoutCancel(s.ctx), w.ID, Creating, status, reason, w.Branch); err != nil {
		s.c.Log.Error("noting the state of a workspace", "workspace", w.ID, "status", status, "error", err)
	}
}

func (s *Service) say(ws id.Workspace, line string) {
	d, err := Going.Draft(event.ServerWide(), Progress{WorkspaceID: ws, Message: store.Clean(line)})
	if err == nil {
		s.c.Bus.Publish(d)
	}
}

// become changes the state from an expected one and publishes it. It reports false
// where the state was another one.
func (s *Service) become(ctx context.Context, ws id.Workspace, from, to Status, reason, branch string) (bool, error) {
	changed := false
	err := s.c.Store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) error {
		changed = false
		row, err := tx.WorkspaceSetStatus(ctx, db.WorkspaceSetStatusParams{
			ID: string(ws), Status: string(to), Reason: reason, Branch: branch, Updated: clock.Now(), Expected: string(from),
		})
		if store.IsNoRows(err) {
			return nil
		}
		if err != nil {
			return err
		}
		w, err := fromRow(row)
		if err != nil {
			return err
		}
		changed = true
		info := Info{WorkspaceID: w.ID, Info: w}
		if err := Updated.Append(tx, event.ServerWide(), info); err != nil {
			return err
		}
		switch {
		case to == Ready && from == Creating:
			return BeReady.Append(tx, event.ServerWide(), info)
		case to == Failed:
			return BeFailed.Append(tx, event.ServerWide(), info)
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("setting the state of workspace %s: %w", ws, err)
	}
	return changed, nil
}

// Recover ends what a dead server was making: it is removed, and the workspace has
// failed. Where servers share a store, only those that lived before are known to
// be dead.
func (s *Service) Recover(ctx context.Context) error {
	rows, err := store.Get(ctx, s.c.Store, func(ctx context.Context, r store.Reader) ([]db.Workspace, error) { return r.WorkspaceList(ctx) })
	if err != nil {
		return fmt.Errorf("looking for unfinished workspaces: %w", err)
	}
	const gaveUp = int64((startTime + awaitTime) / 1e6)
	var errs []error
	for _, row := range rows {
		if row.Status != string(Creating) || row.Owner == s.c.Owner || !s.c.Alone && clock.Now()-row.Updated < gaveUp {
			continue
		}
		w, err := fromRow(row)
		if err == nil {
			_, err = s.become(ctx, w.ID, Creating, Failed, "the server ended while it was made", w.Branch)
		}
		if d := s.drivers[w.Type]; err == nil && d != nil {
			_, err = d.Remove(ctx, w, true)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
