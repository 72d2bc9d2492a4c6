package event_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/event"
)

// serve mounts the stream of the bus of the moment.
func (w *world) serve() *httptest.Server {
	server := httptest.NewServer(streamHandler(func() *event.Bus { return w.bus }))
	w.t.Cleanup(server.Close)
	return server
}

// streamHandler answers as the operation does.
func streamHandler(bus func() *event.Bus) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		f, err := event.ParseFilter(event.FilterQuery{Scope: q.Get("scope"), Session: q.Get("session"), Types: q.Get("types"), Until: q.Get("until")})
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		for _, d := range q["directory"] {
			f.Contexts = append(f.Contexts, event.Context{Directory: d})
		}
		cursor := r.Header.Get("Last-Event-ID")
		if cursor == "" {
			cursor = q.Get("after")
		}
		s, err := bus().Subscribe(r.Context(), event.Options{Cursor: cursor, Filter: f})
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		s.Stream(r.Context(), w)
	})
}

// client reads a stream over HTTP.
type client struct {
	t      testing.TB
	res    *http.Response
	lines  *bufio.Reader
	cancel context.CancelFunc
}

func connect(t testing.TB, server *httptest.Server, query, cursor string) *client {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/api/event?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	if cursor != "" {
		req.Header.Set("Last-Event-ID", cursor)
	}
	res, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, res: res, lines: bufio.NewReader(res.Body), cancel: cancel}
	t.Cleanup(c.drop)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("status %s", res.Status)
	}
	return c
}

// drop closes the connection.
func (c *client) drop() {
	c.cancel()
	c.res.Body.Close()
}

var errFraming = errors.New("not a frame")

// read reads one frame: a comment, or exactly an id and a data line.
func (c *client) read() (got, error) {
	var lines []string
	for {
		line, err := c.lines.ReadString('\n')
		if err != nil {
			return got{}, err
		}
		if line == "\n" {
			break
		}
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	if len(lines) == 1 && strings.HasPrefix(lines[0], ": ") {
		return got{comment: lines[0]}, nil
	}
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "id: ") || !strings.HasPrefix(lines[1], "data: ") {
		return got{}, fmt.Errorf("%w: %q", errFraming, lines)
	}
	var g got
	if err := json.Unmarshal([]byte(lines[1][6:]), &g); err != nil {
		return got{}, err
	}
	if g.ID != lines[0][4:] {
		return got{}, fmt.Errorf("%w: id %s of %s", errFraming, lines[0], g.ID)
	}
	return g, nil
}

func (c *client) next() got {
	c.t.Helper()
	g, err := c.read()
	if err != nil {
		c.t.Fatal(err)
	}
	return g
}

// until reads to the frame of a kind and gives all, comments left out.
func (c *client) until(kind string) []got {
	c.t.Helper()
	var all []got
	for {
		g := c.next()
		if g.comment != "" {
			continue
		}
		all = append(all, g)
		if g.Type == kind {
			return all
		}
	}
}

// ended reads what is left and tells whether the stream ended cleanly.
func (c *client) ended() (all []got, clean bool) {
	c.t.Helper()
	for {
		g, err := c.read()
		switch {
		case errors.Is(err, errFraming):
			c.t.Fatal(err)
		case err != nil:
			return all, errors.Is(err, io.EOF)
		}
		all = append(all, g)
	}
}
