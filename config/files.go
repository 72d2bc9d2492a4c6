package config

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/fault"
)

// Files reads below a project's root, by slash paths relative to it; env.Files
// is one. What leads out of the root is a path_outside fault.
type Files interface {
	Open(path string) (env.File, error)
	Stat(path string) (iofs.FileInfo, error)
	ReadDir(path string, n int) ([]iofs.DirEntry, error)
}

// Location is what configuration is wanted for.
type Location struct {
	// Root is the work tree's top, or Directory itself; Directory is inside
	// it. Both are absolute and canonical.
	Root, Directory string
	// Files reads below Root.
	Files Files
}

// directories gives the paths relative to the root from the root down to the
// directory; "." is the root.
func (l Location) directories() ([]string, error) {
	rel, err := filepath.Rel(l.Root, l.Directory)
	if err != nil || !filepath.IsLocal(rel) || l.Files == nil {
		return nil, fmt.Errorf("config: %q is not a directory inside %q that can be read", l.Directory, l.Root)
	}
	out, at := []string{"."}, ""
	if rel == "." {
		return out, nil
	}
	for part := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
		at = path.Join(at, part)
		out = append(out, at)
	}
	return out, nil
}

// inside gives the path relative to the root of an absolute path in it.
func (l Location) inside(full string) (string, bool) {
	if l.Root == "" {
		return "", false
	}
	rel, err := filepath.Rel(l.Root, full)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}

// place is where one file is read.
type place struct {
	path    string // absolute for the host, relative to the root for a project
	project bool
}

// stamp is what a file looked like when it was read.
type stamp struct {
	place
	info iofs.FileInfo // nil when there was none
	// fresh means that the file had just been written: a further write might
	// not show in its time.
	fresh bool
}

// freshFor is longer than the steps of the clocks of file systems.
const freshFor = 50 * time.Millisecond

// current reports whether the file is as it was.
func (s stamp) current(files Files) bool {
	info, err := files.Stat(s.path)
	if s.info == nil {
		return err != nil && absent(err)
	}
	return err == nil && !s.fresh && info.Size() == s.info.Size() && info.ModTime().Equal(s.info.ModTime()) &&
		info.Mode() == s.info.Mode() && sameFile(info, s.info)
}

// sameFile compares identities where both sides know them.
func sameFile(a, b iofs.FileInfo) bool {
	return os.SameFile(a, b) || !os.SameFile(a, a)
}

var errTooLarge = errors.New("file is too large")

// readFile reads a whole regular file of at most limit bytes.
func readFile(files Files, name string, limit int64) ([]byte, iofs.FileInfo, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, info, err
	}
	if int64(len(data)) > limit {
		return data[:limit], info, errTooLarge
	}
	return data, info, nil
}

func absent(err error) bool {
	return errors.Is(err, iofs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || fault.Is(err, fault.FileNotFound) ||
		fault.Is(err, fault.NotADirectory)
}

func outside(err error) bool { return fault.Is(err, fault.PathOutside) }

func unfit(err error) bool { return fault.Is(err, fault.NotAFile) }

// hostFiles reads the owner's files by absolute paths, wherever they lead.
type hostFiles struct{}

func (hostFiles) Open(name string) (env.File, error) {
	// Without O_NONBLOCK opening a FIFO waits for a writer.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fault.New(fault.NotAFile, "%s is not a regular file", name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (hostFiles) Stat(name string) (iofs.FileInfo, error) { return os.Stat(name) }

func (hostFiles) ReadDir(name string, n int) ([]iofs.DirEntry, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(n)
}
