package vcs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
)

// Look is what differs from the last commit at one moment.
type Look struct {
	// Head is the commit, "" while there is none.
	Head string
	// Paths are relative to the top of the work tree: changed, untracked and
	// conflicting files, and the old names of renamed ones. Submodules and
	// untracked repositories are left out.
	Paths []string
}

// Look lists what differs from the last commit, without counting lines. Outside of
// git, and where there is no git program, it is ErrNotARepository.
func (s *Service) Look(ctx context.Context) (Look, error) {
	repo, ok := s.Locate()
	if !ok {
		return Look{}, ErrNotARepository
	}
	off, err := s.safe(ctx, repo)
	if err != nil {
		return Look{}, lookError(err)
	}
	out, err := s.tolerant(ctx, call{
		in: repo, off: off,
		args: []string{"status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignored=no", "--no-renames", "--no-branch"},
	})
	if err != nil {
		return Look{}, lookError(err)
	}
	entries, err := parseStatus(out)
	if err != nil {
		return Look{}, err
	}
	var l Look
	for _, e := range entries {
		if !e.submodule() && !strings.HasSuffix(e.path, "/") {
			l.Paths = append(l.Paths, e.path)
		}
	}
	head, err := s.output(ctx, call{in: repo, args: []string{"rev-parse", "--verify", "--quiet", "HEAD^{commit}"}})
	if e := (*gitError)(nil); err != nil && !errors.As(err, &e) {
		return Look{}, err
	}
	l.Head = strings.TrimSpace(string(head))
	return l, nil
}

func lookError(err error) error {
	if errors.Is(err, errNoProgram) {
		return ErrNotARepository
	}
	return err
}

// Between lists the paths that differ between two commits.
func (s *Service) Between(ctx context.Context, from, to string) ([]string, error) {
	repo, ok := s.Locate()
	if !ok {
		return nil, ErrNotARepository
	}
	out, err := s.output(ctx, call{in: repo, args: []string{"diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules=all", from, to, "--"}})
	if err != nil {
		return nil, err
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), nil
}

// ErrNotPlain says that a committed file is a link or a submodule, or too large.
var ErrNotPlain = errors.New("no plain file of the size that is taken")

// Committed gives a file as a checkout of a commit would have it, with its mode of
// 0o644 or 0o755; ok is false where the commit has none; a link, or one of more than
// limit bytes, is ErrNotPlain.
func (s *Service) Committed(ctx context.Context, commit, path string, limit int64) (data []byte, mode uint32, ok bool, err error) {
	repo, found := s.Locate()
	if !found || commit == "" {
		return nil, 0, false, nil
	}
	entry, err := s.output(ctx, call{in: repo, args: []string{"ls-tree", "-l", "-z", "--full-tree", commit, "--", path}})
	if err != nil {
		return nil, 0, false, err
	}
	about, name, _ := strings.Cut(strings.TrimSuffix(string(entry), "\x00"), "\t")
	fields := strings.Fields(about)
	if name != path || len(fields) != 4 {
		return nil, 0, false, nil
	}
	if size, err := strconv.ParseInt(fields[3], 10, 64); err != nil || size > limit || fields[1] != "blob" || fields[0] == "120000" {
		return nil, 0, true, ErrNotPlain
	}
	off, err := s.safe(ctx, repo)
	if err != nil {
		return nil, 0, false, err
	}
	var out bytes.Buffer
	err = s.run(ctx, call{in: repo, off: off, out: io.Writer(&out), args: []string{"cat-file", "--filters", "--path=" + path, fields[2]}})
	mode = 0o644
	if fields[0] == "100755" {
		mode = 0o755
	}
	return out.Bytes(), mode, err == nil, err
}
