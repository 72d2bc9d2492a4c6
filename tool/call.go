package tool

import (
	"context"
	"encoding/json"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/id"
)

// Call is one call of a tool and what the tool may use. Hooks that are nil
// are not there: the tools that cannot do without one say so.
type Call struct {
	// ID is the provider's name of the call.
	ID        string
	SessionID id.Session
	MessageID id.Message
	// Mark is given to processes, see env.Command.
	Mark string
	// Input is the model's JSON.
	Input json.RawMessage

	Env env.Environment
	// Directory is what relative paths are relative to: absolute, canonical and
	// inside the environment's root.
	Directory string

	// Before are the hashes of the approved Plan. A file that has another one
	// when the tool runs is left alone.
	Before map[string]string
	// Limits bound the output.
	Limits Limits
	// Progress gets the output of a running command, in pieces that never split
	// a character. It must not block for long.
	Progress func(delta string)

	Todos    Todos
	Asker    Asker
	Delegate Delegate
	Outputs  OutputStore
	Tracker  FileTracker
	// Edited is told of each file that was replaced, by absolute path.
	Edited func(ctx context.Context, path string)
}

// Todos keeps the plan of the call's session.
type Todos interface {
	Todos(ctx context.Context) ([]chat.Todo, error)
	SetTodos(ctx context.Context, todos []chat.Todo) error
}

// Asker puts questions to the user.
type Asker interface {
	// Ask waits until all are answered and gives the chosen labels or own words
	// for each, in order. A user who will not answer is an error.
	Ask(ctx context.Context, c *Call, questions []Question) ([][]string, error)
}

// OutputStore keeps whole outputs that are too long for the model.
type OutputStore interface {
	// Dir is the absolute canonical directory of the outputs. The reading tools
	// may always read it.
	Dir() string
	// Save keeps a text and gives its absolute path, which is in Dir.
	Save(ctx context.Context, callID, text string) (string, error)
}

// FileTracker knows what the model of a session has seen of files, as sha256 in
// hex by absolute path.
type FileTracker interface {
	Saw(path, hash string)
	Seen(path string) (hash string, ok bool)
}

// saw notes that the model knows a file as it is now.
func (c *Call) saw(path, hash string) {
	if c.Tracker != nil {
		c.Tracker.Saw(path, hash)
	}
}

// stale reports whether a file has changed since the model saw it.
func (c *Call) stale(path, hash string) bool {
	if c.Tracker == nil {
		return false
	}
	seen, ok := c.Tracker.Seen(path)
	return ok && seen != hash
}
