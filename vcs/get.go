package vcs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Info is what is known of a work tree without looking at its files.
type Info struct {
	Type          string `json:"type" enum:"git,none"`
	Root          string `json:"root,omitempty" doc:"Absolute top of the work tree."`
	Branch        string `json:"branch,omitempty" doc:"Absent when HEAD is detached."`
	DefaultBranch string `json:"defaultBranch,omitempty" doc:"The branch of the remote's HEAD, else init.defaultBranch, main or master where it exists."`
	Head          string `json:"head,omitempty" doc:"Commit that is checked out; absent while there are no commits."`
	Ahead         *int   `json:"ahead,omitempty" doc:"Commits that the upstream branch has not; absent without one."`
	Behind        *int   `json:"behind,omitempty" doc:"Commits of the upstream branch that are not here."`
	Detached      bool   `json:"detached,omitempty"`
	State         string `json:"state,omitempty" enum:"clean,merging,rebasing,cherry-picking,reverting,bisecting,applying" doc:"The operation under way; clean for none, whatever the files are like."`
	Engine        string `json:"engine" enum:"git,go-git" doc:"go-git where there is no git program: slower, without renames, submodules and global ignore rules."`
}

// Get reads branch, head and state from the git directory. It looks at no file of
// the tree; git runs only to count commits where the upstream branch is at
// another one, and to learn init.defaultBranch where no remote tells.
func (s *Service) Get(ctx context.Context) (Info, error) {
	info := Info{Type: "none", Engine: s.engine()}
	repo, ok := s.Locate()
	if !ok {
		return info, nil
	}
	g, err := s.openGit(repo)
	if err != nil {
		return Info{}, err
	}
	defer g.close()
	info.Type, info.Root, info.State = "git", repo.Root, g.state()
	h, err := g.head()
	if errors.Is(err, errTable) {
		return s.getByProgram(ctx, repo, info)
	}
	if err != nil {
		return Info{}, err
	}
	info.Branch, info.Head, info.Detached = h.branch, h.commit, h.ref == ""
	info.DefaultBranch, _ = s.defaultBranch(ctx, repo, g)
	up := ""
	if h.branch != "" && h.commit != "" {
		up = g.resolve(g.upstream(h.branch))
	}
	if up != "" {
		info.Ahead, info.Behind, err = s.distanceOf(ctx, repo, h.commit, up)
	}
	return info, err
}

// getByProgram is Get for refs that only git can read.
func (s *Service) getByProgram(ctx context.Context, repo Repo, info Info) (Info, error) {
	ask := func(args ...string) (string, error) {
		out, err := s.output(ctx, call{in: repo, args: args})
		if e := (*gitError)(nil); errors.As(err, &e) || errors.Is(err, errNoProgram) {
			return "", nil // there is none
		}
		return strings.TrimRight(string(out), "\n"), err
	}
	ref, err := ask("symbolic-ref", "-q", "HEAD")
	if err != nil {
		return info, err
	}
	info.Branch, info.Detached = strings.TrimPrefix(ref, "refs/heads/"), ref == ""
	if info.Head, err = ask("rev-parse", "-q", "--verify", "HEAD^{commit}"); err != nil {
		return info, err
	}
	remote, err := ask("symbolic-ref", "-q", "refs/remotes/origin/HEAD")
	if err != nil {
		return info, err
	}
	info.DefaultBranch = strings.TrimPrefix(remote, "refs/remotes/origin/")
	for _, name := range []string{s.initialBranch(ctx, repo), "main", "master"} {
		if info.DefaultBranch != "" || name == "" {
			continue
		}
		if oid, _ := ask("rev-parse", "-q", "--verify", "refs/heads/"+name); oid != "" {
			info.DefaultBranch = name
		}
	}
	up, err := ask("rev-parse", "-q", "--verify", "@{upstream}")
	if err == nil && up != "" && info.Head != "" {
		info.Ahead, info.Behind, err = s.distanceOf(ctx, repo, info.Head, up)
	}
	return info, err
}

// defaultBranch gives the short name of the default branch and the ref to compare
// with; both are "" when there is none.
func (s *Service) defaultBranch(ctx context.Context, repo Repo, g gitFiles) (name, ref string) {
	for _, remote := range []string{"origin", "upstream"} {
		prefix := "refs/remotes/" + remote + "/"
		if name, ok := strings.CutPrefix(g.symbolic(prefix+"HEAD"), prefix); ok {
			return name, prefix + name
		}
	}
	for _, name := range []string{"", "main", "master"} {
		if name == "" {
			name = s.initialBranch(ctx, repo)
		}
		if name != "" && g.resolve("refs/heads/"+name) != "" {
			return name, "refs/heads/" + name
		}
	}
	return "", ""
}

// initialBranch is init.defaultBranch. It is asked for once a minute: it is the
// owner's habit, not the repository's.
type initialBranch struct {
	name  string
	asked time.Time
}

func (s *Service) initialBranch(ctx context.Context, repo Repo) string {
	s.mu.Lock()
	known := s.initial
	s.mu.Unlock()
	if time.Since(known.asked) < time.Minute {
		return known.name
	}
	out, err := s.output(ctx, call{in: repo, args: []string{"config", "--get", "init.defaultBranch"}})
	if err != nil {
		out = nil // not set, or nobody to ask
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.initial = initialBranch{name: strings.TrimSpace(string(out)), asked: time.Now()}
	return s.initial.name
}

// distance remembers how far two commits are apart, which never changes.
type distance struct {
	here, there   string
	ahead, behind int
}

// distanceOf counts the commits between two; nil where nobody can count.
func (s *Service) distanceOf(ctx context.Context, repo Repo, here, there string) (ahead, behind *int, err error) {
	d := distance{here: here, there: there}
	if here == there {
		return &d.ahead, &d.behind, nil
	}
	s.mu.Lock()
	known := s.distance
	s.mu.Unlock()
	if known.here == here && known.there == there {
		return &known.ahead, &known.behind, nil
	}
	out, err := s.output(ctx, call{in: repo, args: []string{"rev-list", "--left-right", "--count", here + "..." + there, "--"}})
	if e := (*gitError)(nil); errors.Is(err, errNoProgram) || errors.As(err, &e) {
		return nil, nil, nil // e.g. the history is not all here
	}
	if err != nil {
		return nil, nil, err
	}
	if _, err := fmt.Sscan(string(out), &d.ahead, &d.behind); err != nil {
		return nil, nil, fmt.Errorf("counting commits: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.distance = d
	return &d.ahead, &d.behind, nil
}
