package vcs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/vcs/internal/difftext"
)

const (
	// maxNamed is how many files are named to git diff; more are cheaper to find
	// by looking at all.
	maxNamed = 200
	// The lines of untracked files are counted up to these bounds, in bytes.
	maxCountFile = 8 << 20
	maxCountAll  = 64 << 20
	// countAge bounds how long a count stands: the owner's global attributes may
	// change without a trace here.
	countAge = time.Minute
)

// count is how many lines changed in a file.
type count struct {
	added, deleted    int
	binary, uncounted bool
}

// countKey names two versions of a file, seen under certain rules: one of HEAD by
// its object, one of the work tree by its identity.
type countKey struct {
	kind                         byte
	path, from, oid, mode, rules string
	file                         identity
}

// countCache holds the counts of the files that were changed at the last look, so
// that an unchanged file is not read again.
type countCache map[countKey]counted

type counted struct {
	count
	at time.Time
}

// count counts the changed lines of each entry.
func (s *Service) count(ctx context.Context, repo Repo, files env.Files, entries []entry, off []string) ([]count, error) {
	s.mu.Lock()
	known := s.counts
	s.mu.Unlock()
	now := time.Now()
	rules := s.rulesOf(repo, files, entries)
	fresh, counts := countCache{}, make([]count, len(entries))
	keys := make([]countKey, len(entries)) // made before the files are read
	var tracked, other []int
	for i, e := range entries {
		keys[i] = keyOf(files, e, rules)
		c, ok := known[keys[i]]
		switch {
		case ok && now.Sub(c.at) < countAge:
			fresh[keys[i]], counts[i] = c, c.count
		case e.kind == '?':
			other = append(other, i)
		default:
			tracked = append(tracked, i)
		}
	}
	budget := int64(maxCountAll)
	for _, i := range other {
		c, err := countUntracked(ctx, files, entries[i].path, &budget)
		if err != nil {
			return nil, err
		}
		counts[i] = c
	}
	if err := s.countTracked(ctx, repo, entries, tracked, off, counts); err != nil {
		return nil, err
	}
	for _, i := range append(other, tracked...) {
		if e := entries[i]; e.kind != 'u' && !e.submodule() && keys[i].file.old(now) {
			fresh[keys[i]] = counted{count: counts[i], at: now}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts = fresh
	return counts, nil
}

// countUntracked counts the lines of an untracked file, as long as the budget of
// bytes lasts.
func countUntracked(ctx context.Context, files env.Files, path string, budget *int64) (count, error) {
	u, err := difftext.OpenUntracked(files, path)
	if err != nil {
		return count{}, nil //nolint:nilerr // it is gone, or no file
	}
	if u.Size > maxCountFile || u.Size > *budget {
		return count{uncounted: true}, nil
	}
	*budget -= u.Size
	f, err := u.Scan(ctx, nil)
	if ctx.Err() != nil {
		return count{}, err
	}
	if err != nil || f.Binary {
		return count{binary: f.Binary, uncounted: err != nil}, nil //nolint:nilerr // unreadable files are listed too
	}
	return count{added: f.Lines}, nil
}

// countTracked counts the entries at the given places.
func (s *Service) countTracked(ctx context.Context, repo Repo, entries []entry, at []int, off []string, counts []count) error {
	if len(at) == 0 {
		return nil
	}
	base, err := s.base(ctx, repo)
	if err != nil {
		return err
	}
	args := append(diffArgs(), "--numstat", "-z", base, "--")
	if len(at) <= maxNamed {
		for _, i := range at {
			args = append(args, entries[i].path)
			if entries[i].from != "" {
				args = append(args, entries[i].from)
			}
		}
	}
	out, err := s.tolerantDiff(ctx, call{in: repo, off: off, args: args})
	if err != nil {
		return err
	}
	found := map[string]count{}
	if err := parseNumstat(out, found); err != nil {
		return err
	}
	for _, i := range at {
		counts[i] = found[entries[i].path]
		if from := entries[i].from; from != "" {
			// Edited so much that git diff calls it another file: the old one's
			// lines are gone all the same.
			counts[i].deleted += found[from].deleted
		}
	}
	return nil
}

// tolerantDiff is tolerant for git diff, whose options come before its paths.
func (s *Service) tolerantDiff(ctx context.Context, c call) ([]byte, error) {
	out, err := s.output(ctx, c)
	if e := (*gitError)(nil); errors.As(err, &e) {
		c.args = append([]string{"diff", "--ignore-submodules=dirty"}, c.args[1:]...)
		if again, failed := s.output(ctx, c); failed == nil {
			return again, nil
		}
	}
	return out, err
}

// parseNumstat reads what git diff --numstat -z prints.
func parseNumstat(out []byte, found map[string]count) error {
	for len(out) > 0 {
		record, rest, _ := bytes.Cut(out, []byte{0})
		out = rest
		fields := strings.SplitN(string(record), "\t", 3)
		if len(fields) != 3 {
			return fmt.Errorf("git diff --numstat has the record %q", record)
		}
		name := fields[2]
		if name == "" { // a rename: the old and the new name follow
			_, rest, _ = bytes.Cut(out, []byte{0})
			to, rest, _ := bytes.Cut(rest, []byte{0})
			name, out = string(to), rest
		}
		var c count
		if fields[0] == "-" {
			c.binary = true
		} else {
			c.added, _ = strconv.Atoi(fields[0])
			c.deleted, _ = strconv.Atoi(fields[1])
		}
		// A conflict has a second record, a change of type too.
		c.added, c.deleted, c.binary = c.added+found[name].added, c.deleted+found[name].deleted, c.binary || found[name].binary
		found[name] = c
	}
	return nil
}

// rulesOf tells apart what decides how files are compared: configuration and
// attributes. Attributes of tracked files are what the index says, unless status
// lists the file that has them; of ignored ones nobody tells, see countAge.
func (s *Service) rulesOf(repo Repo, files env.Files, entries []entry) string {
	var b strings.Builder
	for _, at := range []struct{ dir, name string }{
		{repo.CommonDir, "config"}, {repo.CommonDir, "info/attributes"}, {repo.GitDir, "config.worktree"}, {repo.GitDir, "index"},
	} {
		if git, err := s.Env.Open(at.dir); err == nil {
			b.WriteString(identityText(git, at.name))
			_ = git.Close()
		}
	}
	for _, e := range entries {
		if path.Base(e.path) == ".gitattributes" || path.Base(e.from) == ".gitattributes" {
			b.WriteString(e.path + identityText(files, e.path))
		}
	}
	return b.String()
}

func keyOf(files env.Files, e entry, rules string) countKey {
	key := countKey{kind: e.kind, path: e.path, from: e.from, oid: e.oid, mode: e.modeHead, rules: rules}
	if info, err := files.Lstat(strings.TrimSuffix(e.path, "/")); err == nil {
		key.file = identityOf(info)
	}
	return key
}

func identityText(files env.Files, name string) string {
	info, err := files.Lstat(name)
	if err != nil {
		return "-"
	}
	i := identityOf(info)
	return fmt.Sprintf("%x.%x.%x.%x;", i.size, i.modified, i.changed, i.inode)
}
