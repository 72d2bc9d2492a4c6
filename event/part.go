package event

import "slices"

// parts are the parts that grow by deltas, in the order they were opened. It is
// protected by the bus.
type parts struct{ open []*livePart }

// livePart is a part that grows.
type livePart struct {
	origin Origin
	render func() (Draft, error)
	// until is the number of the durable event that the last deltas of a closed
	// part wait for; 0 while the part is open.
	until int64
}

// partUpdated is the kind of the frames that carry a whole part.
const partUpdated = "message.part.updated"

// OpenPart makes a part known that will grow by deltas, so that streams which
// begin in the middle get it whole. render makes its message.part.updated as it
// is now; it may be called from many goroutines, also a little after close, and
// not while the caller holds a lock that it needs. partID is for the log.
//
// A stream notes which parts are open at one moment, between two events, and
// renders them later, outside all locks; it then gets every event after that
// moment. So that nothing is missing between the two, the owner
//   - opens the part before it publishes the first delta;
//   - makes text visible to render before it publishes the delta that carries
//     it. What render shows too early comes again as a delta, whose offset says
//     where it belongs: an overlap, never a hole;
//   - closes the part after the event with its last form was committed. While
//     deltas wait for earlier events it still counts as open.
func (b *Bus) OpenPart(at Origin, partID string, render func() (Draft, error)) (closePart func()) {
	p := &livePart{origin: at, render: func() (Draft, error) {
		d, err := render()
		if err != nil {
			b.cfg.Logger.Error("rendering an open part", "part", partID, "error", err)
		}
		return d, err
	}}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.parts.open = append(b.parts.open, p)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.backlog.waits(b.last) {
			p.until = max(b.backlog.seen, b.last)
			return
		}
		b.parts.open = slices.DeleteFunc(b.parts.open, func(have *livePart) bool { return have == p })
	}
}

// delivered lets the closed parts go whose last deltas were given out.
func (p *parts) delivered(last int64) {
	p.open = slices.DeleteFunc(p.open, func(have *livePart) bool { return have.until > 0 && have.until <= last })
}

// partFrame is a whole part that a stream is to get, at its place.
type partFrame struct {
	part *livePart
	at   Position
}

// catchUp notes the open parts that pass a filter and gives each a position. All
// but the last are marked: who resumes there has not seen the others yet. The
// caller holds the lock.
func (b *Bus) catchUp(m *matcher) []partFrame {
	var out []partFrame
	for _, p := range b.parts.open {
		if m.match(partUpdated, &p.origin) {
			out = append(out, partFrame{part: p, at: b.next()})
		}
	}
	for i := range max(len(out)-1, 0) {
		out[i].at = out[i].at.mark()
	}
	return out
}
