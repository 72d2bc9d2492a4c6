package tool

import (
	"errors"
	"path"
	"slices"
	"strings"

	iofs "io/fs"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/fault"
)

const (
	throughLink  = "a path through a symbolic link"
	filePathName = "filepath" // in metadata, as clients know it
)

// target is a path of a call.
type target struct {
	abs string // clean
	// name is what rules and people call it: relative to the root, or abs when
	// outside.
	name string
	// dir is, outside of the root, the directory that must be opened.
	dir string
	// granted says that dir needs no permission.
	granted bool
	// linked says that the path leads through a symbolic link, so that its name
	// may hide another one.
	linked bool
}

// absolute gives the clean absolute form of a path as the model writes it.
func (c *Call) absolute(p string) (string, error) {
	switch {
	case strings.ContainsRune(p, 0):
		return "", fault.New(fault.PathOutside, "The path contains a NUL character.")
	case path.IsAbs(p):
		return path.Clean(p), nil
	}
	return path.Join(c.Directory, p), nil
}

// locate finds out where a path lies. Outside of the root nothing but the names
// and types on the way is looked at. reads says that the call only reads: then
// the kept outputs need no permission.
func (c *Call) locate(p string, reads bool) (target, error) {
	abs, err := c.absolute(p)
	if err != nil {
		return target{}, err
	}
	if name, err := c.Env.Files().Rel(abs); err == nil {
		return c.inside(abs, name)
	}
	t := target{abs: abs, name: abs, dir: path.Dir(abs)}
	if reads && c.Outputs != nil && below(c.Outputs.Dir(), abs) {
		t.dir, t.granted = c.Outputs.Dir(), true
		return t, nil
	}
	link, info, err := c.lookOutside(abs)
	if err != nil {
		return target{}, err
	}
	if link != "" {
		// A yes to a directory must not open another one.
		return target{}, fault.New(fault.PathOutside,
			"%s leads through the symbolic link %s. Name it by its real path.", abs, link)
	}
	if info != nil && info.IsDir() {
		t.dir = abs
	}
	return t, nil
}

func (c *Call) inside(abs, name string) (target, error) {
	files := c.Env.Files()
	if _, err := files.Stat(abs); fault.Is(err, fault.PathOutside) {
		return target{}, fault.New(fault.PathOutside,
			"%s leads out of %s through a symbolic link. Name it by its real path.", name, c.Env.Root())
	}
	link, _, err := firstLink(files, name)
	return target{abs: abs, name: name, linked: link != ""}, err
}

// lookOutside gives the first symbolic link of an absolute path, or else what
// stands there.
func (c *Call) lookOutside(abs string) (link string, info iofs.FileInfo, err error) {
	files, err := c.Env.Open("/")
	if err != nil {
		return "", nil, err
	}
	defer files.Close()
	link, info, err = firstLink(files, strings.TrimPrefix(abs, "/"))
	if link != "" {
		link = "/" + link
	}
	return link, info, err
}

// firstLink gives the shortest beginning of a path that is a symbolic link, or
// else what the path names: nil for nothing.
func firstLink(files env.Files, name string) (link string, info iofs.FileInfo, err error) {
	for i := 1; i <= len(name); i++ {
		if i < len(name) && name[i] != '/' {
			continue
		}
		info, err = files.Lstat(name[:i])
		switch {
		case errors.Is(err, iofs.ErrNotExist) || errors.Is(err, iofs.ErrPermission):
			return "", nil, nil
		case err != nil:
			return "", nil, err
		case info.Mode().Type() == iofs.ModeSymlink:
			return name[:i], info, nil
		}
	}
	return "", info, nil
}

func below(dir, abs string) bool {
	return abs == dir || strings.HasPrefix(abs, strings.TrimSuffix(dir, "/")+"/")
}

// open gives the files that hold a target; done frees them. A directory that
// will be made is reached from the nearest one above it.
func (c *Call) open(t target) (files env.Files, done func(), err error) {
	if t.dir == "" {
		return c.Env.Files(), func() {}, nil
	}
	dir := t.dir
	for {
		files, err = c.Env.Open(dir)
		if err == nil {
			return files, func() { _ = files.Close() }, nil
		}
		missing := fault.Is(err, fault.DirectoryNotFound) || fault.Is(err, fault.DirectoryInvalid)
		if !missing || dir == "/" {
			return nil, nil, err
		}
		dir = path.Dir(dir)
	}
}

// ask makes the requests of a call that touches t: for its directory when that
// is outside, then its own.
func (t target) ask(permission string, patterns []string, metadata map[string]any) []Ask {
	own := Ask{Permission: permission, Patterns: patterns, Always: exact(patterns), Metadata: metadata}
	if t.linked {
		own.Opaque = []string{throughLink}
	}
	return append(t.external(), own)
}

func (t target) external() []Ask {
	if t.dir == "" || t.granted {
		return nil
	}
	return []Ask{externalAsk([]string{t.dir}, map[string]any{filePathName: t.abs})}
}

// externalAsk asks for everything in directories outside of the root.
func externalAsk(dirs []string, metadata map[string]any) Ask {
	a := Ask{Permission: permExternal, Patterns: []string{}, Always: []string{}, Metadata: metadata}
	for _, dir := range dirs {
		pattern := strings.TrimSuffix(dir, "/") + "/*"
		if slices.Contains(a.Patterns, pattern) {
			continue
		}
		a.Patterns = append(a.Patterns, pattern)
		if len(exact([]string{dir})) == 1 {
			a.Always = append(a.Always, pattern)
		}
	}
	return a
}

// show gives a path as the model can use it again, in few characters.
func (c *Call) show(abs string) string {
	if abs == c.Directory {
		return "."
	}
	if rest, ok := strings.CutPrefix(abs, strings.TrimSuffix(c.Directory, "/")+"/"); ok {
		return rest
	}
	return abs
}

// explain words an error of the environment about a file for the model. Other
// errors pass.
func (c *Call) explain(t target, err error) error {
	e, ok := fault.As(err)
	if !ok || e.Fields["path"] == nil {
		return err
	}
	name := c.show(t.abs)
	switch e.Code {
	case fault.FileNotFound:
		return fault.Wrap(err, e.Code, "There is no file %s.", name)
	case fault.DirectoryNotFound:
		return fault.Wrap(err, e.Code, "There is no directory %s.", name)
	case fault.NotAFile:
		return fault.Wrap(err, e.Code, "%s is not a regular file.", name)
	case fault.NotADirectory:
		return fault.Wrap(err, e.Code, "%s is not a directory, or a file stands where one is needed.", name)
	case fault.Forbidden:
		return fault.Wrap(err, e.Code, "The server may not use %s.", name)
	}
	return err
}
