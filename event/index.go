package event

import "github.com/switchyard-dev/switchyard/id"

// index finds the streams that an event may concern without looking at the
// others. Each stream is in exactly one bucket per context, or in that of its
// session, or in the one for all contexts. It is protected by the bus.
type index struct {
	every     streams // all that are in one of the others
	all       streams
	byContext map[Context]streams
	bySession map[id.Session]streams
}

type streams map[*Subscription]struct{}

func newIndex() index {
	return index{every: streams{}, all: streams{}, byContext: map[Context]streams{}, bySession: map[id.Session]streams{}}
}

func (x *index) add(s *Subscription) {
	x.every[s] = struct{}{}
	m := s.matcher.Load()
	switch {
	case m.Session != "":
		put(x.bySession, m.Session, s)
	case m.All:
		x.all[s] = struct{}{}
	default:
		for c := range m.contexts {
			put(x.byContext, c, s)
		}
	}
}

func (x *index) remove(s *Subscription) {
	delete(x.every, s)
	m := s.matcher.Load()
	switch {
	case m.Session != "":
		drop(x.bySession, m.Session, s)
	case m.All:
		delete(x.all, s)
	default:
		for c := range m.contexts {
			drop(x.byContext, c, s)
		}
	}
}

// offer shows a frame to the streams it may concern.
func (x *index) offer(f *Frame, at int64) {
	o := &f.Origin
	if (o.Context == Context{}) {
		x.every.offer(f, at)
		return
	}
	x.all.offer(f, at)
	x.byContext[o.Context].offer(f, at)
	if len(x.bySession) == 0 || o.SessionID == "" {
		return
	}
	x.bySession[o.SessionID].offer(f, at)
	if o.RootSessionID != o.SessionID {
		x.bySession[o.RootSessionID].offer(f, at)
	}
}

func (s streams) offer(f *Frame, at int64) {
	for sub := range s {
		sub.offer(f, at)
	}
}

func put[K comparable](buckets map[K]streams, key K, s *Subscription) {
	if buckets[key] == nil {
		buckets[key] = streams{}
	}
	buckets[key][s] = struct{}{}
}

func drop[K comparable](buckets map[K]streams, key K, s *Subscription) {
	delete(buckets[key], s)
	if len(buckets[key]) == 0 {
		delete(buckets, key)
	}
}
