package apptest

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// Event is a frame of a stream.
type Event struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Time    int64  `json:"time"`
	Context struct {
		Directory   string `json:"directory"`
		WorkspaceID string `json:"workspaceID"`
	} `json:"context"`
	Payload json.RawMessage `json:"payload"`
}

// Stream is an open event stream, read in the background.
type Stream struct {
	server *Server
	cancel context.CancelFunc
	events chan Event
	// Header is of the answer.
	Header http.Header
	// Comments counts comment lines; read it after Close.
	Comments int
	// Clean tells that the stream ended without an error; read it after the
	// channel was closed.
	Clean bool
}

// Events opens a stream; query is "?…" or "". Its first frame has come when it
// returns.
func (s *Server) Events(query string, headers ...string) *Stream {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/event"+query, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := s.Client.Do(r)
	if err != nil {
		cancel()
		s.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		cancel()
		s.t.Fatalf("event stream: %d", res.StatusCode)
	}
	st := &Stream{server: s, cancel: cancel, events: make(chan Event, 100_000), Header: res.Header}
	go st.read(res)
	s.t.Cleanup(st.Close)
	return st
}

func (st *Stream) read(res *http.Response) {
	defer close(st.events)
	defer func() { _ = res.Body.Close() }()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 16<<20)
	var id string
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, ":"):
			st.Comments++
		case strings.HasPrefix(line, "id: "):
			id = line[4:]
		case strings.HasPrefix(line, "data: "):
			var e Event
			if json.Unmarshal([]byte(line[6:]), &e) != nil || e.ID != id {
				e.Type = "broken frame: " + line
			}
			st.events <- e
		}
	}
	st.Clean = lines.Err() == nil
}

// Close ends the stream from the client's side.
func (st *Stream) Close() { st.cancel() }

// Next gives the next frame, or fails the test after ten seconds.
func (st *Stream) Next() Event {
	st.server.t.Helper()
	select {
	case e, ok := <-st.events:
		if !ok {
			st.server.t.Fatal("the stream ended")
		}
		return e
	case <-time.After(10 * time.Second):
		st.server.t.Fatal("no event in time")
	}
	return Event{}
}

// Until collects frames up to and including the first one of a type.
func (st *Stream) Until(typ string) []Event {
	st.server.t.Helper()
	var out []Event
	for {
		e := st.Next()
		out = append(out, e)
		if e.Type == typ {
			return out
		}
	}
}

// Rest collects what comes until nothing has come for a while.
func (st *Stream) Rest(quiet time.Duration) []Event {
	var out []Event
	for {
		select {
		case e, ok := <-st.events:
			if !ok {
				return out
			}
			out = append(out, e)
		case <-time.After(quiet):
			return out
		}
	}
}

// Payload decodes a frame's payload.
func Payload[P any](s *Server, e Event) P {
	s.t.Helper()
	var p P
	if err := json.Unmarshal(e.Payload, &p); err != nil {
		s.t.Fatalf("%s: %v", e.Payload, err)
	}
	return p
}
