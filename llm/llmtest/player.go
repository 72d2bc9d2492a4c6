package llmtest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"time"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/llm"
)

// wire writes an answer in one dialect.
type wire interface {
	// open begins the answer.
	open()
	// step plays text, reasoning or a call.
	step(s Step)
	// close ends the answer.
	close(finish string, u Usage)
	// fail tells a failure.
	fail(errorType, message string)
	// whole gives the answer to a request that does not stream.
	whole(t Turn) any
}

// player plays one Turn to one request.
type player struct {
	srv  *Server
	w    http.ResponseWriter
	ctx  context.Context
	req  Request
	turn Turn
	gone bool // the client has left
}

func (p *player) play() {
	if len(p.turn.Steps) == 0 && !p.turn.Cut && !p.turn.Abort {
		p.turn.Steps = []Step{Text("ok")}
	}
	w := p.wire()
	for name, values := range p.turn.Header {
		p.w.Header()[name] = values
	}
	if !p.req.Stream {
		for _, s := range p.turn.Steps {
			if s.kind == stepHang && !p.srv.hang(p.ctx) {
				return
			}
		}
		writeJSON(p.w, http.StatusOK, w.whole(p.turn))
		return
	}
	p.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	p.w.Header().Set("Cache-Control", "no-cache")
	w.open()
	for _, s := range p.turn.Steps {
		if !p.step(w, s) || p.gone {
			return
		}
	}
	if p.turn.Abort {
		// The way of net/http to drop a connection.
		panic(http.ErrAbortHandler)
	}
	if !p.turn.Cut {
		w.close(p.turn.finish(), p.turn.usage())
	}
}

// step plays one step and reports whether the answer goes on.
func (p *player) step(w wire, s Step) bool {
	switch s.kind {
	case stepPause:
		return clock.Sleep(p.ctx, s.wait) == nil
	case stepHang:
		return p.srv.hang(p.ctx)
	case stepFail:
		w.fail(s.name, s.text)
		return false
	case stepCall:
		if s.id == "" {
			s.id = "call_" + strconv.Itoa(p.srv.number())
		}
	case stepText:
		if s.text == "" {
			return true
		}
	}
	w.step(s)
	return true
}

func (p *player) wire() wire {
	id := p.srv.number()
	switch p.req.Dialect {
	case Anthropic:
		return &anthropicWire{player: p, id: fmt.Sprintf("msg_%d", id)}
	case Responses:
		return &responsesWire{player: p, id: id}
	}
	return &chatWire{player: p, id: fmt.Sprintf("chatcmpl-%d", id)}
}

// chunks cuts a text as the turn says and waits before each piece.
func (p *player) chunks(text string) iter.Seq[string] {
	size := p.turn.Chunk
	if size == 0 {
		size = 5
	}
	return func(yield func(string) bool) {
		for piece := range llm.Chunks(text, size) {
			if clock.Sleep(p.ctx, p.turn.ChunkDelay) != nil || p.gone || !yield(piece) {
				return
			}
		}
	}
}

// event sends one frame. name "" leaves the event line out.
func (p *player) event(name string, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		p.gone = true // ends the answer early, which no client takes for whole
		return
	}
	p.frame(name, string(data))
}

func (p *player) frame(name, data string) {
	if name != "" {
		name = "event: " + name + "\n"
	}
	frame := name + "data: " + data + "\n\n"
	if !p.turn.Drip {
		p.send(frame)
		return
	}
	for i := range len(frame) {
		p.send(frame[i : i+1])
	}
}

func (p *player) send(s string) {
	if p.gone {
		return
	}
	_, err := p.w.Write([]byte(s))
	if err == nil {
		err = http.NewResponseController(p.w).Flush()
	}
	p.gone = err != nil || p.ctx.Err() != nil
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// refuse fails a request as the turn says.
func refuse(w http.ResponseWriter, r Request, t Turn) {
	for name, values := range t.Header {
		w.Header()[name] = values
	}
	if t.RetryAfter != "" {
		w.Header().Set("Retry-After", t.RetryAfter)
	}
	if t.Body != "" {
		if w.Header().Get("Content-Type") == "" {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(t.Status)
		_, _ = w.Write([]byte(t.Body))
		return
	}
	kind, message := t.ErrorType, t.Message
	if kind == "" {
		kind = errorType(t.Status)
	}
	if message == "" {
		message = "scripted failure"
	}
	writeJSON(w, t.Status, errorBody(r.Dialect, kind, t.ErrorCode, message))
}

func errorType(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status == http.StatusServiceUnavailable, status == 529:
		return "overloaded_error"
	case status >= http.StatusInternalServerError:
		return "api_error"
	}
	return "invalid_request_error"
}

type object = map[string]any

func errorBody(d Dialect, kind, code, message string) object {
	inner := object{"type": kind, "message": message}
	if d == Anthropic {
		return object{"type": "error", "error": inner}
	}
	inner["param"] = nil
	inner["code"] = nil
	if code != "" {
		inner["code"] = code
	}
	return object{"error": inner}
}

// created is the second that answers carry.
func created() int64 { return time.Now().Unix() }
