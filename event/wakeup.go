package event

import (
	"context"
	"sync"
	"time"
)

// lookEvery is how often a waiter looks although nobody woke it: another server
// on the same store may have changed what it waits for.
const lookEvery = 5 * time.Second

// Wakeups tells waiters of this process that a row may have changed. It carries
// no data: the row itself decides. It is safe for concurrent use.
type Wakeups struct {
	mu      sync.Mutex // protects waiters
	waiters map[string]map[chan struct{}]struct{}
}

// NewWakeups makes a Wakeups without waiters.
func NewWakeups() *Wakeups {
	return &Wakeups{waiters: map[string]map[chan struct{}]struct{}{}}
}

// Wake wakes all that wait for a key.
func (w *Wakeups) Wake(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ch := range w.waiters[key] {
		select {
		case ch <- struct{}{}:
		default: // it is awake already
		}
	}
}

func (w *Wakeups) add(key string) (ch chan struct{}, remove func()) {
	ch = make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiters[key] == nil {
		w.waiters[key] = map[chan struct{}]struct{}{}
	}
	w.waiters[key][ch] = struct{}{}
	return ch, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.waiters[key], ch)
		if len(w.waiters[key]) == 0 {
			delete(w.waiters, key)
		}
	}
}

// Await calls look until it says that the waiting is over, each time the key is
// woken, or until ctx ends. It begins to listen before the first look, so that
// no change between the two is missed.
func Await[T any](ctx context.Context, w *Wakeups, key string, look func(context.Context) (v T, over bool, err error)) (T, error) {
	ch, remove := w.add(key)
	defer remove()
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	for {
		v, over, err := look(ctx)
		if over || err != nil {
			return v, err
		}
		timer.Reset(lookEvery)
		select {
		case <-ch:
		case <-timer.C:
		case <-ctx.Done():
			return v, context.Cause(ctx)
		}
	}
}
