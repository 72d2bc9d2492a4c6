package op_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/runtime"
)

func TestInvokeTakesAllFieldsInOneObject(t *testing.T) {
	t.Parallel()
	o := echo[patchInput](op.Spec{Method: "PATCH", Path: "/api/thing/{thingID}", Aliases: map[string]string{"name": "title"}})
	h := &host{}
	got, err := o.Invoke(t.Context(), h, op.Target{Hint: runtime.Hint{Directory: "/a", HasDirectory: true}},
		json.RawMessage(`{"thingID":"t","force":true,"name":"x","big":9007199254740993}`))
	if err != nil {
		t.Fatal(err)
	}
	in := got.(patchInput)
	if in.ThingID != "t" || !in.Force || in.Title != "x" || in.Big != 9007199254740993 || h.hints[0].Directory != "/a" {
		t.Errorf("%+v %+v", in, h.hints)
	}
	_, err = o.Invoke(t.Context(), h, op.Target{}, json.RawMessage(`{"title":1,"zz":1}`))
	f, _ := fault.As(err)
	if !fault.Is(err, fault.ValidationFailed) || len(f.Items) != 3 || f.Items[0].Location != "input.thingID" {
		t.Errorf("%v %+v", err, f)
	}
	if _, err = o.Invoke(t.Context(), h, op.Target{}, json.RawMessage(`{`)); !fault.Is(err, fault.MalformedJSON) {
		t.Error(err)
	}
	if _, err = o.Invoke(t.Context(), h, op.Target{Hint: runtime.Hint{HasDirectory: true}}, json.RawMessage(`{"thingID":"t"}`)); !fault.Is(err, fault.DirectoryInvalid) {
		t.Error(err)
	}
}

func TestInvokeOfASessionOperation(t *testing.T) {
	t.Parallel()
	o := op.New(op.Spec{Name: "session.wait", Method: "POST", Path: "/api/session/{sessionID}/wait", Summary: "Waits."},
		func(_ context.Context, s *runtime.Session, _ struct{}) (op.Early[string], error) {
			return op.Early[string]{Wait: func(context.Context) (string, error) { return string(s.ID), nil }}, nil
		})
	got, err := op.Any(o).Invoke(t.Context(), &host{}, op.Target{SessionID: string(session)}, nil)
	if err != nil || got != string(session) {
		t.Error(got, err)
	}
	if _, err := op.Any(o).Invoke(t.Context(), &host{}, op.Target{SessionID: "x"}, nil); !fault.Is(err, fault.SessionNotFound) {
		t.Error(err)
	}
}

func TestDoIsTyped(t *testing.T) {
	t.Parallel()
	o := op.New(op.Spec{Name: "n.double", Method: "GET", Path: "/n", Summary: "Doubles."},
		func(_ context.Context, _ *runtime.Server, in struct {
			N int `json:"n"`
		},
		) (int, error) {
			return 2 * in.N, nil
		})
	got, err := o.Do(t.Context(), &runtime.Server{}, struct {
		N int `json:"n"`
	}{N: 21})
	if err != nil || got != 42 {
		t.Error(got, err)
	}
}

func TestInvokeGivesHintsToManyContexts(t *testing.T) {
	t.Parallel()
	o := op.New(op.Spec{Name: "event.subscribe", Method: "GET", Path: "/api/event", Summary: "Events.", Many: true},
		func(ctx context.Context, _ *runtime.Request, _ struct{}) (int, error) { return len(op.Hints(ctx)), nil })
	got, err := o.Invoke(t.Context(), &host{}, op.Target{Hint: runtime.Hint{Directory: "/a", HasDirectory: true}}, nil)
	if err != nil || got != 1 {
		t.Error(got, err)
	}
}
