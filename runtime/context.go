// Package runtime resolves the three kinds of context that an operation can run
// in (server, request, session) and keeps the live services of each runtime
// context. Host is the only maker of contexts (design §5).
package runtime

import (
	"context"

	"github.com/switchyard-dev/switchyard/access"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
)

// Hint is what a caller said about the context of a request operation. A field
// that was given but empty is told by its Has flag.
type Hint struct {
	Directory, Workspace       string
	HasDirectory, HasWorkspace bool
}

// Server is the context of operations on the server as a whole.
type Server struct {
	Principal access.Principal
	host      *Host
}

// Request is the context of operations on a directory and, perhaps, a workspace.
type Request struct {
	Principal access.Principal
	host      *Host
	location  event.Context
}

// Location is the resolved context; it becomes the answer's "context".
func (r *Request) Location() event.Context { return r.location }

// Bind sets the context of an item operation, which finds its object by id.
func (r *Request) Bind(c event.Context) { r.location = c }

// Release gives the lease on the instance back. It may be called again.
func (r *Request) Release() {}

// Session is the context of operations on one session; it is read from the
// session's pinned row.
type Session struct {
	Principal access.Principal
	ID        id.Session
	host      *Host
}

// Release gives the lease on the instance back, if one was taken.
func (s *Session) Release() {}

// Host makes contexts.
type Host struct{}

// Server gives the server context.
func (h *Host) Server(_ context.Context, p access.Principal) (*Server, error) {
	return &Server{Principal: p, host: h}, nil
}

// Request resolves a hint. The caller releases the result.
func (h *Host) Request(_ context.Context, p access.Principal, hint Hint) (*Request, error) {
	return &Request{Principal: p, host: h, location: event.Context{Directory: hint.Directory}}, nil
}

// Item gives the context of an operation that finds its object by id; no hint
// is resolved.
func (h *Host) Item(_ context.Context, p access.Principal) (*Request, error) {
	return &Request{Principal: p, host: h}, nil
}

// Session reads a session's pinned row. A malformed id is like an unknown one.
func (h *Host) Session(_ context.Context, p access.Principal, sessionID string) (*Session, error) {
	ses, ok := id.Parse[id.Session](sessionID)
	if !ok {
		return nil, fault.New(fault.SessionNotFound, "there is no session %q", sessionID).With("sessionID", sessionID)
	}
	return &Session{Principal: p, host: h, ID: ses}, nil
}

// EventCursor is the position before whatever is read or written next; answers
// carry it as X-Event-Cursor.
func (h *Host) EventCursor() string { return "" }
