package env

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/switchyard-dev/switchyard/fault"
)

// maxHops bounds the links that one path may lead through, as Linux does.
const maxHops = 40

// localFiles are the files below one directory of this machine.
type localFiles struct {
	dir   string // canonical
	given string // as the caller spelled it, cleaned

	mu   sync.Mutex // protects root and info
	root *os.Root
	info iofs.FileInfo // of root
}

// Close frees the root.
func (f *localFiles) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.root.Close()
}

// handle gives the root. A descriptor follows its directory when that is moved
// or deleted, so a directory that was made anew at the same place is opened
// again; callers on the old one end undisturbed and the garbage collector
// closes it.
func (f *localFiles) handle() (*os.Root, error) {
	now, err := os.Lstat(f.dir)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && os.SameFile(now, f.info) {
		return f.root, nil
	}
	if err != nil {
		return nil, f.gone(err)
	}
	if real, err := filepath.EvalSymlinks(f.dir); err != nil || real != f.dir {
		return nil, f.gone(errors.Join(iofs.ErrNotExist, err))
	}
	root, err := os.OpenRoot(f.dir + "/.")
	if err != nil {
		return nil, f.gone(err)
	}
	if f.info, err = root.Stat("."); err != nil {
		return nil, errors.Join(f.gone(err), root.Close())
	}
	f.root = root
	return root, nil
}

func (f *localFiles) gone(err error) error {
	return withField(fault.Wrap(err, fault.DirectoryMissing, "the directory %s is gone", f.dir), "directory", f.dir)
}

// act runs do on the root and the relative form of p. os.Root refuses absolute
// links even when they point inside, and long chains: then do runs once more on
// the path with its links resolved. What is acted on is always chosen by
// os.Root, so a tree that changes meanwhile cannot lead do outside.
func act[T any](f *localFiles, p string, follow bool, do func(root *os.Root, name string) (T, error)) (T, error) {
	var none T
	name, err := f.Rel(p)
	if err != nil {
		return none, err
	}
	root, err := f.handle()
	if err != nil {
		return none, err
	}
	v, err := do(root, name)
	if err == nil {
		return v, nil
	}
	if escapes(root, err) || isErrno(err, syscall.ELOOP) {
		if name, err = f.resolve(root, p, name, follow); err == nil {
			v, err = do(root, name)
		}
	}
	if err != nil {
		return none, f.explain(root, p, err)
	}
	return v, nil
}

// resolve follows the links in name and gives a path without any. The last
// element is followed only when follow is set; what does not exist is left as
// it is written. p is the caller's spelling, for faults.
func (f *localFiles) resolve(root *os.Root, p, name string, follow bool) (string, error) {
	var done []string
	rest := strings.Split(name, "/")
	for hops := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if len(done) == 0 {
				return "", outside(p, iofs.ErrInvalid)
			}
			done = done[:len(done)-1]
			continue
		}
		done = append(done, part)
		target, err := linkTarget(root, strings.Join(done, "/"), follow || len(rest) > 0)
		if errors.Is(err, iofs.ErrNotExist) {
			return path.Join(append(done, rest...)...), nil
		}
		if err != nil {
			return "", err
		}
		if target == "" {
			continue
		}
		if hops++; hops > maxHops {
			return "", syscall.ELOOP
		}
		done = done[:len(done)-1]
		if path.IsAbs(target) {
			rel, ok := f.below(target)
			if !ok {
				return "", outside(p, iofs.ErrInvalid)
			}
			done, target = nil, rel
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	if len(done) == 0 {
		return ".", nil
	}
	return strings.Join(done, "/"), nil
}

// linkTarget gives where a link leads, or "" for what is no link or shall not be
// followed.
func linkTarget(root *os.Root, name string, follow bool) (string, error) {
	info, err := root.Lstat(name)
	if err != nil || info.Mode().Type() != iofs.ModeSymlink || !follow {
		return "", err
	}
	target, err := root.Readlink(name)
	if isErrno(err, syscall.EINVAL) { // it stopped being a link just now
		return "", nil
	}
	return target, err
}

// Resolve follows all links but one in the last element.
func (f *localFiles) Resolve(p string) (string, error) {
	_, name, err := f.target(p, false)
	return name, err
}

// Open opens a regular file.
func (f *localFiles) Open(p string) (File, error) {
	return act(f, p, true, func(root *os.Root, name string) (File, error) {
		// Opening a device can already act on it, so it is looked at first; the
		// look after opening is the one that decides.
		info, err := root.Stat(name)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, notRegular(p)
		}
		return openRegular(root, name, p)
	})
}

// openRegular opens name without waiting for a writer on the other end of a
// FIFO, and gives back nothing but a regular file.
func openRegular(root *os.Root, name, p string) (File, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(p)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Stat follows links.
func (f *localFiles) Stat(p string) (iofs.FileInfo, error) {
	return act(f, p, true, (*os.Root).Stat)
}

// Lstat does not follow a link in the last element.
func (f *localFiles) Lstat(p string) (iofs.FileInfo, error) {
	return act(f, p, false, (*os.Root).Lstat)
}

// Readlink gives what a link says, as it is written.
func (f *localFiles) Readlink(p string) (string, error) {
	return act(f, p, false, (*os.Root).Readlink)
}

// ReadDir lists one directory.
func (f *localFiles) ReadDir(p string, n int) ([]iofs.DirEntry, error) {
	return act(f, p, true, func(root *os.Root, name string) ([]iofs.DirEntry, error) {
		// The closing dot makes os.Root open name as a directory only: a FIFO
		// is refused instead of waited for.
		dir, err := root.Open(name + "/.")
		if isErrno(err, syscall.ENOTDIR) {
			return nil, fileInPlaceOfDirectory(root, name, p, err)
		}
		if err != nil {
			return nil, err
		}
		defer dir.Close()
		entries, err := dir.ReadDir(max(n, 0))
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("listing %s: %w", p, err)
		}
		return entries, nil
	})
}

// fileInPlaceOfDirectory tells a file from a path that has a file in its middle.
func fileInPlaceOfDirectory(root *os.Root, name, p string, err error) error {
	if _, missed := root.Stat(name); missed != nil {
		return missed
	}
	return notDirectory(p, err)
}
