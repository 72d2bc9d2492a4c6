package chat

import (
	"encoding/json"
	"fmt"
)

// ToolPart is one call of a tool by the model.
type ToolPart struct {
	PartHead
	Type     string         `json:"type" enum:"tool"`
	CallID   string         `json:"callID" doc:"The provider's name of the call."`
	Tool     string         `json:"tool"`
	State    ToolState      `json:"state"`
	Metadata map[string]any `json:"metadata,omitempty"`
}

// ToolState is how far a call is: *ToolPending, *ToolRunning, *ToolCompleted or
// *ToolError. The "status" member of its JSON says which; it only moves forward.
type ToolState interface {
	// Status gives the "status" member.
	Status() string
}

// ToolPending is a call whose input is still being written or that waits.
type ToolPending struct {
	S     string          `json:"status" enum:"pending"`
	Input json.RawMessage `json:"input"`
	Raw   string          `json:"raw" doc:"The input's JSON text so far."`
}

// ToolRunning is a call that has begun.
type ToolRunning struct {
	S        string          `json:"status" enum:"running"`
	Input    json.RawMessage `json:"input"`
	Title    string          `json:"title,omitempty"`
	Metadata map[string]any  `json:"metadata,omitempty"`
	Time     PartTime        `json:"time"`
}

// ToolCompleted is a call that gave a result.
type ToolCompleted struct {
	S           string          `json:"status" enum:"completed"`
	Input       json.RawMessage `json:"input"`
	Output      string          `json:"output"`
	Title       string          `json:"title"`
	Metadata    map[string]any  `json:"metadata"`
	Time        PartTime        `json:"time"`
	Attachments []*FilePart     `json:"attachments,omitempty"`
}

// ToolError is a call that failed, was refused or was cut short.
type ToolError struct {
	S        string          `json:"status" enum:"error"`
	Input    json.RawMessage `json:"input"`
	Error    string          `json:"error"`
	Metadata map[string]any  `json:"metadata,omitempty" doc:"reason is interrupted, outcome_unknown, aborted or rejected where one applies."`
	Time     PartTime        `json:"time"`
}

// Status implements ToolState.
func (*ToolPending) Status() string { return "pending" }

// Status implements ToolState.
func (*ToolRunning) Status() string { return "running" }

// Status implements ToolState.
func (*ToolCompleted) Status() string { return "completed" }

// Status implements ToolState.
func (*ToolError) Status() string { return "error" }

// Terminal reports whether a state never changes again.
func Terminal(s ToolState) bool { return s.Status() == "completed" || s.Status() == "error" }

// ToolInput gives the input of a call in any state; "{}" while it is not whole.
func ToolInput(s ToolState) json.RawMessage {
	switch v := s.(type) {
	case *ToolPending:
		return v.Input
	case *ToolRunning:
		return v.Input
	case *ToolCompleted:
		return v.Input
	case *ToolError:
		return v.Input
	}
	return json.RawMessage("{}")
}

// UnmarshalJSON reads the state by its status.
func (p *ToolPart) UnmarshalJSON(data []byte) error {
	type plain ToolPart
	raw := struct {
		*plain
		State json.RawMessage `json:"state"`
	}{plain: (*plain)(p)}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	state, err := decodeToolState(raw.State)
	if err != nil {
		return err
	}
	p.State = state
	return nil
}

func decodeToolState(data []byte) (ToolState, error) {
	var head struct {
		Status string `json:"status"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("tool state: %w", err)
	}
	switch head.Status {
	case "pending":
		return decode[ToolPending](data)
	case "running":
		return decode[ToolRunning](data)
	case "completed":
		return decode[ToolCompleted](data)
	case "error":
		return decode[ToolError](data)
	}
	return nil, fmt.Errorf("tool state: unknown status %q", head.Status)
}
