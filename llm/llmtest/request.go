package llmtest

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/switchyard-dev/switchyard/llm"
)

// Dialect is a wire format that the server speaks.
type Dialect string

// The dialects.
const (
	Chat      Dialect = "chat"
	Responses Dialect = "responses"
	Anthropic Dialect = "anthropic"
)

// Request is one request that the server got.
type Request struct {
	Dialect Dialect
	Path    string
	Header  http.Header
	Body    []byte
	Time    time.Time
	// RemoteAddr is the client's end of the connection.
	RemoteAddr string

	Model  string
	Stream bool
	// System are the system prompts, joined by line breaks.
	System string
	// Session is what groups the requests of a conversation: the header
	// X-Session-Affinity, else the body's prompt_cache_key.
	Session string
	// Title is whether a session's title is asked for.
	Title bool
	// Summary is whether a summary of the conversation is asked for.
	Summary bool
	// Messages is the conversation without system prompts.
	Messages []Message
	// Tools are the names of the tools on offer.
	Tools []string

	includeUsage bool
}

// Message is one entry of a request's conversation.
type Message struct {
	Role string
	// Texts are the pieces of text.
	Texts []string
	// Results are the texts of tool results.
	Results []string
	// Calls are the call ids of tool calls.
	Calls []string
}

// UserTexts gives the pieces of the last user message that has text.
func (r Request) UserTexts() []string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if m := r.Messages[i]; m.Role == "user" && len(m.Texts) > 0 {
			return m.Texts
		}
	}
	return nil
}

// LastResult gives the last tool result if the user said nothing since. An answer
// to it that was cut off may follow: a turn that goes on after a crash has one.
func (r Request) LastResult() (string, bool) {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		m := r.Messages[i]
		if m.Role == "user" && len(m.Texts) > 0 {
			return "", false
		}
		if n := len(m.Results); n > 0 {
			return m.Results[n-1], true
		}
	}
	return "", false
}

// body holds the members of the three dialects' requests that matter here.
type body struct {
	Model         string    `json:"model"`
	Stream        bool      `json:"stream"`
	System        content   `json:"system"`
	Instructions  string    `json:"instructions"`
	Messages      []message `json:"messages"`
	Input         []message `json:"input"`
	CacheKey      string    `json:"prompt_cache_key"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Tools []struct {
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
}

// message is a message of any dialect, or an item of the responses dialect.
type message struct {
	Type      string  `json:"type"`
	Role      string  `json:"role"`
	Content   content `json:"content"`
	Output    content `json:"output"`
	CallID    string  `json:"call_id"`
	ToolCalls []struct {
		ID string `json:"id"`
	} `json:"tool_calls"`
}

// content is a string or a list of blocks.
type content []block

type block struct {
	Type    string  `json:"type"`
	Text    string  `json:"text"`
	ID      string  `json:"id"`
	Content content `json:"content"`
}

// UnmarshalJSON reads both forms.
func (c *content) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*c = content{{Type: "text", Text: text}}
		return nil
	}
	return json.Unmarshal(data, (*[]block)(c))
}

func (c content) texts() []string {
	var out []string
	for _, b := range c {
		if b.Text != "" {
			out = append(out, b.Text)
		}
	}
	return out
}

func (c content) text() string { return strings.Join(c.texts(), "\n") }

// parse reads what a request says. It reports false for a body that is no
// request.
func (r *Request) parse() bool {
	var b body
	if json.Unmarshal(r.Body, &b) != nil || b.Model == "" {
		return false
	}
	r.Model, r.Stream, r.includeUsage = b.Model, b.Stream, b.StreamOptions.IncludeUsage
	if r.Session = r.Header.Get("X-Session-Affinity"); r.Session == "" {
		r.Session = b.CacheKey
	}
	for _, t := range b.Tools {
		r.Tools = append(r.Tools, t.Name+t.Function.Name)
	}
	system := append([]string{b.Instructions}, b.System.texts()...)
	for _, m := range append(b.Messages, b.Input...) {
		if m.Role == "system" || m.Role == "developer" {
			system = append(system, m.Content.text())
			continue
		}
		r.Messages = append(r.Messages, m.normal())
	}
	r.System = strings.TrimSpace(strings.Join(system, "\n"))
	r.Title = strings.Contains(r.System, llm.TitleMarker)
	r.Summary = strings.Contains(r.System, llm.SummaryMarker)
	return true
}

// normal gives the message without its dialect.
func (m message) normal() Message {
	out := Message{Role: m.Role}
	switch {
	case m.Type == "function_call":
		return Message{Role: "assistant", Calls: []string{m.CallID}}
	case m.Type == "function_call_output":
		return Message{Role: "tool", Results: []string{m.Output.text()}}
	case m.Type == "reasoning":
		return Message{Role: "assistant"}
	case m.Role == "tool":
		out.Results = []string{m.Content.text()}
		return out
	}
	for _, call := range m.ToolCalls {
		out.Calls = append(out.Calls, call.ID)
	}
	for _, b := range m.Content {
		switch b.Type {
		case "tool_result":
			out.Results = append(out.Results, b.Content.text())
		case "tool_use":
			out.Calls = append(out.Calls, b.ID)
		default:
			if b.Text != "" {
				out.Texts = append(out.Texts, b.Text)
			}
		}
	}
	return out
}
