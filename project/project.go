// Package project gives every directory a project: one identity per clone on
// this server, shared by all work trees of the clone. A directory without git is
// its own project.
//
// The identity is the canonical git common directory (or the directory itself),
// kept in our store: nothing is written into the user's .git, and neither a
// remote nor a root commit is taken for an identity, because two clones share
// both.
package project

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/switchyard-dev/switchyard/id"
)

// Project is a repository identity on this server.
type Project struct {
	ID       id.Project `json:"id"`
	Worktree string     `json:"worktree" doc:"Absolute top of the main work tree, or the directory itself without git."`
	VCS      string     `json:"vcs" enum:"git,none"`
	Name     string     `json:"name,omitempty"`
	Icon     string     `json:"icon,omitempty"`
	Commands []Command  `json:"commands"`
	Time     Time       `json:"time"`
}

// Command is a named shell line of a project.
type Command struct {
	Name    string `json:"name" minLength:"1" maxLength:"200"`
	Command string `json:"command" minLength:"1" maxLength:"10000"`
}

// Time holds milliseconds since the epoch.
type Time struct {
	Created int64 `json:"created"`
	Updated int64 `json:"updated"`
	Used    int64 `json:"used" doc:"Last use, exact to a minute."`
}

// Place says where a directory lies in version control. All paths are absolute.
type Place struct {
	// Root is the top of the work tree that contains the directory, or the
	// directory itself: the root of containment for tools.
	Root string
	// Identity is the canonical git common directory, or Root without git.
	Identity string
	// Main is the top of the clone's main work tree, or this one's where the
	// repository is bare.
	Main string
	// GitDir is the git directory of this work tree, which has its HEAD and
	// index; "" without git.
	GitDir string
	VCS    string
}

// Locate finds the work tree of a canonical directory by looking at its parents;
// it opens at most two small files and starts nothing.
func Locate(directory string) Place {
	for dir := directory; ; dir = filepath.Dir(dir) {
		gitDir, ok := gitDirOf(dir)
		if ok {
			common := commonDirOf(gitDir)
			main := dir
			if filepath.Base(common) == ".git" {
				main = filepath.Dir(common)
			}
			return Place{Root: dir, Identity: common, Main: main, GitDir: gitDir, VCS: "git"}
		}
		if dir == filepath.Dir(dir) {
			return Place{Root: directory, Identity: directory, Main: directory, VCS: "none"}
		}
	}
}

// gitDirOf gives the git directory of a work tree's top: .git itself, or what a
// .git file points to (a linked work tree, a submodule).
func gitDirOf(dir string) (string, bool) {
	dot := filepath.Join(dir, ".git")
	info, err := os.Lstat(dot)
	if err != nil {
		return "", false
	}
	if !info.Mode().IsRegular() {
		real, err := filepath.EvalSymlinks(dot)
		if err != nil {
			return "", false
		}
		_, err = os.Stat(filepath.Join(real, "HEAD"))
		return real, err == nil
	}
	target, ok := readPointer(dot, "gitdir:")
	if !ok {
		return "", false
	}
	return resolveFrom(dir, target)
}

func commonDirOf(gitDir string) string {
	target, ok := readPointer(filepath.Join(gitDir, "commondir"), "")
	if !ok {
		return gitDir
	}
	if common, ok := resolveFrom(gitDir, target); ok {
		return common
	}
	return gitDir
}

func resolveFrom(dir, target string) (string, bool) {
	if !filepath.IsAbs(target) {
		target = filepath.Join(dir, target)
	}
	real, err := filepath.EvalSymlinks(target)
	return real, err == nil
}

// readPointer reads the one path in a small file of git's.
func readPointer(path, prefix string) (string, bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 64<<10 {
		return "", false
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", false
	}
	rest, ok := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), prefix)
	return strings.TrimSpace(rest), ok && rest != ""
}
