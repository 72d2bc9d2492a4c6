// Package llmtest is a model provider for tests: an HTTP server on 127.0.0.1
// that speaks the streaming formats of OpenAI chat completions, OpenAI responses
// and Anthropic messages as the real ones do, so that provider code is the code
// under test.
//
// What it answers is declared in Go (Enqueue) or follows from the last user
// text, which is read as an llm.Script; a request that ends with a tool's result
// is answered with llm.DoneText, any other text with "ok". Requests for a
// session's title (their system prompt holds llm.TitleMarker) get "Scripted
// title" and requests for a summary of a conversation (llm.SummaryMarker)
// "Scripted summary"; both leave the queue alone but for answers made for them.
package llmtest

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/llm"
)

// TitleText is the answer to requests for a title, SummaryText to those for a
// summary.
const (
	TitleText   = "Scripted title"
	SummaryText = "Scripted summary"
)

// Server is the scripted provider. It is safe for concurrent use.
type Server struct {
	http *httptest.Server
	done chan struct{} // closed by Close

	mu       sync.Mutex // protects what follows
	queue    []Turn
	requests []Request
	titles   []Request
	changed  chan struct{} // closed and renewed when a request comes or hangs
	release  chan struct{} // closed and renewed by Release
	hanging  int
	active   map[string]int
	most     map[string]int
	key      string
	chunk    int
	serial   int // of ids
}

// New starts a server that ends with the test.
func New(t testing.TB) *Server {
	s := Start()
	t.Cleanup(s.Close)
	return s
}

// Start starts a server; the caller closes it.
func Start() *Server {
	s := &Server{
		done: make(chan struct{}), changed: make(chan struct{}), release: make(chan struct{}),
		active: map[string]int{}, most: map[string]int{},
	}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

// Close ends all requests and waits for them.
func (s *Server) Close() {
	close(s.done)
	s.http.CloseClientConnections()
	s.http.Close()
}

// URL is the base URL for providers of all kinds; it ends in /v1.
func (s *Server) URL() string { return s.http.URL + "/v1" }

// Config gives the configuration of a provider that asks this server.
func (s *Server) Config(id string, kind llm.ProviderKind) llm.ProviderConfig {
	return llm.ProviderConfig{
		ID: id, Kind: kind, BaseURL: s.URL(), APIKey: llm.NewSecret("test-key"), HTTPClient: s.http.Client(),
	}
}

// Enqueue adds answers. Each is given once, in order, to the first request that
// it fits; scripts in the prompt count again when no queued answer fits.
func (s *Server) Enqueue(turns ...Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, turns...)
}

// RequireKey makes the server refuse requests that lack the key.
func (s *Server) RequireKey(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = key
}

// SetChunk sets the size of the pieces for answers that do not say: 1 streams
// rune by rune.
func (s *Server) SetChunk(size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chunk = size
}

// Release lets all answers that hang now go on.
func (s *Server) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.release)
	s.release = make(chan struct{})
}

// Titles gives the requests for titles so far.
func (s *Server) Titles() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.titles)
}

// Requests gives all requests so far but those for titles, which come at any
// time, in the order of their arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Pending is the number of queued answers not yet given.
func (s *Server) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// Active gives the number of requests being answered, by session.
func (s *Server) Active() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.active)
}

// MaxConcurrent gives the greatest number of requests of one session that were
// answered at the same time; titles do not count.
func (s *Server) MaxConcurrent(session string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most[session]
}

// WaitTitles waits until n titles were asked for or ctx ends.
func (s *Server) WaitTitles(ctx context.Context, n int) error {
	return s.wait(ctx, func() bool { return len(s.titles) >= n })
}

// WaitRequests waits until n requests have come, titles not counted, or ctx
// ends.
func (s *Server) WaitRequests(ctx context.Context, n int) error {
	return s.wait(ctx, func() bool { return len(s.requests) >= n })
}

// WaitHanging waits until n answers hang at the same time or ctx ends.
func (s *Server) WaitHanging(ctx context.Context, n int) error {
	return s.wait(ctx, func() bool { return s.hanging >= n })
}

func (s *Server) wait(ctx context.Context, ready func() bool) error {
	for {
		s.mu.Lock()
		ok, changed := ready(), s.changed
		s.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// touch wakes who waits; s.mu is held.
func (s *Server) touch() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	dialect, ok := dialectOf(r)
	if !ok {
		http.NotFound(w, r)
		return
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	req := Request{Dialect: dialect, Path: r.URL.Path, Header: r.Header.Clone(), Body: data, Time: time.Now(), RemoteAddr: r.RemoteAddr}
	valid := req.parse()
	turn := s.admit(req)
	defer s.leave(req)
	if !valid {
		turn = Turn{Status: http.StatusBadRequest, Message: "the body is no request"}
	}
	if clock.Sleep(r.Context(), turn.Delay) != nil {
		return
	}
	if turn.Status != 0 {
		refuse(w, req, turn)
		return
	}
	p := &player{srv: s, w: w, ctx: r.Context(), req: req, turn: turn}
	p.play()
}

func dialectOf(r *http.Request) (Dialect, bool) {
	if r.Method != http.MethodPost {
		return "", false
	}
	for suffix, d := range map[string]Dialect{"/chat/completions": Chat, "/responses": Responses, "/messages": Anthropic} {
		if strings.HasSuffix(r.URL.Path, suffix) {
			return d, true
		}
	}
	return "", false
}

// admit counts a request and chooses its answer.
func (s *Server) admit(r Request) Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Title {
		s.titles = append(s.titles, r)
	} else {
		s.requests = append(s.requests, r)
		s.active[r.Session]++
		s.most[r.Session] = max(s.most[r.Session], s.active[r.Session])
	}
	s.touch()
	if s.key != "" && r.Header.Get("Authorization") != "Bearer "+s.key && r.Header.Get("X-Api-Key") != s.key {
		return Turn{Status: http.StatusUnauthorized, ErrorCode: "invalid_api_key", Message: "Incorrect API key provided: " + presented(r)}
	}
	turn := s.choose(r)
	if turn.Chunk == 0 {
		turn.Chunk = s.chunk
	}
	return turn
}

// presented gives the key of a request, which real providers repeat in errors.
func presented(r Request) string {
	if key := r.Header.Get("X-Api-Key"); key != "" {
		return key
	}
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

func (s *Server) leave(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Title {
		return
	}
	if s.active[r.Session]--; s.active[r.Session] == 0 {
		delete(s.active, r.Session)
	}
}

// choose gives the answer to a request; s.mu is held.
func (s *Server) choose(r Request) Turn {
	for i, t := range s.queue {
		if t.Title == r.Title && t.Summary == r.Summary && (t.Match == nil || t.Match(r)) {
			s.queue = slices.Delete(s.queue, i, i+1)
			return t
		}
	}
	if r.Title {
		return Say(TitleText)
	}
	if r.Summary {
		return Say(SummaryText)
	}
	if result, ok := r.LastResult(); ok {
		return Say(llm.DoneText(result))
	}
	for _, text := range r.UserTexts() {
		if script, ok := llm.ParseScript(text); ok {
			return turnOf(script)
		}
	}
	return Say("ok")
}

// hang waits for Release, the end of the request or of the server, and reports
// whether to go on.
func (s *Server) hang(ctx context.Context) bool {
	s.mu.Lock()
	release := s.release
	s.hanging++
	s.touch()
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.hanging--
		s.mu.Unlock()
	}()
	select {
	case <-release:
		return true
	case <-s.done:
	case <-ctx.Done():
	}
	return false
}

// number gives the next number for ids.
func (s *Server) number() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	return s.serial
}
