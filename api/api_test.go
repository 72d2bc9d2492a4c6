package api_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/access"
	"github.com/switchyard-dev/switchyard/api"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/op/openapi"
	"github.com/switchyard-dev/switchyard/runtime"
)

type host struct{}

func (host) Server(_ context.Context, p access.Principal) (*runtime.Server, error) {
	return &runtime.Server{Principal: p}, nil
}

func (host) Request(_ context.Context, p access.Principal, hint runtime.Hint) (*runtime.Request, error) {
	if hint.Directory == "/missing" {
		return nil, fault.New(fault.DirectoryNotFound, "there is no such directory")
	}
	r := &runtime.Request{Principal: p}
	r.Bind(event.Context{Directory: "/default"})
	return r, nil
}

func (host) Item(_ context.Context, p access.Principal) (*runtime.Request, error) {
	return &runtime.Request{Principal: p}, nil
}

func (host) Session(_ context.Context, p access.Principal, sessionID string) (*runtime.Session, error) {
	s, ok := id.Parse[id.Session](sessionID)
	if !ok {
		return nil, fault.New(fault.SessionNotFound, "there is no session %q", sessionID)
	}
	return &runtime.Session{Principal: p, ID: s}, nil
}

func (host) EventCursor() string { return "evt_1" }

type thingInput struct {
	Size  int    `json:"size,omitempty" minimum:"0"`
	Order string `json:"order,omitempty" enum:"asc,desc"`
}

type thing struct {
	Text string `json:"text"`
}

// operations are small ones of each kind and shape.
func operations() []op.Any {
	return []op.Any{
		op.New(op.Spec{Name: "health.get", Method: "GET", Path: "/api/health", Summary: "Health.", Public: true, NoCursor: true},
			func(_ context.Context, s *runtime.Server, _ struct{}) (string, error) {
				return "for " + s.Principal.Name, nil
			}),
		op.New(op.Spec{Name: "thing.get", Method: "GET", Path: "/api/thing", Summary: "A thing of a size."},
			func(_ context.Context, _ *runtime.Request, in thingInput) (thing, error) {
				return thing{Text: strings.Repeat("x", in.Size)}, nil
			}),
		op.New(op.Spec{Name: "thing.tagged", Method: "GET", Path: "/api/thing/tagged", Summary: "A tagged thing."},
			func(_ context.Context, _ *runtime.Request, in thingInput) (op.Tagged[thing], error) {
				return op.Tagged[thing]{Value: thing{Text: strings.Repeat("x", in.Size)}}, nil
			}),
		op.New(op.Spec{Name: "thing.raw", Method: "GET", Path: "/api/thing/raw", Summary: "Raw JSON.", Produces: []string{"application/json"}},
			func(context.Context, *runtime.Request, struct{}) (op.Raw, error) {
				return op.Raw{Bytes: []byte(`{"a":"` + strings.Repeat("x", 5000) + `"}`), Type: "application/json", ETag: "v1"}, nil
			}),
		op.New(op.Spec{Name: "thing.create", Method: "POST", Path: "/api/thing", Summary: "Makes a thing.", Aliases: map[string]string{"content": "text"}},
			func(_ context.Context, _ *runtime.Request, in struct {
				Text string `json:"text" maxLength:"10"`
			},
			) (thing, error) {
				return thing(in), nil
			}),
		op.New(op.Spec{Name: "session.get", Method: "GET", Path: "/api/session/{sessionID}", Summary: "A session."},
			func(_ context.Context, s *runtime.Session, _ struct{}) (id.Session, error) { return s.ID, nil }),
		op.New(op.Spec{Name: "session.delete", Method: "DELETE", Path: "/api/session/{sessionID}", Summary: "Deletes."},
			func(context.Context, *runtime.Session, struct{}) (op.None, error) { return op.None{}, nil }),
		op.New(op.Spec{Name: "thing.fail", Method: "POST", Path: "/api/thing/fail", Summary: "Fails."},
			func(context.Context, *runtime.Server, struct{}) (op.None, error) { panic("secret cause") }),
		op.New(op.Spec{Name: "event.subscribe", Method: "GET", Path: "/api/event", Summary: "Events.", Many: true},
			func(context.Context, *runtime.Request, struct{}) (op.Stream[thing], error) {
				return op.Stream[thing]{Serve: serveEvents}, nil
			}),
		op.New(op.Spec{Name: "model.get", Method: "GET", Path: "/api/model/{modelID}", Summary: "A model.", Tail: true},
			func(_ context.Context, _ *runtime.Server, in struct {
				ModelID string `json:"modelID"`
			},
			) (string, error) {
				return in.ModelID, nil
			}),
	}
}

// serveEvents sends one event and then waits for its client to go.
func serveEvents(ctx context.Context, w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, ": %s\n\ndata: {\"text\":\"%s\"}\n\n", strings.Repeat("padding", 500), r.URL.Query().Get("directory"))
	if err := http.NewResponseController(w).Flush(); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

type bundle struct {
	t      *testing.T
	server *httptest.Server
	client *http.Client
	log    *bytes.Buffer
}

func setup(t *testing.T, change func(*api.Config)) *bundle {
	t.Helper()
	b := &bundle{t: t, log: &bytes.Buffer{}}
	c := api.Config{
		Host: host{}, Operations: operations(), Document: openapi.Config{Title: "Test", Version: "1"},
		Log: slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&c)
	}
	b.server = httptest.NewServer(api.New(c))
	t.Cleanup(b.server.Close)
	text, err := openapi.New(openapi.Config{Title: "Test", Version: "1", Operations: c.Operations}).JSON()
	if err != nil {
		t.Fatal(err)
	}
	contract, err := testkit.NewContract(text)
	if err != nil {
		t.Fatal(err)
	}
	b.client = &http.Client{
		Transport:     contract.Transport(t, b.server.Client().Transport),
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("redirected") },
	}
	return b
}

type reply struct {
	*http.Response
	text string
	json map[string]any
}

func (b *bundle) send(method, path, body string, headers ...string) reply {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.server.URL+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	got := reply{Response: res, text: string(text)}
	_ = json.Unmarshal(text, &got.json) // Not every answer is JSON.
	return got
}

func (r reply) want(t *testing.T, status int, code fault.Code) {
	t.Helper()
	if r.StatusCode != status || code != "" && (r.json["code"] != string(code) || r.Header.Get("Content-Type") != op.ProblemType) {
		t.Errorf("%s %s: got %s %s, want %d %s", r.Request.Method, r.Request.URL, r.Status, r.text, status, code)
	}
}

const session = "/api/session/ses_01JABCDEFGHJKMNPQRSTVWXYZ0"

// TestSC56_AnswersFollowTheDocument sends good and bad input to operations of
// each kind; the transport holds every answer against the document.
func TestSC56_AnswersFollowTheDocument(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	for _, c := range []struct {
		request string
		status  int
		code    fault.Code
	}{
		{"GET /api/health", 200, ""},
		{"GET /api/health?x=1", 422, fault.UnknownParameter},
		{"GET /api/health?directory=/a", 400, fault.ContextNotAccepted},
		{"GET /api/thing?size=3&order=asc", 200, ""},
		{"GET /api/thing?size=x&order=up", 422, fault.ValidationFailed},
		{"GET /api/thing?directory=/missing", 404, fault.DirectoryNotFound},
		{"GET /api/thing/tagged", 200, ""},
		{"GET /api/thing/raw", 200, ""},
		{"GET " + session, 200, ""},
		{"GET /api/session/nope", 404, fault.SessionNotFound},
		{"GET /api/session/%FF", 404, fault.SessionNotFound},
		{"DELETE " + session, 204, ""},
		{`POST /api/thing {"text":"x"}`, 200, ""},
		{`POST /api/thing {"text":5,"more":1}`, 422, fault.ValidationFailed},
		{`POST /api/thing {`, 400, fault.MalformedJSON},
		{`POST /api/thing`, 422, fault.ValidationFailed},
		{"POST /api/thing/fail", 500, fault.Internal},
		{"GET /api/model/a%2Fb", 200, ""},
		{"GET /api/nothing", 404, fault.RouteNotFound},
		{"GET /", 404, fault.RouteNotFound},
		{"GET /api/thing/", 404, fault.RouteNotFound},
		{"GET //api/thing", 404, fault.RouteNotFound},
		{"PUT /api/thing", 405, fault.MethodNotAllowed},
		{"BREW /api/thing", 405, fault.MethodNotAllowed},
		{"BREW /api/nothing", 404, fault.RouteNotFound},
		{"HEAD /api/thing", 200, ""},
		{"HEAD /api/event", 200, ""},
		{"HEAD /livez", 200, ""},
		{"GET /livez", 200, ""},
		{"GET /readyz", 200, ""},
	} {
		method, rest, _ := strings.Cut(c.request, " ")
		path, body, _ := strings.Cut(rest, " ")
		got := b.send(method, path, body)
		got.want(t, c.status, c.code)
		if got.Header.Get("X-Request-ID") == "" || got.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", c.request, got.Header)
		}
	}
	b.send("POST", "/api/thing", `{"content":"x"}`, "X-Test-Undocumented", "yes").want(t, 200, "")
}

func TestWrongMethodNamesTheRightOnes(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	got := b.send("PATCH", "/api/thing", "")
	if allow := got.Header.Get("Allow"); allow != "GET, HEAD, POST, OPTIONS" {
		t.Error(allow)
	}
	got = b.send("OPTIONS", session, "")
	if got.StatusCode != 204 || got.Header.Get("Allow") != "GET, HEAD, DELETE, OPTIONS" {
		t.Error(got.Status, got.Header)
	}
	b.send("OPTIONS", "/api/nothing", "").want(t, 404, fault.RouteNotFound)
	if allow := b.send("POST", "/api/docs", "").Header.Get("Allow"); allow != "GET, HEAD, OPTIONS" {
		t.Error(allow)
	}
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	first, second := b.send("GET", "/api/nothing", ""), b.send("GET", "/api/nothing", "")
	one := first.Header.Get("X-Request-ID")
	if one == second.Header.Get("X-Request-ID") || first.json["requestID"] != one || !strings.HasPrefix(one, "req_") {
		t.Error(first.Header, first.text)
	}
	if got := b.send("GET", "/livez", "", "X-Request-ID", "proxy-12345"); got.Header.Get("X-Request-ID") != "proxy-12345" {
		t.Error(got.Header)
	}
	for _, bad := range []string{"short", strings.Repeat("x", 65), "has space in it", `quote"quote`} {
		if got := b.send("GET", "/livez", "", "X-Request-ID", bad); got.Header.Get("X-Request-ID") == bad {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestRequestsAreLoggedAtDebug(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.send("GET", "/api/thing?size=3", "")
	b.server.Close() // The log is written when the answer is out.
	if log := b.log.String(); !strings.Contains(log, "level=DEBUG msg=request") || !strings.Contains(log, "path=/api/thing status=200") {
		t.Error(log)
	}
}

func TestPanicsAreInternalErrors(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *api.Config) {
		c.Routes = []api.Route{{Method: "GET", Pattern: "/panic", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("secret cause") })}}
	})
	for _, got := range []reply{b.send("POST", "/api/thing/fail", ""), b.send("GET", "/panic", "")} {
		got.want(t, 500, fault.Internal)
		if strings.Contains(got.text, "secret") {
			t.Error(got.text)
		}
	}
	b.server.Close()
	if log := b.log.String(); strings.Count(log, "secret cause") != 2 {
		t.Error(log)
	}
}

func TestSC66_BasePath(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *api.Config) { c.BasePath = "x/y/" })
	for path, status := range map[string]int{
		"/x/y/api/thing": 200, "/api/thing": 200, "/x/y/livez": 200, "/livez": 200, "/x/y/api/docs": 200, "/x/y/api/model/a%2Fb": 200,
		"/x%2Fy/api/model/a%2Fb": 404, "/%78/y/api/model/a%2Fb": 200,
		"/x/y": 404, "/x/y/": 404, "/x/yapi/thing": 404, "/x/api/thing": 404, "/x/y/x/y/api/thing": 404, "//x/y/api/thing": 404, "/x/y//api/thing": 404,
	} {
		got := b.send("GET", path, "")
		got.want(t, status, "")
		if status == 404 {
			got.want(t, 404, fault.RouteNotFound)
		}
	}
	if got := b.send("GET", "/x/y/api/model/a%2Fb%20c", ""); got.json["data"] != "a/b c" {
		t.Error(got.text)
	}
	if got := b.send("GET", "/x/y/api/openapi.json", ""); fmt.Sprint(got.json["servers"]) != "[map[url:/x/y]]" {
		t.Error(got.json["servers"])
	}
	if got := b.send("GET", "/x/y/api/docs", ""); strings.Contains(got.text, `="/`) || strings.Contains(got.text, "http") {
		t.Error("the page has absolute links:", got.text)
	}
}

func TestAccessStandsBeforeEveryRoute(t *testing.T) {
	t.Parallel()
	var paths []string
	b := setup(t, func(c *api.Config) {
		c.BasePath = "/x"
		c.Access = func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				paths = append(paths, r.URL.Path)
				if r.Header.Get("Authorization") == "" && r.URL.Path != "/api/health" {
					op.WriteProblem(w, r, fault.New(fault.Unauthorized, "who are you?"))
					return
				}
				next.ServeHTTP(w, r.WithContext(access.WithPrincipal(r.Context(), access.Principal{Name: "me"})))
			})
		}
		c.Routes = []api.Route{{Method: "GET", Pattern: "/more", Handler: http.NotFoundHandler()}}
	})
	for _, path := range []string{"/api/thing", "/x/api/thing", "/livez", "/api/docs", "/api/openapi.json", "/more", "/nothing"} {
		b.send("GET", path, "").want(t, 401, fault.Unauthorized)
	}
	if got := b.send("GET", "/x/api/health", ""); got.json["data"] != "for me" {
		t.Error(got.text)
	}
	if slices.Contains(paths, "/x/api/thing") {
		t.Error("access sees the base path:", paths)
	}
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	var state error
	b := setup(t, func(c *api.Config) { c.Ready = func(context.Context) error { return state } })
	b.send("GET", "/readyz", "").want(t, 200, "")
	state = fault.New(fault.Stopping, "stopping")
	b.send("GET", "/readyz", "").want(t, 503, fault.Stopping)
	state = errors.New("secret cause")
	got := b.send("GET", "/readyz", "")
	got.want(t, 503, fault.StoreUnavailable)
	if strings.Contains(got.text, "secret") || got.Header.Get("Retry-After") == "" {
		t.Error(got.text, got.Header)
	}
	b.send("GET", "/livez", "").want(t, 200, "")
}

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

func TestFurtherRoutes(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *api.Config) {
		c.Routes = []api.Route{{Method: "GET", Pattern: "/console/*", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, r.PathValue("*"))
		})}}
	})
	if got := b.send("GET", "/console/a/b", ""); got.text != "a/b" {
		t.Error(got.text)
	}
}

func TestServerBoundsHeadersAndEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	server := api.Server(ctx, api.New(api.Config{Host: host{}, Operations: operations(), Log: log}), log)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	url := "http://" + listener.Addr().String()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url+"/livez", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Large", strings.Repeat("x", 64<<10))
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Error(res.Status)
	}
	res, err = http.Get(url + "/api/event")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	cancel()
	if _, err := io.ReadAll(res.Body); err != nil {
		t.Error(err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	<-done
}
