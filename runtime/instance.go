package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sort"
	"sync"
	"time"

	"github.com/switchyard-dev/switchyard/agent"
	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/project"
	"github.com/switchyard-dev/switchyard/snapshot"
	"github.com/switchyard-dev/switchyard/tool"
)

// instance is the live services of one runtime context. It is built at the first
// use, without a scan and without a child process, and evicted when nobody has
// used it for a while.
type instance struct {
	*Parts
	location event.Context
	place    project.Place

	leases int       // under Host.mu
	used   time.Time // under Host.mu
}

func (i *instance) close() error { return i.Parts.close() }

// lease finds or builds the instance of a canonical context.
func (h *Host) lease(c event.Context) (*instance, error) {
	h.mu.Lock()
	if i, ok := h.instances[c.Key()]; ok {
		i.leases++
		i.used = time.Now()
		h.mu.Unlock()
		return i, nil
	}
	h.mu.Unlock()
	// Built without the lock: two at once build twice, and the second is dropped.
	place := project.Locate(c.Directory)
	parts, err := h.build(c, place)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", c.Directory, err)
	}
	fresh := &instance{Parts: parts, location: c, place: place}
	h.mu.Lock()
	i, ok := h.instances[c.Key()]
	if !ok {
		i = fresh
		h.instances[c.Key()] = i
	}
	i.leases++
	i.used = time.Now()
	h.mu.Unlock()
	if i != fresh {
		return i, fresh.close()
	}
	h.evict(time.Time{})
	return i, nil
}

func (h *Host) release(i *instance) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i.leases--
	i.used = time.Now()
}

// evict frees instances without a lease: those not used since before, and the
// least recently used ones beyond the cap. They are taken out of the table
// before they are closed, so that nobody gets one that is going.
func (h *Host) evict(before time.Time) {
	h.mu.Lock()
	var idle, gone []*instance
	for _, i := range h.instances {
		if i.leases == 0 {
			idle = append(idle, i)
		}
	}
	sort.Slice(idle, func(a, b int) bool { return idle[a].used.Before(idle[b].used) })
	over := len(h.instances) - h.limit
	for _, i := range idle {
		if over > 0 || i.used.Before(before) {
			delete(h.instances, i.location.Key())
			gone = append(gone, i)
			over--
		}
	}
	h.mu.Unlock()
	for _, i := range gone {
		_ = i.close() // only reads are open; there is nothing to lose
	}
}

func (h *Host) evictEvery(ctx context.Context, every time.Duration) {
	defer close(h.done)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			h.evict(now.Add(-h.idle))
		}
	}
}

// Instances counts the live instances.
func (h *Host) Instances() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.instances)
}

// Acquire implements agent.Workplaces.
func (h *Host) Acquire(_ context.Context, c event.Context) (agent.Workplace, error) {
	i, err := h.leasePinned(c)
	if err != nil {
		return nil, err
	}
	return &workplace{host: h, instance: i}, nil
}

// leasePinned leases the context of a session, whose directory may be gone.
func (h *Host) leasePinned(c event.Context) (*instance, error) {
	missing := fault.New(fault.DirectoryMissing, "the session's directory %s is gone", c.Directory).With("directory", c.Directory)
	info, err := os.Stat(c.Directory)
	if err != nil || !info.IsDir() {
		return nil, missing
	}
	i, err := h.lease(c)
	if errors.Is(err, os.ErrNotExist) {
		return nil, missing
	}
	return i, err
}

// workplace is an instance as turns see it.
type workplace struct {
	*instance
	host *Host
	once sync.Once
}

// Environment implements agent.Workplace.
func (w *workplace) Environment() env.Environment { return w.Env }

// Settings implements agent.Workplace.
func (w *workplace) Settings(ctx context.Context) (agent.Settings, error) {
	return w.Parts.Settings(ctx)
}

// Outputs implements agent.Workplace.
func (w *workplace) Outputs() tool.OutputStore { return w.Parts.Outputs }

// Git implements agent.Workplace.
func (w *workplace) Git() snapshot.Git { return w.looks() }

// Release implements agent.Workplace.
func (w *workplace) Release() { w.once.Do(func() { w.host.release(w.instance) }) }
