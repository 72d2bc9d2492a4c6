// Package warp moves sessions between the local context of their project and
// workspaces, and carries what is in no commit along. Everything is looked at
// before anything is written: a conflict moves nothing.
package warp

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/project"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/workspace"
)

// Service moves sessions. It is safe for concurrent use.
type Service struct {
	Sessions   *session.Service
	Workspaces *workspace.Service
	Projects   *project.Service
}

// Input says which session moves where.
type Input struct {
	SessionID id.Session
	// Workspace is where it goes; "" is the project's main work tree.
	Workspace string
	// CopyChanges carries modified, untracked and deleted files over. The source
	// stays as it is.
	CopyChanges bool
}

// Warp moves a session; where it is already there, it stays. The session keeps its
// place below the top of the work tree where that exists. Errors: session_busy
// while a turn runs, directory_missing where the target, or with CopyChanges the
// source, is gone, warp_conflict with "files" that cannot be carried over.
func (s *Service) Warp(ctx context.Context, in Input) (session.Session, error) {
	row, err := s.Sessions.Get(ctx, in.SessionID)
	if err != nil {
		return session.Session{}, err
	}
	to, err := s.target(ctx, in, row)
	if err != nil {
		return session.Session{}, err
	}
	if to == row.Context() {
		return row.Session, nil
	}
	if err := s.Sessions.TreeIdle(ctx, row.ID); err != nil {
		return session.Session{}, err
	}
	place := project.Locate(to.Directory)
	projectID, err := s.Projects.Ensure(ctx, place)
	if err != nil {
		return session.Session{}, err
	}
	var copied *carried
	if in.CopyChanges {
		if !exists(row.Directory) {
			return session.Session{}, gone(row.Directory)
		}
		if copied, err = carry(ctx, project.Locate(row.Directory), place); err != nil {
			return session.Session{}, err
		}
		defer func() { _ = copied.close() }() // the files are written
	}
	rel, err := filepath.Rel(place.Root, to.Directory)
	if err != nil || rel == "." {
		rel = ""
	}
	out, err := s.Sessions.Move(ctx, session.Move{
		SessionID: row.ID, From: row.Context(), To: to, ProjectID: projectID, Path: filepath.ToSlash(rel),
	})
	if err != nil && copied != nil {
		err = errors.Join(err, copied.undo())
	}
	return out, err
}

// target gives the context that the session goes to.
func (s *Service) target(ctx context.Context, in Input, row session.Row) (event.Context, error) {
	var to event.Context
	if in.Workspace == "" {
		p, err := s.Projects.Get(ctx, row.ProjectID)
		if err != nil {
			return to, err
		}
		to.Directory = p.Worktree
	} else {
		w, err := s.Workspaces.Await(ctx, in.Workspace)
		if err != nil {
			return to, err
		}
		to.WorkspaceID, to.Directory = w.ID, w.Directory
	}
	if !exists(to.Directory) {
		return to, gone(to.Directory)
	}
	if below := filepath.Join(to.Directory, filepath.FromSlash(row.Path)); row.Path != "" && exists(below) {
		if real, err := filepath.EvalSymlinks(below); err == nil && real == below {
			to.Directory = below
		}
	}
	return to, nil
}

func exists(directory string) bool {
	info, err := os.Stat(directory)
	return err == nil && info.IsDir()
}

func gone(directory string) error {
	return fault.New(fault.DirectoryMissing, "the directory %s is gone", directory).With("directory", directory)
}
