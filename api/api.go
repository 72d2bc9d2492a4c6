// Package api serves operations over HTTP: the routes, what stands before them
// (request ids, the base path, access, compression), the OpenAPI document with a
// page to read it, and the probes.
package api

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/op/openapi"
)

// Config says what is served.
type Config struct {
	Host       op.Host
	Operations []op.Any
	// Document names and describes the API. Its operations and its base path are
	// those of this configuration.
	Document openapi.Config
	// Access stands before every route: it refuses callers, answers preflights,
	// and puts the caller's Principal into the context. Nil lets everybody in.
	Access func(http.Handler) http.Handler
	// Ready tells why the server cannot serve now, nil when it can.
	Ready func(context.Context) error
	// BasePath is the prefix under which a proxy shows this server, such as
	// "/x/y". Requests are served with it and without.
	BasePath string
	// Log is nil for slog.Default.
	Log *slog.Logger
	// BodyLimit in bytes is for operations without one of their own; 0 is 4 MiB.
	BodyLimit int64
	// Beat is the time between the signs of life of a long answer; 0 is ten
	// seconds.
	Beat time.Duration
	// Keys keeps the answers to requests with an Idempotency-Key.
	Keys op.Keys
	// Routes are further ones, behind the same Access.
	Routes []Route
}

// Route is a route that is no operation, such as a WebSocket. Its pattern is
// chi's: {name} is a parameter, a final * matches the rest.
type Route struct {
	Method, Pattern string
	Handler         http.Handler
}

// New makes the handler of a server. It panics when two routes are the same.
func New(c Config) http.Handler {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Access == nil {
		c.Access = func(next http.Handler) http.Handler { return next }
	}
	op.CheckAll(c.Operations)
	h := http.Handler(c.router())
	h = compress(h)
	h = c.Access(h)
	h = stripBase(cleanBase(c.BasePath), h)
	h = op.Recover(h)
	return observe(c.Log, h)
}

// maxHeaderBytes bounds the header of a request.
const maxHeaderBytes = 32 << 10

// Server gives h as an HTTP server: its requests end with ctx, and there is no
// limit on how long an answer takes, since streams have no end.
func Server(ctx context.Context, h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		MaxHeaderBytes:    maxHeaderBytes,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
	}
}

func (c Config) router() *chi.Mux {
	router := chi.NewRouter()
	router.NotFound(notFound)
	router.MethodNotAllowed(methodNotAllowed(router))
	serving := &op.Serving{Host: c.Host, BodyLimit: c.BodyLimit, Beat: c.Beat, Keys: c.Keys}
	for _, o := range c.Operations {
		o.Mount(router, serving)
	}
	get := func(pattern string, h http.HandlerFunc) {
		router.Method(http.MethodGet, pattern, h)
		router.Method(http.MethodHead, pattern, h)
	}
	get("/livez", alive)
	get("/readyz", ready(c.Ready))
	document := newDocuments(c)
	get("/api/openapi.json", document.serveJSON)
	get("/api/openapi.yaml", document.serveYAML)
	page := newPage()
	for _, path := range page.paths() {
		get(path, page.serve)
	}
	for _, r := range c.Routes {
		router.Method(r.Method, r.Pattern, r.Handler)
	}
	return router
}

func notFound(w http.ResponseWriter, r *http.Request) {
	op.WriteProblem(w, r, fault.New(fault.RouteNotFound, "there is nothing at %s", r.URL.Path))
}

// allMethods are those that a route can have.
var allMethods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
}

// methodNotAllowed answers for a path that is there under other methods, and
// OPTIONS with which those are.
func methodNotAllowed(router chi.Routes) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.RawPath
		if path == "" {
			path = r.URL.Path
		}
		allowed := slices.DeleteFunc(slices.Clone(allMethods), func(m string) bool {
			return !router.Match(chi.NewRouteContext(), m, path)
		})
		if len(allowed) == 0 { // A method that the router has never heard of.
			notFound(w, r)
			return
		}
		w.Header().Set("Allow", strings.Join(append(allowed, http.MethodOptions), ", "))
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		op.WriteProblem(w, r, fault.New(fault.MethodNotAllowed, "%s is not possible here, %s is", r.Method, strings.Join(allowed, ", ")))
	}
}

// alive answers that the process serves at all.
func alive(w http.ResponseWriter, _ *http.Request) { writeStatus(w, "ok") }

// ready answers whether the server can do its work.
func ready(check func(context.Context) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if check == nil {
			writeStatus(w, "ready")
			return
		}
		err := check(r.Context())
		if err == nil {
			writeStatus(w, "ready")
			return
		}
		if fault.HTTPStatus(fault.CodeOf(err)) != http.StatusServiceUnavailable {
			err = fault.Wrap(err, fault.StoreUnavailable, "the server is not ready")
		}
		op.WriteProblem(w, r, err)
	}
}

// Unready answers for a server that cannot work yet: it is alive, and everything
// else is the problem that why gives.
func Unready(why func(context.Context) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/livez" {
			alive(w, r)
			return
		}
		op.WriteProblem(w, r, why(r.Context()))
	})
}

func writeStatus(w http.ResponseWriter, status string) {
	w.Header().Set("Content-Type", op.TypeJSON)
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte(`{"status":"` + status + `"}` + "\n")) // The prober may be gone.
}
