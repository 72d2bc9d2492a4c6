// Package runtime resolves the three kinds of context that an operation can run
// in (server, request, session) and keeps the live services of each runtime
// context. Host is the only maker of contexts (design §5).
package runtime

import (
	"context"
	"sync"

	"github.com/switchyard-dev/switchyard/access"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/project"
	"github.com/switchyard-dev/switchyard/session"
)

// Hint is what a caller said about the context of a request operation. A field
// that was given but empty is told by its Has flag.
type Hint struct {
	Directory, Workspace       string
	HasDirectory, HasWorkspace bool
}

// Server is the context of operations on the server as a whole.
type Server struct {
	*Host
	Principal access.Principal
}

// Request is the context of operations on a directory and, perhaps, a workspace.
type Request struct {
	*Host
	Principal access.Principal
	location  event.Context
	instance  *instance
	once      sync.Once
}

// Location is the resolved context; it becomes the answer's "context".
func (r *Request) Location() event.Context { return r.location }

// Bind sets the context of an item operation, which finds its object by id.
func (r *Request) Bind(c event.Context) { r.location = c }

// Parts are the services of the context. Item operations have none.
func (r *Request) Parts() *Parts { return r.instance.Parts }

// Place says where the directory lies in version control.
func (r *Request) Place() project.Place { return r.instance.place }

// Project gives the project of the directory, which is stored at its first use.
func (r *Request) Project(ctx context.Context) (id.Project, error) {
	return r.Projects.Ensure(ctx, r.instance.place)
}

// Used notes that the project, and the workspace if there is one, are used.
func (r *Request) Used(ctx context.Context, projectID id.Project) error {
	if r.location.WorkspaceID != "" {
		if err := r.Workspaces.Use(ctx, r.location.WorkspaceID); err != nil {
			return err
		}
	}
	return r.Projects.Use(ctx, projectID)
}

// Release gives the lease on the instance back. It may be called again.
func (r *Request) Release() {
	r.once.Do(func() {
		if r.instance != nil {
			r.release(r.instance)
		}
	})
}

// Session is the context of operations on one session; it is read from the
// session's pinned row.
type Session struct {
	*Host
	Principal access.Principal
	ID        id.Session
	Row       session.Row

	mu       sync.Mutex // protects instance
	instance *instance
}

// Parts leases the services of the session's context. It is a directory_missing
// fault when the directory is gone, so that operations which only read must not
// call it.
func (s *Session) Parts() (*Parts, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.instance == nil {
		i, err := s.leasePinned(s.Row.Context())
		if err != nil {
			return nil, err
		}
		s.instance = i
	}
	return s.instance.Parts, nil
}

// Release gives the lease on the instance back, if one was taken.
func (s *Session) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.instance != nil {
		s.release(s.instance)
		s.instance = nil
	}
}
