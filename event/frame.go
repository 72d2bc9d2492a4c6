package event

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/switchyard-dev/switchyard/sse"
)

// Frame is an event with its position, encoded once for all streams. It is
// never altered.
type Frame struct {
	Position Position
	Type     string
	// Time is in milliseconds since the epoch.
	Time   int64
	Origin Origin

	bytes   []byte // the whole frame of the stream
	data    int    // where the envelope begins in bytes
	payload int    // where the payload begins in bytes
	def     *definition
	key     MergeKey
	at      time.Duration // when it came into the ring, on the bus's clock
}

// frameOverhead is what a frame takes beside its bytes.
const frameOverhead = 256

// Durable tells whether the event is in the log. A first frame is not, although
// it may have the position of one.
func (f *Frame) Durable() bool { return f.Position.Sub == 0 && f.def == nil }

// SSE is the frame as a stream sends it. It must not be altered.
func (f *Frame) SSE() []byte { return f.bytes }

// Envelope is the event as JSON. It must not be altered.
func (f *Frame) Envelope() json.RawMessage { return f.bytes[f.data : len(f.bytes)-2] }

// Payload is the JSON of the payload. It must not be altered.
func (f *Frame) Payload() json.RawMessage { return f.bytes[f.payload : len(f.bytes)-3] }

func (f *Frame) size() int { return len(f.bytes) + frameOverhead }

// continues tells whether f and an earlier frame are of one series of deltas.
func (f *Frame) continues(earlier *Frame) bool {
	return f.key != MergeKey{} && f.key == earlier.key && f.def == earlier.def
}

func newFrame(p Position, d Draft) *Frame {
	f := &Frame{Position: p, Type: d.Type, Time: d.Time, Origin: d.Origin, def: d.def, key: d.key}
	eventID, at := p.String(), d.Origin.Context
	// 130 bytes hold what does not vary, 20 of them the time.
	b := make([]byte, 0, 130+len(eventID)+len(d.Type)+len(at.Directory)+len(at.WorkspaceID)+len(d.Payload))
	b = sse.Begin(b, eventID)
	f.data = len(b)
	b = append(b, `{"id":"`...)
	b = append(b, eventID...)
	b = append(b, `","type":"`...)
	b = append(b, d.Type...)
	b = append(b, `","time":`...)
	b = strconv.AppendInt(b, d.Time, 10)
	b = append(b, `,"context":{"directory":`...)
	b = appendString(b, at.Directory)
	if at.WorkspaceID != "" {
		b = append(b, `,"workspaceID":`...)
		b = appendString(b, string(at.WorkspaceID))
	}
	b = append(b, `},"payload":`...)
	f.payload = len(b)
	b = sse.AppendJSON(b, d.Payload)
	b = append(b, '}')
	f.bytes = sse.End(b)
	return f
}

func recordFrame(epoch uint32, r Record) *Frame {
	return newFrame(Position{Epoch: epoch, Seq: r.Seq}, Draft{Type: r.Type, Origin: originOf(r), Time: r.Time, Payload: r.Payload})
}

// appendString appends a JSON string; nearly all directories need no escapes.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			data, _ := encode(s) // a string always encodes
			return append(dst, data...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// merged replaces each run of deltas of one series by one delta that has the
// position and the time of the last. Only neighbours are joined: a delta moved
// behind an event of another series would be lost to who resumes between them.
func merged(frames []*Frame) []*Frame {
	out := frames[:0]
	for len(frames) > 0 {
		n := 1
		for n < len(frames) && frames[n].continues(frames[n-1]) {
			n++
		}
		out = append(out, mergeRun(frames[:n])...)
		frames = frames[n:]
	}
	return out
}

func mergeRun(run []*Frame) []*Frame {
	if len(run) == 1 {
		return run
	}
	payloads := make([][]byte, len(run))
	for i, f := range run {
		payloads[i] = f.Payload()
	}
	last := run[len(run)-1]
	payload, ok := last.def.merge(payloads)
	if !ok {
		return run
	}
	d := Draft{Type: last.Type, Origin: last.Origin, Time: last.Time, Payload: payload, def: last.def, key: last.key}
	return []*Frame{newFrame(last.Position, d)}
}
