package session

import (
	"encoding/json"
	"maps"
	"sync"
	"unicode/utf8"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/id"
)

// eventText bounds the text of a part in an event; longer ones are cut and
// marked, a read of the message gives the rest.
const eventText = 64 << 10

// Live holds the parts that running turns are still writing. Reads are overlaid
// with them, and a stream that starts in the middle gets them whole.
type Live struct {
	bus *event.Bus

	mu   sync.Mutex // protects open
	open map[id.Session]map[id.Part]*OpenPart
}

func newLive(bus *event.Bus) *Live {
	return &Live{bus: bus, open: map[id.Session]map[id.Part]*OpenPart{}}
}

// OpenPart is a part that grows.
type OpenPart struct {
	live   *Live
	run    Run
	id     id.Part
	closed func()

	mu   sync.Mutex // protects part, which only Change's callback alters
	part chat.Part
}

// Open announces a part that will grow. The part itself must be stored and
// published already (C3); the caller must Close it.
func (l *Live) Open(run Run, part chat.Part) *OpenPart {
	o := &OpenPart{live: l, run: run, id: part.Head().ID, part: part}
	l.mu.Lock()
	of := l.open[run.SessionID]
	if of == nil {
		of = map[id.Part]*OpenPart{}
		l.open[run.SessionID] = of
	}
	of[o.id] = o
	l.mu.Unlock()
	o.closed = l.bus.OpenPart(run.Origin, string(o.id), o.render)
	return o
}

// Close ends the growing. The part's last form must be stored before.
func (o *OpenPart) Close() {
	o.closed()
	o.live.mu.Lock()
	defer o.live.mu.Unlock()
	of := o.live.open[o.run.SessionID]
	delete(of, o.id)
	if len(of) == 0 {
		delete(o.live.open, o.run.SessionID)
	}
}

// Grow publishes text that change has put at the offset of a field. The text
// becomes readable before the delta is published, so that a stream which starts
// between the two repeats a little and never misses any.
func (o *OpenPart) Grow(field string, offset int64, delta string, change func(chat.Part)) error {
	o.mu.Lock()
	change(o.part)
	o.mu.Unlock()
	head := o.part.Head()
	draft, err := PartChanged.Draft(o.run.Origin, PartDelta{
		SessionID: head.SessionID, MessageID: head.MessageID, PartID: head.ID, Field: field, Delta: delta, Offset: offset,
	})
	if err != nil {
		return err
	}
	o.live.bus.Publish(draft)
	return nil
}

// Change alters the part without publishing anything; its next event or read
// shows the change.
func (o *OpenPart) Change(change func(chat.Part)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(o.part)
}

// JSON gives the part as it is now.
func (o *OpenPart) JSON() json.RawMessage {
	o.mu.Lock()
	defer o.mu.Unlock()
	return mustJSON(o.part)
}

func (o *OpenPart) render() (event.Draft, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return PartUpdated.Draft(o.run.Origin, PartPayload{SessionID: o.run.SessionID, Part: o.part, Time: clock.Now()})
}

func (l *Live) overlay(ses id.Session) map[id.Part]json.RawMessage {
	l.mu.Lock()
	of := maps.Clone(l.open[ses])
	l.mu.Unlock()
	if len(of) == 0 {
		return nil
	}
	out := make(map[id.Part]json.RawMessage, len(of))
	for part, o := range of {
		out[part] = o.JSON()
	}
	return out
}

// ForEvent gives the part as an event may carry it: texts over 64 KiB are cut at
// a code point and marked as truncated.
func ForEvent(p chat.Part) chat.Part {
	switch v := p.(type) {
	case *chat.TextPart:
		if len(v.Text) > eventText {
			c := *v
			c.Text, c.Truncated = cut(v.Text), true
			return &c
		}
	case *chat.ReasoningPart:
		if len(v.Text) > eventText {
			c := *v
			c.Text, c.Truncated = cut(v.Text), true
			return &c
		}
	case *chat.ToolPart:
		return toolForEvent(v)
	}
	return p
}

func toolForEvent(v *chat.ToolPart) chat.Part {
	done, ok := v.State.(*chat.ToolCompleted)
	if !ok || len(done.Output) <= eventText {
		return v
	}
	c, state := *v, *done
	state.Output = cut(done.Output)
	state.Metadata = maps.Clone(done.Metadata)
	if state.Metadata == nil {
		state.Metadata = map[string]any{}
	}
	state.Metadata["truncated"] = true
	c.State = &state
	return &c
}

func cut(s string) string {
	n := eventText
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
