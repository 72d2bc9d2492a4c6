package vcs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/switchyard-dev/switchyard/fault"
)

// Worktree is a work tree of a clone.
type Worktree struct {
	// Path is absolute and canonical where it exists.
	Path   string
	Branch string // "" when HEAD is detached
	Head   string // commit
	// Bare marks a repository without a work tree, Main the first work tree.
	Bare, Main bool
	// Gone tells that git knows it and its directory is not there.
	Gone bool
}

// ErrNotARepository says that there is no repository at the directory.
var ErrNotARepository = errors.New("not a git repository")

// Worktrees lists the work trees of the clone, the main one first.
func (s *Service) Worktrees(ctx context.Context) ([]Worktree, error) {
	repo, ok := s.Locate()
	if !ok {
		return nil, ErrNotARepository
	}
	out, err := s.output(ctx, call{in: repo, args: []string{"worktree", "list", "--porcelain", "-z"}})
	if err != nil {
		return nil, err
	}
	var trees []Worktree
	for record := range bytes.SplitSeq(out, []byte{0, 0}) {
		var w Worktree
		for line := range bytes.SplitSeq(record, []byte{0}) {
			word, rest, _ := strings.Cut(string(line), " ")
			switch word {
			case "worktree":
				w.Path = rest
			case "HEAD":
				w.Head = rest
			case "branch":
				w.Branch = strings.TrimPrefix(rest, "refs/heads/")
			case "bare":
				w.Bare = true
			}
		}
		if w.Path == "" {
			continue
		}
		real, err := filepath.EvalSymlinks(w.Path)
		if err == nil {
			w.Path = real
		}
		w.Gone, w.Main = err != nil, len(trees) == 0
		trees = append(trees, w)
	}
	return trees, nil
}

// AddWorktree makes a work tree of the clone at an absolute path, on a new branch
// that starts at base ("" is HEAD), or on the branch as it is when it exists.
// Filters and hooks of the repository do not run. A wrong base, or a branch that
// is checked out elsewhere, is a validation_failed fault with what git says.
func (s *Service) AddWorktree(ctx context.Context, path, branch, base string) error {
	repo, ok := s.Locate()
	if !ok {
		return ErrNotARepository
	}
	off, err := s.safe(ctx, repo)
	if err != nil {
		return err
	}
	args := []string{"worktree", "add", "--no-track", "-b", branch, "--end-of-options", path}
	if _, err := s.output(ctx, call{in: repo, args: []string{"rev-parse", "--verify", "--quiet", "refs/heads/" + branch}}); err == nil {
		args = []string{"worktree", "add", "--end-of-options", path, branch}
	} else if base != "" {
		args = append(args, base)
	}
	_, err = s.output(ctx, call{in: repo, off: off, args: args})
	if e := (*gitError)(nil); errors.As(err, &e) {
		return fault.Wrap(err, fault.ValidationFailed, "git cannot make the work tree: %s", strings.TrimSpace(e.text))
	}
	return err
}

// RemoveWorktree removes a work tree with its directory, whatever is in it, and
// what git knows of it. One that is gone already is only forgotten.
func (s *Service) RemoveWorktree(ctx context.Context, path string) error {
	repo, ok := s.Locate()
	if !ok {
		return ErrNotARepository
	}
	args := []string{"worktree", "remove", "--force", "--force", "--end-of-options", path}
	if _, err := os.Lstat(path); err != nil {
		args = []string{"worktree", "prune"}
	}
	if _, err := s.output(ctx, call{in: repo, args: args}); err != nil {
		return fmt.Errorf("removing the work tree %s: %w", path, err)
	}
	return nil
}

// CheckBranch refuses what git does not take for a branch's name.
func (s *Service) CheckBranch(ctx context.Context, branch string) error {
	repo, ok := s.Locate()
	if !ok {
		return ErrNotARepository
	}
	if strings.HasPrefix(branch, "-") {
		return fault.New(fault.ValidationFailed, "%q is no name for a branch", branch).At("body.metadata.branch", "no branch name")
	}
	_, err := s.output(ctx, call{in: repo, args: []string{"check-ref-format", "--branch", branch}})
	if e := (*gitError)(nil); errors.As(err, &e) {
		return fault.New(fault.ValidationFailed, "%q is no name for a branch", branch).At("body.metadata.branch", "no branch name")
	}
	return err
}

// AtHead gives the object ids of files at HEAD, by their paths relative to the top
// of the work tree; those that HEAD does not have are left out.
func (s *Service) AtHead(ctx context.Context, paths []string) (map[string]string, error) {
	repo, ok := s.Locate()
	if !ok {
		return nil, ErrNotARepository
	}
	found := map[string]string{}
	for len(paths) > 0 {
		some := paths[:min(len(paths), maxNamed)]
		paths = paths[len(some):]
		out, err := s.output(ctx, call{in: repo, args: append([]string{"ls-tree", "-r", "-z", "--full-tree", "HEAD", "--"}, some...)})
		if e := (*gitError)(nil); errors.As(err, &e) {
			return found, nil // no commit yet
		}
		if err != nil {
			return nil, err
		}
		for entry := range bytes.SplitSeq(out, []byte{0}) {
			about, path, ok := strings.Cut(string(entry), "\t")
			if fields := strings.Fields(about); ok && len(fields) == 3 {
				found[path] = fields[0] + " " + fields[2] // mode and object
			}
		}
	}
	return found, nil
}
