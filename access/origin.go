package access

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/switchyard-dev/switchyard/fault"
)

const (
	corsMethods = "GET, HEAD, POST, PUT, PATCH, DELETE"
	corsHeaders = "Authorization, Content-Type, Last-Event-ID, Idempotency-Key, If-Match, If-None-Match, Range"
	corsExposed = "X-Event-Cursor, X-Request-ID, X-Context-Directory, X-Context-Workspace, ETag, Retry-After, Idempotent-Replayed"
	corsMaxAge  = "7200" // seconds; browsers cap it there

	// contextHeaders is the prefix of the context headers, all of them allowed.
	contextHeaders = "x-opencode-"
)

// origin is a web origin with its port spelled out.
type origin struct {
	scheme string
	authority
}

// parseOrigin reads an Origin header. The opaque origin "null" and anything with
// more than scheme, host and port is not one.
func parseOrigin(s string) (origin, bool) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return origin{}, false
	}
	a, ok := parseAuthority(u.Host)
	if !ok {
		return origin{}, false
	}
	o := origin{scheme: strings.ToLower(u.Scheme), authority: a}
	if o.port == "" {
		o.port = defaultPort(o.scheme)
	}
	return o, true
}

func defaultPort(scheme string) string {
	switch scheme {
	case "http":
		return "80"
	case "https":
		return "443"
	}
	return ""
}

// sameAs reports whether o is the origin of this server as the client sees it.
// The scheme cannot be known behind a proxy, so a missing port in host means the
// default one of o's scheme.
func (o origin) sameAs(host authority) bool {
	if o.scheme != "http" && o.scheme != "https" {
		return false
	}
	if host.port == "" {
		host.port = defaultPort(o.scheme)
	}
	return o.authority == host
}

type originList map[origin]bool

func newOriginList(list []string) (originList, error) {
	l := originList{}
	for _, s := range list {
		o, ok := parseOrigin(strings.TrimSuffix(s, "/"))
		if !ok || strings.Contains(s, "*") {
			return nil, fmt.Errorf("allowed origin %q is not scheme://host[:port]; wildcards are not taken", s)
		}
		l[o] = true
	}
	return l, nil
}

// standing is how a request's origin stands to this server.
type standing int

const (
	local   standing = iota // no browser, or a page of this very server
	allowed                 // a page of the allow-list
	foreign
)

// judge finds the standing of a request. Sec-Fetch-Site, which pages cannot
// forge, may make a request foreign that carries no Origin.
func (g *Guard) judge(r *http.Request, host authority) standing {
	values := r.Header.Values("Origin")
	if len(values) > 1 {
		return foreign
	}
	if len(values) == 0 && r.Header.Get("Sec-Fetch-Site") == "" {
		return local // no browser
	}
	probe := http.Request{Method: http.MethodPost, URL: r.URL, Host: r.Host, Header: r.Header}
	if len(values) == 1 {
		o, ok := parseOrigin(values[0])
		if ok && g.origins[o] {
			return allowed
		}
		if !ok || !o.sameAs(host) {
			return foreign
		}
		// Equal but for the spelling: CrossOriginProtection compares bytes.
		u, _ := url.Parse(values[0])
		probe.Host = u.Host
	}
	if g.cross.Check(&probe) != nil {
		return foreign
	}
	return local
}

// mustBeLocal reports whether a foreign page may not even send r: it could
// change something, or open a channel that CORS does not cover.
func mustBeLocal(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return isUpgrade(r)
	}
	return true
}

func isUpgrade(r *http.Request) bool {
	for _, v := range r.Header.Values("Upgrade") {
		if strings.Contains(strings.ToLower(v), "websocket") {
			return true
		}
	}
	return false
}

func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// preflight answers a browser's question whether a page may send a request.
// Browsers ask without credentials, so no token is wanted.
func (g *Guard) preflight(w http.ResponseWriter, r *http.Request, s standing) {
	if s == foreign {
		g.fail(w, r, errForeignOrigin())
		return
	}
	h := w.Header()
	h.Add("Vary", "Access-Control-Request-Headers")
	h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	h.Set("Access-Control-Allow-Methods", corsMethods)
	h.Set("Access-Control-Allow-Headers", allowedHeaders(r))
	h.Set("Access-Control-Max-Age", corsMaxAge)
	w.WriteHeader(http.StatusNoContent)
}

// allowedHeaders is the fixed list and those x-opencode-* headers that r asks
// for: CORS knows no wildcard for a part of a name.
func allowedHeaders(r *http.Request) string {
	out := corsHeaders
	for name := range strings.SplitSeq(r.Header.Get("Access-Control-Request-Headers"), ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		if strings.HasPrefix(name, contextHeaders) && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" {
			out += ", " + name
		}
	}
	return out
}

// share lets a page of the allow-list read the answer.
func share(h http.Header, r *http.Request) {
	h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	h.Set("Access-Control-Expose-Headers", corsExposed)
}

func errForeignOrigin() error {
	return fault.New(fault.OriginNotAllowed, "pages of this origin may not call this server; list it under server.cors to allow it")
}
