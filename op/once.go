package op

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/idempotency"
)

// HeaderIdempotencyKey names the header with which a request may be sent again
// without being run again. HeaderReplayed marks the answers to such repetitions.
const (
	HeaderIdempotencyKey = "Idempotency-Key"
	HeaderReplayed       = "Idempotent-Replayed"
)

// KeyPattern is what an Idempotency-Key looks like: visible ASCII.
const KeyPattern = "^[!-~]{1,255}$"

var keyPattern = regexp.MustCompile(KeyPattern)

// Keys remembers the answers to requests with an Idempotency-Key;
// *idempotency.Service does. A claim that it gives is settled by the caller.
type Keys interface {
	Begin(ctx context.Context, r idempotency.Request) (*idempotency.Claim, *idempotency.Answer, error)
}

// kept are the headers that are sent again with an answer. The event cursor stays
// that of the first answer: a stream that starts there misses nothing of it.
var kept = []string{
	"Content-Type", "Cache-Control", "Retry-After", HeaderEventCursor, HeaderContextDirectory, HeaderContextWorkspace,
}

// keyed tells whether the machinery keeps the answers of an operation by key. A
// body that is read as it comes and an answer that is sent as it comes are not
// kept; an operation with the header among its inputs does it by itself.
func (c *core) keyed() bool {
	return c.spec.Method == http.MethodPost && !c.has(InRaw) && !c.ownKey() && c.output.Shape != ShapeStream && !c.output.Early
}

func (c *core) ownKey() bool {
	return slices.ContainsFunc(c.inputs, func(f Input) bool { return f.In == InHeader && f.Name == HeaderIdempotencyKey })
}

type sessionKey struct{}

// SessionID gives the id that a session must get which the request being served
// makes: every attempt of a request with an Idempotency-Key makes the same one.
// It is "" for a request without a key: any id will do.
func SessionID(ctx context.Context) id.Session {
	ses, _ := ctx.Value(sessionKey{}).(id.Session)
	return ses
}

// key gives a request's key, "" when there is none to look at.
func (h *handler) key(r *http.Request) (string, error) {
	given, ok := r.Header[HeaderIdempotencyKey]
	if !ok || h.serving.Keys == nil || !h.op.keyed() {
		return "", nil
	}
	if len(given) != 1 || !keyPattern.MatchString(given[0]) {
		return "", fault.New(fault.ValidationFailed, "the header %s must be given once, with 1 to 255 visible ASCII characters", HeaderIdempotencyKey).
			At(InHeader+"."+HeaderIdempotencyKey, "expected to match %s", KeyPattern)
	}
	return given[0], nil
}

// once answers a request with a key: it runs when it is the first, and gets the
// answer of the first when it is not.
func (h *handler) once(ctx context.Context, w *Writer, r *http.Request, t Target, query url.Values, key string) error {
	var body bytes.Buffer
	r.Body = &teeBody{Reader: io.TeeReader(r.Body, &body), Closer: r.Body}
	first := &recorder{ResponseWriter: w}
	into := Track(first)
	o := &once{handler: h, request: idempotency.Request{
		Scope: string(t.Principal.TokenID), Key: key, Operation: h.op.spec.Name, Target: r.URL.EscapedPath(), Repeatable: h.op.spec.Repeatable,
	}}
	defer func() {
		if o.claim != nil { // The handler panicked, or the answer was not one to keep.
			o.claim.Release(ctx, o.began)
		}
	}()
	s := steps{
		read: func(ctx context.Context, in any) (context.Context, error) {
			if err := h.read(w, r, query, in); err != nil {
				return ctx, err
			}
			return o.begin(ctx, said(query, t, body.Bytes()))
		},
		begun: func() { o.began = true },
	}
	err := h.answer(ctx, into, r, t, s)
	switch {
	case o.answer != nil:
		replay(w, r, o.answer)
		return nil
	case o.claim == nil:
		return err // Nothing was reserved: the input is wrong.
	case err != nil:
		WriteProblem(into, r, err)
	}
	if o.began && first.keepable() {
		o.claim.Keep(ctx, first.answer(RequestID(r.Context())))
	}
	first.send()
	return nil
}

// once is a request with a key while it is decided about.
type once struct {
	handler *handler
	request idempotency.Request
	claim   *idempotency.Claim
	answer  *idempotency.Answer
	began   bool
}

// errReplayed ends a run whose answer is there.
var errReplayed = fmt.Errorf("op: the request was answered before")

func (o *once) begin(ctx context.Context, hash string) (_ context.Context, err error) {
	o.request.Hash = hash
	if o.claim, o.answer, err = o.handler.serving.Keys.Begin(ctx, o.request); err != nil {
		return ctx, err
	}
	if o.answer != nil {
		return ctx, errReplayed
	}
	return context.WithValue(ctx, sessionKey{}, o.claim.Session()), nil
}

// said is a hash of what a request says beside its path: equal for JSON that is
// spelled another way.
func said(query url.Values, t Target, body []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%q %q %t %t\n", query.Encode(), t.Hint.Directory, t.Hint.Workspace, t.Hint.HasDirectory, t.Hint.HasWorkspace)
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) == nil {
		if canonical, err := json.Marshal(value); err == nil {
			body = canonical
		}
	}
	h.Write(bytes.TrimSpace(body))
	return hex.EncodeToString(h.Sum(nil))
}

// replay sends the answer that the first request got.
func replay(w *Writer, r *http.Request, a *idempotency.Answer) {
	h := w.Header()
	for _, name := range kept {
		if value, ok := a.Header[name]; ok {
			h.Set(name, value)
		}
	}
	h.Set(HeaderReplayed, "true")
	body := a.Body
	if h.Get("Content-Type") == ProblemType {
		// A problem names the request that it answers, which is this one now.
		body = bytes.Replace(body, requestMember(a.Header[HeaderRequestID]), requestMember(RequestID(r.Context())), 1)
	}
	if a.Status != http.StatusNoContent {
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(body) // The client may be gone: nobody is left to tell.
}

func requestMember(requestID string) []byte { return []byte(`"requestID":` + strconv.Quote(requestID)) }

type teeBody struct {
	io.Reader
	io.Closer
}

// recorder holds an answer back until it is kept. One that is flushed while it is
// made goes out as it comes, and is not kept.
type recorder struct {
	http.ResponseWriter
	status  int
	body    bytes.Buffer
	through bool
}

// WriteHeader notes the status.
func (c *recorder) WriteHeader(status int) {
	if c.through {
		c.ResponseWriter.WriteHeader(status)
		return
	}
	c.status = status
}

// Write adds to the body.
func (c *recorder) Write(p []byte) (int, error) {
	if c.through {
		return c.ResponseWriter.Write(p)
	}
	return c.body.Write(p)
}

// FlushError sends what there is, and from now on everything at once.
func (c *recorder) FlushError() error {
	c.send()
	return http.NewResponseController(c.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (c *recorder) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// send lets the answer out.
func (c *recorder) send() {
	if c.through {
		return
	}
	c.through = true
	if c.status != 0 {
		c.ResponseWriter.WriteHeader(c.status)
	}
	_, _ = c.ResponseWriter.Write(c.body.Bytes()) // The client may be gone: nobody is left to tell.
}

// keepable tells whether the answer is the outcome of the request, and not of a
// trouble that passes.
func (c *recorder) keepable() bool {
	return !c.through && c.status < http.StatusInternalServerError && c.status != http.StatusTooManyRequests
}

func (c *recorder) answer(requestID string) idempotency.Answer {
	a := idempotency.Answer{Status: c.status, Header: map[string]string{HeaderRequestID: requestID}, Body: c.body.Bytes()}
	for _, name := range kept {
		if value := c.Header().Get(name); value != "" {
			a.Header[name] = value
		}
	}
	return a
}
