// Package workspace keeps the places where sessions run beside the local ones:
// directories that somebody registered, and work trees that the server makes. A
// Driver knows how places of one type are made, looked at and removed; the Service
// keeps their rows, their states and their events.
//
// A workspace is creating until its driver is done, then ready, or failed with a
// reason. One whose directory is gone reads as missing, and as ready again when
// the directory is back.
package workspace

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store/db"
)

// Status is the state of a workspace.
type Status string

// The states of a workspace.
const (
	Creating Status = "creating"
	Ready    Status = "ready"
	Missing  Status = "missing"
	Failed   Status = "failed"
)

// Workspace is a durable place where sessions run.
type Workspace struct {
	ID        id.Workspace   `json:"id"`
	ProjectID id.Project     `json:"projectID"`
	Type      string         `json:"type" enum:"directory,worktree"`
	Name      string         `json:"name"`
	Directory string         `json:"directory" doc:"Absolute root."`
	Branch    string         `json:"branch,omitempty"`
	Metadata  map[string]any `json:"metadata"`
	Status    Status         `json:"status" enum:"creating,ready,missing,failed"`
	Reason    string         `json:"reason,omitempty" doc:"Why it is missing or failed."`
	Time      Time           `json:"time"`
	// owned: the server made the directory, so it may remove it.
	owned bool
}

// Time holds milliseconds since the epoch.
type Time struct {
	Created  int64 `json:"created"`
	Updated  int64 `json:"updated"`
	Used     int64 `json:"used,omitempty" doc:"When a session was created there last, exact to a minute."`
	Archived int64 `json:"archived,omitempty"`
}

// Driver makes, looks at and removes the places of one type.
type Driver interface {
	// Create makes the place that the row describes. It may say what it is doing,
	// a line each. What it made half is its own to clean up.
	Create(ctx context.Context, w Workspace, say func(string)) error
	// Connect gives the directory where the workspace's files are now; an error
	// says why there is none.
	Connect(ctx context.Context, w Workspace) (directory string, err error)
	// Status looks at the place without changing it.
	Status(ctx context.Context, w Workspace) (Status, string)
	// List finds places of this type that a project has, made by whomever.
	List(ctx context.Context, p Project) ([]Found, error)
	// Remove removes what the server made and tells what it left. Without force
	// anything unsaved is a workspace_dirty fault.
	Remove(ctx context.Context, w Workspace, force bool) (leftovers []string, err error)
}

// Found is a place that a driver found.
type Found struct {
	Directory, Branch string
}

// Project is what drivers know of a project.
type Project struct {
	ID id.Project
	// Worktree is the main work tree, absolute.
	Worktree string
	// Git tells whether it is a repository.
	Git bool
	// Start is the command line that prepares a new work tree; "" for none.
	Start string
}

// missing looks at a directory.
func missing(directory string) (Status, string) {
	info, err := os.Stat(directory)
	switch {
	case err != nil:
		return Missing, "the directory is gone"
	case !info.IsDir():
		return Missing, "there is a file in place of the directory"
	}
	return Ready, ""
}

func notFound(ws string) error {
	return fault.New(fault.WorkspaceNotFound, "there is no workspace %q", ws).With("workspaceID", ws)
}

func fromRow(row db.Workspace) (Workspace, error) {
	w := Workspace{
		ID: id.Workspace(row.ID), ProjectID: id.Project(row.ProjectID), Type: row.Type, Name: row.Name, Directory: row.Directory,
		Branch: row.Branch, Metadata: map[string]any{}, Status: Status(row.Status), Reason: row.Reason,
		Time: Time{Created: row.Created, Updated: row.Updated}, owned: row.Owned != 0,
	}
	if row.Used != nil {
		w.Time.Used = *row.Used
	}
	if row.Archived != nil {
		w.Time.Archived = *row.Archived
	}
	if err := json.Unmarshal(row.Metadata, &w.Metadata); err != nil {
		return Workspace{}, fmt.Errorf("reading workspace %s: %w", row.ID, err)
	}
	return w, nil
}

// Contains tells whether a canonical directory is the workspace's root or below.
func (w Workspace) Contains(directory string) bool {
	return directory == w.Directory || strings.HasPrefix(directory, strings.TrimSuffix(w.Directory, "/")+"/")
}

// text gives a metadata field that is a text.
func (w Workspace) text(name string) string {
	s, _ := w.Metadata[name].(string)
	return s
}

// slug makes a name fit for a directory and a branch.
func slug(name string) string {
	s := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, name)
	s = strings.Trim(filepath.Base(s), "-.")
	if s == "" {
		s = "workspace"
	}
	return strings.TrimRight(s[:min(len(s), 60)], "-.")
}
