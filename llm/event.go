package llm

import (
	"encoding/json"

	"github.com/switchyard-dev/switchyard/chat"
)

// Event is one step of an answer: one of the structs of this file.
//
// A block is a run of text, reasoning or tool input. Index numbers the blocks of
// one answer from 0 in the order of their starts, over all three kinds. Deltas
// are never empty and end on a rune boundary. Text and reasoning blocks do not
// overlap each other; tool inputs may overlap.
type Event interface{ event() }

// TextStart opens a text block; a delta follows.
type TextStart struct{ Index int }

// TextDelta continues a text block.
type TextDelta struct {
	Index int
	Text  string
}

// TextEnd closes a text block.
type TextEnd struct{ Index int }

// ReasoningStart opens a reasoning block. Hidden reasoning has no delta.
type ReasoningStart struct{ Index int }

// ReasoningDelta continues a reasoning block.
type ReasoningDelta struct {
	Index int
	Text  string
}

// ReasoningEnd closes a reasoning block. Metadata is what the provider wants
// back with the text (Reasoning.Metadata): JSON values, nil when nothing.
type ReasoningEnd struct {
	Index    int
	Metadata map[string]any
}

// ToolInputStart tells that the model begins to write a call's input.
type ToolInputStart struct {
	Index  int
	CallID string
	Name   string
}

// ToolInputDelta continues a call's input: a piece of JSON text.
type ToolInputDelta struct {
	Index int
	Text  string
}

// ToolInputEnd closes a call's input.
type ToolInputEnd struct{ Index int }

// ToolCall is a call to run. Calls come after all blocks, directly before
// Finish, in the order of their blocks, and only when the answer was whole: a
// block of tool input that has no ToolCall was cut off.
type ToolCall struct {
	// Index is that of the block with the input.
	Index int
	// CallID is unique among the calls of the Call's messages and this answer.
	CallID string
	Name   string
	// Input is a JSON object, {} when Malformed.
	Input json.RawMessage
	// Malformed tells that the model wrote no JSON object; Raw holds what it
	// wrote. Answer such a call with an error result.
	Malformed bool
	Raw       string
}

// Finish ends a whole answer.
type Finish struct {
	Reason Reason
	// Usage counts each token once: Input without what came from the cache or
	// was written to it, Output without Reasoning. Zero when not told.
	Usage chat.Usage
}

func (TextStart) event()      {}
func (TextDelta) event()      {}
func (TextEnd) event()        {}
func (ReasoningStart) event() {}
func (ReasoningDelta) event() {}
func (ReasoningEnd) event()   {}
func (ToolInputStart) event() {}
func (ToolInputDelta) event() {}
func (ToolInputEnd) event()   {}
func (ToolCall) event()       {}
func (Finish) event()         {}

// Reason says why the model stopped.
type Reason string

// The reasons, as messages keep them.
const (
	ReasonStop          Reason = "stop"
	ReasonToolCalls     Reason = "tool-calls"
	ReasonLength        Reason = "length"
	ReasonContentFilter Reason = "content-filter"
	ReasonError         Reason = "error"
	ReasonOther         Reason = "other"
	ReasonUnknown       Reason = "unknown"
)
