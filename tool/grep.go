package tool

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/tool/input"
)

//go:embed grep.md
var grepDoc string

const (
	maxSearched = 8 << 20 // bytes of a file that is searched
	maxShown    = 400     // bytes of a matching line that are shown
)

type grepInput struct {
	Pattern string `json:"pattern" doc:"Regular expression in RE2 syntax, matched line by line. (?i) ignores case."`
	Path    string `json:"path,omitempty" alias:"filePath,file_path,directory" doc:"Directory or file to search; the working directory without it."`
	Include string `json:"include,omitempty" alias:"glob" doc:"Glob of the files to search, such as *.go or *.{ts,tsx}."`
	Limit   int    `json:"limit,omitempty" min:"1" max:"1000" doc:"Most matching lines to give; 100 without it."`
}

type grepTool struct{ info Info }

func newGrep() Tool {
	return grepTool{Info{
		Name: "grep", Description: grepDoc, Schema: input.Schema[grepInput](), Class: Read, Permission: "grep",
	}}
}

func (t grepTool) Info() Info { return t.info }

func (t grepTool) Plan(_ context.Context, c *Call) (Plan, error) {
	in, _, at, err := t.input(c)
	if err != nil {
		return Plan{}, err
	}
	metadata := map[string]any{"pattern": in.Pattern, "path": at.abs, "include": in.Include}
	asks := at.ask("grep", []string{in.Pattern}, metadata)
	if in.Path != "" && !at.granted && t.isFile(c, at) {
		// Searching one file shows it: what read may not see, grep may not.
		asks = append(asks, Ask{
			Permission: permRead, Patterns: []string{at.name}, Always: exact([]string{at.name}),
			Metadata: map[string]any{filePathName: at.abs},
		})
	}
	return Plan{Asks: asks}, nil
}

func (t grepTool) isFile(c *Call, at target) bool {
	if at.dir != "" {
		return at.dir != at.abs
	}
	info, err := c.Env.Files().Stat(at.abs)
	return err == nil && !info.IsDir()
}

func (t grepTool) input(c *Call) (in grepInput, re *regexp.Regexp, at target, err error) {
	if in, err = input.Decode[grepInput](c.Input); err != nil {
		return in, nil, at, err
	}
	if in.Include != "" {
		if err = validGlob("include", in.Include); err != nil {
			return in, nil, at, err
		}
	}
	if re, err = regexp.Compile(in.Pattern); err != nil {
		return in, nil, at, badRegexp(in.Pattern, err)
	}
	in.Limit = cmp.Or(in.Limit, defaultResults)
	at, err = c.locate(in.Path, true)
	return in, re, at, err
}

// badRegexp says where a pattern is wrong.
func badRegexp(pattern string, err error) error {
	e := fault.New(fault.PatternInvalid, "The pattern is not a valid regular expression: %v.", err)
	var wrong *syntax.Error
	if errors.As(err, &wrong) && wrong.Expr != "" {
		if at := strings.Index(pattern, wrong.Expr); at >= 0 {
			e.Detail = fmt.Sprintf("The pattern is not a valid regular expression: %s at byte %d, near %q.", wrong.Code, at, wrong.Expr)
			return e.With("position", at)
		}
	}
	return e
}

func (t grepTool) Run(ctx context.Context, c *Call) (Result, error) {
	in, re, at, err := t.input(c)
	if err != nil {
		return Result{}, err
	}
	files, done, err := c.open(at)
	if err != nil {
		return Result{}, c.explain(at, err)
	}
	defer done()
	start, err := files.Rel(at.abs)
	if err != nil {
		return Result{}, c.explain(at, err)
	}
	s := &grepSearch{re: re, in: in, start: start}
	if err := files.Walk(ctx, env.WalkOptions{Path: start}, s.visit); err != nil {
		return Result{}, c.explain(at, err)
	}
	res := s.result(func(rel string) string { return c.show(resolve(at.abs, start, rel)) })
	res.Title = in.Pattern
	return res, nil
}

// resolve gives the absolute path of an entry of a walk over abs.
func resolve(abs, start, entry string) string {
	if entry == start {
		return abs
	}
	return path.Join(abs, under(start, entry))
}

// grepSearch collects the first matches by path while files are searched in any
// order.
type grepSearch struct {
	re    *regexp.Regexp
	in    grepInput
	start string

	mu    sync.Mutex // protects the rest
	hits  []fileHits // sorted by path
	count int        // of lines in hits
	more  bool
	large int // files that were not searched
}

type fileHits struct {
	path  string
	lines []hit
}

type hit struct {
	line int
	text string
}

func (s *grepSearch) visit(e *env.Entry) error {
	if !e.Type.IsRegular() || s.in.Include != "" && !globMatch(s.in.Include, under(s.start, e.Path)) || s.late(e.Path) {
		return nil
	}
	data, err := s.load(e)
	if err != nil || data == nil {
		return nil //nolint:nilerr // gone or unreadable: a search passes over it
	}
	if found := s.match(data); len(found) > 0 {
		s.add(fileHits{path: e.Path, lines: found})
	}
	return nil
}

// late reports a file that comes after all that will be shown.
func (s *grepSearch) late(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	late := s.count > s.in.Limit && path > s.hits[len(s.hits)-1].path
	s.more = s.more || late
	return late
}

// load reads a text file; nil for another one.
func (s *grepSearch) load(e *env.Entry) ([]byte, error) {
	f, err := e.Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > maxSearched {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.large++
		return nil, nil
	}
	data := make([]byte, info.Size())
	n, err := io.ReadFull(f, data)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	data = data[:n]
	if bytes.IndexByte(data[:min(n, 1024)], 0) >= 0 {
		return nil, nil
	}
	return data, nil
}

// match finds the matching lines, one more than can be shown at most. Literals
// that every match has are looked for in the whole file first.
func (s *grepSearch) match(data []byte) []hit {
	var hits []hit
	if literal, _ := s.re.LiteralPrefix(); literal != "" && !bytes.Contains(data, []byte(literal)) {
		return nil
	}
	for n := 1; len(data) > 0 && len(hits) <= s.in.Limit; n++ {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		line = bytes.TrimSuffix(line, []byte("\r"))
		at := s.re.FindIndex(line)
		if at != nil {
			hits = append(hits, hit{line: n, text: around(line, at[0])})
		}
	}
	return hits
}

// around gives a line, or the part of a long one where the match begins.
func around(line []byte, at int) string {
	from := 0
	if len(line) > maxShown && at > maxShown/2 {
		from = at - maxShown/2
	}
	to := min(from+maxShown, len(line))
	text := strings.ToValidUTF8(string(line[from:to]), "\uFFFD")
	if from > 0 {
		text = "…" + text
	}
	if to < len(line) {
		text += "…"
	}
	return text
}

func (s *grepSearch) add(h fileHits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, _ := slices.BinarySearchFunc(s.hits, h.path, func(a fileHits, p string) int { return strings.Compare(a.path, p) })
	s.hits = slices.Insert(s.hits, i, h)
	s.count += len(h.lines)
	for last := len(s.hits) - 1; s.count-len(s.hits[last].lines) > s.in.Limit; last-- {
		s.count -= len(s.hits[last].lines)
		s.hits, s.more = s.hits[:last], true
	}
}

func (s *grepSearch) result(show func(string) string) Result {
	var b strings.Builder
	shown := 0
	for _, file := range s.hits {
		if shown == s.in.Limit {
			break
		}
		fmt.Fprintf(&b, "%s:\n", strings.ToValidUTF8(show(file.path), "\uFFFD"))
		for _, h := range file.lines[:min(len(file.lines), s.in.Limit-shown)] {
			fmt.Fprintf(&b, "  %d: %s\n", h.line, h.text)
			shown++
		}
	}
	more := s.more || s.count > shown
	switch {
	case shown == 0:
		b.WriteString("No lines match.\n")
	case more:
		fmt.Fprintf(&b, "(These are the first %d matches; there are more. Use a narrower pattern, path or include.)\n", shown)
	}
	if s.large > 0 {
		fmt.Fprintf(&b, "(%d files over %d MiB were not searched.)\n", s.large, maxSearched>>20)
	}
	return Result{Output: b.String(), Metadata: map[string]any{"matches": shown, "truncated": more}}
}
