package snapshot

import (
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/switchyard-dev/switchyard/env"
)

// settled is how old a file must be for its stamps to tell every later change.
const settled = time.Second

// identity changes whenever a file does, once it is settled.
type identity struct {
	size, mtime, ctime int64
	inode              uint64
	mode               iofs.FileMode
}

func identify(info iofs.FileInfo) identity {
	id := identity{size: info.Size(), mtime: info.ModTime().UnixNano(), mode: info.Mode()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id.inode, id.ctime = st.Ino, st.Ctim.Nano()
	}
	return id
}

func (id identity) settled() bool {
	return time.Since(time.Unix(0, max(id.mtime, id.ctime))) > settled
}

// seen is a file as it was before a call.
type seen struct {
	State
	id     identity
	stable bool // the identity tells every later change
}

// Watch is a tree before a call.
type Watch struct {
	s     *Service
	place Place
	head  string // of git; "" without
	whole bool   // the tree is looked at, not only the paths that were named
	git   bool
	full  bool // there were too many files to look at
	known map[string]seen
}

// Before notes what a call may change: the named absolute paths, and with whole
// anything in the tree. It keeps what git could not give back.
func (s *Service) Before(ctx context.Context, p Place, paths []string, whole bool) (*Watch, error) {
	w := &Watch{s: s, place: p, whole: whole, known: map[string]seen{}}
	if whole {
		if err := w.look(ctx); err != nil {
			return nil, err
		}
	}
	for _, path := range paths {
		w.note(path)
	}
	return w, nil
}

// look notes the tree.
func (w *Watch) look(ctx context.Context) error {
	if w.place.Git != nil {
		head, dirty, err := w.place.Git.Look(ctx)
		if err == nil {
			w.git, w.head = true, head
			for _, path := range dirty {
				if !w.s.isOwn(w.abs(path)) {
					w.note(w.abs(path))
				}
			}
			return nil
		}
		if !errors.Is(err, ErrNoGit) {
			return err
		}
	}
	return w.walk(ctx, func(path string, info iofs.FileInfo) {
		st, id := w.s.keepAs(w.place.Env, path, info)
		w.known[path] = seen{State: st, id: id, stable: id.settled()}
	})
}

// walk visits the files of a tree without git, as many as are looked at.
func (w *Watch) walk(ctx context.Context, visit func(path string, info iofs.FileInfo)) error {
	files, bytes := 0, int64(0)
	return w.place.Env.Files().Walk(ctx, env.WalkOptions{Path: ".", Hidden: true, Ordered: true}, func(e *env.Entry) error {
		if e.Type.IsDir() && w.s.isOwn(w.abs(e.Path)) {
			return iofs.SkipDir
		}
		if e.Type != 0 {
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return nil //nolint:nilerr // it is gone already
		}
		if info.Size() <= MaxFile {
			bytes += info.Size()
		}
		if files++; files > maxWalk || bytes > maxWalkBytes {
			w.full = true
			return iofs.SkipAll
		}
		visit(w.abs(e.Path), info)
		return nil
	})
}

func (w *Watch) abs(path string) string { return filepath.Join(w.place.Env.Root(), path) }

func (w *Watch) note(path string) {
	if _, ok := w.known[path]; !ok {
		st, id := w.s.keep(w.place.Env, path)
		w.known[path] = seen{State: st, id: id, stable: id.settled()}
	}
}

// After gives what has changed since, by path.
func (w *Watch) After(ctx context.Context) ([]Change, error) {
	candidates := map[string]iofs.FileInfo{} // nil where it is not known yet
	for path := range w.known {
		candidates[path] = nil
	}
	if w.whole {
		if err := w.lookAgain(ctx, candidates); err != nil {
			return nil, err
		}
	}
	var out []Change
	for path, info := range candidates {
		c, changed, err := w.compare(ctx, path, info)
		if err != nil {
			return nil, err
		}
		if changed {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b Change) int {
		if a.Path < b.Path {
			return -1
		}
		return 1
	})
	return out, nil
}

// lookAgain adds the paths of the tree that may have changed.
func (w *Watch) lookAgain(ctx context.Context, candidates map[string]iofs.FileInfo) error {
	if !w.git {
		return w.walk(ctx, func(path string, info iofs.FileInfo) { candidates[path] = info })
	}
	head, dirty, err := w.place.Git.Look(ctx)
	if errors.Is(err, ErrNoGit) { // the repository is gone
		return nil
	}
	if err != nil {
		return err
	}
	if head != w.head && head != "" && w.head != "" {
		moved, err := w.place.Git.Between(ctx, w.head, head)
		if err != nil {
			return err
		}
		dirty = append(dirty, moved...)
	}
	for _, path := range dirty {
		if !w.s.isOwn(w.abs(path)) {
			candidates[w.abs(path)] = nil
		}
	}
	return nil
}

// compare tells whether a path has changed.
func (w *Watch) compare(ctx context.Context, path string, info iofs.FileInfo) (Change, bool, error) {
	c := Change{Path: path}
	before, known := w.known[path]
	if known {
		var err error
		if info == nil {
			info, err = lstat(w.place.Env, path)
		}
		gone := errors.Is(err, iofs.ErrNotExist)
		// Of what is not kept the stamps are all that is known.
		trusted := before.stable || before.Reason != ""
		if gone && before.Hash == "" && before.Reason == "" || err == nil && trusted && identify(info) == before.id {
			return c, false, nil
		}
		c.Pre = before.State
	} else {
		var err error
		if c.Pre, err = w.committed(ctx, path); err != nil {
			return c, false, err
		}
	}
	c.Post, _ = w.s.keep(w.place.Env, path)
	return c, !c.Pre.same(c.Post), nil
}

// committed gives a file that was clean before: as its commit has it.
func (w *Watch) committed(ctx context.Context, path string) (State, error) {
	if !w.git {
		if w.full { // it may have been there
			return State{Reason: TooMany}, nil
		}
		return State{}, nil
	}
	rel, err := filepath.Rel(w.place.Env.Root(), path)
	if err != nil {
		return State{Reason: Unreadable}, nil //nolint:nilerr // then it is no path of the tree
	}
	data, mode, ok, err := w.place.Git.Committed(ctx, w.head, filepath.ToSlash(rel), MaxFile)
	switch {
	case errors.Is(err, ErrNotKept):
		return State{Reason: TooLarge}, nil
	case err != nil || !ok:
		return State{}, err
	}
	hash, err := w.s.objects.put(data)
	return State{Hash: hash, Mode: mode, Size: int64(len(data))}, err
}

// isOwn tells whether a path is the server's own directory or below.
func (s *Service) isOwn(path string) bool {
	return path == s.own || strings.HasPrefix(path, s.own+"/")
}

// opened gives the files that reach a path: those of the tree, or of its directory
// when it is elsewhere.
func opened(e env.Environment, path string, do func(env.Files) error) error {
	if _, err := e.Files().Rel(path); err == nil {
		return do(e.Files())
	}
	files, err := e.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(do(files), files.Close())
}

func lstat(e env.Environment, path string) (info iofs.FileInfo, err error) {
	err = opened(e, path, func(f env.Files) error {
		info, err = f.Lstat(path)
		return err
	})
	return info, err
}

// keep keeps what stands at a path now. What cannot be kept says why.
func (s *Service) keep(e env.Environment, path string) (State, identity) {
	info, err := lstat(e, path)
	if errors.Is(err, iofs.ErrNotExist) {
		return State{}, identity{}
	}
	if err != nil {
		return State{Reason: Unreadable}, identity{}
	}
	return s.keepAs(e, path, info)
}

// keepAs is keep for a file that was looked at.
func (s *Service) keepAs(e env.Environment, path string, info iofs.FileInfo) (State, identity) {
	id := identify(info)
	st := State{Mode: uint32(info.Mode().Perm()), Size: info.Size()}
	switch {
	case !info.Mode().IsRegular():
		st.Reason = NotAFile
		return st, id
	case info.Size() > MaxFile:
		st.Reason = TooLarge
		return st, id
	}
	if hash, ok := s.cached(path, id); ok {
		st.Hash = hash
		return st, id
	}
	var data []byte
	err := opened(e, path, func(f env.Files) error {
		in, err := f.Open(path)
		if err != nil {
			return err
		}
		data, err = io.ReadAll(io.LimitReader(in, MaxFile+1))
		return errors.Join(err, in.Close())
	})
	if err == nil && len(data) > MaxFile {
		st.Reason = TooLarge
		return st, id
	}
	if err == nil {
		st.Hash, err = s.objects.put(data)
	}
	if err != nil {
		st.Reason = Unreadable
		return st, id
	}
	st.Size = int64(len(data))
	if id.settled() {
		s.remember(path, id, st.Hash)
	}
	return st, id
}
