package vcs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/vcs/internal/difftext"
	"github.com/switchyard-dev/switchyard/vcs/internal/patchfile"
)

const (
	// lockPatience is how long a patch waits for an index lock, in steps.
	lockPatience = time.Second
	lockStep     = 50 * time.Millisecond
	// patchTime bounds the writing of a patch, which its caller cannot cut short.
	patchTime = time.Minute
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
	parsed, err := patchfile.Read(patch)
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
	if err := patchfile.Check(files, parsed); err != nil {
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
			return nil // not locked
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
			d.OldFile, d.OldFileBytes = difftext.Readable(at.path(f.OldName))
		}
		d.File, d.FileBytes = difftext.Readable(at.path(patchfile.Name(f)))
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
	before, err := patchfile.Take(a.files, a.parsed)
	if err != nil {
		return err
	}
	// From here on the caller's leaving must not stop it half way.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patchTime)
	defer cancel()
	if err := s.run(ctx, a.call(off, "apply", "--whitespace=nowarn", "--no-ignore-whitespace")); err != nil {
		return errors.Join(a.explain(err), before.Restore(a.files))
	}
	return nil
}

// sameFiles holds what git has read against what was checked.
func (a *application) sameFiles(numstat []byte) error {
	checked := map[string]bool{}
	for _, f := range a.parsed {
		checked[patchfile.Name(f)] = true
	}
	counts := map[string]count{}
	if err := parseNumstat(numstat, counts); err != nil {
		return err
	}
	for name := range counts {
		if !checked[name] {
			return notAPatch(fmt.Errorf("it can be read in two ways: is %s in it?", difftext.Text([]byte(name))))
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
		return a.conflict(a.mentioned(line), "", line)
	}
	return err
}

// mentioned gives the file of the patch that a message is about.
func (a *application) mentioned(line string) string {
	for _, f := range a.parsed {
		for _, name := range []string{f.OldName, f.NewName} {
			if name != "" && (strings.HasPrefix(line, name+":") || strings.Contains(line, "'"+name+"'") || strings.HasSuffix(line, " "+name)) {
				return name
			}
		}
	}
	return patchfile.Name(a.parsed[0])
}

// conflict names the file and, by the line where it was to begin, the hunk.
func (a *application) conflict(name, line, why string) error {
	shown, _ := difftext.Readable(a.service.relative(a.repo).path(name))
	e := fault.New(fault.PatchConflict, "the patch does not apply: %s", difftext.Text([]byte(why))).With("file", shown)
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

// byLibrary applies the patch without git, strictly: a hunk whose lines moved is
// a conflict.
func (a *application) byLibrary(ctx context.Context) error {
	before, err := patchfile.Take(a.files, a.parsed)
	if err != nil {
		return err
	}
	now := map[string]patchfile.Content{}
	for _, f := range a.parsed {
		if err := a.applyOne(f, before, now); err != nil {
			return err
		}
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := patchfile.Write(a.files, now); err != nil {
		return errors.Join(err, before.Restore(a.files))
	}
	return nil
}

func (a *application) applyOne(f *gitdiff.File, before patchfile.Images, now map[string]patchfile.Content) error {
	if patchfile.IsLink(f) || patchfile.WasLink(f) {
		return fault.New(fault.ValidationFailed, "links cannot be patched without the git program").At("body.patch", "%s is a link", patchfile.Name(f))
	}
	old, known := now[f.OldName]
	if !known {
		old = before.Content(f.OldName)
	}
	if f.IsNew {
		if at, known := now[f.NewName]; known && !at.Gone || !known && !before.Content(f.NewName).Gone {
			return a.conflict(f.NewName, "", f.NewName+" exists already")
		}
		old = patchfile.Content{Mode: 0o644}
	} else if old.Gone {
		return a.conflict(f.OldName, "", "there is no "+f.OldName)
	}
	var out bytes.Buffer
	if err := gitdiff.Apply(&out, bytes.NewReader(old.Data), f); err != nil {
		line := ""
		if e := (*gitdiff.ApplyError)(nil); errors.As(err, &e) && e.Fragment > 0 && e.Fragment <= len(f.TextFragments) {
			line = fmt.Sprint(f.TextFragments[e.Fragment-1].OldPosition)
		}
		return a.conflict(patchfile.Name(f), line, err.Error())
	}
	if f.IsDelete || f.IsRename {
		now[f.OldName] = patchfile.Content{Gone: true}
	}
	if f.IsDelete {
		return nil
	}
	fresh := patchfile.Content{Data: out.Bytes(), Mode: old.Mode}
	if f.NewMode != 0 {
		fresh.Mode = uint32(f.NewMode & 0o777)
	}
	now[f.NewName] = fresh
	return nil
}
