// Package snapshot keeps what the calls of an agent change in files, so that it
// can be shown and undone without touching anything else. Only changed files are
// kept, by their content, outside of the repository; git's own files are never
// read for that nor written.
//
// What a call of our own file tools replaces is known beforehand. Around a command
// the tree is looked at: with git as git status sees it, so that clean files cost
// nothing, without git by walking a bounded number of files. Files that are
// ignored, too large or no plain files are not covered; those that are known to
// have changed say so.
package snapshot

import (
	"context"
	"errors"

	"github.com/switchyard-dev/switchyard/env"
)

// The bounds of what is kept.
const (
	// MaxFile is the most bytes of a file that is kept.
	MaxFile = 10 << 20
	// MaxProject is the most bytes of files kept for all sessions of a project; the
	// oldest changes go first.
	MaxProject = 1 << 30
	// maxWalk and maxWalkBytes bound a look without git.
	maxWalk      = 5_000
	maxWalkBytes = 64 << 20
)

// Why a change is not covered.
const (
	TooLarge   = "too_large"
	NotAFile   = "not_a_file"
	Unreadable = "unreadable"
	TooMany    = "too_many"
	Expired    = "expired"
)

// Errors of Git.
var (
	// ErrNoGit says that the tree is no repository, or that there is no git.
	ErrNoGit = errors.New("no git")
	// ErrNotKept says that a committed file is too large, or no plain file.
	ErrNotKept = errors.New("not kept")
)

// Git tells what differs from commits. Paths are relative to the top of the work
// tree.
type Git interface {
	// Look gives the commit that is checked out and the paths that differ from it.
	Look(ctx context.Context) (head string, paths []string, err error)
	// Between lists the paths that differ between two commits.
	Between(ctx context.Context, from, to string) ([]string, error)
	// Committed gives a file as a checkout of the commit would have it; ok is false
	// where there is none.
	Committed(ctx context.Context, commit, path string, limit int64) (data []byte, mode uint32, ok bool, err error)
}

// Place is a tree whose files change.
type Place struct {
	Env env.Environment
	Git Git // nil for none
}

// State is what stands at a path.
type State struct {
	// Hash is the sha256 in hex of the content; "" for no file.
	Hash string
	// Mode has the permission bits.
	Mode uint32
	Size int64
	// Reason says why the content is not kept, "" when it is.
	Reason string
}

// same tells whether two states are the same file. Of one that is not kept nothing
// is known.
func (s State) same(o State) bool {
	return s.Reason == "" && o.Reason == "" && s.Hash == o.Hash && (s.Hash == "" || s.Mode == o.Mode)
}

// Change is a file that a call changed, by its absolute path.
type Change struct {
	Path      string
	Pre, Post State
}

// reason says why the change is not covered.
func (c Change) reason() string {
	if c.Pre.Reason != "" {
		return c.Pre.Reason
	}
	return c.Post.Reason
}
