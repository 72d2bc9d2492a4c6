package fs

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/junegunn/fzf/src/algo"
	"github.com/junegunn/fzf/src/util"

	"github.com/switchyard-dev/switchyard/env"
)

// The sizes of a Search.
const (
	DefaultSearch = 50
	MaxSearch     = 1000
	// maxIndexed bounds how many paths one search looks at.
	maxIndexed = 1_000_000
)

// SearchInput says what to look for.
type SearchInput struct {
	// Query is fuzzy: its letters in order; words apart by spaces must all match.
	Query string
	// Type is "file", "directory" or "" for both.
	Type            string
	Limit           int
	Hidden, Ignored bool
}

// Found is a path that matched.
type Found struct {
	PathName
	Type string `json:"type" enum:"file,directory"`
}

// SearchOutput is the best matches, best first.
type SearchOutput struct {
	Entries   []Found `json:"entries"`
	Truncated bool    `json:"truncated"`
}

// pathScheme sets the library up for paths. Its tables are the library's own
// variables, so it is done once.
var pathScheme = sync.OnceFunc(func() { algo.Init("path") }) //nolint:gochecknoglobals // guards another package's variables

type scored struct {
	Found
	path  string
	score int
}

// Search matches paths by name. An empty query gives the top level.
func (s *Service) Search(ctx context.Context, in SearchInput) (SearchOutput, error) {
	pathScheme()
	words := strings.Fields(strings.ToLower(in.Query))
	o := env.WalkOptions{Hidden: in.Hidden, Ignored: in.Ignored}
	if len(words) == 0 {
		o.Depth = 1
	}
	m := matcher{words: words, in: in}
	if err := s.files.Walk(ctx, o, m.visit); err != nil {
		return SearchOutput{}, err
	}
	slices.SortFunc(m.found, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(len(a.path), len(b.path)), cmp.Compare(a.path, b.path))
	})
	limit := min(in.Limit, MaxSearch)
	if limit <= 0 {
		limit = DefaultSearch
	}
	out := SearchOutput{Entries: make([]Found, 0, min(limit, len(m.found))), Truncated: len(m.found) > limit || m.seen > maxIndexed}
	for _, f := range m.found[:min(limit, len(m.found))] {
		out.Entries = append(out.Entries, f.Found)
	}
	return out, nil
}

// matcher collects what matches; its visit is called from many goroutines.
type matcher struct {
	words []string
	in    SearchInput
	slabs sync.Pool // of *util.Slab: the matching's scratch memory

	mu    sync.Mutex // protects what follows
	found []scored
	seen  int
}

func (m *matcher) visit(e *env.Entry) error {
	typ := typeOf(e.Type)
	if typ != "file" && typ != "directory" || m.in.Type != "" && m.in.Type != typ {
		return nil
	}
	score, ok := m.score(e.Path)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen++
	if ok && m.seen <= maxIndexed {
		m.found = append(m.found, scored{Found: Found{PathName: nameOf(e.Path), Type: typ}, path: e.Path, score: score})
	}
	return nil
}

func (m *matcher) score(path string) (int, bool) {
	if len(m.words) == 0 {
		return 0, true
	}
	slab, ok := m.slabs.Get().(*util.Slab)
	if !ok {
		slab = util.MakeSlab(16<<10, 2<<10)
	}
	defer m.slabs.Put(slab)
	chars := util.ToChars([]byte(path))
	total := 0
	for _, word := range m.words {
		upper := strings.IndexFunc(word, unicode.IsUpper) >= 0
		r, _ := algo.FuzzyMatchV2(upper, true, true, &chars, []rune(word), false, slab)
		if r.Start < 0 {
			return 0, false
		}
		total += r.Score
	}
	return total, true
}
