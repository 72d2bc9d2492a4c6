package chat

import "encoding/json"

// NewText makes a text part.
func NewText(h PartHead, text string) *TextPart {
	return &TextPart{PartHead: h, Type: "text", Text: text}
}

// NewReasoning makes a reasoning part.
func NewReasoning(h PartHead, text string) *ReasoningPart {
	return &ReasoningPart{PartHead: h, Type: "reasoning", Text: text}
}

// NewTool makes a tool part whose input has not come yet.
func NewTool(h PartHead, callID, tool string) *ToolPart {
	return &ToolPart{PartHead: h, Type: "tool", CallID: callID, Tool: tool, State: Pending(nil, "")}
}

// typedBy is the metadata of a call that a person made.
const typedBy = "typed"

// NewTyped makes the part of a call that a person made instead of a model.
func NewTyped(h PartHead, callID, tool string, input json.RawMessage) *ToolPart {
	p := NewTool(h, callID, tool)
	p.State, p.Metadata = Pending(input, ""), map[string]any{typedBy: true}
	return p
}

// Typed tells whether a person made the call instead of a model.
func (p *ToolPart) Typed() bool {
	typed, ok := p.Metadata[typedBy].(bool)
	return ok && typed
}

// NewStepStart makes the part that opens a step.
func NewStepStart(h PartHead) *StepStartPart {
	return &StepStartPart{PartHead: h, Type: "step-start"}
}

// NewStepFinish makes the part that closes a step.
func NewStepFinish(h PartHead, reason string, cost float64, tokens Usage) *StepFinishPart {
	return &StepFinishPart{PartHead: h, Type: "step-finish", Reason: reason, Cost: cost, Tokens: tokens}
}

// NewFile makes a file part.
func NewFile(h PartHead, mime, name, url string) *FilePart {
	return &FilePart{PartHead: h, Type: "file", Mime: mime, Filename: name, URL: url}
}

// NewAgent makes a part that mentions an agent.
func NewAgent(h PartHead, name string) *AgentPart {
	return &AgentPart{PartHead: h, Type: "agent", Name: name}
}

// NewUser makes the head of a user message.
func NewUser(h MessageHead, agent string, model ModelRef, created int64) *UserMessage {
	return &UserMessage{MessageHead: h, Role: "user", Agent: agent, Model: model, Time: MessageTime{Created: created}}
}

// NewAssistant makes the head of an assistant message.
func NewAssistant(h MessageHead, created int64) *AssistantMessage {
	return &AssistantMessage{MessageHead: h, Role: "assistant", Time: MessageTime{Created: created}}
}

// Pending makes the first state of a call. A nil input is "{}".
func Pending(input json.RawMessage, raw string) *ToolPending {
	return &ToolPending{S: "pending", Input: object(input), Raw: raw}
}

// Running makes the state of a call that has begun at start (ms).
func Running(input json.RawMessage, start int64) *ToolRunning {
	return &ToolRunning{S: "running", Input: object(input), Time: PartTime{Start: start}}
}

// Completed makes the state of a call that gave output.
func Completed(input json.RawMessage, title, output string, metadata map[string]any, t PartTime) *ToolCompleted {
	if metadata == nil {
		metadata = map[string]any{}
	}
	return &ToolCompleted{S: "completed", Input: object(input), Title: title, Output: output, Metadata: metadata, Time: t}
}

// Failed makes the state of a call that failed.
func Failed(input json.RawMessage, message string, metadata map[string]any, t PartTime) *ToolError {
	return &ToolError{S: "error", Input: object(input), Error: message, Metadata: metadata, Time: t}
}

func object(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}
