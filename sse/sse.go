// Package sse writes server-sent events: the bytes of a frame, and a writer that
// sends frames over HTTP with a deadline for each flush.
//
// A frame here is always one "id:" line and one "data:" line. There is no
// "event:" line, because generated clients only listen to unnamed events, and
// never a frame without data, because common parsers mishandle those.
package sse

import (
	"bytes"
	"net/http"
	"strings"
	"time"
)

// ContentType is the media type of a stream.
const ContentType = "text/event-stream"

// Begin appends the start of a frame to dst: the id line and the name of the
// data line. The caller appends JSON without line breaks and then calls End. An
// id that contains a line break or a NUL is left out, as it would break the frame.
func Begin(dst []byte, id string) []byte {
	if id != "" && !strings.ContainsAny(id, "\r\n\x00") {
		dst = append(dst, "id: "...)
		dst = append(dst, id...)
		dst = append(dst, '\n')
	}
	return append(dst, "data: "...)
}

// End appends the end of a frame.
func End(dst []byte) []byte { return append(dst, "\n\n"...) }

// AppendJSON appends JSON on one line. Line breaks can stand only between the
// tokens of a JSON text, so a space in their place changes nothing.
func AppendJSON(dst, json []byte) []byte {
	start := len(dst)
	dst = append(dst, json...)
	if bytes.IndexByte(json, '\n') < 0 && bytes.IndexByte(json, '\r') < 0 {
		return dst
	}
	for i, c := range dst[start:] {
		if c == '\n' || c == '\r' {
			dst[start+i] = ' '
		}
	}
	return dst
}

// Append appends a whole frame whose data is a JSON text.
func Append(dst []byte, id string, json []byte) []byte {
	return End(AppendJSON(Begin(dst, id), json))
}

// Abort ends the response so that the client sees an error instead of an end:
// HTTP/1.1 closes the connection without the last chunk, HTTP/2 resets the
// stream. Clients that stop for good at a clean end then come back. It unwinds
// the handler by panicking with http.ErrAbortHandler, which net/http catches and
// does not log; middleware must let it through. What was flushed before still
// arrives.
func Abort() { panic(http.ErrAbortHandler) }

// Writer sends frames as the body of a response. It is for one goroutine.
type Writer struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	joined  []byte
}

// NewWriter makes a Writer. Each Send and Comment must reach the connection
// within timeout, else it fails and the response cannot be used any more.
func NewWriter(w http.ResponseWriter, timeout time.Duration) *Writer {
	return &Writer{w: w, control: http.NewResponseController(w), timeout: timeout}
}

// Start sets the status and the headers that keep proxies from buffering,
// caching or compressing the stream. They leave with the first Send.
func (s *Writer) Start() {
	h := s.w.Header()
	h.Set("Content-Type", ContentType)
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	s.w.WriteHeader(http.StatusOK)
}

// joinBytes bounds how much is copied together for one write.
const joinBytes = 64 << 10

// Send writes frames and flushes them, small ones together. The frames are only
// read: they may be shared with other writers.
func (s *Writer) Send(frames ...[]byte) error {
	for len(frames) > 0 {
		n, size := 1, len(frames[0])
		for n < len(frames) && size+len(frames[n]) <= joinBytes {
			size += len(frames[n])
			n++
		}
		if err := s.flush(s.join(frames[:n])); err != nil {
			return err
		}
		frames = frames[n:]
	}
	return nil
}

func (s *Writer) join(frames [][]byte) []byte {
	if len(frames) == 1 {
		return frames[0]
	}
	s.joined = s.joined[:0]
	for _, f := range frames {
		s.joined = append(s.joined, f...)
	}
	return s.joined
}

// Comment writes a comment line, which parsers skip: a heartbeat. A stream that
// needs heartbeats is idle, so the buffer of its last burst is let go.
func (s *Writer) Comment(text string) error {
	s.joined = nil
	line := make([]byte, 0, len(text)+4)
	line = append(line, ": "...)
	line = append(line, text...)
	return s.flush(End(line))
}

func (s *Writer) flush(p []byte) error {
	// A recorder or a wrapped writer may know no deadlines; the stream works
	// without them, so that error is not one.
	_ = s.control.SetWriteDeadline(time.Now().Add(s.timeout))
	if _, err := s.w.Write(p); err != nil {
		return err
	}
	if err := s.control.Flush(); err != nil {
		return err
	}
	// HTTP/2 resets a stream whose deadline passes, even when it is idle.
	_ = s.control.SetWriteDeadline(time.Time{})
	return nil
}
