package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"github.com/switchyard-dev/switchyard/cli"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/runtime"
)

type note struct {
	Text  string `json:"text"`
	Stars int    `json:"stars,omitempty"`
}

type putInput struct {
	ThingID string          `json:"thingID"`
	Name    string          `json:"name,omitempty"`
	Count   int             `json:"count,omitempty"`
	Ratio   float64         `json:"ratio,omitempty"`
	On      bool            `json:"on,omitempty"`
	Tags    []string        `json:"tags,omitempty"`
	Numbers []int           `json:"numbers,omitempty"`
	Note    *note           `json:"note,omitempty"`
	Notes   []note          `json:"notes,omitempty"`
	Extra   json.RawMessage `json:"extra,omitempty"`
	Output  string          `json:"output,omitempty"`
	Key     string          `json:"Idempotency-Key,omitempty" in:"header"`
}

type findInput struct {
	Words []string `json:"words,omitempty"`
	IDs   []string `json:"ids,omitempty" list:"comma"`
	Sort  string   `json:"sort,omitempty" enum:"name,age"`
	All   bool     `json:"all,omitempty"`
	Limit int      `json:"limit,omitempty"`
}

type fileInput struct {
	ThingID string `json:"thingID"`
	Path    string `json:"path"`
}

type subscribeInput struct {
	Context     []string `json:"context,omitempty"`
	Scope       string   `json:"scope,omitempty"`
	Session     string   `json:"session,omitempty"`
	Types       string   `json:"types,omitempty"`
	After       string   `json:"after,omitempty"`
	LastEventID string   `json:"Last-Event-ID,omitempty" in:"header"`
}

type uploadInput struct {
	Body op.Body `json:"body"`
	Name string  `json:"name,omitempty" in:"query"`
}

// things are operations with every kind of input. They are described only: the
// servers of these tests are made by hand.
func things() []op.Any {
	return []op.Any{
		op.New(op.Spec{
			Name: "thing.put", Method: "PUT", Path: "/api/thing/{thingID}", Summary: "Put a thing.",
			Aliases: map[string]string{"text": "note.text", "stars": "note.stars", "title": "name"},
			Example: putInput{Name: "x"},
		}, func(context.Context, *runtime.Server, putInput) (op.None, error) { return op.None{}, nil }),
		op.New(op.Spec{Name: "thing.upload", Method: "POST", Path: "/api/upload", Summary: "Take bytes."},
			func(context.Context, *runtime.Server, uploadInput) (op.None, error) { return op.None{}, nil }),
		op.New(op.Spec{Name: "thing.find", Method: "GET", Path: "/api/thing", Summary: "Find things."},
			func(context.Context, *runtime.Request, findInput) ([]note, error) { return nil, nil }),
		op.New(op.Spec{Name: "thing.file", Method: "GET", Path: "/api/thing/{thingID}/file/{path}", Summary: "Read a file.", Tail: true},
			func(context.Context, *runtime.Server, fileInput) (op.Raw, error) { return op.Raw{}, nil }),
		op.New(op.Spec{Name: "thing.reply", Method: "POST", Path: "/api/thing/{thingID}/reply", Summary: "Reply.", Item: true},
			func(context.Context, *runtime.Request, struct {
				ThingID string `json:"thingID"`
			},
			) (op.None, error) {
				return op.None{}, nil
			}),
		op.New(op.Spec{Name: "event.subscribe", Method: "GET", Path: "/api/event", Summary: "Events.", Many: true},
			func(context.Context, *runtime.Request, subscribeInput) (op.Stream[note], error) {
				return op.Stream[note]{}, nil
			}),
	}
}

// bundle is a server that notes what it is asked, and the program's commands.
type bundle struct {
	t     *testing.T
	url   string
	state string // with a token
	dir   string // for files

	mu       sync.Mutex // protects what follows
	requests []string
	tokens   []string
}

// setup starts a server that answers with answer; nil answers 204.
func setup(t *testing.T, answer http.HandlerFunc) *bundle {
	t.Helper()
	b := &bundle{t: t, state: t.TempDir(), dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(b.state, "token"), []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.note(r)
		if answer == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	b.url = s.URL
	return b
}

const secret = "swy_secret-of-the-tests"

// note writes a request down as "METHOD target", headers of interest and body.
func (b *bundle) note(r *http.Request) {
	text := r.Method + " " + r.RequestURI
	for _, name := range []string{"Idempotency-Key", "Last-Event-Id"} {
		if v := r.Header.Get(name); v != "" {
			text += " " + name + "=" + v
		}
	}
	body, _ := io.ReadAll(r.Body)
	if len(body) > 0 {
		text += " " + string(body)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests = append(b.requests, text)
	b.tokens = append(b.tokens, r.Header.Get("Authorization"))
}

func (b *bundle) seen() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string{}, b.requests...)
}

// run runs a command line of the program and gives its output.
func (b *bundle) run(ctx context.Context, stdin string, args ...string) (string, error) {
	b.t.Helper()
	root := &cobra.Command{Use: "switchyard", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(cli.Commands(cli.Config{Version: "1.2.3", Operations: things})...)
	var out bytes.Buffer
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs(append([]string{args[0], "--server", b.url, "--state", b.state}, args[1:]...))
	err := root.ExecuteContext(ctx)
	return out.String(), err
}

func (b *bundle) file(name, text string) string {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// problem answers with a failure.
func problem(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", op.ProblemType)
		w.WriteHeader(status)
		fmt.Fprintln(w, body)
	}
}

// answerJSON answers with a JSON text.
func answerJSON(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", op.TypeJSON)
		fmt.Fprintln(w, body)
	}
}
