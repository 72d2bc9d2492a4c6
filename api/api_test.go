package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/access"
	"github.com/switchyard-dev/switchyard/api"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/op"
)

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
