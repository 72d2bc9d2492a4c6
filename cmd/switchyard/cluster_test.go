package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/llm/llmtest"
)

// ttl is the lease of these tests' servers: short, but long enough for a loaded
// machine to renew it.
const ttl = 3 * time.Second

// cluster is servers on one PostgreSQL, with one scripted model.
type cluster struct {
	t        *testing.T
	database string
	home     string
	model    *llmtest.Server
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, database: testkit.Postgres(t), home: t.TempDir(), model: llmtest.New(t)}
	doc, err := json.Marshal(map[string]any{
		"model": "fake/scripted", "permission": map[string]any{"*": "allow", "write": "allow", "edit": "ask"},
		"provider": map[string]any{"fake": map[string]any{
			"npm": "@ai-sdk/openai-compatible", "options": map[string]any{"baseURL": c.model.URL(), "apiKey": "sk-of-the-test"},
			"models": map[string]any{"scripted": map[string]any{}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(c.home, ".config", "switchyard")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "switchyard.json"), doc, 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// server starts one more server, over the given way to the database.
func (c *cluster) server(database string) *process {
	c.t.Helper()
	p := spawn(c.t, c.t.TempDir(), c.home, "--database", database, "--lease-ttl", ttl.String())
	c.t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
		p.kill()
	})
	return p
}

// eventually waits until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not in time: %s", what)
}

// TestSC22_TwoServersOneStore prompts one session through two servers at once,
// many times: the model never sees two requests of it at a time, and each prompt
// has its answer, in the order of admission.
func TestSC22_TwoServersOneStore(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b := c.server(c.database), c.server(c.database)
	ses := a.session()
	stream := b.follow(t, ses)
	for n := range 50 {
		var both sync.WaitGroup
		for i, p := range []*process{a, b} {
			both.Go(func() {
				in := map[string]any{"messageID": fmt.Sprintf("msg_n%ds%d", n, i), "prompt": map[string]any{"text": fmt.Sprintf("say:n%d", n)}, "delivery": "deferred"}
				if status := p.call("POST", "/api/session/"+ses+"/prompt", in, nil); status != http.StatusOK {
					t.Errorf("prompt %d through %d: %d", n, i, status)
				}
			})
		}
		both.Wait()
		if n%25 == 24 { // at most 64 wait
			if got := []string{a.wait(ses), b.wait(ses)}; got[0] != "completed" || got[1] != "completed" {
				t.Fatalf("outcomes: %v", got)
			}
		}
	}
	if n := c.model.MaxConcurrent(ses); n != 1 {
		t.Errorf("%d requests of one session at a time", n)
	}
	var answers int
	for _, m := range a.items(ses) {
		if m.Info.Role == "assistant" && m.Info.Time.Completed > 0 {
			answers++
		}
	}
	if answers != 100 {
		t.Errorf("%d answers", answers)
	}
	eventually(t, "all ends on the other server's stream", func() bool { return stream.count("session.idle") == 100 })
	c.check()
}

// TestServersActForEachOther: a reply, an interrupt and a wait through one server
// reach the turn of another, soon.
func TestServersActForEachOther(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b := c.server(c.database), c.server(c.database)
	ses := a.session()
	a.prompt(ses, `tool:write:{"path":"f","content":"x"}`, "immediate")
	per := b.pending(t, ses)
	if status := b.call("POST", "/api/permission/"+per+"/reply", map[string]any{"response": "once"}, nil); status != http.StatusNoContent {
		t.Fatalf("replying: %d", status)
	}
	if got := b.wait(ses); got != "completed" {
		t.Errorf("after a reply through the other server: %s", got)
	}
	a.prompt(ses, "hang", "immediate")
	if err := c.model.WaitHanging(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	b.call("POST", "/api/session/"+ses+"/interrupt", map[string]any{}, nil)
	if got := b.wait(ses); got != "cancelled" {
		t.Errorf("after an interrupt through the other server: %s", got)
	}
	c.check()
}

// TestAnotherServerTakesOver kills the server of three turns: one that runs, one
// that waits for a person, and one whose prompt waits. The other settles the
// first, waits on with the second and answers the third.
func TestAnotherServerTakesOver(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b := c.server(c.database), c.server(c.database)
	hanging, asked := a.session(), a.session()
	a.prompt(hanging, "hang", "immediate")
	if err := c.model.WaitHanging(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	a.prompt(hanging, "say:after", "deferred")
	a.prompt(asked, `tool:write:{"path":"g","content":"x"}`, "immediate")
	per := a.pending(t, asked)
	killed := time.Now()
	a.kill()
	eventually(t, "a takeover", func() bool { return b.wait(hanging) == "completed" })
	t.Logf("taken over %v after the kill, with a lease of %v", time.Since(killed).Round(10*time.Millisecond), ttl)
	if status := b.call("POST", "/api/permission/"+per+"/reply", map[string]any{"response": "once"}, nil); status != http.StatusNoContent {
		t.Fatalf("replying: %d", status)
	}
	if got := b.wait(asked); got != "completed" {
		t.Errorf("the asked turn: %s", got)
	}
	c.check()
}

// TestAStoppedServerWritesNothingMore stops a server's process for longer than
// its lease. What it did goes on elsewhere; when it wakes up it does not disturb,
// and takes new work.
func TestAStoppedServerWritesNothingMore(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b := c.server(c.database), c.server(c.database)
	ses := a.session()
	a.prompt(ses, "hang", "immediate")
	if err := c.model.WaitHanging(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := a.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a takeover", func() bool { return b.wait(ses) == "interrupted" })
	b.prompt(ses, "say:elsewhere", "immediate")
	if got := b.wait(ses); got != "completed" {
		t.Errorf("a prompt elsewhere: %s", got)
	}
	before := len(b.items(ses))
	if err := a.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	c.model.Release() // the old request goes on, for nobody
	eventually(t, "a new term", func() bool {
		in := map[string]any{"prompt": map[string]any{"text": "say:back"}, "messageID": "msg_back"}
		return a.call("POST", "/api/session/"+ses+"/prompt", in, nil) == http.StatusOK
	})
	if got := a.wait(ses); got != "completed" {
		t.Errorf("a prompt after waking up: %s", got)
	}
	if after := len(b.items(ses)); after != before+2 {
		t.Errorf("%d messages, then %d", before, after)
	}
	c.check()
}

// TestACutDatabaseLink cuts one server's way to the database in the middle of a
// turn: it lives, says that it is not ready, refuses writes, loses its turns to
// the other, and comes back by itself.
func TestACutDatabaseLink(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	link := newLink(t, c.database)
	a, b := c.server(link.url), c.server(c.database)
	ses := a.session()
	a.prompt(ses, "hang", "immediate")
	if err := c.model.WaitHanging(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	link.cut(true)
	eventually(t, "not ready", func() bool { return a.call("GET", "/readyz", nil, nil) == http.StatusServiceUnavailable })
	if status := a.call("GET", "/livez", nil, nil); status != http.StatusOK {
		t.Errorf("liveness: %d", status)
	}
	in := map[string]any{"prompt": map[string]any{"text": "say:lost"}, "messageID": "msg_lost"}
	if status := a.call("POST", "/api/session/"+ses+"/prompt", in, nil); status != http.StatusServiceUnavailable {
		t.Errorf("a prompt without a database: %d", status)
	}
	eventually(t, "a takeover", func() bool { return b.wait(ses) == "interrupted" })
	link.cut(false)
	eventually(t, "ready again", func() bool { return a.call("GET", "/readyz", nil, nil) == http.StatusOK })
	eventually(t, "a prompt", func() bool { return a.call("POST", "/api/session/"+ses+"/prompt", in, nil) == http.StatusOK })
	if got := a.wait(ses); got != "completed" {
		t.Errorf("outcome %s", got)
	}
	c.check()
}

// check reads the event log and the messages as they are stored: the turns of a
// session never overlap and end once, and no message is missing.
func (c *cluster) check() {
	c.t.Helper()
	conn, err := pgx.Connect(c.t.Context(), c.database)
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(c.t.Context()))
	rows, err := conn.Query(c.t.Context(), "SELECT session_id, type, payload FROM event WHERE type IN ('session.status', 'session.idle') ORDER BY seq")
	if err != nil {
		c.t.Fatal(err)
	}
	open, ended := map[string]string{}, map[string]bool{}
	for rows.Next() {
		var ses, kind string
		var p struct {
			TurnID string
			Status struct{ Type, TurnID string }
		}
		if err := rows.Scan(&ses, &kind, &p); err != nil {
			c.t.Fatal(err)
		}
		turn := p.Status.TurnID
		switch {
		case kind == "session.idle" && (open[ses] != p.TurnID || ended[p.TurnID]):
			c.t.Errorf("turn %s of %s ended while %s ran", p.TurnID, ses, open[ses])
		case kind == "session.idle":
			delete(open, ses)
			ended[p.TurnID] = true
		case p.Status.Type != "idle" && (ended[turn] || open[ses] != "" && open[ses] != turn):
			c.t.Errorf("turn %s of %s runs beside %s, or again", turn, ses, open[ses])
		case p.Status.Type != "idle":
			open[ses] = turn
		}
	}
	var holes int
	err = conn.QueryRow(c.t.Context(), `SELECT count(*) FROM session WHERE message_seq <> message_count
		OR message_count <> (SELECT count(*) FROM message WHERE message.session_id = session.id)`).Scan(&holes)
	if err != nil || holes != 0 || rows.Err() != nil {
		c.t.Errorf("%d sessions with holes, %v, %v", holes, err, rows.Err())
	}
}

// frames are what a stream brought.
type frames struct {
	mu    sync.Mutex // protects types
	types []string
}

func (f *frames) count(typ string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, t := range f.types {
		if t == typ {
			n++
		}
	}
	return n
}

// follow reads a session's events until the test ends.
func (p *process) follow(t *testing.T, ses string) *frames {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/api/event?session="+url.QueryEscape(ses), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	res, err := http.DefaultClient.Do(r)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("following: %v", err)
	}
	out := &frames{}
	var wg sync.WaitGroup
	wg.Go(func() {
		lines := bufio.NewScanner(res.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var e struct{ Type string }
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok || json.Unmarshal([]byte(data), &e) != nil {
				continue
			}
			out.mu.Lock()
			out.types = append(out.types, e.Type)
			out.mu.Unlock()
		}
	})
	t.Cleanup(func() { _ = res.Body.Close(); wg.Wait() })
	return out
}

// link is a way to the database that can be cut.
type link struct {
	url string
	to  string
	l   net.Listener
	wg  sync.WaitGroup

	mu    sync.Mutex // protects what follows
	off   bool
	conns map[net.Conn]bool
}

func newLink(t *testing.T, database string) *link {
	t.Helper()
	at, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	x := &link{to: at.Host, l: l, conns: map[net.Conn]bool{}}
	at.Host = l.Addr().String()
	x.url = at.String()
	x.wg.Go(x.accept)
	t.Cleanup(func() {
		_ = l.Close()
		x.cut(true)
		x.wg.Wait()
	})
	return x
}

func (x *link) accept() {
	for {
		in, err := x.l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", x.to)
		if err != nil || !x.keep(in, out) {
			_ = in.Close()
			continue
		}
		for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
			x.wg.Go(func() {
				_, _ = io.Copy(pair[0], pair[1])
				_, _ = pair[0].Close(), pair[1].Close()
			})
		}
	}
}

func (x *link) keep(conns ...net.Conn) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range conns {
		if x.off {
			_ = c.Close()
			continue
		}
		x.conns[c] = true
	}
	return !x.off
}

func (x *link) cut(off bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.off = off
	for c := range x.conns {
		if off {
			_ = c.Close()
			delete(x.conns, c)
		}
	}
}
