package access_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/access"
)

func copyBody(w *strings.Builder, res *http.Response) (int64, error) { return io.Copy(w, res.Body) }

func basic(password string) string {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth("anybody", password)
	return r.Header.Get("Authorization")
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, authorization string
		status              int
	}{
		{"bearer", "Bearer " + secret, 200},
		{"bearer in lower case", "bearer  " + secret, 200},
		{"basic", basic(secret), 200},
		{"none", "", 401},
		{"wrong bearer", "Bearer " + secret[1:], 401},
		{"longer bearer", "Bearer " + secret + "x", 401},
		{"empty bearer", "Bearer ", 401},
		{"wrong basic", basic("nope"), 401},
		{"empty basic", basic(""), 401},
		{"broken basic", "Basic %%%", 401},
		{"other scheme", "Digest " + secret, 401},
		{"no scheme", secret, 401},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, nil)
			headers := map[string]string{}
			if tt.authorization != "" {
				headers["Authorization"] = tt.authorization
			}
			got := b.do("GET", "/api/session", headers)
			if got.status != tt.status {
				t.Fatalf("%d %s, want %d", got.status, got.code, tt.status)
			}
			if tt.status == 200 && got.body != "owner" {
				t.Errorf("caller %q", got.body)
			}
			if tt.status == 401 && (got.header.Get("WWW-Authenticate") != "Bearer" || got.code != "unauthorized") {
				t.Errorf("challenge %q, code %s", got.header.Values("WWW-Authenticate"), got.code)
			}
		})
	}
}

func TestRoutesWithoutToken(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	tests := []struct {
		method, path string
		status       int
		challenge    string
	}{
		{"GET", "/livez", 200, ""},
		{"HEAD", "/livez", 200, ""},
		{"GET", "/readyz", 200, ""},
		{"GET", "/oauth/callback?state=x", 200, ""},
		{"GET", "/api/health", 200, ""},
		{"POST", "/api/health", 401, "Bearer"},
		{"GET", "/api/health/", 401, "Bearer"},
		{"GET", "//livez", 401, "Bearer"},
		{"GET", "/livez/../api/session", 401, "Bearer"},
		{"GET", "/api%2Fhealth", 401, "Bearer"},
		{"GET", "/", 401, "Bearer"},
		{"GET", "/api/docs", 401, "Basic "},
		{"GET", "/api/docs/app.js", 401, "Basic "},
		{"GET", "/api/openapi.json", 401, "Basic "},
		{"GET", "/api/openapi.yaml", 401, "Basic "},
		{"GET", "/api/docsx", 401, "Bearer"},
	}
	for _, tt := range tests {
		got := b.do(tt.method, tt.path, nil)
		if got.status != tt.status || !strings.HasPrefix(got.header.Get("WWW-Authenticate"), tt.challenge) {
			t.Errorf("%s %s: %d %q", tt.method, tt.path, got.status, got.header.Values("WWW-Authenticate"))
		}
		if tt.method == "GET" && tt.status == 200 && got.body != "-" {
			t.Errorf("%s: caller %q without a token", tt.path, got.body)
		}
	}
	if got := b.do("GET", "/api/health", map[string]string{"Authorization": "Bearer " + secret}); got.body != "owner" {
		t.Errorf("health.get with a token: caller %q", got.body)
	}
	if got := b.do("GET", "/api/health", map[string]string{"Authorization": "Bearer wrong"}); got.status != 200 || got.body != "-" {
		t.Errorf("health.get with a wrong token: %d, caller %q", got.status, got.body)
	}
}

func TestWrongTokensAreLimited(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	wrong := map[string]string{"Authorization": "Bearer wrong"}
	for i := range 10 {
		if got := b.do("GET", "/api/session", wrong); got.status != 401 {
			t.Fatalf("failure %d: %d", i+1, got.status)
		}
	}
	b.now = b.now.Add(20 * time.Second)
	got := b.do("GET", "/api/session", wrong)
	if got.status != 429 || got.code != "rate_limited" || got.header.Get("Retry-After") != "40" {
		t.Fatalf("%d %s, Retry-After %q", got.status, got.code, got.header.Get("Retry-After"))
	}
	if got := b.do("GET", "/api/session", nil); got.status != 401 {
		t.Errorf("no token at all: %d", got.status)
	}
	if got := b.do("GET", "/api/session", map[string]string{"Authorization": "Bearer " + secret}); got.status != 200 {
		t.Errorf("the owner is locked out: %d", got.status)
	}
	b.now = b.now.Add(40 * time.Second)
	if got := b.do("GET", "/api/session", wrong); got.status != 401 {
		t.Errorf("after the minute: %d", got.status)
	}
}

func TestLimitIsPerForwardedSource(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *access.Options) { o.Proxies, _ = access.ParseProxies(nil) })
	from := func(chain string) int {
		return b.do("GET", "/api/session", map[string]string{"Authorization": "Bearer wrong", "X-Forwarded-For": chain}).status
	}
	for range 10 {
		// What a client writes itself stands before its own address.
		from("198.51.100.1, 203.0.113.9, 127.0.0.1")
	}
	if got := from("203.0.113.9"); got != 429 {
		t.Errorf("same source: %d", got)
	}
	if got := from("203.0.113.10"); got != 401 {
		t.Errorf("another source: %d", got)
	}
	for range 10 {
		from("2001:db8::1")
	}
	if got := from("2001:db8::2:3"); got != 429 {
		t.Errorf("same IPv6 network: %d", got)
	}
	if got := from("2001:db8:0:1::1"); got != 401 {
		t.Errorf("another IPv6 network: %d", got)
	}
}

func TestNoAuthStillGuardsHostAndOrigin(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *access.Options) { o.Verifier, o.NoAuth = nil, true })
	if got := b.do("GET", "/api/session", nil); got.status != 200 || got.body != "anyone" {
		t.Errorf("%d, caller %q", got.status, got.body)
	}
	if got := b.do("GET", "/api/session", map[string]string{"Host": "evil.test"}); got.code != "host_not_allowed" {
		t.Errorf("foreign host: %d", got.status)
	}
	if got := b.do("POST", "/api/session", map[string]string{"Origin": "https://evil.test"}); got.code != "origin_not_allowed" {
		t.Errorf("foreign origin: %d", got.status)
	}
}

// brokenStore cannot tell whether a token is known.
type brokenStore struct{}

func (brokenStore) Verify(context.Context, string) (access.Principal, error) {
	return access.Principal{}, errors.New("the store is away")
}

func TestVerifierTroubleIsNotAWrongToken(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *access.Options) { o.Verifier = brokenStore{} })
	token := map[string]string{"Authorization": "Bearer x"}
	for range 12 {
		if got := b.do("GET", "/api/session", token); got.status != 500 {
			t.Fatalf("%d %s", got.status, got.code)
		}
	}
	if got := b.do("GET", "/livez", token); got.status != 200 {
		t.Errorf("a probe: %d", got.status)
	}
}
