package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSC65_TheDatabaseIsAway starts a server while its database is down, and later
// takes the database away for ten seconds in the middle of a turn. The server
// lives all the time, says what it is not, stores nothing that it does not
// acknowledge, and comes back by itself.
func TestSC65_TheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	link := newLink(t, c.database)
	link.cut(true)
	p := c.server(link.url)
	away := func(when string) {
		t.Helper()
		if status := p.call("GET", "/livez", nil, nil); status != http.StatusOK {
			t.Errorf("%s: liveness %d", when, status)
		}
		eventually(t, when+": not ready", func() bool { return p.call("GET", "/readyz", nil, nil) == http.StatusServiceUnavailable })
		header, code := p.refused("POST", "/api/session")
		if code != "store_unavailable" || header.Get("Retry-After") == "" {
			t.Errorf("%s: a write gets %q, Retry-After %q", when, code, header.Get("Retry-After"))
		}
	}
	away("at the start")
	link.cut(false)
	eventually(t, "ready", func() bool { return p.call("GET", "/readyz", nil, nil) == http.StatusOK })

	ses := p.session()
	p.prompt(ses, "hang", "immediate")
	if err := c.model.WaitHanging(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	link.cut(true)
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); <-time.After(time.Second) {
		away("in a turn")
	}
	link.cut(false)
	eventually(t, "ready again", func() bool { return p.call("GET", "/readyz", nil, nil) == http.StatusOK })
	c.model.Release()
	eventually(t, "an end of the turn", func() bool { return p.wait(ses) != "timeout" })
	p.prompt(ses, "say:after", "immediate")
	if got := p.wait(ses); got != "completed" {
		t.Errorf("a prompt afterwards: %s", got)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	c.check()
}

// refused sends an empty body and gives the headers and the code of the problem
// that comes back.
func (p *process) refused(method, path string) (http.Header, string) {
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, strings.NewReader("{}"))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	var problem struct{ Code string }
	if err := json.NewDecoder(res.Body).Decode(&problem); err != nil {
		p.t.Fatalf("%s %s: %d, %v", method, path, res.StatusCode, err)
	}
	return res.Header, problem.Code
}
