package warp

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"slices"
	"strings"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/project"
	"github.com/switchyard-dev/switchyard/vcs"
)

// maxCarried bounds the bytes of one file that is carried over.
const maxCarried = 64 << 20

// tree is one side of a copy.
type tree struct {
	env   env.Environment
	files env.Files
	vcs   *vcs.Service
}

func open(p project.Place) (tree, error) {
	e, err := env.Local(p.Root)
	if err != nil {
		return tree{}, fmt.Errorf("opening %s: %w", p.Root, err)
	}
	locate := func() (vcs.Repo, bool) {
		return vcs.Repo{Root: p.Root, GitDir: p.GitDir, CommonDir: p.Identity}, p.GitDir != ""
	}
	return tree{env: e, files: e.Files(), vcs: vcs.New(vcs.Config{Env: e, Directory: p.Root, Locate: locate})}, nil
}

// file is what stands at a path: nothing, or a regular file.
type file struct {
	there bool
	data  []byte
	exec  bool
}

func (f file) equal(g file) bool {
	return f.there == g.there && f.exec == g.exec && bytes.Equal(f.data, g.data)
}

func (f file) mode() iofs.FileMode {
	if f.exec {
		return 0o755
	}
	return 0o644
}

// read reads a path; ok is false for what cannot be carried: links, directories,
// special files and very large ones.
func (t tree) read(path string) (f file, ok bool, err error) {
	info, err := t.files.Lstat(path)
	if errors.Is(err, iofs.ErrNotExist) {
		return file{}, true, nil
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxCarried {
		return file{}, false, nil //nolint:nilerr // what cannot be looked at cannot be carried
	}
	in, err := t.files.Open(path)
	if err != nil {
		return file{}, false, fmt.Errorf("reading %s: %w", path, err)
	}
	data, err := io.ReadAll(in)
	if err = errors.Join(err, in.Close()); err != nil {
		return file{}, false, fmt.Errorf("reading %s: %w", path, err)
	}
	return file{there: true, data: data, exec: info.Mode()&0o111 != 0}, true, nil
}

// put makes a path what f says.
func (t tree) put(path string, f, now file) error {
	if now.there && (!f.there || f.exec != now.exec) {
		// A present file keeps its mode when it is replaced.
		if err := t.files.Remove(path); err != nil {
			return err
		}
	}
	if !f.there {
		return nil
	}
	return t.files.WriteFile(path, f.data, f.mode())
}

// step is one file that is to be carried.
type step struct {
	path      string
	from, now file
}

// carried is a copy between work trees, so far as it was made.
type carried struct {
	to    tree
	steps []step // those that were begun
}

func (c *carried) close() error { return c.to.env.Close() }

// undo takes the copy back.
func (c *carried) undo() error {
	var errs []error
	for _, st := range slices.Backward(c.steps) {
		now, _, err := c.to.read(st.path)
		if err == nil {
			err = c.to.put(st.path, st.now, now)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// carry brings what is in no commit from one work tree of a clone to another. The
// caller closes the result.
func carry(ctx context.Context, from, to project.Place) (*carried, error) {
	if from.VCS != "git" || from.Identity != to.Identity {
		return nil, fault.New(fault.ValidationFailed, "changes are carried between the work trees of one clone only").
			At("body.copyChanges", "not work trees of one clone")
	}
	src, err := open(from)
	if err != nil {
		return nil, err
	}
	defer func() { _ = src.env.Close() }() // only reads were open
	dst, err := open(to)
	if err != nil {
		return nil, err
	}
	c := &carried{to: dst}
	steps, err := plan(ctx, src, dst)
	for i := range steps {
		c.steps = steps[:i+1] // also a step that fails in its middle is taken back
		if err = dst.put(steps[i].path, steps[i].from, steps[i].now); err != nil {
			err = errors.Join(fmt.Errorf("carrying %s over: %w", steps[i].path, err), c.undo())
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// plan looks at both sides and gives what is to be written, or the conflict.
func plan(ctx context.Context, src, dst tree) ([]step, error) {
	paths, conflicts, err := changed(ctx, src)
	if err != nil {
		return nil, err
	}
	theirs, odd, err := changed(ctx, dst)
	if err != nil {
		return nil, err
	}
	base, err := src.vcs.AtHead(ctx, paths)
	if err != nil {
		return nil, err
	}
	target, err := dst.vcs.AtHead(ctx, paths)
	if err != nil {
		return nil, err
	}
	touched := map[string]bool{}
	for _, p := range slices.Concat(theirs, odd) {
		touched[p] = true
	}
	var steps []step
	for _, path := range paths {
		from, ok, err := src.read(path)
		if err != nil {
			return nil, err
		}
		now, too, err := dst.read(path)
		if err != nil {
			return nil, err
		}
		if ok && too && from.equal(now) {
			continue
		}
		at, committed := target[path]
		same := at == base[path] && !touched[path] && committed == now.there
		if !ok || !too || !same {
			conflicts = append(conflicts, path)
			continue
		}
		steps = append(steps, step{path: path, from: from, now: now})
	}
	if len(conflicts) > 0 {
		slices.Sort(conflicts)
		return nil, fault.New(fault.WarpConflict, "%d files cannot be carried over: they differ there too, or are no plain files", len(conflicts)).
			With("files", slices.Compact(conflicts))
	}
	return steps, nil
}

// changed lists the paths that differ from HEAD, and those that cannot be carried.
// Submodules stay what their commit says.
func changed(ctx context.Context, t tree) (paths, odd []string, err error) {
	changes, err := t.vcs.Status(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("looking for changes: %w", err)
	}
	for _, c := range changes {
		path := exact(c.File, c.FileBytes)
		switch {
		case c.Status == "conflict" || strings.HasSuffix(path, "/"):
			odd = append(odd, path)
			continue
		case c.Status == "submodule":
			continue
		case c.OldFile != "":
			paths = append(paths, exact(c.OldFile, c.OldFileBytes))
		}
		paths = append(paths, path)
	}
	return paths, odd, nil
}

// exact gives a path's own bytes.
func exact(path, encoded string) string {
	if data, err := base64.StdEncoding.DecodeString(encoded); encoded != "" && err == nil {
		return string(data)
	}
	return path
}
