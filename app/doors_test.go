package app_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/app"
	"github.com/switchyard-dev/switchyard/app/apptest"
)

// raw sends a request with exactly these headers and gives the answer.
func raw(t *testing.T, s *apptest.Server, method, path string, headers ...string) *http.Response {
	t.Helper()
	addr := strings.TrimPrefix(s.URL, "http://")
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprintf(c, "%s %s HTTP/1.1\r\nConnection: close\r\n", method, path)
	for i := 0; i+1 < len(headers); i += 2 {
		fmt.Fprintf(c, "%s: %s\r\n", headers[i], headers[i+1])
	}
	fmt.Fprint(c, "\r\n")
	res, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return res
}

func TestSC59_HostAndOrigin(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{Change: func(c *app.Config) {
		c.Hosts, c.Origins = []string{"allowed.example"}, []string{"https://app.example"}
	}})
	own := strings.TrimPrefix(s.URL, "http://")
	auth := "Bearer " + apptest.Token
	for _, c := range []struct {
		host, origin, method string
		token                bool
		status               int
		allow                string
	}{
		{own, "", "GET", true, 200, ""},
		{"localhost:1", "", "GET", true, 200, ""},
		{"[::1]:9", "", "GET", true, 200, ""},
		{"allowed.example", "", "GET", true, 200, ""},
		{"evil.test", "", "GET", true, 403, ""},
		{"evil.test", "", "GET", false, 403, ""},
		{own, "http://" + own, "GET", true, 200, "http://" + own},
		{own, "https://app.example", "GET", true, 200, "https://app.example"},
		{own, "https://app.example:443", "GET", true, 200, "https://app.example:443"},
		{own, "https://app.example", "GET", false, 401, "https://app.example"},
		{own, "https://evil.test", "POST", true, 403, ""},
		{own, "null", "POST", true, 403, ""},
		{own, "http://localhost:5", "POST", true, 403, ""},
		{own, "https://app.example", "OPTIONS", false, 204, "https://app.example"},
		{own, "https://evil.test", "OPTIONS", false, 403, ""},
	} {
		headers := []string{"Host", c.host}
		if c.origin != "" {
			headers = append(headers, "Origin", c.origin)
		}
		if c.token {
			headers = append(headers, "Authorization", auth)
		}
		if c.method == "OPTIONS" {
			headers = append(headers, "Access-Control-Request-Method", "POST")
		}
		if c.method == "POST" {
			headers = append(headers, "Content-Length", "0")
		}
		res := raw(t, s, c.method, "/api/session", headers...)
		got := res.Header.Get("Access-Control-Allow-Origin")
		if res.StatusCode != c.status || got == "*" || c.allow == "" && got != "" && got != "http://"+own || c.allow != "" && c.origin != "http://"+own && got != c.allow {
			t.Errorf("%+v: %d, Access-Control-Allow-Origin %q", c, res.StatusCode, got)
		}
	}
}

func TestSC66_BasePath(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{Change: func(c *app.Config) { c.BasePath = "/x/y" }})
	for path, status := range map[string]int{
		"/x/y/api/session": 200, "/api/session": 200, "/x/api/session": 404, "/x/y/livez": 200, "/x/yy/api/session": 404,
	} {
		a := s.DoWith(s.Plain, "GET", path, nil, "Authorization", "Bearer "+apptest.Token)
		if a.Status != status {
			t.Errorf("%s: %d, want %d", path, a.Status, status)
		}
	}
	if a := s.DoWith(s.Plain, "GET", "/api/openapi.json", nil, "Authorization", "Bearer "+apptest.Token); !strings.Contains(string(a.Body), `"/x/y"`) {
		t.Error("the document's servers lack the base path")
	}
}
