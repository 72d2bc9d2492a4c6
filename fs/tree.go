package fs

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
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

// TreeInput selects a directory.
type TreeInput struct {
	In
	Limit  int
	Cursor string
	// NoHidden and NoIgnored leave such entries out.
	NoHidden, NoIgnored bool
}

// TreePage is a piece of a directory; Next is "" at the end.
type TreePage struct {
	Entries []Entry
	Next    string
}

type treeCursor struct {
	Path string `json:"p"`
	Name []byte `json:"n"`
	Dir  bool   `json:"d"`
}

type listed struct {
	name    string
	typ     iofs.FileMode
	ignored bool
}

// Tree lists one level of a directory: directories first, then bytewise by name.
// No entry is opened. ".git" is left out.
func (s *Service) Tree(ctx context.Context, in TreeInput) (TreePage, error) {
	dir, err := s.resolve(in.In)
	if err != nil {
		return TreePage{}, err
	}
	info, err := s.files.Stat(dir)
	if err != nil {
		return TreePage{}, err
	}
	if !info.IsDir() {
		return TreePage{}, fault.New(fault.NotADirectory, "%s is not a directory", in.Path).With("path", in.Path)
	}
	all, err := s.entries(ctx, dir, in)
	if err != nil {
		return TreePage{}, err
	}
	from, err := start(all, dir, in.Cursor)
	if err != nil {
		return TreePage{}, err
	}
	limit := min(in.Limit, MaxTree)
	if limit <= 0 {
		limit = DefaultTree
	}
	rest := all[from:]
	page := TreePage{Entries: make([]Entry, 0, min(limit, len(rest)))}
	for _, e := range rest[:min(limit, len(rest))] {
		page.Entries = append(page.Entries, s.entry(dir, e))
	}
	if len(rest) > limit {
		last := rest[limit-1]
		data, err := json.Marshal(treeCursor{Path: dir, Name: []byte(last.name), Dir: last.typ.IsDir()})
		if err != nil {
			return TreePage{}, err
		}
		page.Next = base64.RawURLEncoding.EncodeToString(data)
	}
	return page, nil
}

func (s *Service) entries(ctx context.Context, dir string, in TreeInput) ([]listed, error) {
	var all []listed
	o := env.WalkOptions{Path: dir, Hidden: !in.NoHidden, Ignored: !in.NoIgnored, Ordered: true, Depth: 1}
	err := s.files.Walk(ctx, o, func(e *env.Entry) error {
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
	return cmp.Compare(a.name, b.name)
}

// start finds where a page begins: behind the cursor's entry, which may be gone.
func start(all []listed, dir, cursor string) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	var c treeCursor
	data, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || json.Unmarshal(data, &c) != nil || c.Path != dir {
		return 0, fault.New(fault.CursorInvalid, "the cursor does not belong to this directory")
	}
	last := listed{name: string(c.Name)}
	if c.Dir {
		last.typ = iofs.ModeDir
	}
	at, found := slices.BinarySearchFunc(all, last, inTreeOrder)
	if found {
		at++
	}
	return at, nil
}

func (s *Service) entry(dir string, l listed) Entry {
	path := l.name
	if dir != "." {
		path = dir + "/" + l.name
	}
	e := Entry{
		Name: strings.ToValidUTF8(l.name, "\ufffd"), PathName: nameOf(path), Absolute: strings.ToValidUTF8(s.absolute(path), "\ufffd"),
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
