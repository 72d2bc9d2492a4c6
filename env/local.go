package env

import (
	"errors"
	iofs "io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/switchyard-dev/switchyard/fault"
)

// LocalEnv is the environment of this machine: files through os.Root, processes
// through os/exec.
type LocalEnv struct {
	files   *localFiles
	environ []string
	pass    []string
}

// Option changes how Local builds an environment.
type Option func(*LocalEnv)

// WithEnviron replaces the server's own environment ("NAME=value") as the source
// of what children may inherit.
func WithEnviron(environ []string) Option {
	return func(e *LocalEnv) { e.environ = slices.Clone(environ) }
}

// WithPass lets children inherit further variables by name, beside the
// allow-list. Names that hold the server's own secrets stay out.
func WithPass(names ...string) Option {
	return func(e *LocalEnv) { e.pass = append(e.pass, names...) }
}

// Local makes the environment below root, which may be spelled with symbolic
// links. A root that is missing is a directory_not_found fault, one that is
// relative or no directory a directory_invalid fault, both with "directory".
func Local(root string, opts ...Option) (*LocalEnv, error) {
	files, err := openFiles(root)
	if err != nil {
		return nil, err
	}
	e := &LocalEnv{files: files, environ: os.Environ()}
	for _, opt := range opts {
		opt(e)
	}
	return e, nil
}

// Root is the absolute canonical directory that contains everything.
func (e *LocalEnv) Root() string { return e.files.dir }

// Files are the files below Root. They are closed with the environment.
func (e *LocalEnv) Files() Files { return e.files }

// Open gives the files below another absolute directory; its errors are those
// of Local. The caller closes it.
func (e *LocalEnv) Open(directory string) (Files, error) {
	files, err := openFiles(directory)
	if err != nil {
		return nil, err
	}
	return files, nil
}

// Close frees the root. Running processes are left to their owners.
func (e *LocalEnv) Close() error { return e.files.Close() }

// Shell is the program and the first arguments that run a command line given
// after them: the user's shell when it is a POSIX one, else bash, else sh.
func (e *LocalEnv) Shell() []string {
	return []string{shellOf(e.environ), "-c"}
}

// ChildEnv is the environment that a child gets, as "NAME=value" sorted by name:
// the allow-list, then extra, then the mark of the call (left out when "").
func (e *LocalEnv) ChildEnv(extra map[string]string, call string) []string {
	vars := inherited(e.environ, e.pass)
	maps.Copy(vars, fixedVars)
	maps.Copy(vars, extra)
	if call != "" {
		vars[callVar] = call
	}
	out := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		out = append(out, name+"="+vars[name])
	}
	return out
}

// openFiles canonicalises a directory and opens it as a root.
func openFiles(dir string) (*localFiles, error) {
	if !filepath.IsAbs(dir) {
		return nil, invalidRoot(nil, dir, "%s is not an absolute path")
	}
	given := filepath.Clean(dir)
	canonical, err := filepath.EvalSymlinks(given)
	if err != nil {
		return nil, rootFault(err, dir)
	}
	root, err := os.OpenRoot(canonical + "/.")
	if err != nil {
		return nil, rootFault(err, dir)
	}
	info, err := root.Stat(".")
	if err != nil {
		return nil, errors.Join(rootFault(err, dir), root.Close())
	}
	return &localFiles{dir: canonical, given: given, root: root, info: info}, nil
}

func rootFault(err error, dir string) error {
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		return withField(fault.Wrap(err, fault.DirectoryNotFound, "there is no directory %s", dir), "directory", dir)
	case errors.Is(err, iofs.ErrPermission):
		return withField(fault.Wrap(err, fault.Forbidden, "the server may not open %s", dir), "directory", dir)
	}
	return invalidRoot(err, dir, "%s is not a directory")
}

func invalidRoot(cause error, dir, format string) error {
	if cause == nil {
		cause = iofs.ErrInvalid
	}
	return withField(fault.Wrap(cause, fault.DirectoryInvalid, format, dir), "directory", dir)
}

// withField adds a member to a fault that Wrap made.
func withField(err error, key string, value any) error {
	if e, ok := fault.As(err); ok {
		return e.With(key, value)
	}
	return err
}

// Has tells whether a program can be found for Start.
func (e *LocalEnv) Has(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}
