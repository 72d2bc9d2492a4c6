package fs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"regexp"
	"regexp/syntax"
	"runtime"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/fault"
)

// The sizes of a Grep.
const (
	DefaultGrep = 100
	MaxGrep     = 10_000
	MaxContext  = 20
	// maxGrepFile is the largest file that is searched, in bytes.
	maxGrepFile = 32 << 20
	// maxLine is the most of a line that is told, in bytes.
	maxLine = 2000
	// grepAhead is how many files may be searched before their turn.
	grepAhead = 128
)

// GrepInput says what to look for.
type GrepInput struct {
	// Pattern is RE2, or the text itself with Literal. It matches within lines.
	Pattern string
	Literal bool
	// Include is a glob for paths; without a slash it is for names.
	Include         string
	Limit           int
	Context         int
	Hidden, Ignored bool
}

// Match is a line that matched. All offsets are bytes.
type Match struct {
	PathName
	Line       int        `json:"line" doc:"From 1."`
	Offset     int64      `json:"offset" doc:"Bytes of the file before the line."`
	Text       string     `json:"text" doc:"The line, cut at 2,000 bytes."`
	Submatches []Submatch `json:"submatches"`
	Before     []string   `json:"before,omitempty"`
	After      []string   `json:"after,omitempty"`
}

// Submatch is where in the line's text the pattern matched.
type Submatch struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	Text  string `json:"text"`
}

// GrepOutput is the matches by path, then line.
type GrepOutput struct {
	Matches   []Match `json:"matches"`
	Truncated bool    `json:"truncated"`
}

// Grep searches the contents of files. A wrong pattern is a pattern_invalid
// fault with its position.
func (s *Service) Grep(ctx context.Context, in GrepInput) (GrepOutput, error) {
	out := GrepOutput{Matches: []Match{}}
	limit := grepLimit(in.Limit)
	in.Limit = limit + 1
	for m, err := range s.grep(ctx, in) {
		if err != nil {
			return GrepOutput{}, err
		}
		if len(out.Matches) == limit {
			out.Truncated = true
			break
		}
		out.Matches = append(out.Matches, m)
	}
	return out, nil
}

// GrepEach gives the matches as they are found, in the same order.
func (s *Service) GrepEach(ctx context.Context, in GrepInput) iter.Seq2[Match, error] {
	in.Limit = grepLimit(in.Limit)
	return s.grep(ctx, in)
}

func grepLimit(n int) int {
	if n <= 0 {
		return DefaultGrep
	}
	return min(n, MaxGrep)
}

// job is one file on its way; its matches come when it was searched.
type job struct {
	entry *env.Entry
	found chan []Match
}

// grep searches files side by side and gives their matches in the order of the
// walk. It has ended all that it started when the loop over it ends.
func (s *Service) grep(ctx context.Context, in GrepInput) iter.Seq2[Match, error] {
	return func(yield func(Match, error) bool) {
		p, err := newPattern(in)
		if err != nil {
			yield(Match{}, err)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		order, work := make(chan *job, grepAhead), make(chan *job, grepAhead)
		var walkErr error
		wg.Go(func() {
			defer close(order)
			defer close(work)
			walkErr = s.produce(ctx, in, p, order, work)
		})
		for range runtime.GOMAXPROCS(0) {
			wg.Go(func() {
				for j := range work {
					j.found <- p.search(ctx, j.entry, in)
					j.entry.Release()
				}
			})
		}
		if deliver(order, in.Limit, yield) && walkErr != nil {
			yield(Match{}, walkErr)
		}
	}
}

// produce hands out the files to search, in order.
func (s *Service) produce(ctx context.Context, in GrepInput, p *pattern, order, work chan<- *job) error {
	o := env.WalkOptions{Hidden: in.Hidden, Ignored: in.Ignored, Ordered: true}
	return s.files.Walk(ctx, o, func(e *env.Entry) error {
		if !e.Type.IsRegular() || !p.includes(e.Path, e.Name) {
			return nil
		}
		j := &job{entry: e, found: make(chan []Match, 1)}
		e.Hold()
		select {
		case order <- j:
		case <-ctx.Done():
			e.Release()
			return context.Cause(ctx)
		}
		work <- j // has room whenever order had: a job leaves work first
		return nil
	})
}

// deliver gives the matches of the jobs in order; it is false when the reader
// had enough.
func deliver(order <-chan *job, limit int, yield func(Match, error) bool) bool {
	n := 0
	for j := range order {
		for _, m := range <-j.found {
			if n == limit || !yield(m, nil) {
				return false
			}
			n++
		}
	}
	return true
}

// pattern is what is searched for.
type pattern struct {
	re      *regexp.Regexp
	literal []byte // every match holds it; nil when unknown
	include string
	names   bool // include is for names
}

func newPattern(in GrepInput) (*pattern, error) {
	text := in.Pattern
	if in.Literal {
		text = regexp.QuoteMeta(text)
	}
	if text == "" {
		return nil, errPattern(in.Pattern, 0, "it is empty")
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, errPattern(in.Pattern, positionOf(text, err), reason(err))
	}
	if in.Include != "" && !doublestar.ValidatePattern(in.Include) {
		return nil, fault.New(fault.ValidationFailed, "include is not a glob").At("body.include", "not a glob")
	}
	return &pattern{re: re, literal: literalOf(text), include: in.Include, names: !strings.Contains(in.Include, "/")}, nil
}

func reason(err error) string {
	var e *syntax.Error
	if errors.As(err, &e) {
		return e.Code.String()
	}
	return "it cannot be compiled"
}

// positionOf finds the byte at which a pattern is wrong, from the piece that the
// compiler names.
func positionOf(text string, err error) int {
	var e *syntax.Error
	if errors.As(err, &e) && e.Expr != text {
		return max(0, strings.LastIndex(text, e.Expr))
	}
	return 0
}

// literalOf gives a text that every match must hold, the longest that is easy to
// see.
func literalOf(text string) []byte {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil
	}
	tree = tree.Simplify()
	best := ""
	consider := func(r *syntax.Regexp) {
		if r.Op == syntax.OpLiteral && r.Flags&syntax.FoldCase == 0 && len(string(r.Rune)) > len(best) {
			best = string(r.Rune)
		}
	}
	consider(tree)
	if tree.Op == syntax.OpConcat {
		for _, sub := range tree.Sub {
			consider(sub)
		}
	}
	if best == "" {
		return nil
	}
	return []byte(best)
}

func (p *pattern) includes(path, name string) bool {
	if p.include == "" {
		return true
	}
	if p.names {
		path = name
	}
	ok, err := doublestar.Match(p.include, path)
	return err == nil && ok
}

// search searches one file. What cannot be read, is binary or too large has no
// matches.
func (p *pattern) search(ctx context.Context, e *env.Entry, in GrepInput) []Match {
	if ctx.Err() != nil {
		return nil
	}
	data, ok := content(e)
	if !ok || p.literal != nil && !bytes.Contains(data, p.literal) {
		return nil
	}
	var out []Match
	name := nameOf(e.Path)
	for line, at := 1, 0; at < len(data) && len(out) < in.Limit; line++ {
		end := at + bytes.IndexByte(data[at:], '\n')
		next := end + 1
		if end < at {
			end, next = len(data), len(data)
		}
		text := bytes.TrimSuffix(data[at:end], []byte("\r"))
		if p.literal == nil || bytes.Contains(text, p.literal) {
			if found := p.re.FindAllIndex(text, 64); found != nil {
				m := Match{PathName: name, Line: line, Offset: int64(at), Text: told(text), Submatches: submatches(text, found)}
				m.Before, m.After = around(data, at, next, min(in.Context, MaxContext))
				out = append(out, m)
			}
		}
		if line&0xfff == 0 && ctx.Err() != nil {
			return out
		}
		at = next
	}
	return out
}

func content(e *env.Entry) ([]byte, bool) {
	f, err := e.Open()
	if err != nil {
		return nil, false
	}
	defer func() { _ = f.Close() }() // only read from
	info, err := f.Stat()
	if err != nil || info.Size() > maxGrepFile {
		return nil, false
	}
	head := make([]byte, min(info.Size(), 1<<10))
	n, err := io.ReadFull(f, head)
	if err != nil || bytes.IndexByte(head[:n], 0) >= 0 {
		return nil, false
	}
	data := make([]byte, info.Size())
	copy(data, head)
	m, err := io.ReadFull(f, data[n:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, false
	}
	return data[:n+m], true
}

func told(line []byte) string {
	if len(line) > maxLine {
		line = wholeRunes(line[:maxLine])
	}
	return strings.ToValidUTF8(string(line), "\ufffd")
}

func submatches(line []byte, found [][]int) []Submatch {
	out := []Submatch{}
	for _, f := range found {
		if f[1] <= maxLine {
			out = append(out, Submatch{Start: f[0], End: f[1], Text: strings.ToValidUTF8(string(line[f[0]:f[1]]), "\ufffd")})
		}
	}
	return out
}

// around gives up to n lines before and after the line in data[at:next].
func around(data []byte, at, next, n int) (before, after []string) {
	for range n {
		if at == 0 {
			break
		}
		start := bytes.LastIndexByte(data[:at-1], '\n') + 1
		before = append([]string{told(bytes.TrimRight(data[start:at-1], "\r"))}, before...)
		at = start
	}
	for range n {
		if next >= len(data) {
			break
		}
		end := next + bytes.IndexByte(data[next:], '\n')
		if end < next {
			end = len(data)
		}
		after = append(after, told(bytes.TrimRight(data[next:end], "\r")))
		next = end + 1
	}
	return before, after
}
