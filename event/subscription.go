package event

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"
)

// Errors that end a subscription. The client should come back after each.
var (
	// ErrLagged ends a subscription that was given up as too slow.
	ErrLagged = errors.New("the stream lagged behind")
	// ErrStopping ends all subscriptions when the bus stops.
	ErrStopping = errors.New("the server is stopping")
	// ErrClosed is the answer of a closed subscription.
	ErrClosed = errors.New("the subscription is closed")
)

// Options say where a stream starts and what it carries.
type Options struct {
	// Cursor is the id of the last event that the client has seen, as it gave it
	// (Last-Event-ID, else after); "" starts at the newest event. A wrong one is
	// no error: the stream says so in its first frame.
	Cursor string
	Filter Filter
	// Contexts are told in the first frame.
	Contexts []Requested
}

// batch bounds what a stream takes from the ring at once: bytes when it keeps
// up, and bytes before merging when it does not.
const (
	batchBytes = 32 << 10
	mergeBytes = 256 << 10
)

// phase is what a subscription does next.
type phase int

const (
	phaseFirst  phase = iota // server.connected or server.resync
	phaseReplay              // durable events, from the log and then from the ring
	phaseParts               // open parts
	phaseLive                // the ring
)

// Subscription is one stream of events. One goroutine reads it; Close and Join
// may be called from any. The caller closes it.
type Subscription struct {
	bus     *Bus
	wake    chan struct{}
	matcher atomic.Pointer[matcher] // replaced under the bus's lock

	// Protected by the bus, see Bus.mu.
	dirty   bool     // frames from next on may want to be sent
	next    int64    // index in the ring
	pending int      // bytes that came since the stream had everything
	passed  Position // everything up to here was sent or did not match
	listed  bool     // in the index
	closed  bool

	// Of the reader alone.
	phase  phase
	first  *Frame
	then   phase // after the first frame
	owed   []partFrame
	taken  []*Frame
	sent   Position // id of the last frame
	ending error    // set when the frames given are the last ones
	queue  []*Frame // for Next
}

// Subscribe starts a stream. It fails with a stopping fault after Stop, with
// store_unavailable when a cursor needs the log and it cannot be read, and with
// ctx.
func (b *Bus) Subscribe(ctx context.Context, o Options) (*Subscription, error) {
	at, err := b.locate(ctx, o.Cursor)
	if err != nil {
		return nil, err
	}
	s := &Subscription{bus: b, wake: make(chan struct{}, 1)}
	s.matcher.Store(newMatcher(o.Filter))
	hello := Connected{Version: b.cfg.Version, Epoch: b.cfg.Epoch, Contexts: append([]Requested{}, o.Contexts...)}

	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return nil, errStopping()
	}
	b.open++
	s.sent = s.begin(at.from)
	where := s.matcher.Load().place()
	if at.reason == "" {
		s.first = control(ServerConnected, s.sent, where, hello)
	} else {
		s.first = control(ServerResync, s.sent, where, Resync{Connected: hello, Reason: at.reason, Earliest: at.earliest.String()})
	}
	return s, nil
}

// begin puts the stream at its place and gives the position it starts from. The
// caller holds the lock.
func (s *Subscription) begin(from Position) Position {
	b := s.bus
	switch {
	case from == Position{}:
		from = b.head
		s.join()
		s.then = phaseParts
		if len(s.owed) > 0 {
			from = from.mark() // who is cut off before the open parts needs them still
		}
	case b.covers(from):
		s.passed, s.next, s.dirty = from, b.ring.after(from), true
		s.list()
		s.then = phaseLive
	default:
		s.passed = from
		s.then = phaseReplay
	}
	return from
}

// join puts the stream behind the newest event and notes the open parts it gets
// first. The caller holds the lock.
func (s *Subscription) join() {
	b := s.bus
	s.owed = b.catchUp(s.matcher.Load())
	s.passed, s.next, s.dirty, s.pending = b.position(), b.ring.end(), false, 0
	s.list()
}

func (s *Subscription) list() {
	if !s.listed && !s.closed {
		s.listed = true
		s.bus.streams.add(s)
	}
}

// offer tells the stream of a frame that came into the ring. The bus is locked.
func (s *Subscription) offer(f *Frame, at int64) {
	if !s.matcher.Load().match(f.Type, &f.Origin) {
		return
	}
	s.pending += f.size()
	if s.dirty {
		return
	}
	s.dirty, s.next = true, at
	s.rouse()
}

func (s *Subscription) rouse() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Join lets the events of one more context pass from now on: one that was
// missing when the stream began.
func (s *Subscription) Join(c Context) {
	b := s.bus
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.listed {
		b.streams.remove(s)
	}
	s.matcher.Store(s.matcher.Load().with(c))
	if s.listed {
		b.streams.add(s)
	}
}

// Close ends the subscription and frees what it holds. A reader that waits
// gets ErrClosed. It may be called again.
func (s *Subscription) Close() {
	b := s.bus
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	if s.listed {
		s.listed = false
		b.streams.remove(s)
	}
	if b.open--; b.open == 0 && b.stopped {
		close(b.idle)
	}
	s.rouse()
}

// Next gives the next frame, those of the server's own kinds included, and waits
// for it. After the last one it fails: with io.EOF when the stream was to end
// (UntilIdle), else with ErrLagged, ErrStopping, ErrClosed, the cause of ctx or
// an error of the log.
func (s *Subscription) Next(ctx context.Context) (*Frame, error) {
	for len(s.queue) == 0 {
		frames, err := s.step(ctx, nil)
		if err != nil {
			return nil, err
		}
		s.queue = frames
	}
	f := s.queue[0]
	s.queue = s.queue[1:]
	return f, nil
}

// step gives the next frames, which are valid until it is called again. None
// means that nothing was to be sent until beat.
func (s *Subscription) step(ctx context.Context, beat <-chan time.Time) ([]*Frame, error) {
	for s.ending == nil {
		var due <-chan time.Time
		if s.phase == phaseReplay {
			due = beat // a filter may hold back all of a long log
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-due:
			return s.heartbeat(), nil
		default:
		}
		frames, err := s.advance(ctx)
		if err != nil {
			return nil, err
		}
		if len(frames) > 0 {
			return s.send(frames), nil
		}
		if s.ending != nil || s.phase != phaseLive {
			continue
		}
		select {
		case <-s.wake:
		case <-s.bus.stopping:
		case <-beat:
			return s.heartbeat(), nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return nil, s.ending
}

func (s *Subscription) advance(ctx context.Context) ([]*Frame, error) {
	switch s.phase {
	case phaseFirst:
		s.phase = s.then
		s.taken = append(s.taken[:0], s.first)
		s.first = nil
		return s.taken, nil
	case phaseReplay:
		return s.replay(ctx)
	case phaseParts:
		return s.wholePart()
	default:
		return s.live(), nil
	}
}

// send notes what is sent and cuts it behind the event that ends the stream.
func (s *Subscription) send(frames []*Frame) []*Frame {
	m := s.matcher.Load()
	if m.UntilIdle {
		for i, f := range frames {
			if m.ends(f.Type, &f.Origin) {
				frames, s.ending = frames[:i+1], io.EOF
				break
			}
		}
	}
	s.sent = frames[len(frames)-1].Position
	return frames
}
