package event

import (
	"context"

	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store"
)

// Envelope is what a client reads from a data line, for documents and tests.
type Envelope[P any] struct {
	ID      string  `json:"id" doc:"Position of the event; also the SSE id."`
	Type    string  `json:"type"`
	Time    int64   `json:"time" doc:"Milliseconds since the epoch."`
	Context Context `json:"context"`
	Payload P       `json:"payload"`
}

// Origin is where an event happened. Its zero value is the whole server.
type Origin struct {
	Context Context
	// SessionID and RootSessionID are set when the event is of a session; the
	// root is the session itself unless it is a child.
	SessionID, RootSessionID id.Session
}

// At is an origin in a resolved context or a pinned row, and in a session when
// one is given.
func At(c Context, session, root id.Session) Origin {
	return Origin{Context: c, SessionID: session, RootSessionID: root}
}

// ServerWide is the origin of events that belong to no context and reach every
// stream.
func ServerWide() Origin { return Origin{} }

// Draft is an event without a position.
type Draft struct {
	Type   string
	Origin Origin
	// Time is in milliseconds since the epoch.
	Time int64
	// Payload is JSON on one line.
	Payload []byte

	def *definition
	key MergeKey
}

// Record is a durable event: a row of the log with its number.
type Record = store.Event

// Gap is a range of numbers, both ends included, that a start of a server
// skipped: no event has them, and To was the newest number when it started.
type Gap = store.Gap

// Log reads durable events; *store.DB is one.
type Log interface {
	// Events reads at most limit records after a number and up to another one,
	// both of them delivered or committed, oldest first.
	Events(ctx context.Context, after, upTo int64, limit int) ([]Record, error)
	// EventBounds gives the number of the oldest record that is kept, 0 for none,
	// and the newest number that was given out.
	EventBounds(ctx context.Context) (oldest, head int64, err error)
}

var _ Log = (*store.DB)(nil)

func originOf(r Record) Origin {
	return Origin{
		Context:       Context{Directory: r.Directory, WorkspaceID: id.Workspace(r.WorkspaceID)},
		SessionID:     id.Session(r.SessionID),
		RootSessionID: id.Session(r.RootSessionID),
	}
}
