package op_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/idempotency"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/runtime"
	"github.com/switchyard-dev/switchyard/store"
)

// setupKeys is setup with a real store of keys.
func setupKeys(t *testing.T, operations ...op.Any) *bundle {
	t.Helper()
	d, err := store.Open(t.Context(), store.Config{URL: filepath.Join(t.TempDir(), "s.db"), Owner: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	keys := idempotency.NewService(idempotency.Config{Store: d, IDs: id.NewSource(time.Now, nil), Owner: "test"})
	return setupServing(t, &op.Serving{Keys: keys}, operations...)
}

type onceInput struct {
	Text string `json:"text,omitempty"`
}

func post(name string, run func(ctx context.Context, in onceInput) (string, error)) op.Any {
	return op.New(op.Spec{Name: "once." + name, Method: "POST", Path: "/once/" + name, Summary: "Runs once."},
		func(ctx context.Context, _ *runtime.Server, in onceInput) (string, error) { return run(ctx, in) })
}

func TestAKeyRunsItsRequestOnce(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	sessions := make(chan id.Session, 16)
	b := setupKeys(t, post("count", func(ctx context.Context, in onceInput) (string, error) {
		sessions <- op.SessionID(ctx)
		return fmt.Sprint(in.Text, runs.Add(1)), nil
	}))
	var wg sync.WaitGroup
	var replayed atomic.Int64
	for range 10 {
		wg.Go(func() {
			got := b.send("POST", "/once/count", `{"text":"x"}`, "Idempotency-Key", "k")
			got.wantData(t, `"x1"`)
			if got.header.Get(op.HeaderReplayed) == "true" {
				replayed.Add(1)
			}
			if got.header.Get(op.HeaderEventCursor) != "evt_1" {
				t.Errorf("%v", got.header)
			}
		})
	}
	wg.Wait()
	b.host.move("evt_2")
	b.send("POST", "/once/count", `{"text":"x"}`, "Idempotency-Key", "k").wantData(t, `"x1"`)
	if runs.Load() != 1 || replayed.Load() != 9 {
		t.Errorf("%d runs, %d replayed", runs.Load(), replayed.Load())
	}
	b.send("POST", "/once/count", `{"text":"y"}`, "Idempotency-Key", "k").wantProblem(t, fault.IdempotencyConflict)
	b.send("POST", "/once/count", `{"text":"x"}`, "Idempotency-Key", "a", "Idempotency-Key", "b").
		wantProblem(t, fault.ValidationFailed, "header.Idempotency-Key")
	if ses := <-sessions; !strings.HasPrefix(string(ses), "ses_") {
		t.Errorf("session %q", ses)
	}
	b.send("POST", "/once/count", `{"text":"x"}`).wantData(t, `"x2"`)
	if ses := <-sessions; ses != "" {
		t.Errorf("session %q without a key", ses)
	}
}

// TestTroubleThatPassesFreesTheKey: a panic, a failure of the server and a limit
// let the request run again; a refusal is its answer.
func TestTroubleThatPassesFreesTheKey(t *testing.T) {
	t.Parallel()
	for _, code := range []fault.Code{fault.Internal, fault.StoreUnavailable, fault.QueueFull, fault.AgentUnknown, ""} {
		var runs atomic.Int64
		b := setupKeys(t, post("fail", func(context.Context, onceInput) (string, error) {
			if runs.Add(1) > 1 {
				return "well", nil
			}
			if code == "" {
				panic("at the first time")
			}
			return "", fault.New(code, "the first time")
		}))
		first := b.send("POST", "/once/fail", "", "Idempotency-Key", "k")
		again := b.send("POST", "/once/fail", "", "Idempotency-Key", "k")
		if code == fault.AgentUnknown {
			again.wantProblem(t, code)
			if again.text != first.text || again.header.Get(op.HeaderReplayed) != "true" {
				t.Errorf("%s, then %s", first.text, again.text)
			}
			continue
		}
		if first.status < 429 {
			t.Errorf("%s: %d", code, first.status)
		}
		again.wantData(t, `"well"`)
	}
}

func TestKeysThatAreNotLookedAt(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	lines := op.New(op.Spec{Name: "once.lines", Method: "POST", Path: "/once/lines", Summary: "Tells lines."},
		func(context.Context, *runtime.Server, onceInput) (op.Lines[int64], error) {
			return op.Lines[int64]{Items: func(yield func(int64, error) bool) { yield(runs.Add(1), nil) }}, nil
		})
	early := op.New(op.Spec{Name: "once.early", Method: "POST", Path: "/once/early", Summary: "Waits."},
		func(context.Context, *runtime.Server, onceInput) (op.Early[int64], error) {
			return op.Early[int64]{Wait: func(context.Context) (int64, error) { return runs.Add(1), nil }}, nil
		})
	read := op.New(op.Spec{Name: "once.read", Method: "GET", Path: "/once/read", Summary: "Reads."},
		func(context.Context, *runtime.Server, struct{}) (int64, error) { return runs.Add(1), nil })
	b := setupKeys(t, lines, early, read)
	for i, want := range []string{"1\n", "2\n"} {
		if got := b.send("POST", "/once/lines", "", "Idempotency-Key", "k"); got.text != want || got.status != http.StatusOK {
			t.Errorf("%d: %d %q", i, got.status, got.text)
		}
	}
	b.send("POST", "/once/early", "", "Idempotency-Key", "not visible").wantData(t, "3")
	b.send("GET", "/once/read", "", "Idempotency-Key", "k").wantData(t, "4")
	for _, o := range []op.Any{early, read} {
		if o.Describe().Keyed {
			t.Errorf("%s is described with a key", o.Describe().Name)
		}
	}
}
