package env

import (
	"context"
	"errors"
	iofs "io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// maxDepth bounds how deep a walk goes; deeper directories are visited but not
// entered. An ordered walk holds one descriptor for each level.
const maxDepth = 256

// WalkOptions say where a walk goes.
//
// Left out, with all below it, is: ".git" always; names that begin with a dot
// unless Hidden; what .gitignore, .git/info/exclude and .ignore files exclude
// unless Ignored. The rules of directories above the start count too, up to the
// top of the git work tree, even above the root. A start that is ignored itself
// is walked whole: who names it wants it.
type WalkOptions struct {
	// Path is where to start; "" is the root. A start that is a file is visited
	// alone; a start that is a link is followed. Other links never are.
	Path    string
	Hidden  bool
	Ignored bool
	// Ordered visits one entry after the other, bytewise by path. Without it
	// visit is called from several goroutines at once, in any order.
	Ordered bool
	// Depth is how many levels are visited: 1 is the entries of Path; 0 is all.
	Depth int
}

// Entry is something that a walk met. It is valid during the visit, and after
// it between Hold and Release.
type Entry struct {
	// Path is relative to the root of the Files, with slashes, in exact bytes.
	Path string
	Name string
	// Type holds the type bits; zero is a regular file.
	Type iofs.FileMode
	// Ignored tells that ignore rules exclude the entry.
	Ignored bool

	dir *dirHandle
}

// Info describes the entry; links are not followed.
func (e *Entry) Info() (iofs.FileInfo, error) { return e.dir.root.Lstat(e.Name) }

// Open opens the entry, which must still be a regular file.
func (e *Entry) Open() (File, error) { return openRegular(e.dir.root, e.Name, e.Path) }

// Hold keeps the entry valid after the visit until Release, called as often as
// Hold.
func (e *Entry) Hold() { e.dir.hold() }

// Release ends a Hold.
func (e *Entry) Release() { e.dir.release() }

// dirHandle is an open directory, closed when nobody needs it any more.
type dirHandle struct {
	root *os.Root
	refs atomic.Int64
}

func newHandle(root *os.Root) *dirHandle {
	h := &dirHandle{root: root}
	h.hold()
	return h
}

func (h *dirHandle) hold() { h.refs.Add(1) }

func (h *dirHandle) release() {
	if h.refs.Add(-1) == 0 {
		_ = h.root.Close()
	}
}

// walk is one call of Walk.
type walk struct {
	ctx   context.Context
	o     WalkOptions
	visit func(*Entry) error

	mu    sync.Mutex // protects the rest
	wake  *sync.Cond
	stack []*step // directories to enter, deepest last: that keeps few of them open
	busy  int     // workers that may still push
	err   error   // why the walk ends early
}

// step is a directory to enter.
type step struct {
	parent *dirHandle
	entry  *Entry
	rules  ignores
	at     []string // the directory's elements below the base of rules
	depth  int

	// Set for the start: it is open already, and not being able to list it is an
	// error, which fail explains.
	open *dirHandle
	fail func(error) error
}

// Walk visits what is below o.Path.
func (f *localFiles) Walk(ctx context.Context, o WalkOptions, visit func(*Entry) error) error {
	start, err := f.walkStart(o)
	if err != nil {
		return err
	}
	w := &walk{ctx: ctx, o: o, visit: visit}
	w.wake = sync.NewCond(&w.mu)
	switch {
	case !start.entry.Type.IsDir():
		err = w.call(start.entry)
		start.drop()
	case o.Ordered:
		err = w.enter(start)
	default:
		err = w.run(start)
	}
	if errors.Is(err, iofs.SkipAll) {
		return nil
	}
	return err
}

// walkStart opens the place where the walk starts and gathers the rules above.
// Entries are named below the path as the caller wrote it.
func (f *localFiles) walkStart(o WalkOptions) (*step, error) {
	return act(f, o.Path, true, func(root *os.Root, rel string) (*step, error) {
		name, err := f.resolve(root, o.Path, rel, true)
		if err != nil {
			return nil, err
		}
		info, err := root.Lstat(name)
		if err != nil {
			return nil, err
		}
		if info.Mode().Type() == iofs.ModeSymlink { // it became one just now
			return nil, iofs.ErrNotExist
		}
		dir := name
		if !info.IsDir() {
			dir = path.Dir(name)
		}
		sub, err := root.OpenRoot(dir + "/.")
		if err != nil {
			return nil, err
		}
		s := &step{
			open:  newHandle(sub),
			fail:  func(err error) error { return f.explain(root, o.Path, err) },
			entry: &Entry{Path: rel, Name: path.Base(name), Type: info.Mode().Type()},
		}
		s.entry.dir = s.open
		s.rules, s.at, s.entry.Ignored = f.rulesAbove(root, name, info.IsDir())
		return s, nil
	})
}

// run walks with several workers over one stack.
func (w *walk) run(start *step) error {
	w.stack = append(w.stack, start)
	var workers sync.WaitGroup
	for range min(max(runtime.GOMAXPROCS(0), 2), 16) {
		workers.Go(w.work)
	}
	workers.Wait()
	for _, s := range w.stack { // what an early end left
		s.drop()
	}
	return w.err
}

func (w *walk) work() {
	for s := w.pop(); s != nil; s = w.pop() {
		err := w.enter(s)
		w.mu.Lock()
		w.busy--
		if w.err == nil {
			w.err = err
		}
		w.mu.Unlock()
		w.wake.Broadcast()
	}
}

// pop gives the next directory, or nil when all is done.
func (w *walk) pop() *step {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.err == nil && len(w.stack) == 0 && w.busy > 0 {
		w.wake.Wait() // the busy ones look at the context
	}
	if w.err == nil {
		w.err = context.Cause(w.ctx)
	}
	if w.err != nil || len(w.stack) == 0 {
		return nil
	}
	last := len(w.stack) - 1
	s := w.stack[last]
	w.stack = w.stack[:last]
	w.busy++
	return s
}

func (w *walk) push(steps []*step) {
	w.mu.Lock()
	w.stack = append(w.stack, steps...)
	w.mu.Unlock()
	w.wake.Broadcast()
}

// call visits one entry.
func (w *walk) call(e *Entry) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	return w.visit(e)
}

// drop gives up a directory that is not entered.
func (s *step) drop() {
	if s.open != nil {
		s.open.release()
	}
	if s.parent != nil {
		s.parent.release()
	}
}

// enter visits the entries of a directory and what is below them: itself when
// the walk is ordered, else by pushing.
func (w *walk) enter(s *step) error {
	here := s.handle()
	if here == nil {
		return nil
	}
	defer here.release()
	list, err := readAll(here.root)
	if err != nil && s.fail != nil {
		return s.fail(err)
	}
	if w.o.Ordered {
		slices.SortFunc(list, byPath)
	}
	rules := s.rules.enter(here.root, sourcesIn(list), len(s.at))
	at := append(slices.Clip(s.at), "")
	var below []*step
	for _, d := range list {
		next, err := w.meet(s, here, rules, at, d)
		if err == nil && next != nil && w.o.Ordered {
			err = w.enter(next)
		} else if next != nil {
			below = append(below, next)
		}
		if err != nil {
			for _, b := range below {
				b.drop()
			}
			return err
		}
	}
	w.push(below)
	return nil
}

// meet visits one listed name and, for a directory to enter, gives its step.
// at is a scratch path whose last element is for the name.
func (w *walk) meet(s *step, here *dirHandle, rules ignores, at []string, d listed) (*step, error) {
	name := d.name
	if name == ".git" || !w.o.Hidden && name[0] == '.' {
		return nil, nil
	}
	at[len(at)-1] = name
	e := &Entry{Path: name, Name: name, Type: d.kind, dir: here, Ignored: s.entry.Ignored}
	if !e.Ignored && rules.excludes(at, d.kind.IsDir()) {
		if !w.o.Ignored {
			return nil, nil
		}
		e.Ignored = true
	}
	if s.entry.Path != "." {
		e.Path = s.entry.Path + "/" + name
	}
	err := w.call(e)
	if !d.kind.IsDir() {
		return nil, err
	}
	if errors.Is(err, iofs.SkipDir) {
		return nil, nil
	}
	deep := s.depth + 1
	if err != nil || deep == w.o.Depth || deep >= maxDepth {
		return nil, err
	}
	here.hold()
	return &step{parent: here, entry: e, rules: rules, at: slices.Clone(at), depth: deep}, nil
}

// handle opens the directory of s, nil when it cannot be opened or is not what
// was listed any more.
func (s *step) handle() *dirHandle {
	if s.open != nil {
		return s.open
	}
	defer s.parent.release()
	// The closing dot refuses everything but a directory without waiting; the
	// comparison refuses a link that was put in its place.
	root, err := s.parent.root.OpenRoot(s.entry.Name + "/.")
	if err != nil {
		return nil
	}
	opened, err := root.Stat(".")
	if err == nil {
		var now iofs.FileInfo
		if now, err = s.parent.root.Lstat(s.entry.Name); err == nil && os.SameFile(opened, now) {
			return newHandle(root)
		}
	}
	_ = root.Close()
	return nil
}

// byPath compares so that visiting depth first gives the bytewise order of whole
// paths: a directory's name counts with the slash that follows it there.
func byPath(a, b listed) int {
	x, y := a.name, b.name
	n := min(len(x), len(y))
	if c := strings.Compare(x[:n], y[:n]); c != 0 || len(x) == len(y) {
		return c
	}
	return int(after(x, n, a.kind.IsDir())) - int(after(y, n, b.kind.IsDir()))
}

// after gives the byte that follows the first n bytes of a name in a path.
func after(name string, n int, dir bool) byte {
	if n < len(name) {
		return name[n]
	}
	if dir {
		return '/'
	}
	return 0
}
