package api_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func gunzip(t *testing.T, text string) string {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

func TestCompression(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	for _, c := range []struct {
		path, accept string
		coded        bool
	}{
		{"/api/thing?size=5000", "gzip", true},
		{"/api/thing?size=5000", "br;q=1.0, GZIP;q=0.8", true},
		{"/api/thing?size=5000", "*", true},
		{"/api/thing/tagged?size=5000", "gzip", true},
		{"/api/openapi.yaml", "gzip", true},
		{"/api/docs/rapidoc-min.js", "gzip, br", true},
		{"/api/thing?size=5000", "identity", false},
		{"/api/thing?size=5000", "gzip;q=0, *", false},
		{"/api/thing?size=5", "gzip", false},
		{"/api/thing/raw", "gzip", false}, // Its ETag stands for these bytes.
	} {
		got := b.send("GET", c.path, "", "Accept-Encoding", c.accept)
		plain := b.send("GET", c.path, "", "Accept-Encoding", "identity")
		text := got.text
		if coded := got.Header.Get("Content-Encoding") == "gzip"; coded != c.coded {
			t.Errorf("%s %s: coded %v", c.path, c.accept, coded)
			continue
		}
		if c.coded {
			text = gunzip(t, got.text)
		}
		if text != plain.text || got.Header.Get("Vary") != "Accept-Encoding" || len(plain.text) == 0 {
			t.Errorf("%s %s: %d bytes, want %d, %v", c.path, c.accept, len(text), len(plain.text), got.Header)
		}
	}
	tag := b.send("GET", "/api/thing/tagged?size=5000", "", "Accept-Encoding", "gzip").Header.Get("ETag")
	b.send("GET", "/api/thing/tagged?size=5000", "", "Accept-Encoding", "gzip", "If-None-Match", tag).want(t, 304, "")
	if got := b.send("GET", "/api/thing/raw", "", "Accept-Encoding", "gzip", "Range", "bytes=0-4999"); got.StatusCode != 206 || got.Header.Get("Content-Encoding") != "" {
		t.Error(got.Status, got.Header)
	}
}

func TestStreamsPassUnchangedAndAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", b.server.URL+"/api/event?directory=a", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "gzip")
	res, err := b.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.Header.Get("Content-Encoding") != "" || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatal(res.Header)
	}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if lines.Text() == `data: {"text":"a"}` {
			return
		}
	}
	t.Error("the event did not come:", lines.Err())
}

func TestReferencePage(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	for path, mediaType := range map[string]string{
		"/api/docs": "text/html; charset=utf-8", "/api/docs/rapidoc-min.js": "text/javascript; charset=utf-8",
		"/api/docs/page.css": "text/css; charset=utf-8", "/api/docs/LICENSE.txt": "text/plain; charset=utf-8",
		"/api/openapi.json": "application/json", "/api/openapi.yaml": "application/yaml",
	} {
		got := b.send("GET", path, "")
		if got.StatusCode != 200 || got.Header.Get("Content-Type") != mediaType || got.text == "" {
			t.Errorf("%s: %s %v", path, got.Status, got.Header)
		}
		csp := got.Header.Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "script-src 'self';") || strings.Contains(csp, "http") {
			t.Errorf("%s: %s", path, csp)
		}
		b.send("GET", path, "", "If-None-Match", got.Header.Get("ETag")).want(t, 304, "")
		if head := b.send("HEAD", path, ""); head.StatusCode != 200 || head.Header.Get("Content-Length") == "" {
			t.Errorf("HEAD %s: %s %v", path, head.Status, head.Header)
		}
	}
	page := b.send("GET", "/api/docs", "").text
	if strings.Contains(page, "://") || strings.Contains(page, "<script>") || strings.Contains(page, " style=") {
		t.Error("the page needs what its policy forbids:", page)
	}
}
