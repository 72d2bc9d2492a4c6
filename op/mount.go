package op

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/switchyard-dev/switchyard/access"
	"github.com/switchyard-dev/switchyard/op/internal/bind"
)

// HeaderEventCursor names the header that holds the position of the event stream
// before whatever an answer tells was read or written.
const HeaderEventCursor = "X-Event-Cursor"

const (
	defaultBodyLimit = 4 << 20
	defaultBeat      = 10 * time.Second
	// keptBuffer is the largest buffer that is kept for the next answer.
	keptBuffer = 1 << 20
)

// Router takes routes; chi's routers do. A pattern may end in /*.
type Router interface {
	Method(method, pattern string, h http.Handler)
}

// Serving is what operations are served with. It must not be copied.
type Serving struct {
	Host Host
	// BodyLimit in bytes is for operations without one of their own; 0 is 4 MiB.
	BodyLimit int64
	// Beat is the time between the spaces of an Early answer; 0 is ten seconds.
	Beat time.Duration
	// Keys keeps the answers to requests with an Idempotency-Key; nil does not
	// look at the header.
	Keys Keys

	buffers sync.Pool // of *bytes.Buffer
}

func (s *Serving) buffer() *bytes.Buffer {
	if b, ok := s.buffers.Get().(*bytes.Buffer); ok {
		return b
	}
	return new(bytes.Buffer)
}

func (s *Serving) keep(b *bytes.Buffer) {
	if b.Cap() <= keptBuffer {
		b.Reset()
		s.buffers.Put(b)
	}
}

// Mount implements Any. A GET operation answers HEAD too.
func (c *core) Mount(r Router, s *Serving) {
	h := &handler{op: c, serving: s}
	r.Method(c.spec.Method, c.pattern(), h)
	if c.spec.Method == http.MethodGet {
		r.Method(http.MethodHead, c.pattern(), h)
	}
}

// pattern is the path as a router takes it.
func (c *core) pattern() string {
	if !c.spec.Tail {
		return c.spec.Path
	}
	return c.spec.Path[:strings.LastIndexByte(c.spec.Path, '{')] + "*"
}

type handler struct {
	op      *core
	serving *Serving
}

// ServeHTTP runs the operation for one request.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t := Track(w)
	if err := h.serve(t, r); err != nil {
		WriteProblem(t, r, err)
	}
}

func (h *handler) serve(w *Writer, r *http.Request) error {
	if !h.op.spec.NoCursor {
		// Before anything is read or written: events after it may repeat what the
		// answer holds, and none is missing.
		if cursor := h.serving.Host.EventCursor(); cursor != "" {
			w.Header().Set(HeaderEventCursor, cursor)
		}
	}
	query, err := bind.Query(r)
	if err != nil {
		return err
	}
	hints, err := readHints(h.op, r, query)
	if err != nil {
		return err
	}
	target := h.target(r)
	if len(hints) == 1 {
		target.Hint = hints[0]
	}
	state := stateOf(r.Context())
	state.header, state.hints = w.Header(), hints
	ctx := context.WithValue(r.Context(), contextKey{}, state)
	key, err := h.key(r)
	if err != nil {
		return err
	}
	if key != "" {
		return h.once(ctx, w, r, target, query, key)
	}
	return h.answer(ctx, w, r, target, steps{read: func(ctx context.Context, in any) (context.Context, error) {
		return ctx, h.read(w, r, query, in)
	}})
}

func (h *handler) read(w *Writer, r *http.Request, query url.Values, in any) error {
	return h.op.plan().HTTP(w, r, query, h.bodyLimit(), in)
}

// answer runs the operation and writes what it gives.
func (h *handler) answer(ctx context.Context, w *Writer, r *http.Request, t Target, s steps) error {
	out, held, err := h.op.call(ctx, h.serving.Host, t, s)
	if held != nil {
		// The lease ends with the answer: what it tells may still be read from
		// the context's services while it is written.
		defer held.Release()
	}
	if err != nil {
		return err
	}
	return write(&answer{ctx: ctx, w: w, r: r, serving: h.serving, held: held}, out)
}

func (h *handler) target(r *http.Request) Target {
	p, _ := access.From(r.Context())
	t := Target{Principal: p}
	if h.op.kind == KindSession {
		t.SessionID = bind.PathValue(r, h.op.spec.Path, h.op.spec.Tail, "sessionID")
	}
	return t
}

func (h *handler) bodyLimit() int64 {
	for _, n := range []int64{h.op.spec.BodyLimit, h.serving.BodyLimit} {
		if n > 0 {
			return n
		}
	}
	return defaultBodyLimit
}
