package vcs

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/vcs/internal/difftext"
)

// maxLibraryFile bounds the files whose lines are compared without git, in bytes.
const maxLibraryFile = 8 << 20

// library is a repository as go-git sees it, for machines without git. It knows
// no global ignore rules, no conversions of line ends and no renames.
type library struct {
	repo  *git.Repository
	files env.Files
	base  *object.Tree // nil for none
	// changed are the paths that differ from base, with their untracked mark.
	status git.Status
	paths  []string
}

func (s *Service) openLibrary(ctx context.Context, repo Repo, mode string) (*library, error) {
	r, err := git.PlainOpenWithOptions(repo.Root, &git.PlainOpenOptions{EnableDotGitCommonDir: true})
	if err != nil {
		return nil, fmt.Errorf("opening the repository: %w", err)
	}
	l := &library{repo: r}
	if err := l.look(); err != nil {
		return nil, err
	}
	if mode == ModeDefault && l.base != nil {
		if err := l.rebase(ctx, s, repo); err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	l.files, err = s.files(repo)
	return l, err
}

// look finds what differs from HEAD.
func (l *library) look() error {
	head, err := l.repo.Head()
	if err != nil && !errors.Is(err, plumbing.ErrReferenceNotFound) {
		return fmt.Errorf("reading HEAD: %w", err)
	}
	if err == nil {
		if l.base, err = l.treeOf(head.Hash()); err != nil {
			return err
		}
	}
	tree, err := l.repo.Worktree()
	if err != nil {
		return fmt.Errorf("opening the work tree: %w", err)
	}
	if l.status, err = tree.Status(); err != nil {
		return fmt.Errorf("comparing the work tree: %w", err)
	}
	for path, st := range l.status {
		if st.Staging != git.Unmodified || st.Worktree != git.Unmodified {
			l.paths = append(l.paths, path)
		}
	}
	slices.Sort(l.paths)
	return nil
}

func (l *library) treeOf(commit plumbing.Hash) (*object.Tree, error) {
	c, err := l.repo.CommitObject(commit)
	if err != nil {
		return nil, fmt.Errorf("reading commit %s: %w", commit, err)
	}
	tree, err := c.Tree()
	if err != nil {
		return nil, fmt.Errorf("reading the tree of %s: %w", commit, err)
	}
	return tree, nil
}

// rebase replaces HEAD with its merge base with the default branch.
func (l *library) rebase(ctx context.Context, s *Service, repo Repo) error {
	g, err := s.openGit(repo)
	if err != nil {
		return err
	}
	defer g.close()
	name, ref := s.defaultBranch(ctx, repo, g)
	if ref == "" {
		return noDefault("the repository has no default branch to compare with")
	}
	h, err := g.head()
	if err != nil {
		return err
	}
	here, err := l.repo.CommitObject(plumbing.NewHash(h.commit))
	if err != nil {
		return fmt.Errorf("reading HEAD: %w", err)
	}
	there, err := l.repo.CommitObject(plumbing.NewHash(g.resolve(ref)))
	if err != nil {
		return fmt.Errorf("reading %s: %w", ref, err)
	}
	bases, err := here.MergeBase(there)
	if err != nil || len(bases) == 0 {
		return noDefault("HEAD has no commit in common with " + name)
	}
	base, err := bases[0].Tree()
	if err != nil {
		return fmt.Errorf("reading the merge base: %w", err)
	}
	changes, err := object.DiffTreeWithOptions(ctx, base, l.base, nil)
	if err != nil {
		return fmt.Errorf("comparing with the merge base: %w", err)
	}
	all := map[string]bool{}
	for _, p := range l.paths {
		all[p] = true
	}
	for _, c := range changes {
		all[cmp.Or(c.To.Name, c.From.Name)] = true
	}
	l.base, l.paths = base, slices.Sorted(maps.Keys(all))
	return nil
}

// sides reads both versions of a file; nil for one that is not there.
func (l *library) sides(path string) (before, after []byte, whole bool, err error) {
	whole = true
	if l.base != nil {
		f, err := l.base.File(path)
		if err == nil && f.Size > maxLibraryFile {
			return nil, nil, false, nil
		}
		if err == nil {
			text, err := f.Contents()
			if err != nil {
				return nil, nil, false, fmt.Errorf("reading %s: %w", path, err)
			}
			before = append([]byte{}, text...)
		}
	}
	u, err := difftext.OpenUntracked(l.files, path)
	if err != nil {
		return before, nil, true, nil // deleted
	}
	if u.Size > maxLibraryFile {
		return nil, nil, false, nil
	}
	r, err := u.Open()
	if err != nil {
		return nil, nil, false, nil // unreadable
	}
	defer r.Close()
	after, err = io.ReadAll(io.LimitReader(r, maxLibraryFile))
	return before, append([]byte{}, after...), whole, err
}

// diff compares one file; ok is false when there is no difference.
func (l *library) diff(path string, lines int, limits *difftext.Budget) (d FileDiff, ok bool, err error) {
	before, after, whole, err := l.sides(path)
	if err != nil {
		return d, false, err
	}
	d = FileDiff{Path: path, Status: "modified"}
	switch {
	case !whole:
		d.Truncated = true
		return d, true, nil
	case before == nil && after == nil:
		return d, false, nil
	case before == nil:
		d.Status = "added"
	case after == nil:
		d.Status = "deleted"
	case bytes.Equal(before, after):
		return d, false, nil
	}
	if difftext.IsBinary(before) || difftext.IsBinary(after) || !utf8.Valid(before) || !utf8.Valid(after) {
		d.Binary = true
		return d, true, nil
	}
	return d, true, compare(&d, string(before), string(after), lines, limits)
}

// compare fills in the hunks between two texts.
func compare(d *FileDiff, before, after string, lines int, limits *difftext.Budget) error {
	u, err := udiff.ToUnifiedDiff("", "", before, udiff.Lines(before, after), lines)
	if err != nil {
		return fmt.Errorf("comparing %s: %w", d.Path, err)
	}
	limits.Open()
	for _, from := range u.Hunks {
		h := Hunk{OldStart: from.FromLine, NewStart: from.ToLine, Lines: []string{}}
		for _, l := range from.Lines {
			sign := " "
			switch l.Kind {
			case udiff.Delete:
				sign = "-"
				h.OldLines++
				d.Deletions++
			case udiff.Insert:
				sign = "+"
				h.NewLines++
				d.Additions++
			default:
				h.OldLines++
				h.NewLines++
			}
			d.Truncated = d.Truncated || !limits.Take(len(l.Content))
			if d.Truncated {
				continue
			}
			line, complete := bytes.CutSuffix([]byte(l.Content), []byte{'\n'})
			h.Lines = append(h.Lines, sign+difftext.Text(line))
			if !complete {
				h.Lines = append(h.Lines, difftext.NoNewline)
			}
		}
		if h.OldLines == 0 {
			h.OldStart = max(h.OldStart-1, 0)
		}
		if h.NewLines == 0 {
			h.NewStart = max(h.NewStart-1, 0)
		}
		d.Hunks = append(d.Hunks, h)
	}
	return nil
}

// lettersOf are the marks of go-git as git status writes them.
func lettersOf(st *git.FileStatus) (x, y byte) {
	letter := func(c git.StatusCode) byte {
		if c == git.Unmodified || c == git.Untracked {
			return '.'
		}
		return byte(c)
	}
	return letter(st.Staging), letter(st.Worktree)
}

func (s *Service) statusByLibrary(ctx context.Context, repo Repo) ([]Change, error) {
	l, err := s.openLibrary(ctx, repo, "")
	if err != nil {
		return nil, err
	}
	defer l.files.Close()
	at := s.relative(repo)
	changes := []Change{}
	for _, path := range l.paths {
		st := l.status[path]
		e := entry{kind: '1', path: path}
		e.x, e.y = lettersOf(st)
		switch {
		case st.Staging == git.UpdatedButUnmerged || st.Worktree == git.UpdatedButUnmerged:
			e.kind = 'u'
		case st.Worktree == git.Untracked:
			e.kind = '?'
		}
		d, _, err := l.diff(path, 0, difftext.NewBudget())
		if err != nil {
			return nil, err
		}
		changes = append(changes, e.change(at, count{
			added: d.Additions, deleted: d.Deletions, binary: d.Binary, uncounted: d.Truncated && d.Additions+d.Deletions == 0,
		}))
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.File, b.File) })
	return changes, nil
}

// eachByLibrary calls f with the diff of every changed file.
func (s *Service) eachByLibrary(ctx context.Context, repo Repo, o DiffOptions, limits *difftext.Budget, f func(*library, FileDiff) error) error {
	l, err := s.openLibrary(ctx, repo, o.Mode)
	if err != nil {
		return err
	}
	defer l.files.Close()
	for _, path := range l.paths {
		d, ok, err := l.diff(path, o.Context, limits)
		if err == nil && ok {
			err = f(l, d)
		}
		if err = errors.Join(err, context.Cause(ctx)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) diffByLibrary(ctx context.Context, repo Repo, o DiffOptions) ([]FileDiff, error) {
	diffs := []FileDiff{}
	err := s.eachByLibrary(ctx, repo, o, difftext.NewBudget(), func(_ *library, d FileDiff) error {
		diffs = append(diffs, d)
		return nil
	})
	return diffs, err
}

// patchByLibrary writes text changes only; of binary files it says that they
// differ.
func (s *Service) patchByLibrary(ctx context.Context, repo Repo, o DiffOptions, w io.Writer) error {
	unbounded := difftext.Unbounded()
	out := bufio.NewWriterSize(w, 64<<10)
	err := s.eachByLibrary(ctx, repo, o, unbounded, func(l *library, d FileDiff) error {
		writeDiff(out, d, l.modeOf(d.Path))
		return nil
	})
	return errors.Join(err, out.Flush())
}

func (l *library) modeOf(path string) string {
	if u, err := difftext.OpenUntracked(l.files, path); err == nil {
		return u.Mode
	}
	return "100644"
}

// writeDiff writes a diff as git does; errors stay with the writer.
func writeDiff(w *bufio.Writer, d FileDiff, mode string) {
	a, b := difftext.Quote("a/"+d.Path), difftext.Quote("b/"+d.Path)
	fmt.Fprintf(w, "diff --git %s %s\n", a, b)
	switch d.Status {
	case "added":
		fmt.Fprintf(w, "new file mode %s\n", mode)
		a = "/dev/null"
	case "deleted":
		fmt.Fprintf(w, "deleted file mode %s\n", mode)
		b = "/dev/null"
	}
	if d.Binary || d.Truncated {
		// Without the line of objects git takes the next header for this one's.
		fmt.Fprintf(w, "index 0000000..0000000\nBinary files %s and %s differ\n", a, b)
		return
	}
	if len(d.Hunks) > 0 {
		fmt.Fprintf(w, "--- %s\n+++ %s\n", a, b)
	}
	for _, h := range d.Hunks {
		fmt.Fprintf(w, "@@ -%d,%d +%d,%d @@\n", h.OldStart, h.OldLines, h.NewStart, h.NewLines)
		for _, line := range h.Lines {
			fmt.Fprintln(w, line)
		}
	}
}
