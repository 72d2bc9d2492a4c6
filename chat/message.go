// Package chat is the vocabulary of a conversation: messages, their parts, tool
// states, todos and usage, with the JSON shapes of the opencode contract §6.1.
// It holds types and pure functions only; nothing here knows SQL or HTTP.
package chat

import (
	"encoding/json"
	"fmt"

	"github.com/switchyard-dev/switchyard/id"
)

// Message is the head of one entry of a session: a *UserMessage or an
// *AssistantMessage. Its content are Parts.
type Message interface {
	// Head gives what both roles have.
	Head() *MessageHead
}

// MessageHead is what messages of both roles have.
type MessageHead struct {
	ID        id.Message `json:"id"`
	SessionID id.Session `json:"sessionID"`
}

// Head makes every message that embeds it a Message.
func (h *MessageHead) Head() *MessageHead { return h }

// UserMessage is what a user asked.
type UserMessage struct {
	MessageHead
	Role    string            `json:"role" enum:"user"`
	Time    MessageTime       `json:"time"`
	Agent   string            `json:"agent"`
	Model   ModelRef          `json:"model"`
	TurnID  id.Turn           `json:"turnID,omitempty" doc:"Turn that the message started or joined."`
	Summary *UserSummary      `json:"summary,omitempty"`
	Meta    map[string]string `json:"metadata,omitempty"`
}

// UserSummary tells what the turn of a user message changed.
type UserSummary struct {
	Title string `json:"title,omitempty"`
}

// AssistantMessage is the answer of one step: one model call and its tools.
type AssistantMessage struct {
	MessageHead
	Role       string      `json:"role" enum:"assistant"`
	Time       MessageTime `json:"time"`
	Error      *Error      `json:"error,omitempty"`
	ParentID   id.Message  `json:"parentID" doc:"The user message that it answers."`
	TurnID     id.Turn     `json:"turnID,omitempty" doc:"Turn that the step belongs to."`
	ModelID    string      `json:"modelID"`
	ProviderID string      `json:"providerID"`
	Mode       string      `json:"mode" doc:"Same as agent."`
	Agent      string      `json:"agent"`
	Path       MessagePath `json:"path"`
	Summary    bool        `json:"summary,omitempty" doc:"True for the summary of a compaction."`
	Cost       float64     `json:"cost" doc:"US dollars."`
	Tokens     Usage       `json:"tokens"`
	Variant    string      `json:"variant,omitempty"`
	Finish     string      `json:"finish,omitempty" doc:"Why the model stopped: stop, tool-calls, length, content-filter, error, other or unknown."`
}

// MessageTime holds milliseconds since the epoch.
type MessageTime struct {
	Created   int64 `json:"created"`
	Completed int64 `json:"completed,omitempty"`
}

// MessagePath says where a step ran; both are absolute.
type MessagePath struct {
	CWD  string `json:"cwd"`
	Root string `json:"root"`
}

// ModelRef names a model of a provider.
type ModelRef struct {
	ProviderID string `json:"providerID" minLength:"1" maxLength:"200"`
	ModelID    string `json:"modelID" minLength:"1" maxLength:"400"`
	Variant    string `json:"variant,omitempty" maxLength:"100"`
}

// IsZero reports whether no model is named.
func (m ModelRef) IsZero() bool { return m == ModelRef{} }

// Item is a message with its parts, as every list and read gives it.
type Item struct {
	Info  Message `json:"info"`
	Parts []Part  `json:"parts"`
}

// Usage counts tokens. Input excludes what came from the provider's cache.
type Usage struct {
	Total     int64      `json:"total,omitempty"`
	Input     int64      `json:"input"`
	Output    int64      `json:"output"`
	Reasoning int64      `json:"reasoning"`
	Cache     CacheUsage `json:"cache"`
}

// CacheUsage counts tokens read from and written to the provider's cache.
type CacheUsage struct {
	Read  int64 `json:"read"`
	Write int64 `json:"write"`
}

// Add gives the sum of two usages.
func (u Usage) Add(v Usage) Usage {
	u.Total += v.Total
	u.Input += v.Input
	u.Output += v.Output
	u.Reasoning += v.Reasoning
	u.Cache.Read += v.Cache.Read
	u.Cache.Write += v.Cache.Write
	return u
}

// The names of an Error.
const (
	ErrProviderAuth    = "ProviderAuthError"
	ErrUnknown         = "UnknownError"
	ErrOutputLength    = "MessageOutputLengthError"
	ErrAborted         = "MessageAbortedError"
	ErrContextOverflow = "ContextOverflowError"
	ErrContentFilter   = "ContentFilterError"
	ErrAPI             = "APIError"
)

// Error says how a message or a turn failed.
type Error struct {
	Name string    `json:"name" enum:"ProviderAuthError,UnknownError,MessageOutputLengthError,MessageAbortedError,ContextOverflowError,ContentFilterError,APIError"`
	Data ErrorData `json:"data"`
}

// ErrorData holds what is known of a failure. It never holds a secret or a raw
// provider body.
type ErrorData struct {
	Message     string `json:"message"`
	ProviderID  string `json:"providerID,omitempty"`
	StatusCode  int    `json:"statusCode,omitempty"`
	IsRetryable bool   `json:"isRetryable,omitempty"`
	Ref         string `json:"ref,omitempty" doc:"Finds the failure in the server's log."`
}

// Error makes e usable as a Go error.
func (e *Error) Error() string { return e.Name + ": " + e.Data.Message }

// NewError makes an Error with a message.
func NewError(name, format string, args ...any) *Error {
	return &Error{Name: name, Data: ErrorData{Message: fmt.Sprintf(format, args...)}}
}

// Todo is one line of a session's plan.
type Todo struct {
	Content  string `json:"content"`
	Status   string `json:"status" enum:"pending,in_progress,completed,cancelled"`
	Priority string `json:"priority" enum:"high,medium,low"`
}

// DecodeMessage reads a message from its JSON.
func DecodeMessage(data []byte) (Message, error) {
	var head struct {
		Role string `json:"role"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("message: %w", err)
	}
	switch head.Role {
	case "user":
		return decode[UserMessage](data)
	case "assistant":
		return decode[AssistantMessage](data)
	}
	return nil, fmt.Errorf("message: unknown role %q", head.Role)
}

func decode[T any](data []byte) (*T, error) {
	v := new(T)
	if err := json.Unmarshal(data, v); err != nil {
		return nil, fmt.Errorf("%T: %w", v, err)
	}
	return v, nil
}
