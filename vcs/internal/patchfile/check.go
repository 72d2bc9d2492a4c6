package patchfile

import (
	iofs "io/fs"
	"path"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/vcs/internal/difftext"
)

// Git's modes.
const (
	modeLink      = 0o120000
	modeSubmodule = 0o160000
)

// Check refuses what must not be written, whoever will write it.
func Check(files env.Files, parsed []*gitdiff.File) error {
	for _, f := range parsed {
		for _, name := range []string{f.OldName, f.NewName} {
			if name == "" {
				continue
			}
			if err := checkPath(files, name); err != nil {
				return err
			}
		}
		if f.OldMode&0o170000 == modeSubmodule || f.NewMode&0o170000 == modeSubmodule {
			return fault.New(fault.ValidationFailed, "%s is a submodule: its commit cannot be patched", Name(f)).At("body.patch", "submodule %s", Name(f))
		}
		if IsLink(f) {
			if err := checkTarget(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// Name is the name that a file has, or had.
func Name(f *gitdiff.File) string {
	if f.NewName != "" {
		return f.NewName
	}
	return f.OldName
}

// WasLink tells whether a patch changes or removes a link.
func WasLink(f *gitdiff.File) bool { return f.OldMode&0o170000 == modeLink }

// IsLink tells whether a patch makes or changes a link.
func IsLink(f *gitdiff.File) bool {
	return !f.IsDelete && (f.NewMode&0o170000 == modeLink || f.NewMode == 0 && f.OldMode&0o170000 == modeLink)
}

func outsidePath(name, why string) error {
	shown, exact := difftext.Readable(name)
	e := fault.New(fault.PathOutside, "%s %s", shown, why).With("path", shown)
	if exact != "" {
		e = e.With("pathBytes", exact)
	}
	return e
}

// checkPath refuses names that leave the tree, reach into a repository or lead
// through a link.
func checkPath(files env.Files, name string) error {
	if name == "" || path.IsAbs(name) || strings.ContainsRune(name, 0) {
		return outsidePath(name, "is not a path in the work tree")
	}
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if part == "" || part == "." || part == ".." {
			return outsidePath(name, "is not a path in the work tree")
		}
		if gitName(part) {
			return outsidePath(name, "is in a git directory")
		}
		if i == len(parts)-1 {
			break
		}
		info, err := files.Lstat(strings.Join(parts[:i+1], "/"))
		if err == nil && info.Mode().Type() == iofs.ModeSymlink {
			return outsidePath(name, "leads through a link")
		}
	}
	return nil
}

// gitName tells names that some file system takes for .git.
func gitName(part string) bool {
	part = strings.Map(func(r rune) rune {
		switch { // HFS+ does not see these
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, part)
	part, _, _ = strings.Cut(strings.ToLower(part), ":")
	part = strings.TrimRight(part, ". ")
	return part == ".git" || part == "git~1"
}

// checkTarget refuses links that a patch makes and that lead out of the tree or
// into a git directory.
func checkTarget(f *gitdiff.File) error {
	name := Name(f)
	var target string
	for _, fragment := range f.TextFragments {
		for _, l := range fragment.Lines {
			if l.New() {
				target += l.Line
			}
		}
	}
	target = strings.TrimRight(target, "\n")
	if f.IsBinary || path.IsAbs(target) || strings.ContainsAny(target, "\x00\n\\") {
		return outsidePath(name, "would be a link that leads out of the work tree")
	}
	if target == "" {
		return nil // only moved, or its mode named
	}
	depth := strings.Count(name, "/")
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part == "..":
			depth--
		case part != "" && part != ".":
			depth++
		}
		if depth < 0 || gitName(part) {
			return outsidePath(name, "would be a link that leads out of the work tree")
		}
	}
	return nil
}
