package op_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/runtime"
)

// fails makes an operation that fails with err, or panics with what is no error.
func fails(what any) op.Any {
	return op.New(op.Spec{Name: "thing.fail", Method: "GET", Path: "/api/thing", Summary: "Fails."},
		func(context.Context, *runtime.Request, struct{}) (op.None, error) {
			if err, ok := what.(error); ok {
				return op.None{}, err
			}
			panic(what)
		})
}

func TestFaultsAreToldAsTheyAre(t *testing.T) {
	t.Parallel()
	err := fault.New(fault.SessionBusy, "the session %q is busy", "s").With("sessionID", "ses_1").With("status", "no").At("body.x", "is wrong")
	for _, e := range []error{err, fmt.Errorf("doing it: %w", err)} {
		b := setup(t, fails(e))
		got := b.send("GET", "/api/thing", "")
		got.wantProblem(t, fault.SessionBusy, "body.x")
		for name, want := range map[string]any{
			"type": "about:blank", "title": "Conflict", "status": 409.0, "detail": `the session "s" is busy`,
			"requestID": "req_test", "sessionID": "ses_1",
		} {
			if got.json[name] != want {
				t.Errorf("%s: got %v, want %v", name, got.json[name], want)
			}
		}
		if _, there := got.json["reference"]; there || b.log.String() != "" {
			t.Error("a failure of the caller is logged:", b.log)
		}
	}
}

func TestCausesAreLoggedAndNeverTold(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]any{
		"error":          errors.New("secret cause"),
		"wrapped":        fault.Wrap(errors.New("secret cause"), fault.Internal, "secret detail"),
		"code of nobody": fault.New("made_up", "secret cause").With("secret", 1),
		"panic":          "secret cause",
	} {
		b := setup(t, fails(what))
		got := b.send("GET", "/api/thing", "")
		got.wantProblem(t, fault.Internal)
		reference, _ := got.json["reference"].(string)
		if strings.Contains(got.text, "secret") || reference == "" {
			t.Errorf("%s: %s", name, got.text)
		}
		log := b.log.String()
		if !strings.Contains(log, "secret cause") || !strings.Contains(log, reference) || !strings.Contains(log, "req_test") {
			t.Errorf("%s: the log does not have it: %s", name, log)
		}
		if name == "panic" && !strings.Contains(log, "problem_test.go") {
			t.Errorf("the log does not say where it panicked: %s", log)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"5": fault.New(fault.StoreUnavailable, "down"), "1": fault.New(fault.QueueFull, "full"),
		"30": fault.New(fault.RateLimited, "slow down").With("retryAfter", 30), "": fault.New(fault.Forbidden, "no"),
	} {
		if got := setup(t, fails(err)).send("GET", "/api/thing", ""); got.header.Get("Retry-After") != want {
			t.Errorf("%s: %v", got.text, got.header)
		}
	}
}

func TestProblemAfterTheAnswerHasBegunAborts(t *testing.T) {
	t.Parallel()
	b := setup(t, op.New(op.Spec{Name: "a.b", Method: "GET", Path: "/a", Summary: "Breaks."},
		func(context.Context, *runtime.Server, struct{}) (op.Stream[int], error) {
			return op.Stream[int]{Serve: func(_ context.Context, w http.ResponseWriter, _ *http.Request) error {
				w.WriteHeader(http.StatusOK)
				panic("broken")
			}}, nil
		}))
	res, err := http.Get(b.url + "/a")
	if err == nil {
		defer res.Body.Close()
		if _, err = res.Body.Read(make([]byte, 1)); err == nil || err.Error() == "EOF" {
			t.Error("the answer ended cleanly:", err)
		}
	}
	if !strings.Contains(b.log.String(), "broken") {
		t.Error("the log does not have it:", b.log)
	}
}

func TestRequestCutShortIsNoInternalError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	entered, answered := make(chan struct{}), make(chan struct{})
	b := setup(t, op.New(op.Spec{Name: "a.b", Method: "GET", Path: "/a", Summary: "Waits."},
		func(ctx context.Context, _ *runtime.Server, _ struct{}) (op.None, error) {
			defer close(answered)
			close(entered)
			<-ctx.Done()
			return op.None{}, fmt.Errorf("waiting: %w", ctx.Err())
		}))
	r, err := http.NewRequestWithContext(ctx, "GET", b.url+"/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-entered
		cancel()
	}()
	if res, err := http.DefaultClient.Do(r); err == nil {
		res.Body.Close()
		t.Error("an answer came")
	}
	<-answered
	if b.log.String() != "" {
		t.Error(b.log)
	}
}
