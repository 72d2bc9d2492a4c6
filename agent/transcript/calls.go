package transcript

import (
	"bytes"
	"encoding/json"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/id"
)

// doomed is the number of equal calls in a row that look like a loop.
const doomed = 3

// Call is what makes a call equal to another one.
type Call struct {
	Name  string
	Input string
}

// NewCall makes a Call; spaces and the order of members do not count.
func NewCall(name string, input json.RawMessage) Call {
	var v any
	decoder := json.NewDecoder(bytes.NewReader(input))
	decoder.UseNumber() // large numbers must not become equal
	if decoder.Decode(&v) == nil {
		if plain, err := json.Marshal(v); err == nil {
			input = plain
		}
	}
	return Call{Name: name, Input: string(input)}
}

// Calls gives the calls of a turn in order.
func Calls(items []chat.Item, turn id.Turn) []Call {
	var out []Call
	for _, item := range items {
		if turnOf(item) != turn {
			continue
		}
		for _, p := range item.Parts {
			if call, ok := p.(*chat.ToolPart); ok {
				out = append(out, NewCall(call.Tool, chat.ToolInput(call.State)))
			}
		}
	}
	return out
}

// Loops tells whether the last of the calls is the third equal one in a row.
func Loops(calls []Call) bool {
	if len(calls) < doomed {
		return false
	}
	last := calls[len(calls)-1]
	for _, c := range calls[len(calls)-doomed:] {
		if c != last {
			return false
		}
	}
	return true
}
