package simulate

import (
	"context"
	"sync"

	"github.com/switchyard-dev/switchyard/id"
)

// gates holds what the model and the tools are about to do until the simulation
// lets it happen, and knows from the events which turns are under way. The
// simulation acts only when nothing moves by itself.
type gates struct {
	mu      sync.Mutex // protects what follows
	changed *sync.Cond
	waiting []*gate
	// turns are the open ones by session; those that wait for a person are true.
	turns map[id.Session]bool
	// noted is the newest event of each session: commits may be told out of order.
	noted map[id.Session]int64
	open  bool // nothing stops any more
}

type gate struct {
	session id.Session
	what    string
	opened  chan struct{}
}

func newGates() *gates {
	g := &gates{turns: map[id.Session]bool{}, noted: map[id.Session]int64{}}
	g.changed = sync.NewCond(&g.mu)
	return g
}

// pass stops until the simulation opens the gate or ctx ends.
func (g *gates) pass(ctx context.Context, ses id.Session, what string) error {
	x := &gate{session: ses, what: what, opened: make(chan struct{})}
	g.mu.Lock()
	if g.open {
		g.mu.Unlock()
		return context.Cause(ctx)
	}
	g.waiting = append(g.waiting, x)
	g.changed.Broadcast()
	g.mu.Unlock()
	select {
	case <-x.opened:
		return nil
	case <-ctx.Done():
		g.remove(x)
		return context.Cause(ctx)
	}
}

func (g *gates) remove(x *gate) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, w := range g.waiting {
		if w == x {
			g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
		}
	}
	g.changed.Broadcast()
}

// release opens the n-th gate that waits.
func (g *gates) release(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		return
	}
	n %= len(g.waiting)
	close(g.waiting[n].opened)
	g.waiting = append(g.waiting[:n], g.waiting[n+1:]...)
}

// openAll lets everything happen from now on.
func (g *gates) openAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = true
	for _, x := range g.waiting {
		close(x.opened)
	}
	g.waiting = nil
	g.changed.Broadcast()
}

// note keeps what an event tells about a session's turn.
func (g *gates) note(ses id.Session, seq int64, busy, waits bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if seq < g.noted[ses] {
		return
	}
	g.noted[ses] = seq
	if busy {
		g.turns[ses] = waits
	} else {
		delete(g.turns, ses)
	}
	g.changed.Broadcast()
}

// forget drops what a dead server's turns were doing.
func (g *gates) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting, g.turns = nil, map[id.Session]bool{}
}

// still tells whether every open turn stands at a gate or waits for a person.
func (g *gates) still() bool {
	at := map[id.Session]bool{}
	for _, x := range g.waiting {
		at[x.session] = true
	}
	for ses, waits := range g.turns {
		if !waits && !at[ses] {
			return false
		}
	}
	return true
}

// settle waits until nothing moves, or for limit: a turn may be in a pause of
// its own, which is no fault.
func (g *gates) settle(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.changed.Broadcast()
	})
	defer stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	for !g.still() && ctx.Err() == nil {
		g.changed.Wait()
	}
}
