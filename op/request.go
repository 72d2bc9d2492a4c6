package op

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"github.com/switchyard-dev/switchyard/runtime"
)

// HeaderRequestID names the header that holds a request's id.
const HeaderRequestID = "X-Request-ID"

type contextKey struct{}

// request is what a context knows of the HTTP request it serves.
type request struct {
	id     string
	log    *slog.Logger
	header http.Header
	hints  []runtime.Hint
}

func stateOf(ctx context.Context) request {
	s, _ := ctx.Value(contextKey{}).(request)
	return s
}

// WithRequest notes a request's id, which its answer and its problems carry, and
// the logger for what happens in it.
func WithRequest(ctx context.Context, id string, log *slog.Logger) context.Context {
	s := stateOf(ctx)
	s.id, s.log = id, log
	return context.WithValue(ctx, contextKey{}, s)
}

// RequestID gives the id of the request being served; "" outside of one.
func RequestID(ctx context.Context) string { return stateOf(ctx).id }

// Log gives the logger of the request being served.
func Log(ctx context.Context) *slog.Logger {
	if l := stateOf(ctx).log; l != nil {
		return l
	}
	return slog.Default()
}

// ResponseHeader gives the header of the answer being made. In a call that is
// not over HTTP what is set there goes nowhere.
func ResponseHeader(ctx context.Context) http.Header {
	if h := stateOf(ctx).header; h != nil {
		return h
	}
	return http.Header{}
}

// Hints gives the context hints of an operation that takes several (Spec.Many);
// none when the caller gave none.
func Hints(ctx context.Context) []runtime.Hint { return stateOf(ctx).hints }

func withHints(ctx context.Context, hints []runtime.Hint) context.Context {
	s := stateOf(ctx)
	s.hints = hints
	return context.WithValue(ctx, contextKey{}, s)
}

// Accepts reports whether an Accept header names a media type. Wildcards do not
// count: an operation with two forms gives the usual one to those who take all.
func Accepts(accept, mediaType string) bool {
	for item := range strings.SplitSeq(accept, ",") {
		name, params, _ := strings.Cut(item, ";")
		if strings.EqualFold(strings.TrimSpace(name), mediaType) {
			q := strings.ReplaceAll(params, " ", "")
			return !strings.HasPrefix(q, "q=0") || strings.Trim(q, "q=0.") != ""
		}
	}
	return false
}

// Writer is a ResponseWriter that knows how far its answer is.
type Writer struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// Track gives w as a Writer.
func Track(w http.ResponseWriter) *Writer {
	if t, ok := w.(*Writer); ok {
		return t
	}
	return &Writer{ResponseWriter: w}
}

// Status is the answer's status; 0 when it has not begun.
func (w *Writer) Status() int { return w.status }

// Bytes is the length of the body so far.
func (w *Writer) Bytes() int64 { return w.bytes }

// Unwrap is for http.ResponseController.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader begins the answer.
func (w *Writer) WriteHeader(status int) {
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write adds to the body.
func (w *Writer) Write(p []byte) (int, error) {
	w.begin()
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// ReadFrom lets the connection take a file without copying it.
func (w *Writer) ReadFrom(r io.Reader) (int64, error) {
	w.begin()
	n, err := io.Copy(w.ResponseWriter, r)
	w.bytes += n
	return n, err
}

// FlushError sends what was written.
func (w *Writer) FlushError() error {
	w.begin()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush is FlushError for callers that know http.Flusher only.
func (w *Writer) Flush() { _ = w.FlushError() }

func (w *Writer) begin() {
	if w.status == 0 {
		w.status = http.StatusOK
	}
}
