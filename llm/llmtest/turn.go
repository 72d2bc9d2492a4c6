package llmtest

import (
	"net/http"
	"time"

	"github.com/switchyard-dev/switchyard/llm"
)

// Turn is one answer of the server. The zero Turn says "ok".
type Turn struct {
	// Steps are played in order.
	Steps []Step
	// Finish is the reason that the answer ends with: stop, tool-calls, length or
	// content-filter; "" follows from the steps.
	Finish string
	// Usage zero is a small default.
	Usage Usage

	// Cut ends the stream after the steps without finish reason or usage; Abort
	// drops the connection there.
	Cut, Abort bool

	// Status fails the request instead of answering; RetryAfter is its header.
	Status     int
	RetryAfter string
	// ErrorType, ErrorCode and Message fill the error's body; "" follows from
	// the status. Body replaces it whole.
	ErrorType, ErrorCode, Message, Body string
	// Header is added to the answer.
	Header http.Header

	// Delay is waited before the headers, ChunkDelay before each chunk.
	Delay, ChunkDelay time.Duration
	// Chunk is the size of the pieces in bytes, at least a rune; 0 is 5.
	Chunk int
	// Drip sends the bytes of the answer one at a time.
	Drip bool

	// Title restricts the turn to requests for a session's title; others never
	// get those, and these no others.
	Title bool
	// Summary does the same for requests for a summary of a conversation.
	Summary bool
	// Match restricts the turn to requests for which it is true.
	Match func(Request) bool
}

// Usage counts tokens, each once: Input without the cached ones, Output without
// Reasoning.
type Usage struct{ Input, Output, Reasoning, CacheRead, CacheWrite int64 }

// Step is one piece of a Turn.
type Step struct {
	kind      stepKind
	text      string // text, thought, input or message
	name      string // tool or error type
	id        string // call id
	signature string
	open      bool // no end of the block
	wait      time.Duration
}

type stepKind int

const (
	stepText stepKind = iota
	stepReasoning
	stepCall
	stepPause
	stepHang
	stepFail
)

// Text says s.
func Text(s string) Step { return Step{kind: stepText, text: s} }

// Reasoning thinks s. The signature is what the dialect wants back: Anthropic's
// signature, the responses dialect's encrypted content; chat has none.
func Reasoning(s, signature string) Step {
	return Step{kind: stepReasoning, text: s, signature: signature}
}

// Call calls a tool. The input is streamed as it is, also when it is no JSON.
func Call(name, input string) Step { return Step{kind: stepCall, name: name, text: input} }

// CallWithID is Call with a call id of choice.
func CallWithID(id, name, input string) Step {
	return Step{kind: stepCall, id: id, name: name, text: input}
}

// PartialCall begins a call whose end never comes; it should be the last step of
// a Turn with Cut or Abort, or before Fail.
func PartialCall(name, input string) Step {
	return Step{kind: stepCall, name: name, text: input, open: true}
}

// Pause waits.
func Pause(d time.Duration) Step { return Step{kind: stepPause, wait: d} }

// Hang waits until Server.Release, or until the client leaves.
func Hang() Step { return Step{kind: stepHang} }

// Fail tells a failure inside the stream and ends it.
func Fail(errorType, message string) Step {
	return Step{kind: stepFail, name: errorType, text: message}
}

// Overflow is a Turn that fails because the conversation is too long, as OpenAI
// words it.
func Overflow() Turn {
	return Turn{Status: http.StatusBadRequest, ErrorCode: "context_length_exceeded", Message: "This model's maximum context length is exceeded."}
}

// Say is a Turn of text.
func Say(s string) Turn { return Turn{Steps: []Step{Text(s)}} }

// turnOf makes the Turn that a script describes.
func turnOf(s llm.Script) Turn {
	t := Turn{Status: s.Status, RetryAfter: s.RetryAfter, Cut: s.Cut}
	switch {
	case s.Hang:
		t.Steps = []Step{Hang()}
	case s.Cut:
		t.Steps = []Step{PartialCall("read", `{"path": "REA`)}
	default:
		t.Steps = []Step{Text(s.Say)}
		for _, c := range s.Calls {
			t.Steps = append(t.Steps, Call(c.Name, c.Input))
		}
	}
	return t
}

// finish gives the reason that the answer ends with.
func (t Turn) finish() string {
	if t.Finish != "" {
		return t.Finish
	}
	for _, s := range t.Steps {
		if s.kind == stepCall {
			return "tool-calls"
		}
	}
	return "stop"
}

func (t Turn) usage() Usage {
	if t.Usage == (Usage{}) {
		return Usage{Input: 10, Output: 5}
	}
	return t.Usage
}
