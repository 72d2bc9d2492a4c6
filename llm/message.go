package llm

import "encoding/json"

// Role says who wrote a message.
type Role string

// The roles. Tool messages hold ToolResults only.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one entry of the conversation that is sent.
type Message struct {
	Role  Role
	Parts []Part
}

// Part is one piece of a Message: Text, Reasoning, File, ToolUse or ToolResult.
type Part interface{ part() }

// Text is plain text of the user or the model.
type Text struct{ Text string }

// Reasoning is what the model thought. Metadata is that of the ReasoningEnd it
// came with, also after a way through JSON; without it, or when it is another
// dialect's, the provider does not get the reasoning back.
type Reasoning struct {
	Text     string
	Metadata map[string]any
}

// File is the content of a file. Images and PDFs go as such, text as text; of
// other types the model is told the name only.
type File struct {
	Name string
	Mime string
	Data []byte
}

// ToolUse is a call that the model made. An Input that is not a JSON object is
// sent as {}.
type ToolUse struct {
	CallID string
	Name   string
	Input  json.RawMessage
}

// ToolResult answers a ToolUse. Files beyond the first image follow in a user
// message, because no dialect takes more in a result.
type ToolResult struct {
	CallID  string
	Output  string
	IsError bool
	Files   []File
}

func (Text) part()       {}
func (Reasoning) part()  {}
func (File) part()       {}
func (ToolUse) part()    {}
func (ToolResult) part() {}

// UserText makes a user message of plain text.
func UserText(s string) Message {
	return Message{Role: RoleUser, Parts: []Part{Text{Text: s}}}
}
