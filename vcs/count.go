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
	rules := s.rulesOf(repo, files)
	fresh, counts := countCache{}, make([]count, len(entries))
	keys := make([]countKey, len(entries)) // made before the files are read
	var tracked, other []int
	for i, e := range entries {
		keys[i] = rules.key(e)
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

// rules tells apart what decides how files are compared: configuration and
// attributes.
type rules struct {
	files env.Files
	base  string
	seen  map[string]string // by directory
}

func (s *Service) rulesOf(repo Repo, files env.Files) *rules {
	r := &rules{files: files, seen: map[string]string{}}
	common, err := s.Env.Open(repo.CommonDir)
	if err != nil {
		return r
	}
	defer common.Close()
	for _, name := range []string{"config", "info/attributes"} {
		r.base += identityText(common, name)
	}
	return r
}

func (r *rules) key(e entry) countKey {
	key := countKey{kind: e.kind, path: e.path, from: e.from, oid: e.oid, mode: e.modeHead, rules: r.of(path.Dir(e.path))}
	if info, err := r.files.Lstat(strings.TrimSuffix(e.path, "/")); err == nil {
		key.file = identityOf(info)
	}
	return key
}

// of gives the rules for the files of a directory.
func (r *rules) of(dir string) string {
	if known, ok := r.seen[dir]; ok {
		return known
	}
	above := r.base
	if dir != "." && dir != "/" {
		above = r.of(path.Dir(dir))
	}
	above += identityText(r.files, path.Join(dir, ".gitattributes"))
	r.seen[dir] = above
	return above
}

func identityText(files env.Files, name string) string {
	info, err := files.Lstat(name)
	if err != nil {
		return "-"
	}
	i := identityOf(info)
	return fmt.Sprintf("%x.%x.%x.%x;", i.size, i.modified, i.changed, i.inode)
}
