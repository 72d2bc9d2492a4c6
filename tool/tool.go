// Package tool holds the tools that a model may call and what all of them
// share: inputs with schemas, the permissions that a call needs, and bounded
// output (opencode contract §9 and §11).
//
// A call goes in two steps. Plan says what it would do without doing it, Decide
// weighs that against the rules, and only after every request was allowed Run
// acts. Files and processes are reached through env.Environment alone.
package tool

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/fault"
)

// Class says what a crash in the middle of a call means (design §9).
type Class string

// The classes of tools.
const (
	// Read changes nothing: calls may run side by side, and again.
	Read Class = "read"
	// Write replaces whole files; their hashes tell whether it happened.
	Write Class = "write"
	// Keyed changes the server's own state under the call's id: again is once.
	Keyed Class = "keyed"
	// Effect may do anything and is never repeated.
	Effect Class = "effect"
)

// Info describes a tool to the model and to the agent.
type Info struct {
	Name        string
	Description string
	// Schema is the JSON schema of the input, an object.
	Schema json.RawMessage
	Class  Class
	// Permission is the one that every call asks; where all of it is denied the
	// tool is not offered.
	Permission string
	// Concurrent lets calls run side by side although they do not only read.
	Concurrent bool
}

// Tool is something that a model may call. It is safe for concurrent use.
type Tool interface {
	// Info describes the tool; it is always the same.
	Info() Info
	// Plan says what a call would do, without effects. Its error is one of the
	// call and meant for the model, as Message words it.
	Plan(ctx context.Context, c *Call) (Plan, error)
	// Run does it. The caller has made sure that everything in the Plan of the
	// same call is allowed, and puts the plan's Before into the call. When ctx
	// ends the error is its cause and the result holds what came until then.
	Run(ctx context.Context, c *Call) (Result, error)
}

// Plan is what a call needs and what it will replace.
type Plan struct {
	Asks []Ask `json:"asks"`
	// Before has the sha256 in hex of each file that will be replaced, by
	// absolute path; "" for a file that does not exist.
	Before map[string]string `json:"before,omitempty"`
	// After has the hashes that the files will have. After a crash the two tell
	// whether the call happened.
	After map[string]string `json:"after,omitempty"`
}

// Ask is one permission that a call needs.
type Ask struct {
	Permission string   `json:"permission"`
	Patterns   []string `json:"patterns"`
	// Always is what an answer of always would allow: of the patterns those
	// that stand for themselves only.
	Always   []string       `json:"always"`
	Metadata map[string]any `json:"metadata"`
	// Opaque says in short phrases why the patterns do not tell everything. An
	// allow is not enough then.
	Opaque []string `json:"opaque,omitempty"`
	// Veto are other readings of the patterns: a deny of one of them denies, an
	// allow means nothing.
	Veto []string `json:"veto,omitempty"`
}

// Result is what a call gave.
type Result struct {
	// Title is a short line for people.
	Title string
	// Output is for the model; Execute bounds it, unless the tool has and says
	// so in Bounded.
	Output   string
	Bounded  bool
	Metadata map[string]any
	// Attachments are for the model too; their heads are empty and their URLs
	// are data URLs.
	Attachments []*chat.FilePart
	// Before and After are the sha256 in hex of the files that were replaced, by
	// absolute path; "" for a file that did not exist.
	Before, After map[string]string
}

// Message words an error for the model. Causes are left out: they are for logs.
func Message(err error) string {
	if e, ok := fault.As(err); ok {
		return e.Detail
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return "The call was interrupted."
	}
	return "The call did not work because of an error of the server."
}

// invalid is an error of the input.
func invalid(format string, args ...any) error {
	return fault.New(fault.ValidationFailed, format, args...)
}
