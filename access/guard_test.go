package access_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/access"
	"github.com/switchyard-dev/switchyard/fault"
)

const secret = "swy_0123456789abcdefghijklmnopqrstuvwxyz"

// bundle is a guarded server on a real loopback port. Its handler answers 200
// with the caller's name, "-" for none.
type bundle struct {
	t       *testing.T
	handler http.Handler
	url     string
	port    string
	now     time.Time
}

func setup(t *testing.T, change func(*access.Options)) *bundle {
	t.Helper()
	b := &bundle{t: t, now: time.Unix(1_800_000_000, 0)}
	token, err := access.ParseToken(secret)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := access.Options{
		Verifier:   token,
		Bound:      ln.Addr().String(),
		Hosts:      []string{"allowed.example", "port.example:8443"},
		Origins:    []string{"https://console.example", "http://localhost:5173"},
		WriteError: writeError,
		Now:        func() time.Time { return b.now },
	}
	if change != nil {
		change(&o)
	}
	guard, err := access.NewGuard(o)
	if err != nil {
		t.Fatal(err)
	}
	b.handler = guard.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, ok := access.From(r.Context())
		if !ok {
			p.Name = "-"
		}
		_, _ = w.Write([]byte(p.Name))
	}))
	server := httptest.NewUnstartedServer(b.handler)
	server.Listener.Close()
	server.Listener = ln
	server.Start()
	t.Cleanup(server.Close)
	b.url = server.URL
	b.port = strconv.Itoa(ln.Addr().(*net.TCPAddr).Port)
	return b
}

func writeError(w http.ResponseWriter, _ *http.Request, err error) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(fault.HTTPStatus(fault.CodeOf(err)))
	_ = json.NewEncoder(w).Encode(map[string]string{"code": string(fault.CodeOf(err))})
}

// answer is what a test looks at.
type answer struct {
	status int
	code   string // of a problem
	body   string // of a success
	header http.Header
}

// do sends one request; a header "Host" sets the host.
func (b *bundle) do(method, path string, headers map[string]string) answer {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	for k, v := range headers {
		if k == "Host" {
			r.Host = v
			continue
		}
		r.Header.Set(k, v)
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	var buf strings.Builder
	if _, err := copyBody(&buf, res); err != nil {
		b.t.Fatal(err)
	}
	return answerOf(res.StatusCode, res.Header, buf.String())
}

// direct is do without the network, for tests of thousands of requests.
func (b *bundle) direct(method, path string, headers map[string]string) answer {
	b.t.Helper()
	r := httptest.NewRequestWithContext(b.t.Context(), method, path, nil)
	for k, v := range headers {
		r.Header.Set(k, v)
	}
	r.Host = headers["Host"]
	r.Header.Del("Host")
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	return answerOf(w.Code, w.Header(), w.Body.String())
}

func answerOf(status int, header http.Header, body string) answer {
	a := answer{status: status, header: header, body: body}
	var problem struct{ Code string }
	if status >= 400 && json.Unmarshal([]byte(body), &problem) == nil {
		a.code = problem.Code
	}
	return a
}

// TestSC59_OriginAndHostMatrix sends every combination of Host, Origin, kind of
// request and authentication, and derives what must happen from the two tables.
func TestSC59_OriginAndHostMatrix(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	hosts := []struct {
		host string
		ok   bool
	}{
		{"localhost", true},
		{"localhost:" + b.port, true},
		{"LOCALHOST.:" + b.port, true},
		{"127.0.0.1:" + b.port, true},
		{"127.0.0.1:1", true},
		{"[::1]", true},
		{"[::1]:" + b.port, true},
		{"allowed.example", true},
		{"allowed.example:9", true},
		{"port.example:8443", true},
		{"port.example", false},
		{"port.example:8444", false},
		{"evil.test", false},
		{"evil.test:" + b.port, false},
		{"localhost.evil.test", false},
		{"127.0.0.1.evil.test", false},
		{"allowed.example.evil.test", false},
		{"192.0.2.7", false},
		{"[::2]:" + b.port, false},
		{"0.0.0.0:" + b.port, false},
	}
	for _, h := range hosts {
		list := origins(b, h.host)
		if !h.ok {
			list = list[:3] // the Host alone decides
		}
		for _, origin := range list {
			b.checkKinds(h.host, h.ok, origin)
		}
	}
}

func (b *bundle) checkKinds(host string, hostOK bool, o originCase) {
	b.t.Helper()
	for _, kind := range []string{"GET", "POST", "OPTIONS", "preflight", "websocket"} {
		for _, auth := range []bool{false, true} {
			b.checkMatrix(host, hostOK, o, kind, auth)
		}
	}
}

type originCase struct {
	origin string
	stands string // none, same, allowed or foreign
}

func origins(b *bundle, host string) []originCase {
	list := []originCase{
		{"", "none"},
		{"http://localhost:5173", "allowed"},
		{"https://console.example", "allowed"},
		{"https://console.example:443", "allowed"},
		{"http://console.example", "foreign"},
		{"https://console.example:444", "foreign"},
		{"http://localhost:5174", "foreign"},
		{"https://evil.test", "foreign"},
		{"null", "foreign"},
		{"file://", "foreign"},
		{"garbage", "foreign"},
		{"http://" + host + ".evil.test", "foreign"},
		{"http://" + host, "same"},
	}
	if !strings.HasSuffix(host, b.port) && !strings.Contains(strings.TrimPrefix(host, "[::"), ":") {
		// No port in Host: the default one, spelled or not, is the same.
		list = append(list, originCase{"http://" + host + ":80", "same"}, originCase{"https://" + host + ":443", "same"},
			originCase{"https://" + host + ":80", "foreign"}, originCase{"http://" + host + ":" + b.port, "foreign"})
	}
	return list
}

func (b *bundle) checkMatrix(host string, hostOK bool, o originCase, kind string, auth bool) {
	b.t.Helper()
	method, headers := kind, map[string]string{"Host": host}
	switch kind {
	case "preflight":
		method = "OPTIONS"
		headers["Access-Control-Request-Method"] = "POST"
	case "websocket":
		method = "GET"
		headers["Connection"], headers["Upgrade"], headers["Sec-WebSocket-Version"] = "Upgrade", "websocket", "13"
	}
	if o.origin != "" {
		headers["Origin"] = o.origin
	}
	if auth {
		headers["Authorization"] = "Bearer " + secret
	}
	got := b.direct(method, "/api/session", headers)
	name := strings.Join([]string{kind, "Host " + host, "Origin " + o.origin, "auth " + strconv.FormatBool(auth)}, ", ")

	want, code := 200, ""
	unsafe := kind == "POST" || kind == "websocket" || kind == "preflight" && o.stands != "none"
	switch {
	case !hostOK:
		want, code = 403, "host_not_allowed"
	case o.stands == "foreign" && unsafe:
		want, code = 403, "origin_not_allowed"
	case kind == "preflight" && o.stands != "none":
		want = 204
	case !auth:
		want, code = 401, "unauthorized"
	}
	if got.status != want || got.code != code {
		b.t.Errorf("%s: %d %s, want %d %s", name, got.status, got.code, want, code)
	}
	acao := got.header.Get("Access-Control-Allow-Origin")
	if acao == "*" || (acao != "" && acao != o.origin) {
		b.t.Errorf("%s: Access-Control-Allow-Origin %q", name, acao)
	}
	if (o.stands == "foreign" || !hostOK) && acao != "" {
		b.t.Errorf("%s: shares with %q", name, acao)
	}
	if hostOK && o.stands == "allowed" && acao == "" {
		b.t.Errorf("%s: does not share with an allowed origin", name)
	}
	if !strings.Contains(got.header.Get("Vary"), "Origin") {
		b.t.Errorf("%s: no Vary: Origin", name)
	}
}

func TestSC59_ForwardedHeadersOfTrustedPeersOnly(t *testing.T) {
	t.Parallel()
	proxies, err := access.ParseProxies(nil)
	if err != nil {
		t.Fatal(err)
	}
	trusted := setup(t, func(o *access.Options) { o.Proxies = proxies })
	untrusted := setup(t, nil)
	elsewhere := setup(t, func(o *access.Options) { o.Proxies, _ = access.ParseProxies([]string{"192.0.2.0/24"}) })

	forwarded := map[string]string{
		"X-Forwarded-Host": "allowed.example",
		"Origin":           "https://allowed.example",
		"Authorization":    "Bearer " + secret,
	}
	if got := trusted.do("POST", "/api/session", forwarded); got.status != 200 {
		t.Errorf("trusted proxy, its own origin: %d %s", got.status, got.code)
	}
	for name, b := range map[string]*bundle{"no proxy": untrusted, "another proxy": elsewhere} {
		if got := b.do("POST", "/api/session", forwarded); got.code != "origin_not_allowed" {
			t.Errorf("%s: X-Forwarded-Host is believed: %d %s", name, got.status, got.code)
		}
		if got := b.do("GET", "/api/session", map[string]string{"Host": "evil.test", "X-Forwarded-Host": "localhost"}); got.code != "host_not_allowed" {
			t.Errorf("%s: X-Forwarded-Host hides a foreign Host: %d %s", name, got.status, got.code)
		}
	}
	if got := trusted.do("GET", "/api/session", map[string]string{"X-Forwarded-Host": "localhost, evil.test"}); got.code != "host_not_allowed" {
		t.Errorf("a foreign forwarded host: %d %s", got.status, got.code)
	}
}

// TestSC59_OverTheNetwork sends a few rows of the matrix through a real listener.
func TestSC59_OverTheNetwork(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	upgrade := map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Origin": "https://evil.test"}
	if got := b.do("GET", "/api/event", upgrade); got.code != "origin_not_allowed" {
		t.Errorf("foreign WebSocket: %d %s", got.status, got.code)
	}
	upgrade["Origin"] = b.url
	if got := b.do("GET", "/api/event", upgrade); got.code != "unauthorized" {
		t.Errorf("own WebSocket without a token: %d %s", got.status, got.code)
	}
	own := map[string]string{"Origin": b.url, "Authorization": "Bearer " + secret}
	if got := b.do("POST", "/api/session", own); got.status != 200 {
		t.Errorf("own page: %d %s", got.status, got.code)
	}
	if got := b.do("GET", "/api/session", map[string]string{"Host": "evil.test:" + b.port}); got.code != "host_not_allowed" {
		t.Errorf("rebound name: %d %s", got.status, got.code)
	}
}

func TestFetchMetadataWithoutOrigin(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	for site, want := range map[string]int{"same-origin": 200, "none": 200, "same-site": 403, "cross-site": 403} {
		got := b.do("POST", "/api/session", map[string]string{"Sec-Fetch-Site": site, "Authorization": "Bearer " + secret})
		if got.status != want {
			t.Errorf("%s: %d, want %d", site, got.status, want)
		}
	}
	got := b.do("POST", "/api/session", map[string]string{
		"Sec-Fetch-Site": "cross-site", "Origin": "https://console.example", "Authorization": "Bearer " + secret,
	})
	if got.status != 200 {
		t.Errorf("allowed origin from another site: %d", got.status)
	}
}

func TestPreflightListsHeaders(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	got := b.do("OPTIONS", "/api/event", map[string]string{
		"Origin":                         "https://console.example",
		"Access-Control-Request-Method":  "GET",
		"Access-Control-Request-Headers": "authorization, X-Opencode-Directory,x-opencode-b@, x-evil",
	})
	allow := got.header.Get("Access-Control-Allow-Headers")
	if got.status != 204 || !strings.Contains(allow, "Authorization") || !strings.HasSuffix(allow, ", x-opencode-directory") {
		t.Errorf("%d %q", got.status, allow)
	}
	if got.header.Get("Access-Control-Allow-Credentials") != "" {
		t.Error("credentials are allowed")
	}
	if m := got.header.Get("Access-Control-Allow-Methods"); !strings.Contains(m, "PATCH") || !strings.Contains(m, "DELETE") {
		t.Errorf("methods %q", m)
	}
	got = b.do("GET", "/api/event", map[string]string{"Origin": "https://console.example"})
	if e := got.header.Get("Access-Control-Expose-Headers"); !strings.Contains(e, "X-Event-Cursor") || !strings.Contains(e, "Idempotent-Replayed") {
		t.Errorf("a 401 to an allowed origin exposes %q", e)
	}
}

func TestHostOfTheConnectionOnAWildcardBind(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *access.Options) { o.Bound = "0.0.0.0:4700" })
	// The connection arrives at 127.0.0.1; no other address is one of ours.
	for host, want := range map[string]int{"127.0.0.1": 200, "127.0.0.2": 403, "0.0.0.0": 403, "": 200} {
		headers := map[string]string{"Authorization": "Bearer " + secret}
		if host != "" {
			headers["Host"] = host
		}
		if got := b.do("GET", "/api/session", headers); got.status != want {
			t.Errorf("Host %q: %d, want %d", host, got.status, want)
		}
	}
}

func TestGuardRefusesBadOptions(t *testing.T) {
	t.Parallel()
	token, _ := access.ParseToken(secret)
	for name, o := range map[string]access.Options{
		"wildcard origin":      {Verifier: token, WriteError: writeError, Origins: []string{"*"}},
		"wildcard in a host":   {Verifier: token, WriteError: writeError, Origins: []string{"https://*.example"}},
		"origin with a path":   {Verifier: token, WriteError: writeError, Origins: []string{"https://a.example/x"}},
		"host with wildcard":   {Verifier: token, WriteError: writeError, Hosts: []string{"*"}},
		"host as URL":          {Verifier: token, WriteError: writeError, Hosts: []string{"http://a.example"}},
		"bound without port":   {Verifier: token, WriteError: writeError, Bound: "127.0.0.1"},
		"no verifier":          {WriteError: writeError},
		"both":                 {Verifier: token, NoAuth: true, WriteError: writeError},
		"nowhere to put error": {Verifier: token},
	} {
		if _, err := access.NewGuard(o); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := access.ParseProxies([]string{"proxy.example"}); err == nil {
		t.Error("a name is taken for a proxy")
	}
}
