package event

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Bus numbers events, keeps the newest ones and wakes the streams that want
// them. It is safe for concurrent use; publishers never wait for a stream or
// for the log.
type Bus struct {
	cfg      Config
	instance int64
	born     time.Time
	kick     chan struct{} // wakes the filler
	stopping chan struct{} // closed by Stop
	cancel   context.CancelFunc
	done     sync.WaitGroup

	// mu protects all below. Publishers take it whole. Streams read the ring
	// under the shared lock and may then change their own fields, as a stream
	// has one reader and publishers are kept out.
	mu      sync.RWMutex
	ring    ring
	streams index
	parts   parts
	gaps    []Gap
	last    int64    // number of the last durable event delivered or skipped
	counter int64    // ephemeral positions given out after last
	head    Position // of the newest event; control frames do not count
	// incomplete is the newest position at which some stream was without the
	// deltas before it; see Bus.covers.
	incomplete Position
	backlog    backlog
	progress   chan struct{} // closed when last grows; made on demand
	open       int           // subscriptions not closed yet
	idle       chan struct{} // closed when the last of them closes after Stop
	stopped    bool
}

// NewBus starts a bus; the caller closes it. Of ctx only the values count: a bus
// must go on delivering while the rest of the server ends.
func NewBus(ctx context.Context, c Config) *Bus {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	b := &Bus{
		cfg: c.withDefaults(),
		// Each start moves the head by 2^20, so the starts of one store differ
		// here for a thousand starts.
		instance: c.Start >> 20 & instanceMask,
		born:     time.Now(),
		kick:     make(chan struct{}, 1), stopping: make(chan struct{}), idle: make(chan struct{}),
		cancel:  cancel,
		streams: newIndex(),
		gaps:    slices.Clone(c.Gaps),
		last:    c.Start,
		head:    Position{Epoch: c.Epoch, Seq: c.Start},
	}
	b.incomplete = Position{Epoch: c.Epoch}
	b.ring.base, b.ring.floor = 1, b.head
	b.done.Go(func() { b.run(ctx) })
	return b
}

// Head is the position of the newest event. Answers carry it as X-Event-Cursor,
// read before what they tell is read or written.
func (b *Bus) Head() Position {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.head
}

// Publish delivers an ephemeral event. It gets a position behind everything that
// was committed or published before by the same goroutine. A draft of a durable
// kind may be published too: streams see it, but it is not kept.
func (b *Bus) Publish(d Draft) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.backlog.waits(b.last) || b.backlog.lossy {
		b.backlog.hold(d, b.last, b.cfg.RingBytes)
		return
	}
	b.number(d)
	b.trim()
}

// Stop makes every stream send what it still has, then server.stopping, and end.
// It waits until all subscriptions are closed or ctx ends; Subscribe then fails.
func (b *Bus) Stop(ctx context.Context) error {
	b.stop()
	select {
	case <-b.idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close stops the bus and waits for its goroutine. Streams end as after Stop,
// but are not waited for.
func (b *Bus) Close() {
	b.cancel()
	b.done.Wait()
	b.stop()
}

func (b *Bus) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return
	}
	b.stopped = true
	close(b.stopping)
	if b.open == 0 {
		close(b.idle)
	}
}

// deliver takes the next durable event. The caller holds the lock.
func (b *Bus) deliver(r Record) {
	b.moveTo(r.Seq)
	b.push(recordFrame(b.cfg.Epoch, r))
	b.release()
}

// skipTo passes over numbers that no event has. The caller holds the lock.
func (b *Bus) skipTo(seq int64) {
	if seq <= b.last {
		return
	}
	b.moveTo(seq)
	b.head = Position{Epoch: b.cfg.Epoch, Seq: seq}
	b.release()
}

func (b *Bus) moveTo(seq int64) {
	b.last, b.counter = seq, 0
	if b.progress != nil {
		close(b.progress)
		b.progress = nil
	}
}

// number gives an ephemeral event its position. When there are no numbers left
// before the next durable event, it is given up like a held one that is too much.
func (b *Bus) number(d Draft) {
	// The last million is for control frames and whole parts.
	if b.counter >= maxCounter-1<<20 {
		b.backlog.lossy = true
		return
	}
	b.push(newFrame(b.next(), d))
}

// next gives a position behind all given out. The caller holds the lock.
func (b *Bus) next() Position {
	b.counter++
	return b.position()
}

// position is the newest one given out.
func (b *Bus) position() Position {
	p := Position{Epoch: b.cfg.Epoch, Seq: b.last}
	if b.counter > 0 {
		p.Sub = subOf(b.instance, b.counter)
	}
	return p
}

func (b *Bus) push(f *Frame) {
	f.at = time.Since(b.born)
	b.head = f.Position
	at := b.ring.end()
	b.ring.push(f)
	b.streams.offer(f, at)
}

func (b *Bus) trim() {
	b.ring.trim(b.cfg.RingBytes, time.Since(b.born)-b.cfg.RingAge)
}

// restart empties the ring after events were given up, so that every stream is
// served from the log and then gets the open parts as a whole.
func (b *Bus) restart() {
	b.backlog.lossy = false
	b.ring.clear(b.position())
	for s := range b.streams.every {
		if !s.dirty {
			s.passed = b.head
		}
		s.dirty, s.next = true, 0
		s.rouse()
	}
}
