package op

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/switchyard-dev/switchyard/access"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/runtime"
)

// lease stands for a context: it notes how much of the answer was written when
// it was released.
type lease struct {
	writer   *Writer
	released []int64
}

func (l *lease) Release() { l.released = append(l.released, l.writer.Bytes()) }

type noHost struct{ Host }

func (noHost) EventCursor() string { return "" }

func (noHost) Server(context.Context, access.Principal) (*runtime.Server, error) { return nil, nil }

// serve runs an operation whose handler gives out under a lease.
func serve(t *testing.T, out any, err error) *lease {
	t.Helper()
	o := New(Spec{Name: "a.b", Method: "GET", Path: "/a", Summary: "Does."},
		func(context.Context, *runtime.Server, struct{}) (None, error) { return None{}, nil })
	w := Track(httptest.NewRecorder())
	l := &lease{writer: w}
	o.call = func(context.Context, Host, Target, steps) (any, scope, error) { return out, l, err }
	h := &handler{op: o.core, serving: &Serving{Host: noHost{}}}
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/a", nil))
	return l
}

func TestContextIsReleasedWhenTheAnswerIsWritten(t *testing.T) {
	t.Parallel()
	items := func(yield func(int, error) bool) { _ = yield(1, nil) && yield(2, nil) }
	for name, c := range map[string]struct {
		out  any
		err  error
		want int64
	}{
		"value": {out: "x", want: int64(len("{\"data\":\"x\"}\n"))},
		"lines": {out: Lines[int]{Items: items}, want: 4},
		"raw":   {out: Raw{Bytes: []byte("12345")}, want: 5},
		"error": {err: fault.New(fault.Forbidden, "no"), want: -1},
	} {
		l := serve(t, c.out, c.err)
		if len(l.released) != 1 || c.want >= 0 && l.released[0] != c.want {
			t.Errorf("%s: released after %v bytes, want %d", name, l.released, c.want)
		}
	}
}

func TestStreamHoldsNoLease(t *testing.T) {
	t.Parallel()
	l := serve(t, Stream[int]{Serve: func(_ context.Context, w http.ResponseWriter, _ *http.Request) error {
		_, err := w.Write([]byte("data: 1\n\n"))
		return err
	}}, nil)
	if l.released[0] != 0 {
		t.Errorf("released after %v bytes", l.released)
	}
}
