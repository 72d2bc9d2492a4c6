package vcs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/switchyard-dev/switchyard/env"
)

// maxLinks bounds the submodules that are looked at, nested ones included.
const maxLinks = 1000

// linkCache remembers which paths of an index are submodules.
type linkCache struct {
	index identity
	paths []string
}

// safe names the filters to switch off for a repository: all that any of its
// configuration defines, and that of its submodules, which git visits too. A
// filter is a command line that git runs on contents, chosen by a file in the
// tree. The owner's own filters are among them: what they do may again be steered
// by the repository.
func (s *Service) safe(ctx context.Context, repo Repo) ([]string, error) {
	names := map[string]bool{}
	if err := s.addFilters(ctx, call{in: repo}, names); err != nil {
		return nil, err
	}
	links, err := s.submodules(ctx, repo)
	if err != nil {
		return nil, err
	}
	if len(links) > 0 {
		err = s.withFiles(repo, func(files env.Files) error { return s.addBelow(ctx, repo, files, links, names) })
	}
	return slices.Sorted(maps.Keys(names)), err
}

// addBelow adds the filters of the submodules at links, and of theirs.
func (s *Service) addBelow(ctx context.Context, repo Repo, files env.Files, links []string, names map[string]bool) error {
	for i := 0; i < len(links) && i < maxLinks; i++ {
		if _, err := files.Lstat(path.Join(links[i], ".git")); err != nil {
			continue // not checked out
		}
		here := call{dir: filepath.Join(repo.Root, links[i]), discover: true}
		if err := s.addFilters(ctx, here, names); err != nil {
			return err
		}
		nested, err := s.listLinks(ctx, here)
		if err != nil {
			return err
		}
		for _, n := range nested {
			links = append(links, path.Join(links[i], n))
		}
	}
	return nil
}

// addFilters adds the names of the filters that a repository's configuration,
// with all that it includes, knows.
func (s *Service) addFilters(ctx context.Context, c call, names map[string]bool) error {
	c.args = []string{"config", "-z", "--name-only", "--get-regexp", `^(filter\..*|switchyard\.probe)$`}
	out, err := s.output(ctx, c)
	if e := (*gitError)(nil); errors.As(err, &e) && e.code == 1 {
		return errNoProgram // nothing found, not even our own setting
	}
	if err != nil {
		return err
	}
	heeded := false
	for key := range bytes.SplitSeq(out, []byte{0}) {
		rest, ok := strings.CutPrefix(string(key), "filter.")
		if dot := strings.LastIndexByte(rest, '.'); ok && dot > 0 {
			names[rest[:dot]] = true
		}
		heeded = heeded || string(key) == probeKey
	}
	if !heeded {
		return errNoProgram
	}
	return nil
}

// submodules lists the submodules in the index.
func (s *Service) submodules(ctx context.Context, repo Repo) ([]string, error) {
	at, has, err := s.mayHaveLinks(repo)
	if err != nil || !has {
		return nil, err
	}
	s.mu.Lock()
	known := s.links
	s.mu.Unlock()
	if known.index == at && !at.zero() {
		return known.paths, nil
	}
	paths, err := s.listLinks(ctx, call{in: repo})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.links = linkCache{index: at, paths: paths}
	return slices.Clone(paths), nil
}

func (s *Service) listLinks(ctx context.Context, c call) ([]string, error) {
	c.args = []string{"ls-files", "-s", "-z", "--full-name"}
	var paths []string
	err := s.stream(ctx, c, func(r *bufio.Reader) error {
		for {
			entry, err := r.ReadString(0)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if _, name, ok := strings.Cut(entry[:len(entry)-1], "\t"); ok && strings.HasPrefix(entry, "160000 ") {
				paths = append(paths, name)
			}
		}
	})
	return slices.Compact(paths), err // a conflict has an entry for each side
}

// mayHaveLinks looks for a submodule's mode anywhere in the index, which takes a
// millisecond where listing its entries takes thirty. It may say yes wrongly.
func (s *Service) mayHaveLinks(repo Repo) (at identity, has bool, err error) {
	files, err := s.Env.Open(repo.GitDir)
	if err != nil {
		return at, false, err
	}
	defer files.Close()
	f, err := files.Open("index")
	if err != nil {
		return at, false, nil // no index yet
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return at, false, err
	}
	at = identityOf(info)
	if split, err := files.ReadDir(".", -1); err != nil || slices.ContainsFunc(split, isSharedIndex) {
		return at, true, err
	}
	mode := []byte{0, 0, 0xe0, 0}
	buf := make([]byte, 1<<20)
	kept := 0
	for {
		n, err := f.Read(buf[kept:])
		if bytes.Contains(buf[:kept+n], mode) {
			return at, true, nil
		}
		if errors.Is(err, io.EOF) {
			return at, false, nil
		}
		if err != nil {
			return at, false, err
		}
		end := kept + n
		kept = min(end, len(mode)-1)
		copy(buf, buf[end-kept:end])
	}
}
