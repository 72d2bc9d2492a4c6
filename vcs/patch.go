package vcs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/fault"
)

const (
	// lockPatience is how long a patch waits for an index lock, in steps.
	lockPatience = time.Second
	lockStep     = 50 * time.Millisecond
	// patchTime bounds the writing of a patch, which its caller cannot cut short.
	patchTime = time.Minute
)

// Git's modes.
const (
	modeLink      = 0o120000
	modeSubmodule = 0o160000
)

// Patched says what a patch changed.
type Patched struct {
	Files []FileDiff `json:"files"`
}

// Patch applies a patch to the work tree, all of it or nothing; outside of git,
// to the directory. Paths in it are relative to the work tree's top, as git
// writes them. The index is left alone. Errors: validation_failed for what is no
// patch, path_outside for paths that lead out of the tree, into .git or through
// links, patch_conflict with "file" and "hunk" (from 1, absent when the whole file
// is wrong), vcs_locked with "age" in milliseconds while another git program
// works on the repository.
func (s *Service) Patch(ctx context.Context, patch string) (Patched, error) {
	parsed, err := readPatch(patch)
	if _, told := fault.As(err); told {
		return Patched{}, err
	}
	if err != nil {
		return Patched{}, notAPatch(err)
	}
	repo, tracked := s.Locate()
	if !tracked {
		repo = Repo{Root: s.Directory}
	}
	files, err := s.files(repo)
	if err != nil {
		return Patched{}, err
	}
	defer files.Close()
	if err := checkPatch(files, parsed); err != nil {
		return Patched{}, err
	}
	if tracked {
		if err := s.waitForLock(ctx, repo); err != nil {
			return Patched{}, err
		}
	}
	a := &application{service: s, repo: repo, tracked: tracked, files: files, parsed: parsed, text: patch}
	err = a.byProgram(ctx)
	if errors.Is(err, errNoProgram) {
		err = a.byLibrary(ctx)
	}
	if err != nil {
		return Patched{}, err
	}
	return Patched{Files: summaries(s.relative(repo), parsed)}, nil
}

func notAPatch(err error) error {
	return fault.New(fault.ValidationFailed, "the patch cannot be read: %v", err).At("body.patch", "%v", err)
}

// waitForLock gives whoever holds the index lock a moment: while it is held the
// files are about to change under a patch's feet. A lock that stays is told with
// its age and left where it is.
func (s *Service) waitForLock(ctx context.Context, repo Repo) error {
	own, err := s.Env.Open(repo.GitDir)
	if err != nil {
		return fmt.Errorf("opening the git directory: %w", err)
	}
	defer own.Close()
	for end := time.Now().Add(lockPatience); ; {
		info, err := own.Lstat("index.lock")
		if err != nil {
			return nil //nolint:nilerr // not locked
		}
		if time.Now().After(end) {
			age := max(clock.Now()-info.ModTime().UnixMilli(), 0)
			return fault.New(fault.VCSLocked, "the repository is locked by %s/index.lock since %d ms: another git program is at work, or one crashed", repo.GitDir, age).
				With("path", repo.GitDir+"/index.lock").With("age", age)
		}
		if err := clock.Sleep(ctx, lockStep); err != nil {
			return err
		}
	}
}

// checkPatch refuses what must not be written, whoever will write it.
func checkPatch(files env.Files, parsed []*gitdiff.File) error {
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
			return fault.New(fault.ValidationFailed, "%s is a submodule: its commit cannot be patched", nameOf(f)).At("body.patch", "submodule %s", nameOf(f))
		}
		if isLink(f) {
			if err := checkTarget(f); err != nil {
				return err
			}
		}
	}
	return nil
}

func nameOf(f *gitdiff.File) string {
	if f.NewName != "" {
		return f.NewName
	}
	return f.OldName
}

func isLink(f *gitdiff.File) bool {
	return !f.IsDelete && (f.NewMode&0o170000 == modeLink || f.NewMode == 0 && f.OldMode&0o170000 == modeLink)
}

func outsidePath(name, why string) error {
	shown, exact := readable(name)
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
	name := nameOf(f)
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

// summaries tell what a patch changed, without its lines.
func summaries(at relative, parsed []*gitdiff.File) []FileDiff {
	out := make([]FileDiff, 0, len(parsed))
	for _, f := range parsed {
		d := FileDiff{Status: "modified", Binary: f.IsBinary}
		switch {
		case f.IsNew, f.IsCopy:
			d.Status = "added"
		case f.IsDelete:
			d.Status = "deleted"
		case f.IsRename:
			d.Status = "renamed"
			d.OldFile, d.OldFileBytes = readable(at.path(f.OldName))
		}
		d.File, d.FileBytes = readable(at.path(nameOf(f)))
		for _, fragment := range f.TextFragments {
			d.Additions += int(fragment.LinesAdded)
			d.Deletions += int(fragment.LinesDeleted)
		}
		if f.OldMode != f.NewMode && f.OldMode != 0 && f.NewMode != 0 {
			d.OldMode, d.NewMode = fmt.Sprintf("%06o", uint32(f.OldMode)), fmt.Sprintf("%06o", uint32(f.NewMode))
		}
		out = append(out, d)
	}
	return out
}

// application is a patch that is being applied.
type application struct {
	service *Service
	repo    Repo
	tracked bool
	files   env.Files
	parsed  []*gitdiff.File
	text    string
}

func (a *application) call(off []string, args ...string) call {
	c := call{dir: a.repo.Root, off: off, args: args, stdin: strings.NewReader(a.text)}
	if a.tracked {
		c.in = a.repo
	}
	return c
}

// byProgram lets git apply the patch: first as a trial, then in earnest. Should
// writing fail half way, what was there before is put back.
func (a *application) byProgram(ctx context.Context) error {
	s := a.service
	var off []string
	var err error
	if a.tracked {
		off, err = s.safe(ctx, a.repo)
	} else {
		names := map[string]bool{}
		err = s.addFilters(ctx, call{dir: a.repo.Root}, names)
		for name := range names {
			off = append(off, name)
		}
	}
	if err != nil {
		return err
	}
	out, err := s.output(ctx, a.call(off, "apply", "--check", "--numstat", "-z", "--whitespace=nowarn", "--no-ignore-whitespace"))
	if err != nil {
		return a.explain(err)
	}
	if err := a.sameFiles(out); err != nil {
		return err
	}
	before, err := takeImages(a.files, a.parsed)
	if err != nil {
		return err
	}
	// From here on the caller's leaving must not stop it half way.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patchTime)
	defer cancel()
	if err := s.run(ctx, a.call(off, "apply", "--whitespace=nowarn", "--no-ignore-whitespace")); err != nil {
		return errors.Join(a.explain(err), before.restore(a.files))
	}
	return nil
}

// sameFiles holds what git has read against what was checked.
func (a *application) sameFiles(numstat []byte) error {
	checked := map[string]bool{}
	for _, f := range a.parsed {
		checked[nameOf(f)] = true
	}
	counts := map[string]count{}
	if err := parseNumstat(numstat, counts); err != nil {
		return err
	}
	for name := range counts {
		if !checked[name] {
			return notAPatch(fmt.Errorf("it can be read in two ways: is %s in it?", text([]byte(name))))
		}
	}
	return nil
}

// explain turns git's refusal into a conflict.
func (a *application) explain(err error) error {
	var e *gitError
	if !errors.As(err, &e) {
		return err
	}
	for line := range strings.Lines(e.text) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), "error: ")
		if !ok {
			continue
		}
		if rest, ok := strings.CutPrefix(line, "patch failed: "); ok {
			colon := strings.LastIndexByte(rest, ':')
			return a.conflict(rest[:max(colon, 0)], rest[colon+1:], line)
		}
		for _, f := range a.parsed {
			for _, name := range []string{f.OldName, f.NewName} {
				if name != "" && (strings.HasPrefix(line, name+":") || strings.Contains(line, "'"+name+"'") || strings.HasSuffix(line, " "+name)) {
					return a.conflict(name, "", line)
				}
			}
		}
		return a.conflict(nameOf(a.parsed[0]), "", line)
	}
	return err
}

// conflict names the file and, by the line where it was to begin, the hunk.
func (a *application) conflict(name, line, why string) error {
	shown, _ := readable(a.service.relative(a.repo).path(name))
	e := fault.New(fault.PatchConflict, "the patch does not apply: %s", text([]byte(why))).With("file", shown)
	for _, f := range a.parsed {
		if f.OldName != name && f.NewName != name {
			continue
		}
		at := slices.IndexFunc(f.TextFragments, func(t *gitdiff.TextFragment) bool { return fmt.Sprint(t.OldPosition) == line })
		if at >= 0 {
			return e.With("hunk", at+1)
		}
	}
	return e
}

// content is what a file has become while several patches of one text change it.
type content struct {
	data []byte
	mode uint32 // permission bits
	gone bool
}

// byLibrary applies the patch without git, strictly: a hunk whose lines moved is
// a conflict.
func (a *application) byLibrary(ctx context.Context) error {
	before, err := takeImages(a.files, a.parsed)
	if err != nil {
		return err
	}
	now := map[string]content{}
	for _, f := range a.parsed {
		if err := a.applyOne(f, before, now); err != nil {
			return err
		}
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := write(a.files, now); err != nil {
		return errors.Join(err, before.restore(a.files))
	}
	return nil
}

func (a *application) applyOne(f *gitdiff.File, before images, now map[string]content) error {
	if isLink(f) || f.OldMode&0o170000 == modeLink {
		return fault.New(fault.ValidationFailed, "links cannot be patched without the git program").At("body.patch", "%s is a link", nameOf(f))
	}
	old, known := now[f.OldName]
	if !known {
		old = before.content(f.OldName)
	}
	if f.IsNew {
		if at, known := now[f.NewName]; known && !at.gone || !known && !before.content(f.NewName).gone {
			return a.conflict(f.NewName, "", f.NewName+" exists already")
		}
		old = content{mode: 0o644}
	} else if old.gone {
		return a.conflict(f.OldName, "", "there is no "+f.OldName)
	}
	var out bytes.Buffer
	if err := gitdiff.Apply(&out, bytes.NewReader(old.data), f); err != nil {
		line := ""
		if e := (*gitdiff.ApplyError)(nil); errors.As(err, &e) && e.Fragment > 0 && e.Fragment <= len(f.TextFragments) {
			line = fmt.Sprint(f.TextFragments[e.Fragment-1].OldPosition)
		}
		return a.conflict(nameOf(f), line, err.Error())
	}
	if f.IsDelete || f.IsRename {
		now[f.OldName] = content{gone: true}
	}
	if f.IsDelete {
		return nil
	}
	fresh := content{data: out.Bytes(), mode: old.mode}
	if f.NewMode != 0 {
		fresh.mode = uint32(f.NewMode & 0o777)
	}
	now[f.NewName] = fresh
	return nil
}
