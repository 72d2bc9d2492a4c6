package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/access"
	"github.com/switchyard-dev/switchyard/api"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/op/openapi"
	"github.com/switchyard-dev/switchyard/runtime"
)

type host struct{}

func (host) Server(_ context.Context, p access.Principal) (*runtime.Server, error) {
	return &runtime.Server{Principal: p}, nil
}

func (host) Request(_ context.Context, p access.Principal, hint runtime.Hint) (*runtime.Request, error) {
	if hint.Directory == "/missing" {
		return nil, fault.New(fault.DirectoryNotFound, "there is no such directory")
	}
	r := &runtime.Request{Principal: p}
	r.Bind(event.Context{Directory: "/default"})
	return r, nil
}

func (host) Item(_ context.Context, p access.Principal) (*runtime.Request, error) {
	return &runtime.Request{Principal: p}, nil
}

func (host) Session(_ context.Context, p access.Principal, sessionID string) (*runtime.Session, error) {
	s, ok := id.Parse[id.Session](sessionID)
	if !ok {
		return nil, fault.New(fault.SessionNotFound, "there is no session %q", sessionID)
	}
	return &runtime.Session{Principal: p, ID: s}, nil
}

func (host) EventCursor() string { return "evt_1" }

type thingInput struct {
	Size  int    `json:"size,omitempty" minimum:"0"`
	Order string `json:"order,omitempty" enum:"asc,desc"`
}

type thing struct {
	Text string `json:"text"`
}

// operations are small ones of each kind and shape.
func operations() []op.Any {
	return []op.Any{
		op.New(op.Spec{Name: "health.get", Method: "GET", Path: "/api/health", Summary: "Health.", Public: true, NoCursor: true},
			func(_ context.Context, s *runtime.Server, _ struct{}) (string, error) {
				return "for " + s.Principal.Name, nil
			}),
		op.New(op.Spec{Name: "thing.get", Method: "GET", Path: "/api/thing", Summary: "A thing of a size."},
			func(_ context.Context, _ *runtime.Request, in thingInput) (thing, error) {
				return thing{Text: strings.Repeat("x", in.Size)}, nil
			}),
		op.New(op.Spec{Name: "thing.tagged", Method: "GET", Path: "/api/thing/tagged", Summary: "A tagged thing."},
			func(_ context.Context, _ *runtime.Request, in thingInput) (op.Tagged[thing], error) {
				return op.Tagged[thing]{Value: thing{Text: strings.Repeat("x", in.Size)}}, nil
			}),
		op.New(op.Spec{Name: "thing.raw", Method: "GET", Path: "/api/thing/raw", Summary: "Raw JSON.", Produces: []string{"application/json"}},
			func(context.Context, *runtime.Request, struct{}) (op.Raw, error) {
				return op.Raw{Bytes: []byte(`{"a":"` + strings.Repeat("x", 5000) + `"}`), Type: "application/json", ETag: "v1"}, nil
			}),
		op.New(op.Spec{Name: "thing.create", Method: "POST", Path: "/api/thing", Summary: "Makes a thing.", Aliases: map[string]string{"content": "text"}},
			func(_ context.Context, _ *runtime.Request, in struct {
				Text string `json:"text" maxLength:"10"`
			},
			) (thing, error) {
				return thing(in), nil
			}),
		op.New(op.Spec{Name: "session.get", Method: "GET", Path: "/api/session/{sessionID}", Summary: "A session."},
			func(_ context.Context, s *runtime.Session, _ struct{}) (id.Session, error) { return s.ID, nil }),
		op.New(op.Spec{Name: "session.delete", Method: "DELETE", Path: "/api/session/{sessionID}", Summary: "Deletes."},
			func(context.Context, *runtime.Session, struct{}) (op.None, error) { return op.None{}, nil }),
		op.New(op.Spec{Name: "thing.fail", Method: "POST", Path: "/api/thing/fail", Summary: "Fails."},
			func(context.Context, *runtime.Server, struct{}) (op.None, error) { panic("secret cause") }),
		op.New(op.Spec{Name: "event.subscribe", Method: "GET", Path: "/api/event", Summary: "Events.", Many: true},
			func(context.Context, *runtime.Request, struct{}) (op.Stream[thing], error) {
				return op.Stream[thing]{Serve: serveEvents}, nil
			}),
		op.New(op.Spec{Name: "model.get", Method: "GET", Path: "/api/model/{modelID}", Summary: "A model.", Tail: true},
			func(_ context.Context, _ *runtime.Server, in struct {
				ModelID string `json:"modelID"`
			},
			) (string, error) {
				return in.ModelID, nil
			}),
	}
}

// serveEvents sends one event and then waits for its client to go.
func serveEvents(ctx context.Context, w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, ": %s\n\ndata: {\"text\":\"%s\"}\n\n", strings.Repeat("padding", 500), r.URL.Query().Get("directory"))
	if err := http.NewResponseController(w).Flush(); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

type bundle struct {
	t      *testing.T
	server *httptest.Server
	client *http.Client
	log    *bytes.Buffer
}

func setup(t *testing.T, change func(*api.Config)) *bundle {
	t.Helper()
	b := &bundle{t: t, log: &bytes.Buffer{}}
	c := api.Config{
		Host: host{}, Operations: operations(), Document: openapi.Config{Title: "Test", Version: "1"},
		Log: slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&c)
	}
	b.server = httptest.NewServer(api.New(c))
	t.Cleanup(b.server.Close)
	text, err := openapi.New(openapi.Config{Title: "Test", Version: "1", Operations: c.Operations}).JSON()
	if err != nil {
		t.Fatal(err)
	}
	contract, err := testkit.NewContract(text)
	if err != nil {
		t.Fatal(err)
	}
	b.client = &http.Client{
		Transport:     contract.Transport(t, b.server.Client().Transport),
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("redirected") },
	}
	return b
}

type reply struct {
	*http.Response
	text string
	json map[string]any
}

func (b *bundle) send(method, path, body string, headers ...string) reply {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.server.URL+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	got := reply{Response: res, text: string(text)}
	_ = json.Unmarshal(text, &got.json) // Not every answer is JSON.
	return got
}

func (r reply) want(t *testing.T, status int, code fault.Code) {
	t.Helper()
	if r.StatusCode != status || code != "" && (r.json["code"] != string(code) || r.Header.Get("Content-Type") != op.ProblemType) {
		t.Errorf("%s %s: got %s %s, want %d %s", r.Request.Method, r.Request.URL, r.Status, r.text, status, code)
	}
}
