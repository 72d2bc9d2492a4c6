package fs

import (
	"context"
	"iter"
	"runtime"
	"sync"

	"github.com/switchyard-dev/switchyard/env"
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
	// maxSubmatches is the most matches that are told of one line.
	maxSubmatches = 64
	// grepBatch is how many files are handed to a worker at once.
	grepBatch = 16
)

// GrepInput says what to look for.
type GrepInput struct {
	// Pattern is RE2, or the text itself with Literal. It matches within lines,
	// which end at "\n" or "\r\n"; a byte order mark is of no line.
	Pattern string
	Literal bool
	// Include is a glob for paths; without a slash it is for names. After a "!"
	// it says what to leave out.
	Include string
	Limit   int
	// Context is how many lines before and after are told, at most MaxContext.
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

// Submatch is where in the line's text the pattern matched. One that lies behind
// the cut of a long line is not told.
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
// fault with its position, in bytes. Files that are binary (a NUL in the first
// KiB), larger than 32 MiB or unreadable have no matches.
func (s *Service) Grep(ctx context.Context, in GrepInput) (GrepOutput, error) {
	out := GrepOutput{Matches: []Match{}}
	limit := clamp(in.Limit, DefaultGrep, MaxGrep)
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

// GrepEach gives the matches as they are found, in the same order. An error is
// the last that it gives.
func (s *Service) GrepEach(ctx context.Context, in GrepInput) iter.Seq2[Match, error] {
	in.Limit = clamp(in.Limit, DefaultGrep, MaxGrep)
	return s.grep(ctx, in)
}

// job is a few files on their way; their matches come when they were searched.
type job struct {
	entries []*env.Entry // held
	found   chan []Match
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
		in.Context = min(max(in.Context, 0), MaxContext)
		inner, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		// A job goes to work and, for its turn, into order. Few are on their way,
		// because each keeps directories open.
		workers := min(max(runtime.GOMAXPROCS(0), 1), 16)
		order, work := make(chan *job, 4*workers), make(chan *job)
		var walkErr error
		wg.Go(func() {
			defer close(order)
			defer close(work)
			walkErr = s.produce(inner, in, p, order, work)
		})
		for range workers {
			wg.Go(func() {
				w := searcher{p: p, in: in}
				for j := range work {
					j.found <- w.batch(inner, j.entries)
				}
			})
		}
		if !deliver(order, in.Limit, yield) {
			return
		}
		// The searching ends early without a word when ctx does.
		if walkErr == nil {
			walkErr = context.Cause(ctx)
		}
		if walkErr != nil {
			yield(Match{}, walkErr)
		}
	}
}

// produce hands out the files to search, in order.
func (s *Service) produce(ctx context.Context, in GrepInput, p *pattern, order, work chan<- *job) error {
	var next *job
	hand := func() error {
		j := next
		next = nil
		select {
		case order <- j:
			work <- j // the workers take all that comes until work is closed
			return nil
		case <-ctx.Done():
			release(j.entries)
			return context.Cause(ctx)
		}
	}
	o := env.WalkOptions{Hidden: in.Hidden, Ignored: in.Ignored, Ordered: true}
	err := s.files.Walk(ctx, o, func(e *env.Entry) error {
		if !e.Type.IsRegular() || !p.includes(e.Path, e.Name) {
			return nil
		}
		if next == nil {
			next = &job{entries: make([]*env.Entry, 0, grepBatch), found: make(chan []Match, 1)}
		}
		e.Hold()
		if next.entries = append(next.entries, e); len(next.entries) < grepBatch {
			return nil
		}
		return hand()
	})
	if next != nil && err == nil {
		return hand()
	}
	if next != nil {
		release(next.entries)
	}
	return err
}

func release(entries []*env.Entry) {
	for _, e := range entries {
		e.Release()
	}
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
