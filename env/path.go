package env

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/switchyard-dev/switchyard/fault"
)

// Rel gives the clean slash path relative to the root of a path as users write
// it. It looks at no file: links are judged when the path is used.
func (f *localFiles) Rel(p string) (string, error) {
	if strings.ContainsRune(p, 0) || disguised(p) {
		return "", outside(p, iofs.ErrInvalid)
	}
	if path.IsAbs(p) {
		rel, ok := f.below(p)
		if !ok {
			return "", outside(p, iofs.ErrInvalid)
		}
		return rel, nil
	}
	rel := path.Clean(p)
	if rel == ".." || strings.HasPrefix(rel, "../") {
		return "", outside(p, iofs.ErrInvalid)
	}
	return rel, nil
}

// below turns an absolute path inside the root, in its canonical spelling or as
// the root was given, into a relative one.
func (f *localFiles) below(p string) (string, bool) {
	p = path.Clean(p)
	for _, base := range []string{f.dir, f.given} {
		if p == base {
			return ".", true
		}
		if rest, ok := strings.CutPrefix(p, strings.TrimSuffix(base, "/")+"/"); ok {
			return rest, true
		}
	}
	return "", false
}

// plainer undoes the spellings that some client or proxy may take for a
// separator or a dot.
var plainer = strings.NewReplacer(
	`\`, "/", "%2f", "/", "%2F", "/", "%5c", "/", "%5C", "/", "%2e", ".", "%2E", ".",
)

// disguised reports a ".." that hides behind backslashes or percent signs. Such
// names are legal here, but nobody means them, and the next program that sees
// the path may read them otherwise.
func disguised(p string) bool {
	if !strings.ContainsAny(p, `\%`) {
		return false
	}
	return parents(plainer.Replace(p)) > parents(p)
}

// parents counts the ".." segments of a slash path.
func parents(p string) int {
	n := 0
	for part := range strings.SplitSeq(p, "/") {
		if part == ".." {
			n++
		}
	}
	return n
}

// outside is the one answer for every path that leads out of the root.
func outside(p string, cause error) error {
	return withField(fault.Wrap(cause, fault.PathOutside, "%s is outside of the directory", p), "path", p)
}

// missing is the answer for a path that leads to nothing.
func missing(p string, cause error) error {
	if !errors.Is(cause, iofs.ErrNotExist) {
		cause = errors.Join(iofs.ErrNotExist, cause)
	}
	return withField(fault.Wrap(cause, fault.FileNotFound, "there is no file %s", p), "path", p)
}

// notRegular is the answer for a directory, FIFO, socket or device where a file
// is wanted.
func notRegular(p string) error {
	return withField(fault.Wrap(iofs.ErrInvalid, fault.NotAFile, "%s is not a regular file", p), "path", p)
}

func notDirectory(p string, cause error) error {
	return withField(fault.Wrap(cause, fault.NotADirectory, "%s is not a directory", p), "path", p)
}

// explain turns an error of the operating system about p into a fault where a
// caller can do something about it, and wraps it otherwise.
func (f *localFiles) explain(root *os.Root, p string, err error) error {
	if _, ok := fault.As(err); ok {
		return err
	}
	switch {
	case escapes(root, err):
		return outside(p, err)
	case errors.Is(err, iofs.ErrNotExist), isErrno(err, syscall.ENOTDIR, syscall.ELOOP, syscall.ENAMETOOLONG):
		return missing(p, err)
	case errors.Is(err, iofs.ErrPermission), isErrno(err, syscall.EROFS):
		return withField(fault.Wrap(err, fault.Forbidden, "the server may not use %s", p), "path", p)
	case isErrno(err, syscall.EISDIR, syscall.ENXIO, syscall.ENODEV):
		return notRegular(p)
	}
	return fmt.Errorf("using %s: %w", p, err)
}

func isErrno(err error, list ...syscall.Errno) bool {
	for _, errno := range list {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// escapes reports whether os.Root refused to leave itself. Its error for that is
// not exported, so it is asked for a path that certainly leads out.
func escapes(root *os.Root, err error) bool {
	_, probe := root.Lstat("..")
	var refused *iofs.PathError
	return errors.As(probe, &refused) && errors.Is(err, refused.Err)
}
