package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/switchyard-dev/switchyard/fault"
)

const (
	// startTime bounds the command that prepares a new work tree.
	startTime = 10 * time.Minute
	// cleanTime bounds what is done to remove a work tree that failed.
	cleanTime = time.Minute
	// maxDirty is how many unsaved files a fault names.
	maxDirty = 20
)

// Git works on the repository of a directory. Its errors are faults where the
// caller can do something about them.
type Git interface {
	// Add makes a work tree at path on a branch that starts at base.
	Add(ctx context.Context, directory, path, branch, base string) error
	// Remove removes a work tree, whatever is in it.
	Remove(ctx context.Context, directory, path string) error
	// Trees lists the linked work trees that are there.
	Trees(ctx context.Context, directory string) ([]Found, error)
	// Unsaved lists the changed and untracked files of a work tree, at most n.
	Unsaved(ctx context.Context, path string, n int) ([]string, error)
}

// worktrees is the Driver of git's linked work trees.
type worktrees struct {
	git      Git
	projects Projects
	run      Run
}

// Create makes the work tree and runs the project's start command in it. What
// fails is removed again.
func (d worktrees) Create(ctx context.Context, w Workspace, say func(string)) error {
	p, err := d.projects.Get(ctx, w.ProjectID)
	if err != nil {
		return err
	}
	say(fmt.Sprintf("checking out %s at %s", w.Branch, w.Directory))
	if err := d.git.Add(ctx, p.Worktree, w.Directory, w.Branch, w.text("base")); err != nil {
		return errors.Join(err, d.clean(ctx, p, w))
	}
	if p.Start == "" {
		return nil
	}
	say("running the start command")
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("the start command took over %v", startTime))
	defer cancel()
	if err := d.run(ctx, w.Directory, p.Start, say); err != nil {
		return errors.Join(fmt.Errorf("the start command failed: %w", err), d.clean(ctx, p, w))
	}
	return nil
}

// clean removes what a failed creation left. The branch stays: it may have been
// there before.
func (d worktrees) clean(ctx context.Context, p Project, w Workspace) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	if _, err := os.Lstat(w.Directory); err != nil {
		return nil
	}
	return d.git.Remove(ctx, p.Worktree, w.Directory)
}

// Connect gives the work tree's directory.
func (worktrees) Connect(_ context.Context, w Workspace) (string, error) { return connected(w) }

// Status looks whether the work tree is there.
func (worktrees) Status(_ context.Context, w Workspace) (Status, string) {
	return missing(w.Directory)
}

// List finds the linked work trees of a repository.
func (d worktrees) List(ctx context.Context, p Project) ([]Found, error) {
	if !p.Git {
		return nil, nil
	}
	return d.git.Trees(ctx, p.Worktree)
}

// Remove removes a work tree that the server made. Its branch stays, with the
// commits on it; a work tree that somebody else made stays whole.
func (d worktrees) Remove(ctx context.Context, w Workspace, force bool) ([]string, error) {
	status, _ := missing(w.Directory)
	if !w.owned {
		return directories{}.Remove(ctx, w, force)
	}
	if status == Ready && !force {
		unsaved, err := d.git.Unsaved(ctx, w.Directory, maxDirty)
		if err != nil {
			return nil, err
		}
		if len(unsaved) > 0 {
			return nil, fault.New(fault.WorkspaceDirty, "the workspace has changes that are in no commit; force deletes them").
				With("workspaceID", w.ID).With("files", unsaved)
		}
	}
	leftovers := []string{}
	p, err := d.projects.Get(ctx, w.ProjectID)
	if err != nil {
		return nil, err
	}
	if err := d.git.Remove(ctx, p.Worktree, w.Directory); err != nil && status == Ready {
		// The clone may be gone; the directory is ours all the same.
		if err := os.RemoveAll(w.Directory); err != nil {
			leftovers = append(leftovers, w.Directory)
		}
	}
	if w.Branch != "" {
		leftovers = append(leftovers, "branch:"+w.Branch)
	}
	return leftovers, nil
}

func connected(w Workspace) (string, error) {
	if status, reason := missing(w.Directory); status != Ready {
		return "", fault.New(fault.DirectoryNotFound, "workspace %s: %s", w.ID, reason).With("workspaceID", w.ID).With("directory", w.Directory)
	}
	return w.Directory, nil
}
