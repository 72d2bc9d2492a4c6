package op_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/switchyard-dev/switchyard/access"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/runtime"
)

// host is a Host with one session and directories that all exist but "/missing".
type host struct {
	mu     sync.Mutex // protects what follows
	cursor string
	hints  []runtime.Hint
	calls  []access.Principal
}

const session = id.Session("ses_01JABCDEFGHJKMNPQRSTVWXYZ0")

func (h *host) Server(_ context.Context, p access.Principal) (*runtime.Server, error) {
	h.note(p)
	return &runtime.Server{Principal: p}, nil
}

func (h *host) Request(_ context.Context, p access.Principal, hint runtime.Hint) (*runtime.Request, error) {
	h.note(p)
	h.mu.Lock()
	h.hints = append(h.hints, hint)
	h.mu.Unlock()
	switch {
	case hint.HasDirectory && hint.Directory == "":
		return nil, fault.New(fault.DirectoryInvalid, "the directory is empty")
	case hint.Directory == "/missing":
		return nil, fault.New(fault.DirectoryNotFound, "there is no directory %q", hint.Directory).With("directory", hint.Directory)
	case hint.Directory == "":
		hint.Directory = "/default"
	}
	r := &runtime.Request{Principal: p}
	r.Bind(event.Context{Directory: hint.Directory, WorkspaceID: id.Workspace(hint.Workspace)})
	return r, nil
}

func (h *host) Item(_ context.Context, p access.Principal) (*runtime.Request, error) {
	h.note(p)
	return &runtime.Request{Principal: p}, nil
}

func (h *host) Session(_ context.Context, p access.Principal, sessionID string) (*runtime.Session, error) {
	h.note(p)
	if sessionID != string(session) {
		return nil, fault.New(fault.SessionNotFound, "there is no session %q", sessionID).With("sessionID", sessionID)
	}
	return &runtime.Session{Principal: p, ID: session}, nil
}

func (h *host) EventCursor() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cursor
}

func (h *host) move(cursor string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cursor = cursor
}

func (h *host) note(p access.Principal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, p)
}

// bundle is a server of some operations.
type bundle struct {
	t    *testing.T
	host *host
	url  string
	log  *logText
}

func setup(t *testing.T, operations ...op.Any) *bundle {
	t.Helper()
	return setupServing(t, &op.Serving{}, operations...)
}

func setupServing(t *testing.T, serving *op.Serving, operations ...op.Any) *bundle {
	t.Helper()
	b := &bundle{t: t, host: &host{cursor: "evt_1"}, log: &logText{}}
	serving.Host = b.host
	router := chi.NewRouter()
	for _, o := range operations {
		o.Mount(router, serving)
	}
	log := slog.New(slog.NewTextHandler(b.log, nil))
	recovered := op.Recover(router)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recovered.ServeHTTP(w, r.WithContext(op.WithRequest(r.Context(), "req_test", log)))
	}))
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

// logText is a log that can be read while it is written.
type logText struct {
	mu   sync.Mutex // protects text
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// reply is an answer, read whole.
type reply struct {
	status int
	header http.Header
	text   string
	json   map[string]any
}

// send sends a request whose body is JSON; headers come in pairs. An empty value
// removes a header.
func (b *bundle) send(method, path, body string, headers ...string) reply {
	b.t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, reader)
	if err != nil {
		b.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
			continue
		}
		r.Header.Add(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	got := reply{status: res.StatusCode, header: res.Header, text: string(text)}
	_ = json.Unmarshal(text, &got.json) // Not every answer is JSON.
	return got
}

// wantProblem checks a failure: its status, code and the places it names.
func (r reply) wantProblem(t *testing.T, code fault.Code, locations ...string) {
	t.Helper()
	if r.status != fault.HTTPStatus(code) || r.json["code"] != string(code) || r.header.Get("Content-Type") != op.ProblemType {
		t.Fatalf("got %d %s %s, want %d %s", r.status, r.header.Get("Content-Type"), r.text, fault.HTTPStatus(code), code)
	}
	var got []string
	items, _ := r.json["errors"].([]any)
	for _, item := range items {
		got = append(got, item.(map[string]any)["location"].(string))
	}
	if strings.Join(got, " ") != strings.Join(locations, " ") {
		t.Fatalf("locations %q, want %q: %s", got, locations, r.text)
	}
}

func (r reply) wantData(t *testing.T, want string) {
	t.Helper()
	got, err := json.Marshal(r.json["data"])
	if err != nil || r.status != http.StatusOK || string(got) != want {
		t.Fatalf("got %d %s, want data %s", r.status, r.text, want)
	}
}

// echo answers a request operation with its input.
func echo[In any](s op.Spec) op.Any {
	if s.Name == "" {
		s.Name = "thing.do"
	}
	s.Summary = "Echoes."
	return op.New(s, func(_ context.Context, _ *runtime.Request, in In) (In, error) { return in, nil })
}
