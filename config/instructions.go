package config

import (
	"context"
	"errors"
	iofs "io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

const (
	// maxText bounds one file of instructions and maxTexts all of them, in
	// bytes: they are sent with every model call.
	maxText  = 64 << 10
	maxTexts = 256 << 10
	// maxMatches bounds the files of one pattern, maxListed the directories
	// that are listed to find them.
	maxMatches = 100
	maxListed  = 2000
)

// projectKinds are the names of a project's instruction files. All files of the
// first kind that exists on the way from the root to the directory are read.
var projectKinds = []string{"AGENTS.md", "CLAUDE.md", "CONTEXT.md"}

// Text is one file of instructions for the model.
type Text struct {
	// Path is absolute.
	Path string `json:"path"`
	// Content is UTF-8; it may have been cut at 64 KiB.
	Content   string `json:"content"`
	Truncated bool   `json:"truncated,omitempty"`
}

// Instructions reads the files that tell the model about the user and the
// project (contract §17): the first global one; those of the project, the root's
// first; then what the configuration lists. Each file comes once, cut at 64 KiB;
// files beyond 256 KiB in all are left out. A file that cannot be read, and an
// entry that leads out of the project without being the owner's, is a warning.
// The error is the end of ctx.
func (l *Loader) Instructions(ctx context.Context, loc Location, c *Config) ([]Text, []Problem, error) {
	directories, err := loc.directories()
	if err != nil {
		return nil, nil, err
	}
	g := &gatherer{loc: loc, home: l.options.Home, directories: directories, seen: map[string]bool{}, texts: []Text{}}
	for _, p := range l.globalInstructions() {
		if g.take(Position{}, place{path: p}) {
			break
		}
	}
	g.projectFiles()
	for _, i := range c.Instructions {
		if err := context.Cause(ctx); err != nil {
			return nil, nil, err
		}
		g.entry(ctx, i)
	}
	return g.texts, g.report.of(SeverityWarning), context.Cause(ctx)
}

func (l *Loader) globalInstructions() []string {
	var out []string
	if l.options.ConfigHome != "" {
		out = append(out, filepath.Join(l.options.ConfigHome, "switchyard", "AGENTS.md"), filepath.Join(l.options.ConfigHome, "opencode", "AGENTS.md"))
	}
	if l.options.Home != "" {
		out = append(out, filepath.Join(l.options.Home, ".claude", "CLAUDE.md"))
	}
	return out
}

// gatherer collects texts.
type gatherer struct {
	loc         Location
	home        string
	directories []string
	report      report
	seen        map[string]bool // absolute paths
	texts       []Text
	total       int
	full        bool // that maxTexts is reached has been told
}

func (g *gatherer) projectFiles() {
	for _, name := range projectKinds {
		found := false
		for _, d := range g.directories {
			if g.take(Position{}, place{path: path.Join(d, name), project: true}) {
				found = true
			}
		}
		if found {
			return
		}
	}
}

// take reads one file and reports whether it is there. That it is missing is a
// warning only where an entry, at a position, names it.
func (g *gatherer) take(at Position, p place) bool {
	full := p.path
	if p.project {
		full = filepath.Join(g.loc.Root, filepath.FromSlash(p.path))
	}
	named := at != Position{}
	if !named {
		at = Position{File: full}
	}
	if g.seen[full] {
		return true
	}
	data, _, err := readFile(filesOf(p, g.loc), p.path, maxText)
	cut := errors.Is(err, errTooLarge)
	if err != nil && !cut {
		if named || !absent(err) {
			g.report.warnf(at, "instructions %s are left out: %s", full, reason(err))
		}
		return false
	}
	g.seen[full] = true
	g.add(at, Text{Path: full, Content: string(wholeRunes(data, cut)), Truncated: cut})
	return true
}

func (g *gatherer) add(at Position, t Text) {
	switch {
	case strings.ContainsRune(t.Content, 0):
		g.report.warnf(at, "instructions %s are left out: they are not text", t.Path)
		return
	case g.total+len(t.Content) > maxTexts:
		if !g.full {
			g.report.warnf(at, "instructions %s and what follows are left out: there are more than %d bytes", t.Path, maxTexts)
		}
		g.full = true
		return
	case t.Truncated:
		g.report.warnf(at, "instructions %s are cut at %d bytes", t.Path, maxText)
	}
	t.Content = strings.ToValidUTF8(t.Content, "\ufffd")
	g.total += len(t.Content)
	g.texts = append(g.texts, t)
}

// wholeRunes drops the beginning of a rune at the end of a cut text.
func wholeRunes(data []byte, cut bool) []byte {
	for i := 1; cut && i < utf8.UTFMax && i <= len(data); i++ {
		if tail := data[len(data)-i:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return data[:len(data)-i]
			}
			break
		}
	}
	return data
}

// entry reads what one entry of "instructions" names.
func (g *gatherer) entry(ctx context.Context, i Instruction) {
	pattern := expandHome(filepath.ToSlash(i.Pattern), g.home)
	switch {
	case strings.HasPrefix(pattern, "http://"), strings.HasPrefix(pattern, "https://"):
		g.report.warnf(i.At, "instructions are not fetched from addresses: %q is left out", i.Pattern)
	case pattern == "" || !doublestar.ValidatePattern(pattern):
		g.report.warnf(i.At, "%q is not a path or pattern", i.Pattern)
	case !path.IsAbs(pattern):
		g.relative(ctx, i, pattern)
	default:
		g.absolute(ctx, i, path.Clean(pattern))
	}
}

// relative matches a pattern in each directory from the root down.
func (g *gatherer) relative(ctx context.Context, i Instruction, pattern string) {
	var found []place
	for _, d := range g.directories {
		if filepath.IsLocal(path.Join(d, pattern)) {
			found = append(found, g.match(ctx, i, place{path: d, project: true}, pattern)...)
		}
	}
	g.takeAll(i, found)
}

func (g *gatherer) absolute(ctx context.Context, i Instruction, pattern string) {
	if rel, inside := g.loc.inside(pattern); inside {
		g.takeAll(i, g.match(ctx, i, place{path: ".", project: true}, rel))
		return
	}
	if i.Project {
		g.report.warnf(i.At, "%q is left out: a project file may only name instructions in the project", i.Pattern)
		return
	}
	g.takeAll(i, g.match(ctx, i, place{path: "/"}, pattern))
}

func (g *gatherer) takeAll(i Instruction, found []place) {
	if len(found) == 0 {
		g.report.warnf(i.At, "%q names no file", i.Pattern)
	}
	for _, p := range found {
		g.take(i.At, p)
	}
}

// match gives the files below a directory that a pattern names, sorted.
func (g *gatherer) match(ctx context.Context, i Instruction, below place, pattern string) []place {
	base, rest := doublestar.SplitPattern(pattern)
	base = path.Join(below.path, base)
	left := maxListed
	walk := globFS{base: base, files: filesOf(below, g.loc), more: func() bool {
		left--
		return left > 0 && ctx.Err() == nil
	}}
	names, err := doublestar.Glob(walk, rest, doublestar.WithFilesOnly(), doublestar.WithNoFollow())
	slices.Sort(names)
	if err != nil || left <= 0 || len(names) > maxMatches {
		g.report.warnf(i.At, "%q matches too much; only a part is read", i.Pattern)
	}
	out := make([]place, 0, len(names))
	for _, name := range names[:min(len(names), maxMatches)] {
		out = append(out, place{path: path.Join(base, name), project: below.project})
	}
	return out
}

// globFS shows Files below a base as an io/fs file system to the matcher. It
// lists directories while there may be more, and opens no file.
type globFS struct {
	files Files
	base  string
	more  func() bool
}

// Open is there for the interface; the matcher lists and stats.
func (g globFS) Open(name string) (iofs.File, error) {
	return nil, &iofs.PathError{Op: "open", Path: name, Err: iofs.ErrPermission}
}

func (g globFS) Stat(name string) (iofs.FileInfo, error) {
	info, err := g.files.Stat(path.Join(g.base, name))
	if err != nil {
		return nil, &iofs.PathError{Op: "stat", Path: name, Err: iofs.ErrNotExist}
	}
	return info, nil
}

func (g globFS) ReadDir(name string) ([]iofs.DirEntry, error) {
	if !g.more() {
		return nil, nil
	}
	entries, err := g.files.ReadDir(path.Join(g.base, name), -1)
	if err != nil {
		return nil, &iofs.PathError{Op: "readdir", Path: name, Err: iofs.ErrNotExist}
	}
	slices.SortFunc(entries, func(a, b iofs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}
