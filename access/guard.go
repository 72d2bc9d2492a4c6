package access

import (
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/switchyard-dev/switchyard/fault"
)

// Options configure a Guard.
type Options struct {
	// Verifier knows the tokens. It may be nil with NoAuth only.
	Verifier Verifier
	// NoAuth lets everybody in who passes the Host and Origin checks. See
	// CheckBind for when that is permitted.
	NoAuth bool
	// Bound is the address that the server listens on, "host:port".
	Bound string
	// Hosts are further names to be reached by: "name" for any port, or
	// "name:port".
	Hosts []string
	// Origins are the web origins whose pages may call this server and read its
	// answers, besides its own: "scheme://host[:port]", no wildcards.
	Origins []string
	// Proxies are the peers whose X-Forwarded-Host and -For are believed; none
	// unless the server was started behind a proxy. See ParseProxies.
	Proxies []netip.Prefix
	// WriteError writes an error, always a fault, as an answer. Headers that
	// belong to it (WWW-Authenticate, Retry-After) are set before.
	WriteError func(w http.ResponseWriter, r *http.Request, err error)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Guard stands before every route: it refuses foreign Host and Origin headers,
// answers CORS, and finds the caller. It is safe for concurrent use.
type Guard struct {
	verifier Verifier
	hosts    hostList
	origins  originList
	proxies  []netip.Prefix
	cross    *http.CrossOriginProtection
	failures *failures
	fail     func(w http.ResponseWriter, r *http.Request, err error)
}

// NewGuard makes a Guard. The error is one line for the user.
func NewGuard(o Options) (*Guard, error) {
	if o.WriteError == nil {
		return nil, errors.New("access: no way to write errors")
	}
	if (o.Verifier == nil) != o.NoAuth {
		return nil, errors.New("access: either a verifier or no authentication, not both")
	}
	hosts, err := newHostList(o.Bound, o.Hosts)
	if err != nil {
		return nil, err
	}
	origins, err := newOriginList(o.Origins)
	if err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Guard{
		verifier: o.Verifier,
		hosts:    hosts,
		origins:  origins,
		proxies:  o.Proxies,
		cross:    http.NewCrossOriginProtection(),
		failures: newFailures(o.Now),
		fail:     o.WriteError,
	}, nil
}

// publicPaths need no token; browsablePaths are pages that people open in a
// browser, which then may ask for the token by itself.
var (
	publicPaths    = []string{"/livez", "/readyz", "/oauth/callback", "/api/health"}
	browsablePaths = []string{"/api/docs", "/api/openapi.json", "/api/openapi.yaml"}
)

// IsPublic reports whether a route answers callers without a token: the probes,
// the landing of OAuth redirects and health.get, which shows them less.
func IsPublic(method, path string) bool {
	if method != http.MethodGet && method != http.MethodHead {
		return false
	}
	return slices.Contains(publicPaths, path)
}

func isBrowsable(path string) bool {
	return slices.ContainsFunc(browsablePaths, func(p string) bool {
		return path == p || strings.HasPrefix(path, p+"/")
	})
}

// Wrap puts the guard before next. A request that next sees carries its
// Principal (see From), except on the public routes without a valid token.
//
// Answers, in this order of checks: 403 host_not_allowed, 403
// origin_not_allowed, 204 to an allowed preflight, 429 rate_limited after ten
// wrong tokens a minute from one source, 401 unauthorized.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Origin")
		from := g.arrivalOf(r)
		host, ok := parseAuthority(from.host)
		if !ok || !g.hosts.allows(host, r) {
			g.fail(w, r, fault.New(fault.HostNotAllowed, "this server is not reached by this Host; list it under server.hosts to allow it"))
			return
		}
		stands := g.judge(r, host)
		if isPreflight(r) {
			g.preflight(w, r, stands)
			return
		}
		if stands == foreign && mustBeLocal(r) {
			g.fail(w, r, errForeignOrigin())
			return
		}
		if stands == allowed {
			share(w.Header(), r)
		}
		p, known, err := g.caller(w, r, from.source)
		if err != nil {
			g.fail(w, r, err)
			return
		}
		if known {
			r = r.WithContext(WithPrincipal(r.Context(), p))
		}
		next.ServeHTTP(w, r)
	})
}

// caller finds who calls. It is not known on public routes without a token.
func (g *Guard) caller(w http.ResponseWriter, r *http.Request, source netip.Addr) (Principal, bool, error) {
	if g.verifier == nil {
		return Principal{Name: "anyone"}, true, nil
	}
	p, wait, err := g.identify(r, source)
	// An escaped path may mean another route to the router.
	if err != nil && r.URL.RawPath == "" && IsPublic(r.Method, r.URL.Path) {
		return Principal{}, false, nil
	}
	switch fault.CodeOf(err) {
	case fault.Unauthorized:
		challenge(w.Header(), r)
	case fault.RateLimited:
		seconds := (wait + time.Second - 1) / time.Second
		w.Header().Set("Retry-After", strconv.FormatInt(max(1, int64(seconds)), 10))
	}
	return p, err == nil, err
}

// identify verifies the token that r shows. Where it is wrong too often the
// error is rate_limited and comes with the time to wait.
func (g *Guard) identify(r *http.Request, source netip.Addr) (Principal, time.Duration, error) {
	secret, given := credentials(r)
	if !given {
		return Principal{}, 0, fault.New(fault.Unauthorized, "an access token is needed: send Authorization: Bearer with what `switchyard token` prints")
	}
	p, err := g.verifier.Verify(r.Context(), secret)
	if !fault.Is(err, fault.Unauthorized) {
		return p, 0, err
	}
	if wait := g.failures.add(source); wait > 0 {
		return Principal{}, wait, fault.New(fault.RateLimited, "too many wrong access tokens from this address")
	}
	return Principal{}, 0, err
}

// credentials gives the token that a request shows: Bearer, or the password of
// Basic with any user name.
func credentials(r *http.Request) (string, bool) {
	scheme, rest, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch {
	case strings.EqualFold(scheme, "Bearer"):
		rest = strings.TrimSpace(rest)
		return rest, rest != ""
	case strings.EqualFold(scheme, "Basic"):
		_, password, ok := r.BasicAuth()
		return password, ok && password != ""
	}
	return "", false
}

// challenge offers Bearer only, since a Basic challenge makes browsers open a
// dialog under a page's own requests; where a person opens a page, that dialog
// is wanted.
func challenge(h http.Header, r *http.Request) {
	if isBrowsable(r.URL.Path) {
		h.Set("WWW-Authenticate", `Basic realm="switchyard", charset="UTF-8"`)
		return
	}
	h.Set("WWW-Authenticate", "Bearer")
}
