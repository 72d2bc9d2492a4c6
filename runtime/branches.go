package runtime

import (
	"context"
	"sync"
	"time"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/project"
	"github.com/switchyard-dev/switchyard/vcs"
)

const (
	// lookEvery is how often HEAD is looked at while somebody follows a context.
	lookEvery = time.Second
	// maxKept bounds the contexts whose branch is remembered without a follower.
	maxKept = 4096
)

// branches looks at the HEAD of each context that a stream follows and publishes
// vcs.branch.updated when another branch or commit was checked out. Without
// followers it does nothing.
type branches struct {
	bus  *event.Bus
	stop context.CancelFunc
	done chan struct{}
	wake chan struct{}

	mu    sync.Mutex // protects below
	known map[event.Context]*followed
}

// followed is one context. It stays known without followers, so that the next one
// is told what it missed.
type followed struct {
	followers int
	mark      string // of the HEAD that was told last
}

func newBranches(ctx context.Context, bus *event.Bus) *branches {
	ctx, stop := context.WithCancel(ctx)
	b := &branches{bus: bus, stop: stop, done: make(chan struct{}), wake: make(chan struct{}, 1), known: map[event.Context]*followed{}}
	go b.run(ctx)
	return b
}

// close ends the watch and waits for it.
func (b *branches) close() {
	b.stop()
	<-b.done
}

// Follow watches the branch of contexts until the returned function is called. A
// change since somebody followed last is told at once.
func (h *Host) Follow(contexts ...event.Context) (leave func()) {
	return h.branches.follow(contexts)
}

func (b *branches) follow(contexts []event.Context) (leave func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range contexts {
		f := b.known[c]
		if f == nil {
			f = &followed{}
			_, f.mark = branchOf(c)
			b.known[c] = f
		} else if f.followers == 0 {
			b.look(c, f)
		}
		f.followers++
	}
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return sync.OnceFunc(func() { b.leave(contexts) })
}

func (b *branches) leave(contexts []event.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range contexts {
		f := b.known[c]
		if f.followers--; f.followers == 0 && len(b.known) > maxKept {
			delete(b.known, c)
		}
	}
}

func (b *branches) run(ctx context.Context) {
	defer close(b.done)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if !b.lookAtAll() {
			tick.Stop()
			select {
			case <-ctx.Done():
				return
			case <-b.wake:
				tick.Reset(lookEvery)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// lookAtAll reports whether anybody follows.
func (b *branches) lookAtAll() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	followed := false
	for c, f := range b.known {
		if f.followers > 0 {
			followed = true
			b.look(c, f)
		}
	}
	return followed
}

// look publishes a context's branch if it is another one than was told last. The
// caller holds the lock, so that a context's events come in their order.
func (b *branches) look(c event.Context, f *followed) {
	branch, mark := branchOf(c)
	if mark == f.mark {
		return
	}
	f.mark = mark
	if d, err := vcs.BranchUpdated.Draft(event.At(c, "", ""), vcs.BranchChange{Branch: branch}); err == nil {
		b.bus.Publish(d)
	}
}

// branchOf gives the branch of a context now; mark is "" without a repository.
func branchOf(c event.Context) (branch, mark string) {
	place := project.Locate(c.Directory)
	if place.GitDir == "" {
		return "", ""
	}
	files, err := env.Local(place.GitDir)
	if err != nil {
		return "", ""
	}
	branch, mark, _ = vcs.Branch(files.Files())
	_ = files.Close() // only a read was open
	return branch, mark
}
