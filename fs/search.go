package fs

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

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
	// Directories are matched with a slash at their end.
	Query string
	// Type is "file", "directory" or "" for both. A link to a file counts as one.
	// Other links are not found: what is behind them is, by its own name.
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

// Search matches paths by name: best first, of equals the one that matches in
// its last element, then the shorter, then bytewise. An empty query gives the
// top level, directories first.
func (s *Service) Search(ctx context.Context, in SearchInput) (SearchOutput, error) {
	pathScheme()
	m := matcher{in: in, files: s.files, limit: clamp(in.Limit, DefaultSearch, MaxSearch)}
	for _, word := range strings.Fields(strings.ToLower(in.Query)) {
		m.words = append(m.words, []rune(word))
	}
	o := env.WalkOptions{Hidden: in.Hidden, Ignored: in.Ignored}
	if len(m.words) == 0 {
		o.Depth = 1
	}
	if err := s.files.Walk(ctx, o, m.visit); err != nil {
		return SearchOutput{}, err
	}
	m.trim()
	out := SearchOutput{Entries: make([]Found, 0, len(m.found)), Truncated: m.dropped || m.seen > maxIndexed}
	for _, f := range m.found {
		out.Entries = append(out.Entries, Found{PathName: nameOf(f.path), Type: f.typ})
	}
	return out, nil
}

// scored is a path that matched, with what it is ranked by.
type scored struct {
	path  string
	typ   string
	score int
	last  int // 1 when it matches in its last element
}

// better orders best first.
func better(a, b scored) int {
	return cmp.Or(
		cmp.Compare(b.score, a.score), cmp.Compare(b.last, a.last),
		cmp.Compare(len(a.path), len(b.path)), strings.Compare(a.path, b.path),
	)
}

// topLevel orders the answer to an empty query.
func topLevel(a, b scored) int {
	return cmp.Or(strings.Compare(a.typ, b.typ), strings.Compare(a.path, b.path))
}

// matcher collects what matches; its visit is called from many goroutines.
type matcher struct {
	in    SearchInput
	words [][]rune
	files env.Files
	limit int
	slabs sync.Pool // of *util.Slab: the matching's scratch memory

	mu      sync.Mutex // protects what follows
	found   []scored
	dropped bool // there was more than the limit
	seen    int
}

func (m *matcher) visit(e *env.Entry) error {
	f := scored{path: e.Path, typ: typeOf(e.Type)}
	link := f.typ == "symlink"
	if link {
		f.typ = "file"
	}
	if f.typ == "other" || m.in.Type != "" && m.in.Type != f.typ {
		return nil
	}
	if !m.score(&f) || link && !m.leadsToFile(f.path) {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen++
	if m.seen > maxIndexed {
		return nil
	}
	m.found = append(m.found, f)
	if len(m.found) >= 4*m.limit+1000 { // so that memory does not grow with the tree
		m.trim()
	}
	return nil
}

// trim keeps the best. The lock is held, or nobody else is there any more.
func (m *matcher) trim() {
	order := better
	if len(m.words) == 0 {
		order = topLevel
	}
	slices.SortFunc(m.found, order)
	if len(m.found) > m.limit {
		m.found, m.dropped = m.found[:m.limit], true
	}
}

func (m *matcher) leadsToFile(link string) bool {
	info, err := m.files.Stat(link)
	return err == nil && info.Mode().IsRegular()
}

// score ranks a path; it is false when a word does not match.
func (m *matcher) score(f *scored) bool {
	if len(m.words) == 0 {
		return true
	}
	slab, ok := m.slabs.Get().(*util.Slab)
	if !ok {
		slab = util.MakeSlab(16<<10, 2<<10)
	}
	defer m.slabs.Put(slab)
	text := []byte(f.path)
	if f.typ == "directory" {
		text = append(text, '/')
	}
	chars := util.ToChars(text)
	start := 0
	for _, word := range m.words {
		// Backwards: the best of equal matches is the one nearest to the end.
		r, _ := algo.FuzzyMatchV2(false, true, false, &chars, word, false, slab)
		if r.Start < 0 {
			return false
		}
		f.score += r.Score
		start = r.Start
	}
	if start >= utf8.RuneCountInString(f.path[:strings.LastIndexByte(f.path, '/')+1]) {
		f.last = 1
	}
	return true
}
