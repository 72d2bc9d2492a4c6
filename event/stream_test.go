package event_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/switchyard-dev/switchyard/event"
)

const story = "Deltas of five bytes each make up this text, which is long enough for some eighty of them. "

func TestSC01_ResumeWithoutGapOrDuplicate(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	server := w.serve()
	steady, c := connect(t, server, "directory=/a", ""), connect(t, server, "directory=/a", "")
	c.next()
	text := strings.Repeat(story, 5)[:400]
	dropped := make(chan struct{})
	go func() {
		p := w.openPart("p", ses1)
		for i := 0; i < len(text); i += 5 {
			if i == 100 {
				<-dropped
			}
			p.grow(text[i : i+5])
		}
		p.finish()
		commit(w, wentIdle, ses1, idlePayload{SessionID: "ses_1"})
	}()
	var mine []got
	for len(mine) < 11 {
		mine = append(mine, c.next())
	}
	c.drop()
	close(dropped)
	all := events(steady.until("session.idle"))
	last := mine[len(mine)-1].ID
	again := connect(t, server, "directory=/a", last)
	rest := again.until("session.idle")
	if rest[0].Type != "server.connected" || rest[0].ID != last {
		t.Errorf("resumed with %s %s", rest[0].Type, rest[0].ID)
	}
	mine = append(mine, events(rest)...)
	if !slices.Equal(ids(mine), ids(all)) {
		t.Errorf("read %v\nwant %v", ids(mine), ids(all))
	}
	joined := ""
	for _, g := range mine {
		if g.Type == "message.part.delta" {
			joined += decode[deltaPayload](t, g).Delta
		}
	}
	if joined != text {
		t.Errorf("deltas make %q", joined)
	}

	// The same position in another context yields nothing of this one.
	other := connect(t, server, "directory=/b&after="+last, "")
	commit(w, noted, event.At(event.Context{Directory: "/b"}, "", ""), notePayload{N: 1})
	if got := other.until("pty.created"); len(got) != 2 || got[1].Context.Directory != "/b" {
		t.Errorf("in the other context: %v", kinds(got))
	}
}

func TestSC01_ResumeAfterARestart(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	server := w.serve()
	c := connect(t, server, "directory=/a", "")
	c.next()
	p := w.openPart("p", ses1)
	p.grow("one ")
	c.until("message.part.delta")
	p.grow("two")
	lost := c.until("message.part.delta")
	w.restart(nil)
	if _, clean := c.ended(); clean {
		t.Error("the stream ended cleanly")
	}
	// The new process recovers the part with what was stored, and goes on.
	recovered := w.openPart("p", ses1)
	recovered.grow("one ")
	again := connect(t, server, "directory=/a", lost[0].ID)
	recovered.grow("three")
	recovered.finish()
	commit(w, wentIdle, ses1, idlePayload{})
	view := newScreen()
	for _, g := range again.until("session.idle") {
		if err := view.apply(g); err != nil {
			t.Error(err)
		}
	}
	if view.text("p") != "one three" {
		t.Errorf("the part reads %q", view.text("p"))
	}
}

func TestSC02_BadCursorsAreAnsweredWith200(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	server := w.serve()
	old := w.bus.Head().String()
	for n := range 3 {
		commit(w, noted, ses1, notePayload{N: n})
	}
	w.log.trim(w.log.head - 1)
	w.restart(nil) // the ring of before would still cover it
	foreign := event.Position{Epoch: epoch + 1}.String()
	for cursor, want := range map[string]string{"zzz": "malformed", old: "expired", foreign: "unknown"} {
		c := connect(t, server, "directory=/a", cursor)
		first := c.next()
		commit(w, noted, ses1, notePayload{N: 100})
		second := c.next()
		if first.Type != "server.resync" || !strings.Contains(string(first.Payload), `"reason":"`+want+`"`) || decode[notePayload](t, second).N != 100 {
			t.Errorf("%s: %s %s, then %s %s", cursor, first.Type, first.Payload, second.Type, second.Payload)
		}
		c.drop()
	}
}

func TestSC03_FramingHeartbeatHeaders(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *event.Config) { c.Heartbeat = 30 * time.Millisecond })
	server := w.serve()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	asked := time.Now()
	if _, err := io.WriteString(conn, "GET /api/event?directory=/a HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := time.Since(asked); d > 2*time.Second {
		t.Errorf("first bytes after %v", d)
	}
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no",
		"Content-Encoding": "", "Connection": "", "Content-Length": "",
	} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	c := &client{t: t, res: res, lines: bufio.NewReader(res.Body), cancel: func() {}}
	first := c.next()
	for range 2 {
		if g := c.next(); g.comment == "" {
			t.Errorf("while idle came %s", g.Type)
		}
	}
	last := first.position(t)
	for range 3 { // until checks framing and the id in the JSON
		go w.turn("p", story, 7, ses1)
		for _, g := range c.until("session.idle") {
			if p := g.position(t); p.Compare(last) <= 0 {
				t.Fatalf("%v after %v", p, last)
			}
			last = g.position(t)
		}
	}
	if g := c.next(); g.comment == "" && g.Type != "server.cursor" {
		t.Errorf("after the third turn came %s", g.Type)
	}
}

func TestE5_HeartbeatMovesTheCursorOfAFilteredStream(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *event.Config) { c.Heartbeat = 30 * time.Millisecond })
	server := w.serve()
	c, other := connect(t, server, "directory=/a", ""), connect(t, server, "directory=/c", "")
	first := c.next()
	other.next()
	commit(w, noted, event.At(contextB, "", ""), notePayload{N: 1})
	head := w.bus.Head()
	moved := c.until("server.cursor")[0]
	if moved.position(t).Compare(head) <= 0 || moved.Context != (event.Context{Directory: "/a"}) || string(moved.Payload) != "{}" {
		t.Errorf("cursor %s %v %s, head %v", moved.ID, moved.Context, moved.Payload, head)
	}
	if moved.ID == first.ID || moved.ID == other.until("server.cursor")[0].ID {
		t.Error("two control frames have one id")
	}
	for range 3 { // it moves once, and one stream's frame does not move another's
		if g := c.next(); g.comment == "" {
			t.Errorf("then came %s", g.Type)
		}
	}
	again := connect(t, server, "directory=/a", moved.ID)
	commit(w, noted, ses1, notePayload{N: 2})
	if got := events(again.until("pty.created")); len(got) != 1 || decode[notePayload](t, got[0]).N != 2 {
		t.Errorf("resumed with %v", kinds(got))
	}
}

func TestE5_LongFilteredReplayTellsItsProgress(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *event.Config) { c.Heartbeat = time.Nanosecond; c.Page = 1 })
	start := w.bus.Head().String()
	for n := range 50 {
		commit(w, noted, event.At(contextB, "", ""), notePayload{N: n})
	}
	slow := func(c *event.Config) { c.Heartbeat = 2 * time.Millisecond; c.Page = 1 }
	w.restart(slow)
	c := connect(t, w.serve(), "directory=/a", start)
	last := c.next().position(t)
	for range 3 {
		if p := c.until("server.cursor")[0].position(t); p.Compare(last) <= 0 {
			t.Fatalf("%v after %v", p, last)
		} else if last = p; p.Seq == w.bus.Head().Seq {
			break
		}
	}
}

func TestSC10_SeveralDirectoriesAndManyStreamsOnOneConnection(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	mux := http.NewServeMux()
	mux.Handle("/api/event", streamHandler(func() *event.Bus { return w.bus }))
	mux.HandleFunc("/plain", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	server := httptest.NewUnstartedServer(mux)
	var connections atomic.Int32
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)

	clients := []*client{}
	for range 10 {
		c := connect(t, server, "directory=/a&directory=/b", "")
		c.next()
		clients = append(clients, c)
	}
	commit(w, noted, event.At(contextA, "", ""), notePayload{N: 1})
	commit(w, noted, event.At(event.Context{Directory: "/b"}, "", ""), notePayload{N: 2})
	for _, c := range clients {
		if a, b := c.next(), c.next(); c.res.ProtoMajor != 2 || a.Context.Directory != "/a" || b.Context.Directory != "/b" {
			t.Errorf("%s: %v then %v", c.res.Proto, a.Context, b.Context)
		}
	}
	res, err := server.Client().Get(server.URL + "/plain")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusNoContent || connections.Load() != 1 {
		t.Errorf("plain answer %s, %d connections", res.Status, connections.Load())
	}
	go w.bus.Stop(t.Context())
	for _, c := range clients {
		all, clean := c.ended()
		if clean || len(all) != 1 || all[0].Type != "server.stopping" {
			t.Errorf("over HTTP/2 the stream ended with %v, cleanly: %v", kinds(all), clean)
		}
	}
}

func TestE12_StoppingIsTheLastFrameAndTheEndIsUnclean(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	c := connect(t, w.serve(), "scope=server", "")
	c.next()
	if err := w.bus.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if all, clean := c.ended(); clean || len(all) != 1 || all[0].Type != "server.stopping" {
		t.Errorf("ended with %v, cleanly: %v", kinds(all), clean)
	}
}

func TestUntilIdleEndsTheStreamCleanly(t *testing.T) {
	t.Parallel()
	const ses, child = "ses_01K00000000000000000000000", "ses_01K00000000000000000000001"
	w := setup(t, nil)
	server := w.serve()
	before := w.bus.Head().String()
	for range 2 { // live, then in a replay
		c := connect(t, server, "until=idle&types=pty.*&session="+ses+"&after="+before, "")
		commit(w, wentIdle, event.At(contextA, child, ses), idlePayload{})
		commit(w, noted, event.At(contextA, child, ses), notePayload{N: 1})
		commit(w, wentIdle, event.At(contextA, ses, ses), idlePayload{})
		commit(w, noted, event.At(contextA, ses, ses), notePayload{N: 2})
		all, clean := c.ended()
		if got := kinds(all); !clean || !slices.Equal(got, []string{"server.connected", "pty.created", "session.idle"}) {
			t.Errorf("got %v, cleanly: %v", got, clean)
		}
	}
}

func TestPublicParserReadsTheStream(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	server := w.serve()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/api/event?scope=server", nil)
	if err != nil {
		t.Fatal(err)
	}
	conn := (&sse.Client{HTTPClient: server.Client(), Backoff: sse.Backoff{MaxRetries: -1}}).NewConnection(req)
	text := ""
	conn.SubscribeToAll(func(e sse.Event) {
		var g got
		if err := json.Unmarshal([]byte(e.Data), &g); err != nil || e.Type != "" || g.ID != e.LastEventID {
			t.Errorf("event %+v: %v", e, err)
		}
		switch g.Type {
		case "server.connected":
			go w.turn("p", story, 5, ses1)
		case "message.part.delta":
			text += decode[deltaPayload](t, g).Delta
		case "session.idle":
			cancel()
		}
	})
	_ = conn.Connect() // ends with the context
	if text != story {
		t.Errorf("read %q", text)
	}
}
