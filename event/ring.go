package event

import (
	"slices"
	"sort"
	"time"
)

// ring holds the newest frames in the order of their positions. A frame's index
// never changes: readers keep the index of the next one they want. It is
// protected by the bus.
type ring struct {
	frames []*Frame // those before skip are gone
	skip   int
	base   int64 // index of frames[skip]; never 0
	bytes  int
	// floor is the position that is followed by frames of the ring only: that of
	// the newest frame that left it.
	floor Position
}

func (r *ring) end() int64 { return r.base + int64(len(r.frames)-r.skip) }

func (r *ring) at(index int64) *Frame { return r.frames[r.skip+int(index-r.base)] }

func (r *ring) push(f *Frame) {
	r.frames = append(r.frames, f)
	r.bytes += f.size()
}

// after gives the index of the first frame behind p.
func (r *ring) after(p Position) int64 {
	held := r.frames[r.skip:]
	return r.base + int64(sort.Search(len(held), func(i int) bool { return p.before(held[i].Position) }))
}

// trim lets the oldest frames go until the others are within the bytes and were
// pushed at oldest or later.
func (r *ring) trim(maxBytes int, oldest time.Duration) {
	for r.skip < len(r.frames) && (r.bytes > maxBytes || r.frames[r.skip].at < oldest) {
		f := r.frames[r.skip]
		r.frames[r.skip] = nil
		r.skip++
		r.base++
		r.bytes -= f.size()
		r.floor = f.Position
	}
	// The slice is moved back when most of it is empty, so that a push costs the
	// same on the average however long the ring is.
	if r.skip > 64 && r.skip > len(r.frames)/2 {
		r.frames = slices.Delete(r.frames, 0, r.skip)
		r.skip = 0
	}
	if len(r.frames) == r.skip && cap(r.frames) > 1024 {
		r.frames, r.skip = nil, 0
	}
}

// clear lets all frames go: nothing at or before floor can be continued here.
func (r *ring) clear(floor Position) {
	r.base = r.end()
	r.frames, r.skip, r.bytes = nil, 0, 0
	r.floor = floor
}
