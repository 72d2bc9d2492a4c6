// Package vcs tells what git knows of a work tree: branch and state, changed
// files, diffs, and it applies patches. What git would say is what this package
// says, so the git program does the work, but under terms that let a repository
// run nothing of its own (see program.go). Without the program go-git answers,
// slower and less exactly, and says so.
//
// Paths in answers are relative to the context's directory and may begin with
// "../": the whole work tree is covered. The text of a patch is relative to the
// work tree's top, as git writes it.
package vcs

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/switchyard-dev/switchyard/env"
)

// Repo is where a repository lies. All paths are absolute and canonical.
type Repo struct {
	// Root is the top of the work tree, GitDir its git directory, which has its
	// HEAD and index, CommonDir the one that all work trees of the clone share.
	Root, GitDir, CommonDir string
}

// Config is what a Service works on.
type Config struct {
	// Env is where the files and the git program are.
	Env env.Environment
	// Directory is the context's directory, absolute and canonical, in the work
	// tree.
	Directory string
	// Locate finds the repository of the directory as it is now; false when there
	// is none. It is asked for each call: repositories come and go.
	Locate func() (Repo, bool)
	// Program is the git program; "" is git.
	Program string
}

// Service answers for one directory. It is safe for concurrent use and starts
// nothing before it is asked.
type Service struct {
	Config
	slots chan struct{} // bounds the git processes at a time

	mu       sync.Mutex // protects all below
	links    linkCache
	counts   countCache
	distance distance
	initial  initialBranch
}

// maxProcesses bounds the git processes of one directory at a time.
const maxProcesses = 4

// New makes a Service.
func New(c Config) *Service {
	if c.Program == "" {
		c.Program = "git"
	}
	return &Service{Config: c, slots: make(chan struct{}, maxProcesses)}
}

// Engines that can answer.
const (
	EngineGit   = "git"
	EngineGoGit = "go-git"
)

// finder is an environment that can tell whether it has a program.
type finder interface{ Has(program string) bool }

// engine tells what will answer.
func (s *Service) engine() string {
	if f, ok := s.Env.(finder); ok && !f.Has(s.Program) {
		return EngineGoGit
	}
	return EngineGit
}

// files opens the files below the work tree's top. The caller closes them.
func (s *Service) files(repo Repo) (env.Files, error) { return s.Env.Open(repo.Root) }

// withFiles calls f with the files below the work tree's top.
func (s *Service) withFiles(repo Repo, f func(env.Files) error) error {
	files, err := s.files(repo)
	if err != nil {
		return err
	}
	return errors.Join(f(files), files.Close())
}

// enter takes a place among the processes.
func (s *Service) enter(ctx context.Context) (leave func(), err error) {
	select {
	case s.slots <- struct{}{}:
		return func() { <-s.slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// relative turns paths that are relative to the top of a work tree into paths
// relative to the context's directory.
type relative struct{ below []string }

func (s *Service) relative(repo Repo) relative {
	prefix := strings.Trim(strings.TrimPrefix(s.Directory, repo.Root), "/")
	if prefix == "" {
		return relative{}
	}
	return relative{below: strings.Split(prefix, "/")}
}

func (r relative) path(p string) string {
	for i, dir := range r.below {
		rest, ok := strings.CutPrefix(p, dir+"/")
		if !ok {
			return strings.Repeat("../", len(r.below)-i) + p
		}
		p = rest
	}
	return p
}

// settled is how old a file must be for its time stamps to tell every later
// change: within one tick of the file system's clock two changes look like one.
const settled = time.Second
