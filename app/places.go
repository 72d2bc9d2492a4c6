package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/project"
	"github.com/switchyard-dev/switchyard/vcs"
	"github.com/switchyard-dev/switchyard/workspace"
)

// startCommand is the name of the project's command that prepares a new work tree.
const startCommand = "start"

// projects tells package workspace of projects.
type projects struct{ *project.Service }

// Get implements workspace.Projects.
func (p projects) Get(ctx context.Context, pid id.Project) (workspace.Project, error) {
	found, err := p.Service.Get(ctx, pid)
	if err != nil {
		return workspace.Project{}, err
	}
	return projectOf(found), nil
}

// Of implements workspace.Projects.
func (p projects) Of(ctx context.Context, directory string) (workspace.Project, error) {
	pid, err := p.Ensure(ctx, project.Locate(directory))
	if err != nil {
		return workspace.Project{}, err
	}
	return p.Get(ctx, pid)
}

// List implements workspace.Projects.
func (p projects) List(ctx context.Context) ([]workspace.Project, error) {
	all, err := p.Service.List(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]workspace.Project, len(all))
	for i, found := range all {
		out[i] = projectOf(found)
	}
	return out, nil
}

func projectOf(p project.Project) workspace.Project {
	out := workspace.Project{ID: p.ID, Worktree: p.Worktree, Git: p.VCS == "git"}
	for _, c := range p.Commands {
		if c.Name == startCommand {
			out.Start = c.Command
		}
	}
	return out
}

// repositories lets package workspace work on repositories.
type repositories struct{}

// at gives git's view of a directory; the caller calls done.
func (repositories) at(directory string) (v *vcs.Service, done func() error, err error) {
	place := project.Locate(directory)
	e, err := env.Local(place.Root)
	if err != nil {
		return nil, nil, fmt.Errorf("opening %s: %w", directory, err)
	}
	locate := func() (vcs.Repo, bool) {
		return vcs.Repo{Root: place.Root, GitDir: place.GitDir, CommonDir: place.Identity}, place.GitDir != ""
	}
	return vcs.New(vcs.Config{Env: e, Directory: place.Root, Locate: locate}), e.Close, nil
}

// Add implements workspace.Git.
func (r repositories) Add(ctx context.Context, directory, path, branch, base string) error {
	return r.with(directory, func(v *vcs.Service) error {
		if err := v.CheckBranch(ctx, branch); err != nil {
			return err
		}
		return v.AddWorktree(ctx, path, branch, base)
	})
}

// Remove implements workspace.Git.
func (r repositories) Remove(ctx context.Context, directory, path string) error {
	return r.with(directory, func(v *vcs.Service) error { return v.RemoveWorktree(ctx, path) })
}

// Trees implements workspace.Git.
func (r repositories) Trees(ctx context.Context, directory string) (out []workspace.Found, err error) {
	err = r.with(directory, func(v *vcs.Service) error {
		trees, err := v.Worktrees(ctx)
		for _, w := range trees {
			if !w.Main && !w.Bare && !w.Gone {
				out = append(out, workspace.Found{Directory: w.Path, Branch: w.Branch})
			}
		}
		return err
	})
	return out, err
}

// Unsaved implements workspace.Git.
func (r repositories) Unsaved(ctx context.Context, path string, n int) (files []string, err error) {
	err = r.with(path, func(v *vcs.Service) error {
		changes, err := v.Status(ctx)
		for _, c := range changes[:min(n, len(changes))] {
			files = append(files, c.File)
		}
		return err
	})
	return files, err
}

func (r repositories) with(directory string, do func(*vcs.Service) error) error {
	v, done, err := r.at(directory)
	if err != nil {
		return err
	}
	return errors.Join(do(v), done())
}

// runStart runs a project's start command, as the owner of the project wrote it.
func runStart(ctx context.Context, directory, command string, say func(string)) error {
	e, err := env.Local(directory)
	if err != nil {
		return fmt.Errorf("opening %s: %w", directory, err)
	}
	defer func() { _ = e.Close() }() // only reads were open
	from, to := io.Pipe()
	var reading sync.WaitGroup
	reading.Go(func() {
		lines := bufio.NewScanner(from)
		for lines.Scan() {
			say(lines.Text())
		}
		_, _ = io.Copy(io.Discard, from) // what follows a line that is too long
	})
	p, err := e.Start(ctx, env.Command{Shell: command, Output: to})
	if err != nil {
		_ = to.Close()
		reading.Wait()
		return err
	}
	exit := p.Wait()
	_ = to.Close()
	reading.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case exit.Err != nil:
		return exit.Err
	case exit.Code != 0:
		return fmt.Errorf("%q exited with %d", command, exit.Code)
	}
	return nil
}
