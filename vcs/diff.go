package vcs

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing/format/config"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/vcs/internal/difftext"
)

// DefaultContext is how many lines stand around a change unless the caller says.
const DefaultContext = 3

// What a diff compares the work tree with.
const (
	ModeWorktree = "worktree" // HEAD
	ModeDefault  = "default"  // the merge base of HEAD and the default branch
)

// DiffOptions choose a diff.
type DiffOptions struct {
	Mode    string // "" is ModeWorktree
	Context int    // lines around a change
}

// FileDiff is a changed file with its changed lines.
type FileDiff = difftext.FileDiff

// Hunk is a run of lines in which something changed.
type Hunk = difftext.Hunk

// Diff compares the work tree, untracked files included, with its base, by file.
// Outside of git there is nothing to compare. Lines are left out beyond bounds
// for each file and for all.
func (s *Service) Diff(ctx context.Context, o DiffOptions) ([]FileDiff, error) {
	repo, ok := s.Locate()
	if !ok {
		return []FileDiff{}, nil
	}
	diffs, err := s.diffByProgram(ctx, repo, o)
	if errors.Is(err, errNoProgram) {
		diffs, err = s.diffByLibrary(ctx, repo, o)
	}
	if err != nil {
		return nil, err
	}
	at := s.relative(repo)
	for i := range diffs {
		d := &diffs[i]
		d.File, d.FileBytes = difftext.Readable(at.path(d.Path))
		if d.OldFile != "" {
			d.OldFile, d.OldFileBytes = difftext.Readable(at.path(d.OldFile))
		}
	}
	slices.SortStableFunc(diffs, func(a, b FileDiff) int { return cmp.Compare(a.File, b.File) })
	return diffs, nil
}

// diffArgs are the arguments of every git diff, before what it compares.
func diffArgs() []string {
	return []string{
		"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--no-relative", "--find-renames", "--submodule=short", "-O/dev/null",
		"--src-prefix=a/", "--dst-prefix=b/", "--output-indicator-new=+", "--output-indicator-old=-", "--output-indicator-context= ",
	}
}

func (s *Service) diffByProgram(ctx context.Context, repo Repo, o DiffOptions) ([]FileDiff, error) {
	job, err := s.prepare(ctx, repo, o)
	if err != nil {
		return nil, err
	}
	defer job.close()
	c := job.call("--raw", "-z", "--patch", "--abbrev=40")
	var diffs []FileDiff
	limits := difftext.NewBudget()
	read := func(r *bufio.Reader) (err error) {
		diffs, err = difftext.Read(r, limits)
		return err
	}
	err = s.stream(ctx, c, read)
	if e := (*gitError)(nil); errors.As(err, &e) {
		limits = difftext.NewBudget()
		c.args = append([]string{"diff", "--ignore-submodules=dirty"}, c.args[1:]...)
		err = s.stream(ctx, c, read)
	}
	if err != nil {
		return nil, err
	}
	err = job.each(func(u difftext.Untracked) error {
		d, err := u.Diff(ctx, limits)
		d.Path = u.Path
		diffs = append(diffs, d)
		return err
	})
	return diffs, err
}

// WritePatch writes the diff as one patch that git apply takes, binary files
// included, as it is made. Nothing is written outside of git.
func (s *Service) WritePatch(ctx context.Context, o DiffOptions, w io.Writer) error {
	repo, ok := s.Locate()
	if !ok {
		return nil
	}
	job, err := s.prepare(ctx, repo, o)
	if errors.Is(err, errNoProgram) {
		return s.patchByLibrary(ctx, repo, o, w)
	}
	if err != nil {
		return err
	}
	defer job.close()
	err = s.stream(ctx, job.call("--patch", "--binary", "--full-index"), func(r *bufio.Reader) error { return difftext.Copy(w, r) })
	if err != nil {
		return err
	}
	return job.each(func(u difftext.Untracked) error { return u.Write(ctx, w, len(job.base)) })
}

// job is a diff that is about to be made.
type job struct {
	repo    Repo
	base    string
	off     []string
	context int
	files   env.Files
	others  []string // untracked paths
	lister  sync.WaitGroup
	failed  error // of the lister
	cancel  context.CancelFunc
}

func (s *Service) prepare(ctx context.Context, repo Repo, o DiffOptions) (*job, error) {
	off, err := s.safe(ctx, repo)
	if err != nil {
		return nil, err
	}
	j := &job{repo: repo, off: off, context: o.Context}
	if j.base, err = s.base(ctx, repo); err != nil {
		return nil, err
	}
	if o.Mode == ModeDefault {
		if j.base, err = s.mergeBase(ctx, repo, j.base); err != nil {
			return nil, err
		}
	}
	if j.files, err = s.files(repo); err != nil {
		return nil, err
	}
	// The search for untracked files is a walk of its own: it runs beside.
	ctx, j.cancel = context.WithCancel(ctx)
	j.lister.Go(func() {
		var out []byte
		out, j.failed = s.output(ctx, call{in: repo, off: off, args: []string{"ls-files", "-z", "--others", "--exclude-standard", "--full-name"}})
		for name := range bytes.SplitSeq(out, []byte{0}) {
			if len(name) > 0 {
				j.others = append(j.others, string(name))
			}
		}
		slices.Sort(j.others)
	})
	return j, nil
}

// close ends what still runs and waits for it.
func (j *job) close() {
	j.cancel()
	j.lister.Wait()
	_ = j.files.Close()
}

func (j *job) call(format ...string) call {
	args := append(diffArgs(), "--unified="+strconv.Itoa(max(j.context, 0)))
	args = append(append(args, format...), j.base, "--")
	return call{in: j.repo, off: j.off, args: args}
}

// each calls f for every untracked file.
func (j *job) each(f func(difftext.Untracked) error) error {
	j.lister.Wait()
	if j.failed != nil {
		return j.failed
	}
	for _, path := range j.others {
		u, err := difftext.OpenUntracked(j.files, path)
		if errors.Is(err, difftext.ErrNotShown) {
			continue
		}
		if err != nil {
			return err
		}
		if err := f(u); err != nil {
			return err
		}
	}
	return nil
}

// The names of the tree without files, by the length of object names.
const (
	emptySHA1   = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
	emptySHA256 = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
)

// base gives the commit that is checked out, or the empty tree while there is
// none.
func (s *Service) base(ctx context.Context, repo Repo) (string, error) {
	g, err := s.openGit(repo)
	if err != nil {
		return "", err
	}
	defer g.close()
	h, err := g.head()
	if errors.Is(err, errTable) {
		info, err := s.getByProgram(ctx, repo, Info{})
		h.commit = info.Head
		if err != nil {
			return "", err
		}
	}
	if h.commit != "" {
		return h.commit, nil
	}
	c := config.New()
	if config.NewDecoder(strings.NewReader(small(g.common, "config"))).Decode(c) == nil &&
		c.Section("extensions").Option("objectformat") == "sha256" {
		return emptySHA256, nil
	}
	return emptySHA1, nil
}

// mergeBase gives the newest commit that head has in common with the default
// branch.
func (s *Service) mergeBase(ctx context.Context, repo Repo, head string) (string, error) {
	if head == emptySHA1 || head == emptySHA256 {
		return head, nil
	}
	g, err := s.openGit(repo)
	if err != nil {
		return "", err
	}
	defer g.close()
	name, ref := s.defaultBranch(ctx, repo, g)
	if ref == "" {
		return "", noDefault("the repository has no default branch to compare with")
	}
	out, err := s.output(ctx, call{in: repo, args: []string{"merge-base", ref, head}})
	if e := (*gitError)(nil); errors.As(err, &e) {
		return "", noDefault("HEAD has no commit in common with " + name)
	}
	return strings.TrimSpace(string(out)), err
}

func noDefault(why string) error {
	return fault.New(fault.ValidationFailed, "%s", why).At("query.mode", "%s", why)
}
