package op

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"

	"github.com/switchyard-dev/switchyard/fault"
)

// ProblemType is the media type of every failure.
const ProblemType = "application/problem+json"

// Problem is a failure as RFC 9457 writes it. Beside these members it has the
// identifiers and positions that the failure concerns.
type Problem struct {
	Type      string       `json:"type" doc:"Always about:blank: the code tells the kind of problem."`
	Title     string       `json:"title" doc:"The status in words."`
	Status    int          `json:"status" doc:"The HTTP status."`
	Detail    string       `json:"detail" doc:"What happened, for people."`
	Code      fault.Code   `json:"code" doc:"What happened, for programs: a stable word."`
	RequestID string       `json:"requestID,omitempty" doc:"The answer's X-Request-ID."`
	Reference string       `json:"reference,omitempty" doc:"Finds the cause of an internal error in the server's log."`
	Errors    []fault.Item `json:"errors,omitempty" doc:"The places of the input that are wrong."`
}

// problemMembers are not overwritten by the fields of a fault.
var problemMembers = []string{"type", "title", "status", "detail", "code", "requestID", "reference", "errors"}

// WriteProblem answers with a failure. A fault is told as it is; anything else
// is an internal error, whose cause goes to the log under a reference. When the
// answer has begun already the connection is aborted, so that nobody takes half
// an answer for a whole one.
func WriteProblem(w http.ResponseWriter, r *http.Request, err error) {
	t := Track(w)
	f := explain(r.Context(), err)
	status := fault.HTTPStatus(f.Code)
	p := Problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: f.Detail,
		Code: f.Code, RequestID: RequestID(r.Context()), Errors: f.Items,
	}
	if status == http.StatusInternalServerError {
		p.Code, p.Reference, p.Errors = fault.Internal, "err_"+rand.Text(), nil
		p.Detail = "something went wrong in the server; its log has the cause under the reference"
		Log(r.Context()).ErrorContext(r.Context(), "request failed", "reference", p.Reference, "requestID", p.RequestID,
			"method", r.Method, "path", r.URL.Path, "error", err.Error(), "stack", stackOf(err))
		f = &fault.Error{}
	}
	if t.Status() != 0 {
		panic(http.ErrAbortHandler)
	}
	h := t.Header()
	for _, name := range []string{"ETag", "Last-Modified", "Content-Encoding", "Content-Disposition", "Accept-Ranges"} {
		h.Del(name)
	}
	if after, ok := retryAfter(status, f); ok && h.Get("Retry-After") == "" {
		h.Set("Retry-After", strconv.Itoa(after))
	}
	body := p.encode(f.Fields)
	h.Set("Content-Type", ProblemType)
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	t.WriteHeader(status)
	_, _ = t.Write(body) // The client may be gone: nobody is left to tell.
}

// explain turns err into what a caller may know. A request that was cut short by
// its client or by the end of the server is no internal error.
func explain(ctx context.Context, err error) *fault.Error {
	if f, ok := fault.As(err); ok {
		return f
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return fault.New(fault.Stopping, "the request was cut short")
	}
	return fault.New(fault.Internal, "")
}

// retryAfter gives seconds to wait: what the fault says, else a guess for
// failures that pass by themselves.
func retryAfter(status int, f *fault.Error) (int, bool) {
	if n, ok := f.Fields["retryAfter"].(int); ok {
		return n, true
	}
	switch status {
	case http.StatusTooManyRequests:
		return 1, true
	case http.StatusServiceUnavailable, http.StatusInsufficientStorage:
		return 5, true
	}
	return 0, false
}

func (p Problem) encode(fields map[string]any) []byte {
	body, err := json.Marshal(p)
	if err != nil { // Strings and numbers always encode.
		panic(err)
	}
	fields = maps.Clone(fields)
	maps.DeleteFunc(fields, func(name string, _ any) bool { return slices.Contains(problemMembers, name) })
	if len(fields) == 0 {
		return append(body, '\n')
	}
	more, err := json.Marshal(fields)
	if err != nil { // A field that is no JSON is left out rather than the answer.
		return append(body, '\n')
	}
	body[len(body)-1] = ','
	return append(append(body, more[1:]...), '\n')
}

// panicked is a panic as an error, with where it came from.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

func stackOf(err error) string {
	var p *panicked
	if errors.As(err, &p) {
		return string(p.stack)
	}
	return ""
}

// Recover answers for a handler that panics as for any other internal error.
func Recover(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := Track(w)
		defer func() {
			value := recover()
			if value == nil {
				return
			}
			if value == http.ErrAbortHandler { //nolint:errorlint // The server compares the same way.
				panic(value)
			}
			WriteProblem(t, r, &panicked{value: value, stack: debug.Stack()})
		}()
		next.ServeHTTP(t, r)
	})
}
