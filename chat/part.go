package chat

import (
	"encoding/json"
	"fmt"

	"github.com/switchyard-dev/switchyard/id"
)

// Part is one piece of a message: one of the *Part types of this package. The
// "type" member of its JSON says which.
type Part interface {
	// Head gives what all parts have.
	Head() *PartHead
}

// PartHead is what all parts have.
type PartHead struct {
	ID        id.Part    `json:"id"`
	SessionID id.Session `json:"sessionID"`
	MessageID id.Message `json:"messageID"`
}

// Head makes every part that embeds it a Part.
func (h *PartHead) Head() *PartHead { return h }

// TextPart is text of the user or the model.
type TextPart struct {
	PartHead
	Type      string         `json:"type" enum:"text"`
	Text      string         `json:"text"`
	Synthetic bool           `json:"synthetic,omitempty" doc:"Made by the server, not written by the user."`
	Ignored   bool           `json:"ignored,omitempty" doc:"Not shown to the model."`
	Time      *PartTime      `json:"time,omitempty"`
	Metadata  map[string]any `json:"metadata,omitempty"`
	Truncated bool           `json:"truncated,omitempty" doc:"In events only: the text is cut, read the message for the rest."`
}

// ReasoningPart is what a model tells of its thinking.
type ReasoningPart struct {
	PartHead
	Type      string         `json:"type" enum:"reasoning"`
	Text      string         `json:"text"`
	Time      *PartTime      `json:"time,omitempty"`
	Metadata  map[string]any `json:"metadata,omitempty" doc:"What the provider wants back, such as a signature."`
	Truncated bool           `json:"truncated,omitempty"`
}

// FilePart is a file given with a prompt or made by a tool.
type FilePart struct {
	PartHead
	Type     string      `json:"type" enum:"file"`
	Mime     string      `json:"mime"`
	Filename string      `json:"filename,omitempty"`
	URL      string      `json:"url"`
	Source   *FileSource `json:"source,omitempty"`
}

// FileSource says where in the prompt's text a file is mentioned.
type FileSource struct {
	Text SourceText `json:"text"`
	Type string     `json:"type,omitempty"`
	Path string     `json:"path,omitempty"`
}

// SourceText is a place in a prompt's text; Start and End are UTF-8 bytes.
type SourceText struct {
	Value string `json:"value"`
	Start int64  `json:"start"`
	End   int64  `json:"end"`
}

// AgentPart mentions an agent.
type AgentPart struct {
	PartHead
	Type   string      `json:"type" enum:"agent"`
	Name   string      `json:"name"`
	Source *SourceText `json:"source,omitempty"`
}

// StepStartPart opens a step.
type StepStartPart struct {
	PartHead
	Type     string `json:"type" enum:"step-start"`
	Snapshot string `json:"snapshot,omitempty"`
}

// StepFinishPart closes a step with what it used.
type StepFinishPart struct {
	PartHead
	Type     string  `json:"type" enum:"step-finish"`
	Reason   string  `json:"reason"`
	Snapshot string  `json:"snapshot,omitempty"`
	Cost     float64 `json:"cost"`
	Tokens   Usage   `json:"tokens"`
}

// RetryPart tells that a provider call failed and is tried again.
type RetryPart struct {
	PartHead
	Type    string    `json:"type" enum:"retry"`
	Attempt int       `json:"attempt"`
	Error   Error     `json:"error"`
	Time    RetryTime `json:"time"`
}

// RetryTime holds milliseconds since the epoch.
type RetryTime struct {
	Created int64 `json:"created"`
}

// CompactionPart marks where the older conversation was replaced by a summary.
type CompactionPart struct {
	PartHead
	Type        string     `json:"type" enum:"compaction"`
	Auto        bool       `json:"auto"`
	Overflow    bool       `json:"overflow,omitempty"`
	TailStartID id.Message `json:"tail_start_id,omitempty"`
}

// PartTime holds milliseconds since the epoch.
type PartTime struct {
	Start     int64 `json:"start"`
	End       int64 `json:"end,omitempty"`
	Compacted int64 `json:"compacted,omitempty" doc:"Set when the output is no longer shown to the model."`
}

// PartType gives the "type" member of a part.
func PartType(p Part) string {
	switch p.(type) {
	case *TextPart:
		return "text"
	case *ReasoningPart:
		return "reasoning"
	case *FilePart:
		return "file"
	case *ToolPart:
		return "tool"
	case *AgentPart:
		return "agent"
	case *StepStartPart:
		return "step-start"
	case *StepFinishPart:
		return "step-finish"
	case *RetryPart:
		return "retry"
	case *CompactionPart:
		return "compaction"
	}
	panic(fmt.Sprintf("chat: %T is not a part", p))
}

// DecodePart reads a part from its JSON.
func DecodePart(data []byte) (Part, error) {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("part: %w", err)
	}
	switch head.Type {
	case "text":
		return decode[TextPart](data)
	case "reasoning":
		return decode[ReasoningPart](data)
	case "file":
		return decode[FilePart](data)
	case "tool":
		return decode[ToolPart](data)
	case "agent":
		return decode[AgentPart](data)
	case "step-start":
		return decode[StepStartPart](data)
	case "step-finish":
		return decode[StepFinishPart](data)
	case "retry":
		return decode[RetryPart](data)
	case "compaction":
		return decode[CompactionPart](data)
	}
	return nil, fmt.Errorf("part: unknown type %q", head.Type)
}
