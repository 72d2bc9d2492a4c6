package tool

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	iofs "io/fs"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/tool/input"
)

//go:embed list.md
var listDoc string

const (
	defaultResults = 100
	maxLevels      = 32
)

type listInput struct {
	Path   string   `json:"path,omitempty" alias:"filePath,file_path,directory" doc:"Directory to list; the working directory without it."`
	Ignore []string `json:"ignore,omitempty" doc:"Globs of what to leave out, beside the ignore rules."`
	Limit  int      `json:"limit,omitempty" min:"1" max:"1000" doc:"Most entries to show; 100 without it."`
}

type listTool struct{ info Info }

func newList() Tool {
	return listTool{Info{
		Name: "list", Description: listDoc, Schema: input.Schema[listInput](), Class: Read, Permission: "list",
	}}
}

func (t listTool) Info() Info { return t.info }

func (t listTool) Plan(_ context.Context, c *Call) (Plan, error) {
	_, at, err := t.input(c)
	if err != nil {
		return Plan{}, err
	}
	return Plan{Asks: at.ask("list", []string{at.name}, map[string]any{"path": at.abs})}, nil
}

func (t listTool) input(c *Call) (listInput, target, error) {
	in, err := input.Decode[listInput](c.Input)
	if err != nil {
		return in, target{}, err
	}
	for _, g := range in.Ignore {
		if err := validGlob("ignore", g); err != nil {
			return in, target{}, err
		}
	}
	in.Limit = cmp.Or(in.Limit, defaultResults)
	at, err := c.locate(in.Path, true)
	return in, at, err
}

func (t listTool) Run(ctx context.Context, c *Call) (Result, error) {
	in, at, err := t.input(c)
	if err != nil {
		return Result{}, err
	}
	files, done, err := c.open(at)
	if err != nil {
		return Result{}, c.explain(at, err)
	}
	defer done()
	info, err := files.Stat(at.abs)
	if err != nil {
		return Result{}, c.explain(at, err)
	}
	if !info.IsDir() {
		return Result{}, fault.New(fault.NotADirectory, "%s is not a directory.", c.show(at.abs))
	}
	ls := listing{files: files, start: at.abs, in: in}
	// As deep as fits: a few levels whole tell more than one branch to its end.
	for depth := 1; depth <= maxLevels; depth++ {
		fits, err := ls.level(ctx, depth)
		if err != nil {
			return Result{}, c.explain(at, err)
		}
		if !fits || !ls.deeper {
			break
		}
	}
	res := ls.result(at.abs + "/")
	res.Title = c.show(at.abs)
	return res, nil
}

// listing collects a tree level by level.
type listing struct {
	files env.Files
	start string
	in    listInput

	lines  []string // of the deepest tree that fits
	depth  int      // of that tree
	deeper bool     // it has directories at its lowest level
	cut    bool     // not even one level fits
}

// level lists down to a depth and reports whether that fits.
func (ls *listing) level(ctx context.Context, depth int) (fits bool, err error) {
	start, err := ls.files.Rel(ls.start)
	if err != nil {
		return false, err
	}
	lines, deeper, over := []string{}, false, false
	err = ls.files.Walk(ctx, env.WalkOptions{Path: start, Hidden: true, Ordered: true, Depth: depth}, func(e *env.Entry) error {
		rel := under(start, e.Path)
		if ls.ignored(rel) {
			return pass(e.Type)
		}
		if len(lines) == ls.in.Limit {
			over = true
			return iofs.SkipAll
		}
		level := strings.Count(rel, "/")
		deeper = deeper || e.Type.IsDir() && level == depth-1
		lines = append(lines, strings.Repeat("  ", level+1)+strings.ToValidUTF8(e.Name, "\uFFFD")+suffix(e.Type))
		return nil
	})
	if err != nil {
		return false, err
	}
	if !over || depth == 1 {
		ls.lines, ls.depth, ls.deeper, ls.cut = lines, depth, deeper, over
	}
	return !over, nil
}

// pass is what a visit returns to pass over an entry.
func pass(t iofs.FileMode) error {
	if t.IsDir() {
		return iofs.SkipDir
	}
	return nil
}

func (ls *listing) ignored(rel string) bool {
	for _, g := range ls.in.Ignore {
		if globMatch(strings.TrimSuffix(g, "/"), rel) {
			return true
		}
	}
	return false
}

func (ls *listing) result(title string) Result {
	var b strings.Builder
	b.WriteString(title + "\n")
	for _, line := range ls.lines {
		b.WriteString(line + "\n")
	}
	switch {
	case len(ls.lines) == 0:
		b.WriteString("(The directory is empty, or everything in it is ignored.)\n")
	case ls.cut:
		fmt.Fprintf(&b, "(There is more than these %d entries. Use glob, a deeper path, or a higher limit.)\n", ls.in.Limit)
	case ls.deeper:
		fmt.Fprintf(&b, "(Only %d levels are shown. List a directory to see what is below it.)\n", ls.depth)
	}
	return Result{
		Output:   b.String(),
		Metadata: map[string]any{"count": len(ls.lines), "truncated": ls.cut || ls.deeper},
	}
}

func suffix(t iofs.FileMode) string {
	switch {
	case t.IsDir():
		return "/"
	case t == iofs.ModeSymlink:
		return "@"
	}
	return ""
}

// under gives the path of an entry relative to where the walk started.
func under(start, entry string) string {
	if start == "." || start == "" {
		return entry
	}
	if entry == start {
		return path.Base(entry)
	}
	return strings.TrimPrefix(entry, start+"/")
}

func validGlob(field, g string) error {
	if g == "" || !doublestar.ValidatePattern(g) {
		return fault.New(fault.PatternInvalid, "%s is not a valid glob: %q. Check its brackets and braces.", field, g)
	}
	return nil
}

// globMatch matches a path below the start of a search. A glob without a slash
// is about names at any depth, as in ignore files.
func globMatch(glob, rel string) bool {
	if !strings.Contains(glob, "/") {
		rel = path.Base(rel)
	}
	return doublestar.MatchUnvalidated(strings.TrimPrefix(glob, "/"), rel)
}
