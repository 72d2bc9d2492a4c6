package vcs

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/vcs/internal/difftext"
)

// Change is a changed file. Names are as they are, never quoted.
type Change struct {
	File         string     `json:"file" doc:"Relative to the directory; may begin with ../. An untracked repository ends in a slash."`
	FileBytes    string     `json:"fileBytes,omitempty" doc:"Base64 of the exact bytes, where they are not UTF-8."`
	OldFile      string     `json:"oldFile,omitempty" doc:"Where a renamed file was."`
	OldFileBytes string     `json:"oldFileBytes,omitempty"`
	Staged       string     `json:"staged,omitempty" enum:"added,modified,deleted,renamed,copied,typechanged,unmerged" doc:"From HEAD to the index."`
	Unstaged     string     `json:"unstaged,omitempty" enum:"added,modified,deleted,renamed,copied,typechanged,unmerged" doc:"From the index to the work tree."`
	Status       string     `json:"status" enum:"added,modified,deleted,renamed,untracked,conflict,submodule" doc:"From HEAD to the work tree."`
	Additions    int        `json:"additions" doc:"Lines, from HEAD to the work tree; 0 for binary files."`
	Deletions    int        `json:"deletions"`
	Binary       bool       `json:"binary,omitempty"`
	Uncounted    bool       `json:"uncounted,omitempty" doc:"An untracked file whose lines were not counted: it is large, or there are very many."`
	Submodule    *Submodule `json:"submodule,omitempty"`
}

// Submodule says what is changed in a submodule.
type Submodule struct {
	Commit    bool `json:"commit" doc:"It is at another commit than the index says."`
	Modified  bool `json:"modified" doc:"Its tracked files are changed."`
	Untracked bool `json:"untracked" doc:"It has untracked files."`
}

// Status lists the changed files by name; none outside of git. It is what git
// status says, with lines counted as git diff does. A repository's index is not
// written, nor waited for.
func (s *Service) Status(ctx context.Context) ([]Change, error) {
	repo, ok := s.Locate()
	if !ok {
		return []Change{}, nil
	}
	changes, err := s.statusByProgram(ctx, repo)
	if errors.Is(err, errNoProgram) {
		return s.statusByLibrary(ctx, repo)
	}
	return changes, err
}

func (s *Service) statusByProgram(ctx context.Context, repo Repo) ([]Change, error) {
	off, err := s.safe(ctx, repo)
	if err != nil {
		return nil, err
	}
	out, err := s.tolerant(ctx, call{
		in: repo, off: off,
		args: []string{"status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignored=no", "--find-renames", "--no-branch"},
	})
	if err != nil {
		return nil, err
	}
	entries, err := parseStatus(out)
	if err != nil {
		return nil, err
	}
	var counts []count
	err = s.withFiles(repo, func(files env.Files) (err error) {
		counts, err = s.count(ctx, repo, files, entries, off)
		return err
	})
	if err != nil {
		return nil, err
	}
	at := s.relative(repo)
	changes := make([]Change, 0, len(entries))
	for i, e := range entries {
		changes = append(changes, e.change(at, counts[i]))
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.File, b.File) })
	return changes, nil
}

// tolerant runs a command that visits submodules; where one of them makes it
// fail, it is run again without looking into them.
func (s *Service) tolerant(ctx context.Context, c call) ([]byte, error) {
	out, err := s.output(ctx, c)
	if e := (*gitError)(nil); errors.As(err, &e) {
		c.args = append(slices.Clone(c.args), "--ignore-submodules=dirty")
		if again, failed := s.output(ctx, c); failed == nil {
			return again, nil
		}
	}
	return out, err
}

// words names the letters of git status.
var words = map[byte]string{
	'A': "added", 'M': "modified", 'D': "deleted", 'R': "renamed", 'C': "copied", 'T': "typechanged", 'U': "unmerged",
}

func (e entry) change(at relative, n count) Change {
	c := Change{Staged: words[e.x], Unstaged: words[e.y], Status: e.status()}
	c.File, c.FileBytes = difftext.Readable(at.path(e.path))
	if e.from != "" {
		c.OldFile, c.OldFileBytes = difftext.Readable(at.path(e.from))
	}
	if e.submodule() {
		c.Submodule = &Submodule{Commit: e.sub[1] == 'C', Modified: e.sub[2] == 'M', Untracked: e.sub[3] == 'U'}
	}
	c.Additions, c.Deletions, c.Binary, c.Uncounted = n.added, n.deleted, n.binary, n.uncounted
	return c
}

// status sums a file's change up.
func (e entry) status() string {
	switch {
	case e.kind == 'u':
		return "conflict"
	case e.kind == '?':
		return "untracked"
	case e.submodule():
		return "submodule"
	case e.kind == '2' && e.x != 'C' && e.y != 'D':
		return "renamed"
	case e.y == 'D' || e.x == 'D':
		return "deleted"
	case e.x == 'A' || e.y == 'A' || e.x == 'C':
		return "added"
	}
	return "modified"
}
