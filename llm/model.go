// Package llm talks to language models. It hides three wire dialects (OpenAI
// chat completions, OpenAI responses, Anthropic messages) behind one small
// interface, and adds a built-in demo model that needs no network.
//
// One Stream is one request to the provider: whether and when to try again is
// the caller's decision, with RetryPolicy as the rule. What a provider reports
// is normalised: blocks are numbered per answer, tool calls appear only when
// the answer is whole, usage counts each token once, and every failure is an
// *Error whose message holds neither keys nor raw bodies.
package llm

import (
	"context"
	"encoding/json"
	"iter"
)

// Model is one model of one provider. It is safe for concurrent use.
type Model interface {
	// Info names the model.
	Info() Info
	// Stream makes one request and gives the answer as it comes. A whole answer
	// ends with a Finish; otherwise the last pair holds a nil event and an
	// *Error. Blocks that were open at an error have no end event. Leaving the
	// loop, like the end of ctx, drops the connection.
	Stream(ctx context.Context, c Call) iter.Seq2[Event, error]
}

// Provider gives models. It is safe for concurrent use.
type Provider interface {
	// ID is the provider's id in the catalog.
	ID() string
	// Model gives a model by the provider's own name for it. No request is made:
	// an unknown model or a missing key shows as an *Error of Stream.
	Model(ctx context.Context, modelID string) (Model, error)
}

// Info names a model.
type Info struct {
	ProviderID string
	ModelID    string
}

// Call is all that one request says.
type Call struct {
	// System holds the system prompts in order; empty ones are left out.
	System []string
	// Messages is the conversation, oldest first. Every tool call in it must
	// have a result.
	Messages []Message
	Tools    []ToolSpec
	// ToolChoice "" is ToolAuto.
	ToolChoice ToolChoice
	// MaxOutputTokens 0 leaves the limit to the provider; Anthropic has no
	// default, there 0 means 4096.
	MaxOutputTokens int64
	// Temperature nil leaves it to the provider. Models that reason ignore it.
	Temperature *float64
	// Headers are added to the request; they cannot replace the credential.
	Headers map[string]string
	// SessionKey groups the requests of one conversation at the provider, which
	// makes its prompt cache hit. It is sent as X-Session-Affinity and, to
	// OpenAI, as prompt_cache_key. "" sends neither.
	SessionKey string
	// Variant names how hard the model thinks: none, minimal, low, medium, high,
	// xhigh or max. "" and unknown ones leave it to the provider.
	Variant string
	// Options are further members of the request body, in the provider's own
	// words. Later than everything else: they replace what they name.
	Options map[string]any
}

// ToolSpec offers a tool to the model.
type ToolSpec struct {
	Name        string
	Description string
	// Schema is a JSON Schema of type object; empty means no input.
	Schema json.RawMessage
}

// ToolChoice says whether the model may call tools.
type ToolChoice string

// The choices. ToolNone still tells the tools, so that the provider's prompt
// cache keeps matching.
const (
	ToolAuto ToolChoice = "auto"
	ToolNone ToolChoice = "none"
)
