package operations

import (
	"context"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/runtime"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/warp"
	"github.com/switchyard-dev/switchyard/workspace"
)

// WorkspaceCreateInput describes a new workspace.
type WorkspaceCreateInput struct {
	ProjectID string         `json:"projectID,omitempty" doc:"Source of a work tree."`
	Name      string         `json:"name,omitempty" maxLength:"200"`
	Directory string         `json:"directory,omitempty" doc:"For type directory what is registered, absolute; for a work tree any directory of the clone, in place of projectID."`
	Type      string         `json:"type" minLength:"1" maxLength:"100" doc:"directory (synonym local) or worktree."`
	Metadata  map[string]any `json:"metadata,omitempty" doc:"Kept as it is. Of a work tree, branch names the branch (made when it does not exist; default switchyard/<name>) and base where it starts (default HEAD)."`
}

// WorkspaceCreate creates or registers a workspace.
var WorkspaceCreate = op.New(op.Spec{
	Name: "workspace.create", Method: "POST", Path: "/api/workspace", Summary: "Create or register a workspace.",
	Doc: "A work tree is answered at once as creating; requests that name it wait up to 30 s. The project's command named start runs in it. " +
		"Hooks and filters of the repository do not run. What fails is removed again, and workspace.failed says why.",
	Codes:   []fault.Code{fault.ProjectNotFound, fault.DirectoryNotFound, fault.DirectoryInvalid, fault.WorkspaceExists},
	Example: WorkspaceCreateInput{Type: "worktree", Directory: "/home/me/project", Name: "try-it", Metadata: map[string]any{"base": "main"}},
}, func(ctx context.Context, s *runtime.Server, in WorkspaceCreateInput) (workspace.Workspace, error) {
	create := workspace.CreateInput{Type: in.Type, Name: in.Name, Metadata: in.Metadata}
	if in.ProjectID != "" {
		p, err := projectOf(in.ProjectID)
		if err != nil {
			return workspace.Workspace{}, err
		}
		create.ProjectID = p
	}
	if in.Directory != "" {
		directory, err := s.Directory(in.Directory)
		if err != nil {
			return workspace.Workspace{}, err
		}
		create.Directory = directory
	}
	return s.Workspaces.Create(ctx, create)
})

// WorkspaceInput names a workspace.
type WorkspaceInput struct {
	WorkspaceID string `json:"workspaceID"`
}

// WorkspaceGet reads a workspace.
var WorkspaceGet = op.New(op.Spec{
	Name: "workspace.get", Method: "GET", Path: "/api/workspace/{workspaceID}", Summary: "Get workspace metadata.",
	Codes: []fault.Code{fault.WorkspaceNotFound},
}, func(ctx context.Context, s *runtime.Server, in WorkspaceInput) (workspace.Workspace, error) {
	return s.Workspaces.Get(ctx, in.WorkspaceID)
})

// WorkspaceListInput selects workspaces.
type WorkspaceListInput struct {
	ProjectID string `json:"projectID,omitempty"`
	Archived  string `json:"archived,omitempty" enum:"exclude,include,only" doc:"Default exclude."`
}

// WorkspaceList lists workspaces.
var WorkspaceList = op.New(op.Spec{
	Name: "workspace.list", Method: "GET", Path: "/api/workspace", Summary: "List workspaces, optionally filtered by project.",
	Doc: "Oldest first.",
}, func(ctx context.Context, s *runtime.Server, in WorkspaceListInput) ([]workspace.Workspace, error) {
	f := workspace.Filter{Archived: in.Archived}
	if in.ProjectID != "" {
		p, ok := id.Parse[id.Project](in.ProjectID)
		if !ok {
			return []workspace.Workspace{}, nil
		}
		f.ProjectID = p
	}
	return s.Workspaces.List(ctx, f)
})

// WorkspaceUpdateInput changes a workspace; absent fields stay.
type WorkspaceUpdateInput struct {
	WorkspaceID string                 `json:"workspaceID"`
	Name        *string                `json:"name,omitempty" minLength:"1" maxLength:"200"`
	Metadata    op.Opt[map[string]any] `json:"metadata,omitzero" doc:"Replaces the metadata; null removes it."`
	Archived    *bool                  `json:"archived,omitempty"`
}

// WorkspaceUpdate changes a workspace's metadata or archival state.
var WorkspaceUpdate = op.New(op.Spec{
	Name: "workspace.update", Method: "PATCH", Path: "/api/workspace/{workspaceID}", Summary: "Update workspace metadata or lifecycle state.",
	Codes:   []fault.Code{fault.WorkspaceNotFound},
	Example: WorkspaceUpdateInput{Metadata: op.Some(map[string]any{"ticket": "A-1"})},
}, func(ctx context.Context, s *runtime.Server, in WorkspaceUpdateInput) (workspace.Workspace, error) {
	c := workspace.Change{Name: in.Name, Archived: in.Archived}
	if in.Metadata.Set {
		c.Metadata = &in.Metadata.Value
	}
	return s.Workspaces.Update(ctx, in.WorkspaceID, c)
})

// WorkspaceDeleteInput names a workspace to delete.
type WorkspaceDeleteInput struct {
	WorkspaceID string `json:"workspaceID"`
	Force       bool   `json:"force,omitempty" doc:"Also with changes that are in no commit, and while a session works there."`
}

// WorkspaceDelete removes a workspace.
var WorkspaceDelete = op.New(op.Spec{
	Name: "workspace.delete", Method: "DELETE", Path: "/api/workspace/{workspaceID}", Summary: "Remove a workspace registration.",
	Doc: "A work tree that the server made is removed with it; its branch and everything that others made stay, and workspace.deleted lists them. " +
		"One that is not there is no error. Sessions stay readable.",
	Codes: []fault.Code{fault.WorkspaceDirty, fault.WorkspaceNotReady, fault.SessionBusy},
}, func(ctx context.Context, s *runtime.Server, in WorkspaceDeleteInput) (op.None, error) {
	return op.None{}, s.Workspaces.Delete(ctx, in.WorkspaceID, in.Force)
})

// WorkspaceStatus tells how all workspaces are.
var WorkspaceStatus = op.New(op.Spec{
	Name: "workspace.status", Method: "GET", Path: "/api/workspace/status",
	Summary: "Connection/lifecycle status for all workspaces. Needs team discussion.",
	Doc:     "Archived ones say archived.",
}, func(ctx context.Context, s *runtime.Server, _ Empty) ([]workspace.State, error) {
	return s.Workspaces.States(ctx)
})

// WorkspaceSync looks for work trees that were made or removed by hand.
var WorkspaceSync = op.New(op.Spec{
	Name: "workspace.sync", Method: "POST", Path: "/api/workspace/sync", Summary: "Sync workspace metadata from adapters. Needs team discussion.",
	Doc: "Asks git for the work trees of every known project.", Repeatable: true,
}, func(ctx context.Context, s *runtime.Server, _ Empty) (workspace.Synced, error) {
	return s.Workspaces.Sync(ctx)
})

// WorkspaceWarpInput says which session moves where.
type WorkspaceWarpInput struct {
	WorkspaceID op.Opt[string] `json:"workspaceID,omitzero" doc:"Where to; null or absent is the project's main work tree."`
	SessionID   string         `json:"sessionID"`
	CopyChanges *bool          `json:"copyChanges" doc:"Carry modified, untracked and deleted files over; the source stays as it is."`
}

// WorkspaceWarp moves a session.
var WorkspaceWarp = op.New(op.Spec{
	Name: "workspace.warp", Method: "POST", Path: "/api/workspace/warp", Summary: "Move a session into or out of a workspace. Needs team discussion.",
	Doc: "A file that differs at the target too is a conflict, and then nothing moves. Ignored files stay. " +
		"This is also how a session whose directory is gone gets another one.",
	Codes: []fault.Code{
		fault.SessionNotFound, fault.WorkspaceNotFound, fault.WorkspaceNotReady, fault.SessionBusy, fault.WarpConflict, fault.DirectoryMissing,
		fault.DirectoryNotFound,
	},
}, func(ctx context.Context, s *runtime.Server, in WorkspaceWarpInput) (session.Session, error) {
	ses, ok := id.Parse[id.Session](in.SessionID)
	if !ok {
		return session.Session{}, fault.New(fault.SessionNotFound, "there is no session %q", in.SessionID).With("sessionID", in.SessionID)
	}
	if in.CopyChanges == nil {
		return session.Session{}, fault.New(fault.ValidationFailed, "copyChanges must be given").At("body.copyChanges", "missing")
	}
	return s.Warp.Warp(ctx, warp.Input{SessionID: ses, Workspace: in.WorkspaceID.Value, CopyChanges: *in.CopyChanges})
})
