package fs

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	iofs "io/fs"
	"slices"
	"strings"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/fault"
)

// The page sizes of Tree.
const (
	DefaultTree = 1000
	MaxTree     = 10_000
)

// Entry is one entry of a directory.
type Entry struct {
	Name string `json:"name"`
	PathName
	Absolute string `json:"absolute"`
	Type     string `json:"type" enum:"file,directory,symlink,other"`
	Size     *int64 `json:"size,omitempty" doc:"Bytes; of files only."`
	MTime    int64  `json:"mtime" doc:"Milliseconds since the epoch; 0 when it cannot be read."`
	Ignored  bool   `json:"ignored" doc:"Ignore files exclude the entry."`
}

// TreeInput selects a directory, or with a Cursor another page of one.
type TreeInput struct {
	In
	Limit int
	// Cursor is Next or Previous of a page. It knows the directory and the
	// filters; a directory or filter that is given beside it must be the same.
	Cursor string
	// NoHidden and NoIgnored leave such entries out. A directory that is ignored
	// itself is listed whole.
	NoHidden, NoIgnored bool
}

// TreePage is a piece of a directory; Next and Previous are cursors, "" where
// there is nothing.
type TreePage struct {
	Entries        []Entry
	Next, Previous string
}

// treeCursor stands beside one entry, which may be gone by the time it is used:
// before it or, with Back, behind it, looking backwards.
type treeCursor struct {
	Path      []byte `json:"p"`
	Name      []byte `json:"n"`
	Dir       bool   `json:"d,omitempty"`
	Back      bool   `json:"b,omitempty"`
	NoHidden  bool   `json:"h,omitempty"`
	NoIgnored bool   `json:"i,omitempty"`
}

type listed struct {
	name    string
	typ     iofs.FileMode
	ignored bool
}

// Tree lists one level of a directory: directories first, then bytewise by name.
// No entry is opened. ".git" is left out. A path that is no directory is a
// not_a_directory fault, a cursor of another listing a cursor_invalid one.
func (s *Service) Tree(ctx context.Context, in TreeInput) (TreePage, error) {
	c, err := s.treeStart(in)
	if err != nil {
		return TreePage{}, err
	}
	dir := string(c.Path)
	info, err := s.files.Stat(dir)
	if err != nil {
		return TreePage{}, err
	}
	if !info.IsDir() {
		return TreePage{}, fault.New(fault.NotADirectory, "%s is not a directory", nameOf(dir).Path).With("path", nameOf(dir).Path)
	}
	all, err := s.entries(ctx, c)
	if err != nil {
		return TreePage{}, err
	}
	from, to := c.window(all, clamp(in.Limit, DefaultTree, MaxTree))
	page := TreePage{Entries: make([]Entry, 0, to-from)}
	for _, e := range all[from:to] {
		page.Entries = append(page.Entries, s.entry(dir, e))
	}
	if from > 0 && from < len(all) {
		page.Previous, err = c.beside(all[from], true)
	}
	if to < len(all) && to > 0 {
		var last error
		page.Next, last = c.beside(all[to-1], false)
		err = errors.Join(err, last)
	}
	return page, err
}

// treeStart reads the cursor, or makes the one before the first entry.
func (s *Service) treeStart(in TreeInput) (treeCursor, error) {
	var c treeCursor
	given := in.Path != "" || in.Bytes != ""
	if given || in.Cursor == "" {
		dir, err := s.resolve(in.In)
		if err != nil {
			return c, err
		}
		c = treeCursor{Path: []byte(dir), NoHidden: in.NoHidden, NoIgnored: in.NoIgnored}
	}
	if in.Cursor == "" {
		return c, nil
	}
	refused := fault.New(fault.CursorInvalid, "the cursor does not belong to this listing")
	var old treeCursor
	data, err := base64.RawURLEncoding.DecodeString(in.Cursor)
	if err != nil || json.Unmarshal(data, &old) != nil {
		return c, refused
	}
	if given && !bytes.Equal(old.Path, c.Path) || in.NoHidden && !old.NoHidden || in.NoIgnored && !old.NoIgnored {
		return c, refused
	}
	clean, err := s.files.Rel(string(old.Path)) // a cursor is a client's text like any other
	if err != nil || clean != string(old.Path) || len(old.Name) == 0 {
		return c, refused
	}
	return old, nil
}

// window gives the entries of a page: those behind the cursor, or with Back
// those before it.
func (c treeCursor) window(all []listed, limit int) (from, to int) {
	if len(c.Name) == 0 {
		return 0, min(limit, len(all))
	}
	key := listed{name: string(c.Name)}
	if c.Dir {
		key.typ = iofs.ModeDir
	}
	at, found := slices.BinarySearchFunc(all, key, inTreeOrder)
	if c.Back {
		return max(0, at-limit), at
	}
	if found {
		at++
	}
	return at, min(at+limit, len(all))
}

// beside gives the cursor that stands at an entry.
func (c treeCursor) beside(e listed, back bool) (string, error) {
	c.Name, c.Dir, c.Back = []byte(e.name), e.typ.IsDir(), back
	data, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("making a cursor: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(data), nil
}

func (s *Service) entries(ctx context.Context, c treeCursor) ([]listed, error) {
	var all []listed
	// In order, so that the visits come from one goroutine.
	o := env.WalkOptions{Path: string(c.Path), Hidden: !c.NoHidden, Ignored: !c.NoIgnored, Ordered: true, Depth: 1}
	err := s.files.Walk(ctx, o, func(e *env.Entry) error {
		if e.Path == string(c.Path) { // the directory became a file just now
			return nil
		}
		all = append(all, listed{name: e.Name, typ: e.Type, ignored: e.Ignored})
		return nil
	})
	slices.SortFunc(all, inTreeOrder)
	return all, err
}

func inTreeOrder(a, b listed) int {
	if a.typ.IsDir() != b.typ.IsDir() {
		if a.typ.IsDir() {
			return -1
		}
		return 1
	}
	return strings.Compare(a.name, b.name)
}

func (s *Service) entry(dir string, l listed) Entry {
	path := l.name
	if dir != "." {
		path = dir + "/" + l.name
	}
	e := Entry{
		Name: nameOf(l.name).Path, PathName: nameOf(path), Absolute: nameOf(s.absolute(path)).Path,
		Type: typeOf(l.typ), Ignored: l.ignored,
	}
	info, err := s.files.Lstat(path)
	if err != nil {
		return e // gone or closed to us: it is listed all the same
	}
	e.MTime = info.ModTime().UnixMilli()
	if info.Mode().IsRegular() {
		size := info.Size()
		e.Size = &size
	}
	return e
}

func typeOf(t iofs.FileMode) string {
	switch {
	case t.IsDir():
		return "directory"
	case t&iofs.ModeSymlink != 0:
		return "symlink"
	case t.IsRegular():
		return "file"
	}
	return "other"
}
