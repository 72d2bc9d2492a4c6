package api

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/switchyard-dev/switchyard/op"
)

// idPattern is what a proxy in front may choose as a request's id.
var idPattern = regexp.MustCompile(`^[A-Za-z0-9._:-]{8,64}$`)

// observe gives each request an id, which every answer carries, and tells of it
// in the log at debug level.
func observe(log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(op.HeaderRequestID)
		if !idPattern.MatchString(id) {
			id = "req_" + rand.Text()
		}
		w.Header().Set(op.HeaderRequestID, id)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		t := op.Track(w)
		ctx := op.WithRequest(r.Context(), id, log)
		if log.Enabled(ctx, slog.LevelDebug) {
			defer func(begun time.Time, path string) {
				log.DebugContext(ctx, "request", "requestID", id, "method", r.Method, "path", path,
					"status", t.Status(), "bytes", t.Bytes(), "ms", time.Since(begun).Milliseconds())
			}(time.Now(), r.URL.Path)
		}
		next.ServeHTTP(t, r.WithContext(ctx))
	})
}

// cleanBase gives a base path as "" or as "/a/b".
func cleanBase(base string) string {
	base = strings.Trim(base, "/")
	if base == "" {
		return ""
	}
	return "/" + base
}

// stripBase takes the base path off a request's path where it is there. A proxy
// may have done so already, or may not; nothing is ever redirected.
func stripBase(base string, next http.Handler) http.Handler {
	if base == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest, ok := strings.CutPrefix(r.URL.Path, base)
		if !ok || rest != "" && rest[0] != '/' {
			next.ServeHTTP(w, r)
			return
		}
		if rest == "" {
			rest = "/"
		}
		stripped := r.WithContext(r.Context())
		u := *r.URL
		u.Path = rest
		// Where the prefix itself is written with escapes the escapes of the rest
		// are kept by cutting after as many slashes.
		if u.RawPath != "" {
			u.RawPath = afterSlashes(u.RawPath, strings.Count(base, "/"))
		}
		stripped.URL = &u
		next.ServeHTTP(w, stripped)
	})
}

// afterSlashes cuts n segments off the front of a path.
func afterSlashes(path string, n int) string {
	for range n {
		i := strings.IndexByte(path[1:], '/')
		if i < 0 {
			return "/"
		}
		path = path[i+1:]
	}
	return path
}
