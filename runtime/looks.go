package runtime

import (
	"context"
	"errors"

	"github.com/switchyard-dev/switchyard/snapshot"
	"github.com/switchyard-dev/switchyard/vcs"
)

// looks gives package snapshot git's view of the whole work tree.
func (p *Parts) looks() snapshot.Git { return looks{p.VCS} }

// looks implements snapshot.Git.
type looks struct{ vcs *vcs.Service }

// Look implements snapshot.Git.
func (l looks) Look(ctx context.Context) (head string, paths []string, err error) {
	found, err := l.vcs.Look(ctx)
	if errors.Is(err, vcs.ErrNotARepository) {
		return "", nil, snapshot.ErrNoGit
	}
	return found.Head, found.Paths, err
}

// Between implements snapshot.Git.
func (l looks) Between(ctx context.Context, from, to string) ([]string, error) {
	return l.vcs.Between(ctx, from, to)
}

// Committed implements snapshot.Git.
func (l looks) Committed(ctx context.Context, commit, path string, limit int64) (data []byte, mode uint32, ok bool, err error) {
	data, mode, ok, err = l.vcs.Committed(ctx, commit, path, limit)
	if errors.Is(err, vcs.ErrNotPlain) {
		err = snapshot.ErrNotKept
	}
	return data, mode, ok, err
}
