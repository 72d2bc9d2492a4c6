package tool

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	iofs "io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/tool/input"
)

//go:embed glob.md
var globDoc string

// maxMatches bounds what is kept to find the newest files.
const maxMatches = 20000

type globInput struct {
	Pattern string `json:"pattern" doc:"Glob such as **/*.go, src/**/*.{ts,tsx} or, for names at any depth, *.md."`
	Path    string `json:"path,omitempty" alias:"filePath,file_path,directory" doc:"Directory to search in; the working directory without it."`
	Limit   int    `json:"limit,omitempty" min:"1" max:"1000" doc:"Most files to give; 100 without it."`
}

type globTool struct{ info Info }

func newGlob() Tool {
	return globTool{Info{
		Name: "glob", Description: globDoc, Schema: input.Schema[globInput](), Class: Read, Permission: "glob",
	}}
}

func (t globTool) Info() Info { return t.info }

func (t globTool) Plan(_ context.Context, c *Call) (Plan, error) {
	in, at, err := t.input(c)
	if err != nil {
		return Plan{}, err
	}
	return Plan{Asks: at.ask("glob", []string{in.Pattern}, map[string]any{"pattern": in.Pattern, "path": at.abs})}, nil
}

func (t globTool) input(c *Call) (globInput, target, error) {
	in, err := input.Decode[globInput](c.Input)
	if err != nil {
		return in, target{}, err
	}
	if err := validGlob("pattern", in.Pattern); err != nil {
		return in, target{}, err
	}
	in.Limit = cmp.Or(in.Limit, defaultResults)
	if path.IsAbs(in.Pattern) {
		// Models like to write the whole path: what has no wildcard is the place.
		in.Path, in.Pattern = doublestar.SplitPattern(in.Pattern)
		in.Pattern = "/" + in.Pattern
	}
	at, err := c.locate(in.Path, true)
	return in, at, err
}

// found is a file that matched.
type found struct {
	path string
	time time.Time
}

func (t globTool) Run(ctx context.Context, c *Call) (Result, error) {
	in, at, err := t.input(c)
	if err != nil {
		return Result{}, err
	}
	files, done, err := c.open(at)
	if err != nil {
		return Result{}, c.explain(at, err)
	}
	defer done()
	all, more, err := t.search(ctx, files, at, in)
	if err != nil {
		return Result{}, c.explain(at, err)
	}
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(b.time.Compare(a.time), strings.Compare(a.path, b.path))
	})
	shown := all[:min(len(all), in.Limit)]
	var b strings.Builder
	for _, f := range shown {
		b.WriteString(strings.ToValidUTF8(c.show(path.Join(at.abs, f.path)), "\uFFFD") + "\n")
	}
	more = more || len(shown) < len(all)
	switch {
	case len(all) == 0:
		b.WriteString("No files match.\n")
	case more:
		fmt.Fprintf(&b, "(These are the %d newest; there are more. Use a narrower pattern or a path.)\n", len(shown))
	}
	return Result{
		Title: in.Pattern, Output: b.String(),
		Metadata: map[string]any{"count": len(shown), "truncated": more},
	}, nil
}

func (t globTool) search(ctx context.Context, files env.Files, at target, in globInput) (all []found, more bool, err error) {
	start, err := files.Rel(at.abs)
	if err != nil {
		return nil, false, err
	}
	var mu sync.Mutex // protects all and more
	err = files.Walk(ctx, env.WalkOptions{Path: start, Hidden: true}, func(e *env.Entry) error {
		rel := under(start, e.Path)
		if e.Type.IsDir() || !globMatch(in.Pattern, rel) {
			return nil
		}
		f := found{path: rel}
		if info, err := e.Info(); err == nil {
			f.time = info.ModTime()
		}
		mu.Lock()
		defer mu.Unlock()
		if len(all) == maxMatches {
			more = true
			return iofs.SkipAll
		}
		all = append(all, f)
		return nil
	})
	return all, more, err
}
