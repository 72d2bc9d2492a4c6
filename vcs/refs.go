package vcs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/config"

	"github.com/switchyard-dev/switchyard/env"
)

// maxSmall bounds the small files that are read from a git directory.
const maxSmall = 1 << 20

// gitFiles are a git directory's own files and those that all work trees share.
type gitFiles struct{ own, common env.Files }

func (s *Service) openGit(repo Repo) (gitFiles, error) {
	own, err := s.Env.Open(repo.GitDir)
	if err != nil {
		return gitFiles{}, fmt.Errorf("opening the git directory: %w", err)
	}
	if repo.CommonDir == repo.GitDir {
		return gitFiles{own: own, common: own}, nil
	}
	common, err := s.Env.Open(repo.CommonDir)
	if err != nil {
		return gitFiles{}, errors.Join(fmt.Errorf("opening the git directory: %w", err), own.Close())
	}
	return gitFiles{own: own, common: common}, nil
}

func (g gitFiles) close() {
	_ = g.own.Close() // only reads were open
	if g.common != g.own {
		_ = g.common.Close()
	}
}

// small reads a small file without its last line break; "" when there is none.
func small(files env.Files, name string) string {
	f, err := files.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSmall))
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(data), "\r\n")
}

func has(files env.Files, name string) bool {
	_, err := files.Lstat(name)
	return err == nil
}

// head is what is checked out: a branch, or a commit alone.
type head struct {
	branch string // short name; "" when detached
	ref    string // full name
	commit string // object id; "" for a branch without commits
}

// invalidRef is what HEAD holds where the refs are in a table and not in files.
const invalidRef = "refs/heads/.invalid"

func (g gitFiles) head() (head, error) {
	line := small(g.own, "HEAD")
	ref, symbolic := strings.CutPrefix(line, "ref:")
	if !symbolic {
		return head{commit: line}, nil
	}
	h := head{ref: strings.TrimSpace(ref)}
	h.branch = strings.TrimPrefix(h.ref, "refs/heads/")
	if h.ref == invalidRef {
		return h, errTable
	}
	h.commit = g.resolve(h.ref)
	return h, nil
}

// errTable says that refs cannot be read here because they are in reftables.
var errTable = errors.New("the refs are in a table")

// resolve gives the object id of a full ref name; "" when there is none.
func (g gitFiles) resolve(ref string) string {
	for range 5 {
		if !plainRef(ref) {
			return ""
		}
		value := small(g.common, ref)
		if value == "" {
			return g.packed(ref)
		}
		target, symbolic := strings.CutPrefix(value, "ref:")
		if !symbolic {
			return value
		}
		ref = strings.TrimSpace(target)
	}
	return ""
}

// symbolic gives the ref that a symbolic ref names; "" when it is none.
func (g gitFiles) symbolic(ref string) string {
	target, ok := strings.CutPrefix(small(g.common, ref), "ref:")
	if !ok {
		return ""
	}
	return strings.TrimSpace(target)
}

func plainRef(ref string) bool {
	return strings.HasPrefix(ref, "refs/") && !strings.Contains(ref, "..")
}

// packed looks a ref up in the file of packed ones.
func (g gitFiles) packed(ref string) string {
	f, err := g.common.Open("packed-refs")
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if oid, name, ok := strings.Cut(lines.Text(), " "); ok && name == ref {
			return oid
		}
	}
	return ""
}

// upstream gives the full name of the ref that a branch follows; "" for none.
func (g gitFiles) upstream(branch string) string {
	c := config.New()
	if config.NewDecoder(strings.NewReader(small(g.common, "config"))).Decode(c) != nil {
		return ""
	}
	b := c.Section("branch").Subsection(branch)
	remote, merge := b.Option("remote"), b.Option("merge")
	name, ok := strings.CutPrefix(merge, "refs/heads/")
	switch {
	case !ok || remote == "":
		return ""
	case remote == ".":
		return merge
	}
	return "refs/remotes/" + remote + "/" + name
}

// state tells which operation of git's is under way.
func (g gitFiles) state() string {
	for _, s := range []struct{ file, state string }{
		{"rebase-merge", "rebasing"},
		{"rebase-apply/applying", "applying"},
		{"rebase-apply", "rebasing"},
		{"MERGE_HEAD", "merging"},
		{"CHERRY_PICK_HEAD", "cherry-picking"},
		{"REVERT_HEAD", "reverting"},
		{"BISECT_LOG", "bisecting"},
	} {
		if has(g.own, s.file) {
			return s.state
		}
	}
	return "clean"
}

// Branch reads what is checked out in a git directory: the short name of a
// branch, or "" when HEAD is detached. mark changes with every checkout; ok is
// false when there is nothing to read.
func Branch(files env.Files) (branch, mark string, ok bool) {
	mark = small(files, "HEAD")
	ref, symbolic := strings.CutPrefix(mark, "ref:")
	if !symbolic {
		return "", mark, mark != ""
	}
	return strings.TrimPrefix(strings.TrimSpace(ref), "refs/heads/"), mark, true
}
