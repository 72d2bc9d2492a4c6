// Package apptest runs whole servers for tests: real listeners, real stores, a
// scripted model behind the real wire formats, and a client whose every exchange
// is held against the OpenAPI document.
package apptest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/access"
	"github.com/switchyard-dev/switchyard/app"
	"github.com/switchyard-dev/switchyard/config"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/llm"
	"github.com/switchyard-dev/switchyard/llm/llmtest"
	"github.com/switchyard-dev/switchyard/op/openapi"
)

// Token is what the servers of tests ask for.
const Token = "swy_test-token-of-at-least-forty-characters-0123456789"

// Options change a server. The zero value is SQLite, an empty default directory
// and the scripted model as the only provider.
type Options struct {
	// Database is a postgres:// URL, or "" for a SQLite file in State.
	Database string
	// State keeps a server's files; "" is a fresh directory. Giving the State of
	// an earlier server restarts on its store.
	State string
	// Directory is the default runtime; "" is a fresh directory.
	Directory string
	// Demo uses the built-in model instead of the scripted provider.
	Demo bool
	// Images lets the scripted model take images and PDF.
	Images bool
	// Context is how many tokens the scripted model takes; 0 is unknown.
	Context int
	// Config is the owner's configuration file; "" allows everything that tools
	// may ask and names the scripted provider.
	Config string
	// Change alters the configuration of the app.
	Change func(*app.Config)
}

// Server is a running server.
type Server struct {
	URL       string
	State     string
	Directory string
	App       *app.App
	// Model is the scripted provider; nil with Demo.
	Model *llmtest.Server
	// Client checks every exchange against the document and sends the token.
	Client *http.Client
	// Plain does neither.
	Plain *http.Client

	t    testing.TB
	once sync.Once
	stop func() error
}

// contract is the document that all exchanges are held against.
var contract = sync.OnceValues(func() (*testkit.Contract, error) { //nolint:gochecknoglobals // made once for all tests
	text, err := openapi.New(app.Document("test")).JSON()
	if err != nil {
		return nil, err
	}
	return testkit.NewContract(text)
})

// Start runs a server until the test ends.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s := &Server{t: t, State: o.State, Directory: o.Directory}
	if s.State == "" {
		s.State = t.TempDir()
	}
	if s.Directory == "" {
		s.Directory = Dir(t)
	}
	home := t.TempDir()
	if !o.Demo {
		s.Model = llmtest.New(t)
	}
	s.configure(home, o)
	token, err := access.ParseToken(Token)
	if err != nil {
		t.Fatal(err)
	}
	c := app.Config{
		Directory: s.Directory, Addr: "127.0.0.1:0", State: s.State, Database: o.Database,
		ConfigFiles: config.Options{Home: home, ConfigHome: filepath.Join(home, ".config"), LookupEnv: noEnv},
		Verifier:    token, Version: "test", Log: testkit.Logger(t), LookupEnv: noEnv,
		Retry:  llm.RetryPolicy{Base: 10 * time.Millisecond, Max: 2 * time.Second},
		Events: event.Config{Heartbeat: 2 * time.Second},
	}
	if o.Change != nil {
		o.Change(&c)
	}
	s.run(c)
	s.clients()
	t.Cleanup(s.Stop)
	return s
}

func noEnv(string) (string, bool) { return "", false }

// Dir makes an empty canonical directory.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func (s *Server) configure(home string, o Options) {
	text := o.Config
	if text == "" {
		text = `{"permission": {"*": "allow"}}`
	}
	if s.Model != nil {
		var doc map[string]any
		if err := json.Unmarshal([]byte(text), &doc); err != nil {
			s.t.Fatal(err)
		}
		model := map[string]any{"name": "Scripted"}
		if o.Context > 0 {
			model["limit"] = map[string]any{"context": o.Context, "output": o.Context / 8}
		}
		if o.Images {
			model["modalities"] = map[string]any{"input": []string{"text", "image", "pdf"}}
		}
		maps.Copy(doc, map[string]any{
			"model": "fake/scripted",
			"provider": map[string]any{"fake": map[string]any{
				"npm": "@ai-sdk/openai-compatible", "options": map[string]any{"baseURL": s.Model.URL(), "apiKey": "sk-canary-of-the-test"},
				"models": map[string]any{"scripted": model},
			}},
		})
		encoded, err := json.Marshal(doc)
		if err != nil {
			s.t.Fatal(err)
		}
		text = string(encoded)
	}
	dir := filepath.Join(home, ".config", "switchyard")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "switchyard.json"), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) run(c app.Config) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	a, err := app.New(ctx, c)
	if err != nil {
		cancel()
		s.t.Fatal(err)
	}
	s.App = a
	at, ended := make(chan net.Addr, 1), make(chan error, 1)
	go func() { ended <- a.Run(ctx, func(addr net.Addr) { at <- addr }) }()
	select {
	case addr := <-at:
		s.URL = "http://" + addr.String()
	case err := <-ended:
		cancel()
		s.t.Fatal(err)
	}
	s.stop = func() error {
		cancel()
		if err := <-ended; err != nil {
			return err
		}
		return a.Close()
	}
}

func (s *Server) clients() {
	s.t.Helper()
	checks, err := contract()
	if err != nil {
		s.t.Fatal(err)
	}
	plain := &http.Transport{MaxIdleConnsPerHost: 64}
	s.t.Cleanup(plain.CloseIdleConnections)
	s.Plain = &http.Client{Transport: plain}
	s.Client = &http.Client{Transport: bearer{checks.Transport(s.t, plain)}}
}

type bearer struct{ next http.RoundTripper }

// RoundTrip adds the token unless the request has a credential of its own.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") == "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+Token)
	}
	return b.next.RoundTrip(r)
}

// Stop ends the server in an orderly way; it may be called again.
func (s *Server) Stop() {
	s.once.Do(func() {
		if err := s.stop(); err != nil {
			s.t.Errorf("stopping the server: %v", err)
		}
	})
}

// Restart stops the server and starts another one on the same store, with the
// same default directory.
func (s *Server) Restart(o Options) *Server {
	s.t.Helper()
	s.Stop()
	o.State, o.Directory = s.State, s.Directory
	return Start(s.t, o)
}

// Answer is an answer that was read to its end.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Code gives the code of a problem, "" for anything else.
func (a Answer) Code() string {
	var p struct {
		Code string `json:"code"`
	}
	_ = json.Unmarshal(a.Body, &p)
	return p.Code
}

// Do sends a request with a JSON body (nil for none) through Client.
func (s *Server) Do(method, path string, body any, headers ...string) Answer {
	s.t.Helper()
	return s.DoWith(s.Client, method, path, body, headers...)
}

// DoWith sends a request through a client of the test's choice. Headers are
// names and values in turn. A body that is a string or bytes goes as it is.
func (s *Server) DoWith(client *http.Client, method, path string, body any, headers ...string) Answer {
	s.t.Helper()
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	case []byte:
		reader = bytes.NewReader(b)
	default:
		data, err := json.Marshal(b)
		if err != nil {
			s.t.Fatal(err)
		}
		reader = bytes.NewReader(data)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, s.URL+path, reader)
	if err != nil {
		s.t.Fatal(err)
	}
	if reader != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := client.Do(r)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return Answer{Status: res.StatusCode, Header: res.Header, Body: data}
}

// Data sends a request that must succeed and gives the "data" of its answer.
func Data[T any](s *Server, method, path string, body any, headers ...string) T {
	s.t.Helper()
	var out struct {
		Data T `json:"data"`
	}
	decode(s, s.must(method, path, body, headers...), &out)
	return out.Data
}

// Page is a page of a list.
type Page[T any] struct {
	Data   []T `json:"data"`
	Cursor struct {
		Previous string `json:"previous"`
		Next     string `json:"next"`
	} `json:"cursor"`
	Total      *int `json:"total"`
	StartIndex *int `json:"startIndex"`
}

// List sends a request that must give a page.
func List[T any](s *Server, path string) Page[T] {
	s.t.Helper()
	var out Page[T]
	decode(s, s.must("GET", path, nil), &out)
	return out
}

func (s *Server) must(method, path string, body any, headers ...string) Answer {
	s.t.Helper()
	a := s.Do(method, path, body, headers...)
	if a.Status >= 300 {
		s.t.Fatalf("%s %s: %d %s", method, path, a.Status, a.Body)
	}
	return a
}

func decode(s *Server, a Answer, into any) {
	s.t.Helper()
	if len(a.Body) == 0 {
		return
	}
	if err := json.Unmarshal(a.Body, into); err != nil {
		s.t.Fatal(fmt.Errorf("%s: %w", a.Body, err))
	}
}
