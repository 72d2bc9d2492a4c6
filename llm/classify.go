package llm

import (
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/switchyard-dev/switchyard/llm/internal/wire"
)

// sign is a pattern in what a provider says that tells the kind better than a
// status does.
type sign struct {
	kind Kind
	re   *regexp.Regexp
}

// signs in the order of precedence: a provider may wrap a filter in a 500 and a
// spent account in a 429.
var signs = []sign{
	{KindOverflow, regexp.MustCompile(`context_length_exceeded|maximum context length|context window|prompt is too long|input is too long|input length|request_too_large|input token count|reduce the length of the (messages|input)|exceeds? the (model's )?(maximum )?(context|number of tokens)|too many input tokens|string_above_max_length`)},
	{KindContentFilter, regexp.MustCompile(`content[_ ]?filter|content[_ -]policy|content management policy|responsibleaipolicy|content_moderation|flagged (as|by|for)|invalid_prompt|safety (system|policy)`)},
	{KindQuota, regexp.MustCompile(`insufficient_quota|credit balance|billing_(error|hard_limit|not_active)|insufficient (credits|balance|funds)|payment required`)},
	{KindAuth, regexp.MustCompile(`authentication_error|permission_error|invalid_api_key|invalid api key|incorrect api key|unauthorized|account_deactivated`)},
	{KindOverloaded, regexp.MustCompile(`overloaded|server is busy|at capacity|engine is currently|slow_down|service_unavailable`)},
	{KindRateLimit, regexp.MustCompile(`rate_limit|rate limit|too many requests`)},
	{KindServer, regexp.MustCompile(`server_error|internal_error|api_error|internal server error|timeout_error|vector_store_timeout`)},
}

// kindOf sorts a failure.
func kindOf(t wire.Trouble) Kind {
	words := strings.ToLower(t.Label + " " + t.Text)
	for _, s := range signs {
		// What a 401 says about a context window, say, is about the key.
		if s.re.MatchString(words) && (t.Status != http.StatusUnauthorized || s.kind == KindQuota) {
			return s.kind
		}
	}
	switch {
	case t.Status == 0:
		return KindServer
	case t.Status == http.StatusUnauthorized, t.Status == http.StatusForbidden:
		return KindAuth
	case t.Status == http.StatusPaymentRequired:
		return KindQuota
	case t.Status == http.StatusRequestTimeout:
		return KindNetwork
	case t.Status == http.StatusRequestEntityTooLarge:
		return KindOverflow
	case t.Status == http.StatusTooManyRequests:
		return KindRateLimit
	case t.Status == http.StatusServiceUnavailable, t.Status == 529:
		return KindOverloaded
	case t.Status >= 500:
		return KindServer
	}
	return KindInvalid
}

// sayings are what people read, per kind.
var sayings = map[Kind]string{
	KindAuth:          "the provider refused the API key",
	KindQuota:         "the account has no credit or quota left",
	KindRateLimit:     "the provider limits the rate of requests",
	KindOverloaded:    "the provider is overloaded",
	KindServer:        "the provider failed",
	KindNetwork:       "the provider timed out",
	KindOverflow:      "the conversation exceeds the model's context",
	KindContentFilter: "the provider's content filter refused the request",
	KindInvalid:       "the provider refused the request",
}

var passing = map[Kind]bool{
	KindRateLimit: true, KindOverloaded: true, KindServer: true, KindNetwork: true, KindTruncated: true,
}

// told makes the Error of a failure that the provider told.
func told(t wire.Trouble, providerID string, r redactor) *Error {
	e := &Error{Kind: kindOf(t), ProviderID: providerID, StatusCode: t.Status}
	e.Retryable = passing[e.Kind] || t.Status == http.StatusConflict
	if should, err := strconv.ParseBool(t.Header.Get("X-Should-Retry")); err == nil && e.Kind != KindContentFilter {
		e.Retryable = should
	}
	if e.Retryable {
		e.RetryAfter = retryAfter(t.Header, time.Now())
	}
	e.Message = sayings[e.Kind]
	if t.Status != 0 {
		e.Message += " (" + strconv.Itoa(t.Status) + ")"
	}
	// What a provider says about a wrong key repeats it, masked in its own way.
	if detail := r.clean(t.Text); detail != "" && (e.Kind != KindAuth || t.Status == http.StatusForbidden) {
		e.Message += ": " + detail
	}
	if e.RetryAfter > maxWait {
		e.Message += "; it asks to wait " + e.RetryAfter.Round(time.Second).String()
	}
	return e
}

// retryAfter reads how long a provider asks to wait; 0 for nothing sensible.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if d := span(h.Get("Retry-After-Ms"), time.Millisecond); d > 0 {
		return d
	}
	v := h.Get("Retry-After")
	if at, err := http.ParseTime(v); err == nil {
		return max(min(at.Sub(now), year), 0)
	}
	return span(v, time.Second)
}

const year = 365 * 24 * time.Hour

// span reads a number of units; 0 for what is none.
func span(v string, unit time.Duration) time.Duration {
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || math.IsNaN(f) || f <= 0 {
		return 0
	}
	return time.Duration(min(f*float64(unit), float64(year)))
}
