// Package wire is one HTTP exchange with a model provider, below the library that
// knows the formats: what leaves the process, and what the library would lose of
// the answer.
package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/textproto"
	"strings"
	"time"
)

// Config is what all exchanges with a provider share.
type Config struct {
	Client    *http.Client
	UserAgent string
	// Authorize sets the credential; nil for none.
	Authorize func(http.Header)
	// Headers are set after all others.
	Headers map[string]string
	// Idle is how long the provider may be silent; 0 is without limit.
	Idle time.Duration
}

// Exchange is one request to a provider and its answer. One goroutine uses it,
// but for the timer, which only cancels.
type Exchange struct {
	Edits Edits
	// Headers are of this request; they cannot replace the credential.
	Headers map[string]string
	Tap     Tap
	// Failure is set when the answer is no event stream.
	Failure *Trouble

	cfg    *Config
	cancel context.CancelCauseFunc
	sent   bool
	body   io.ReadCloser
	timer  *time.Timer
}

// Begin makes an exchange and the context under which the library must make its
// request. Close ends both.
func Begin(ctx context.Context, cfg *Config) (context.Context, *Exchange) {
	x := &Exchange{cfg: cfg}
	ctx, x.cancel = context.WithCancelCause(ctx)
	return context.WithValue(ctx, exchangeKey{}, x), x
}

// Answered reports whether the provider has begun to answer.
func (x *Exchange) Answered() bool { return x.body != nil }

type exchangeKey struct{}

// ErrSilent is the cause of a cancelled exchange whose provider said nothing.
var ErrSilent = errors.New("the provider is silent")

// errTold stops the library when Exchange.Failure holds the reason.
var errTold = errors.New("the provider failed")

// maxFailure bounds what is read of a failed answer, in bytes.
const maxFailure = 64 << 10

// lastWords is how long a stream that is logically over may take to end, so
// that its connection can be used again.
const lastWords = 250 * time.Millisecond

// Doer is the HTTP client that the library gets.
type Doer struct{}

// Do makes the one request of the exchange that the context carries.
func (Doer) Do(req *http.Request) (*http.Response, error) {
	x, ok := req.Context().Value(exchangeKey{}).(*Exchange)
	if !ok || x.sent {
		return nil, errors.New("one exchange makes one request")
	}
	x.sent = true
	return x.do(req)
}

func (x *Exchange) do(req *http.Request) (*http.Response, error) {
	x.setHeaders(req.Header)
	if err := x.Edits.apply(req); err != nil {
		return nil, err
	}
	if x.cfg.Idle > 0 {
		x.timer = time.AfterFunc(x.cfg.Idle, func() { x.cancel(ErrSilent) })
	}
	res, err := x.cfg.Client.Do(req)
	if err != nil {
		return nil, err
	}
	x.body = res.Body
	if t := refusal(res); t != nil {
		x.Failure = t
		return nil, errTold
	}
	res.Body = (*stream)(x)
	// With the request at hand the library dumps it, credential and all, into
	// its errors.
	res.Request = nil
	return res, nil
}

// kept are the headers that the library may set. All others tell about this
// machine, or come from environment variables that are none of this call's
// business.
var kept = []string{"Content-Type", "Accept", "Anthropic-Version", "Anthropic-Beta"}

func (x *Exchange) setHeaders(h http.Header) {
	old := h.Clone()
	clear(h)
	for _, name := range kept {
		if v := old.Values(name); len(v) > 0 {
			h[name] = v
		}
	}
	h.Set("User-Agent", x.cfg.UserAgent)
	// Compressing an event stream makes intermediaries hold it back.
	h.Set("Accept-Encoding", "identity")
	if x.cfg.Authorize != nil {
		x.cfg.Authorize(h)
	}
	for name, v := range x.cfg.Headers {
		h.Set(name, v)
	}
	for name, v := range x.Headers {
		if !IsCredential(name) {
			h.Set(name, v)
		}
	}
}

// IsCredential reports whether a header carries a credential.
func IsCredential(name string) bool {
	switch textproto.CanonicalMIMEHeaderKey(name) {
	case "Authorization", "X-Api-Key", "Api-Key":
		return true
	}
	return false
}

// refusal gives what is wrong with an answer that is not an event stream, nil
// for one that is.
func refusal(res *http.Response) *Trouble {
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	isJSON := media == "application/json" || strings.HasSuffix(media, "+json")
	if res.StatusCode < 300 && !isJSON && media != "text/html" {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxFailure))
	var t Trouble
	switch {
	case res.StatusCode >= 400:
		t = parseTrouble(body)
		t.Status = res.StatusCode
	case res.StatusCode >= 300:
		t = Trouble{Status: res.StatusCode, Text: "it redirects elsewhere; check the base URL"}
	default:
		var told bool
		if t, told = streamTrouble(body); !told {
			t = Trouble{Status: res.StatusCode, Text: "it answered with " + media + " instead of an event stream; check the base URL"}
		}
	}
	t.Header = res.Header
	return &t
}

// stream is the body that the library reads.
type stream Exchange

func (s *stream) Read(p []byte) (int, error) {
	if s.Tap.done {
		return 0, s.finish()
	}
	// The consumer's time is not the provider's silence.
	if s.timer != nil {
		s.timer.Reset(s.cfg.Idle)
	}
	n, err := s.body.Read(p)
	if s.timer != nil {
		s.timer.Stop()
	}
	s.Tap.feed(p[:n])
	return n, err
}

// finish waits a moment for the end of a stream that has said all.
func (s *stream) finish() error {
	if s.timer == nil {
		s.timer = time.AfterFunc(lastWords, func() { s.cancel(ErrSilent) })
	} else {
		s.timer.Reset(lastWords)
	}
	_, _ = io.CopyN(io.Discard, s.body, maxFailure)
	return io.EOF
}

func (s *stream) Close() error { return s.body.Close() }

// Close drops the connection unless the answer was read to its end.
func (x *Exchange) Close() {
	if x.timer != nil {
		x.timer.Stop()
	}
	if x.body != nil {
		_ = x.body.Close()
	}
	x.cancel(nil)
}

// readBody gives the body of a request whole.
func readBody(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	defer func() { _ = req.Body.Close() }()
	return io.ReadAll(req.Body)
}

func setBody(req *http.Request, body []byte) {
	req.ContentLength = int64(len(body))
	req.Body = io.NopCloser(bytes.NewReader(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
}
