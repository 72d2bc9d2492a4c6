package env

import (
	"crypto/rand"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path"
	"syscall"

	"github.com/switchyard-dev/switchyard/fault"
)

// target gives the root and the path in it that a change of p is about, with
// its links resolved; one in the last element only when follow is set.
func (f *localFiles) target(p string, follow bool) (*os.Root, string, error) {
	name, err := f.Rel(p)
	if err != nil {
		return nil, "", err
	}
	root, err := f.handle()
	if err != nil {
		return nil, "", err
	}
	if name, err = f.resolve(root, p, name, follow); err != nil {
		return nil, "", f.explainChange(root, p, err)
	}
	return root, name, nil
}

// rootItself refuses changes that would replace or remove the root.
func rootItself(p, name string) error {
	if name != "." {
		return nil
	}
	return withField(fault.Wrap(iofs.ErrInvalid, fault.PathOutside, "the directory itself cannot be changed"), "path", p)
}

// place is where a file is written: a directory held open, so that the steps of
// one change meet the same directory, and a name in it.
type place struct {
	dir  *os.Root
	name string
}

// placeOf finds the place of the file p and makes the directories that are
// missing above it. The caller closes the place.
func (f *localFiles) placeOf(p string) (place, error) {
	root, name, err := f.target(p, true)
	if err == nil {
		err = rootItself(p, name)
	}
	if err != nil {
		return place{}, err
	}
	parent := path.Dir(name)
	if err := root.MkdirAll(parent, 0o777); err != nil {
		return place{}, f.explainChange(root, p, err)
	}
	dir, err := root.OpenRoot(parent + "/.")
	if err != nil {
		return place{}, f.explainChange(root, p, err)
	}
	return place{dir: dir, name: path.Base(name)}, nil
}

func (at place) close() { _ = at.dir.Close() }

// explainChange is explain for changes: there a file in the middle of a path
// stands in the way, it does not say that something is missing.
func (f *localFiles) explainChange(root *os.Root, p string, err error) error {
	if isErrno(err, syscall.ENOTDIR, syscall.EEXIST) {
		return notDirectory(p, err)
	}
	return f.explain(root, p, err)
}

// WriteFile replaces a file in one step: readers see the old or the new bytes,
// and after a crash one of both is there.
func (f *localFiles) WriteFile(p string, data []byte, mode iofs.FileMode) error {
	at, err := f.placeOf(p)
	if err != nil {
		return err
	}
	defer at.close()
	old, err := at.replaceable(p)
	if err == nil {
		err = at.write(data, mode, old)
	}
	if err != nil {
		return f.explainChange(at.dir, p, err)
	}
	return nil
}

// replaceable gives what stands at the place, nil for nothing. A file that the
// server may not write is an error: replacing it would go around its mode.
func (at place) replaceable(p string) (iofs.FileInfo, error) {
	old, err := at.dir.Lstat(at.name)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !old.Mode().IsRegular() {
		return nil, notRegular(p)
	}
	probe, err := at.dir.OpenFile(at.name, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		return old, probe.Close()
	}
	if isErrno(err, syscall.ETXTBSY) { // a running program: replacing it is how one updates it
		return old, nil
	}
	return nil, err
}

// write makes a temporary file beside the place and moves it there.
func (at place) write(data []byte, mode iofs.FileMode, old iofs.FileInfo) error {
	temp := ".switchyard-" + rand.Text()
	if old != nil {
		mode = 0o600 // until the old mode is put on
	}
	file, err := at.dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode.Perm())
	if err != nil {
		return err
	}
	err = fill(file, data, old)
	if err = errors.Join(err, file.Close()); err == nil {
		err = at.dir.Rename(temp, at.name)
	}
	if err != nil {
		return errors.Join(err, at.dir.Remove(temp))
	}
	return at.sync()
}

// fill writes the bytes down to the disk and takes over owner and mode of the
// file that is replaced.
func fill(file *os.File, data []byte, old iofs.FileInfo) error {
	if _, err := file.Write(data); err != nil {
		return err
	}
	if old != nil {
		if was, ok := old.Sys().(*syscall.Stat_t); ok {
			// Only root may give files away; for others the new owner stands,
			// as with every editor that replaces files.
			_ = file.Chown(int(was.Uid), int(was.Gid))
		}
		if err := file.Chmod(old.Mode()); err != nil {
			return err
		}
	}
	return file.Sync()
}

// sync makes the renaming last over a loss of power.
func (at place) sync() error {
	dir, err := at.dir.Open(".")
	if err != nil {
		return fmt.Errorf("syncing a directory: %w", err)
	}
	err = dir.Sync()
	if isErrno(err, syscall.EINVAL, syscall.ENOTSUP) { // file systems without it
		err = nil
	}
	return errors.Join(err, dir.Close())
}

// Mkdir makes a directory and those missing above it.
func (f *localFiles) Mkdir(p string, mode iofs.FileMode) error {
	root, name, err := f.target(p, true)
	if err != nil {
		return err
	}
	if err := root.MkdirAll(name, mode.Perm()); err != nil {
		return f.explainChange(root, p, err)
	}
	return nil
}

// Remove removes a file, a link or a directory with all below it.
func (f *localFiles) Remove(p string) error {
	root, name, err := f.target(p, false)
	if err == nil {
		err = rootItself(p, name)
	}
	if err != nil {
		return err
	}
	if _, err = root.Lstat(name); err == nil {
		err = root.RemoveAll(name)
	}
	if err != nil {
		return f.explain(root, p, err)
	}
	return nil
}

// Rename moves what is at one path to another.
func (f *localFiles) Rename(from, to string) error {
	root, old, err := f.target(from, false)
	if err == nil {
		err = rootItself(from, old)
	}
	if err != nil {
		return err
	}
	if _, err := root.Lstat(old); err != nil {
		return f.explain(root, from, err)
	}
	_, name, err := f.target(to, false)
	if err == nil {
		err = rootItself(to, name)
	}
	if err != nil {
		return err
	}
	if err = root.MkdirAll(path.Dir(name), 0o777); err == nil {
		err = root.Rename(old, name)
	}
	if err != nil {
		return f.explainChange(root, to, err)
	}
	return nil
}
