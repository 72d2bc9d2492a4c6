package access

import (
	"net/netip"
	"sync"
	"time"
)

const (
	maxFailures   = 10
	failureWindow = time.Minute
	// maxSources bounds the memory; more sources than that at once share one count.
	maxSources = 4096
)

// failures counts wrong tokens per source. It slows nobody who has the right
// one: a client that loops with an old token, or a hostile neighbour on
// loopback, must not lock the owner out. What keeps tokens from being guessed is
// their length.
type failures struct {
	now func() time.Time

	mu      sync.Mutex // protects sources and swept
	sources map[netip.Addr]window
	swept   time.Time // when makeRoom last looked
}

type window struct {
	start time.Time
	count int
}

func newFailures(now func() time.Time) *failures {
	return &failures{now: now, sources: map[netip.Addr]window{}}
}

// add counts one failure and gives how long the source should wait; zero while
// it is within its allowance.
func (f *failures) add(source netip.Addr) time.Duration {
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	key := network(source)
	w, known := f.sources[key]
	if !known && len(f.sources) >= maxSources {
		key = f.makeRoom(now, key)
		w = f.sources[key]
	}
	if passed := now.Sub(w.start); passed >= failureWindow || passed < 0 {
		w = window{start: now}
	}
	w.count++
	f.sources[key] = w
	if w.count <= maxFailures {
		return 0
	}
	return w.start.Add(failureWindow).Sub(now)
}

// makeRoom drops what has expired and gives the key to count under: the zero
// address, shared, when nothing has.
func (f *failures) makeRoom(now time.Time, key netip.Addr) netip.Addr {
	if passed := now.Sub(f.swept); passed >= 0 && passed < time.Second {
		return netip.Addr{} // looking each time would make a flood dear
	}
	f.swept = now
	for k, w := range f.sources {
		if now.Sub(w.start) >= failureWindow {
			delete(f.sources, k)
		}
	}
	if len(f.sources) < maxSources {
		return key
	}
	return netip.Addr{}
}

// network gives the address that stands for a source: an IPv6 host usually owns
// a whole /64.
func network(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if !a.Is6() {
		return a
	}
	p, err := a.Prefix(64)
	if err != nil {
		return a
	}
	return p.Addr()
}
