package operations

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/runtime"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
)

// SessionCreateInput starts a session.
type SessionCreateInput struct {
	Title      string         `json:"title,omitempty" maxLength:"1000" doc:"A title that is never replaced; absent means one is made from the first prompt."`
	Agent      string         `json:"agent,omitempty" maxLength:"200"`
	Model      *chat.ModelRef `json:"model,omitempty"`
	Permission []rule.Rule    `json:"permission,omitempty" maxItems:"1000"`
	Metadata   map[string]any `json:"metadata,omitempty" doc:"Whatever the client wants to keep with the session."`
	ParentID   string         `json:"parentID,omitempty"`
}

// SessionCreate starts a session in the resolved context.
var SessionCreate = op.New(op.Spec{
	Name: "session.create", Method: "POST", Path: "/api/session",
	Summary: "Create a session pinned to resolved runtime context.",
	Codes:   []fault.Code{fault.AgentUnknown, fault.ModelUnavailable, fault.SessionNotFound},
	Aliases: map[string]string{"model.id": "model.modelID"},
	Example: SessionCreateInput{Title: "Mend the parser"}, Repeatable: true,
}, func(ctx context.Context, rt *runtime.Request, in SessionCreateInput) (session.Session, error) {
	if err := checkChoice(ctx, rt.Parts(), in.Agent, in.Model); err != nil {
		return session.Session{}, err
	}
	metadata, err := encodeMetadata(in.Metadata)
	if err != nil {
		return session.Session{}, err
	}
	projectID, err := rt.Project(ctx)
	if err != nil {
		return session.Session{}, err
	}
	parent, err := parentOf(in.ParentID)
	if err != nil {
		return session.Session{}, err
	}
	if err := rt.Used(ctx, projectID); err != nil {
		return session.Session{}, err
	}
	return rt.Sessions.Create(ctx, session.CreateInput{
		ID: op.SessionID(ctx), ProjectID: projectID, Context: rt.Location(), Path: rt.PathInWorktree(), ParentID: parent, Title: in.Title, Agent: in.Agent,
		Model: in.Model, Permission: in.Permission, Metadata: metadata,
	})
})

func parentOf(s string) (id.Session, error) {
	if s == "" {
		return "", nil
	}
	parent, ok := id.Parse[id.Session](s)
	if !ok {
		return "", fault.New(fault.SessionNotFound, "there is no session %q", s).With("sessionID", s)
	}
	return parent, nil
}

func encodeMetadata(m map[string]any) (json.RawMessage, error) {
	if m == nil {
		return nil, nil
	}
	data, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encoding metadata: %w", err)
	}
	return data, nil
}

// checkChoice refuses an agent or a model that could not run.
func checkChoice(ctx context.Context, parts *runtime.Parts, agentName string, model *chat.ModelRef) error {
	if agentName == "" && model == nil {
		return nil
	}
	settings, err := parts.Settings(ctx)
	if err != nil {
		return err
	}
	if _, ok := settings.Agent(agentName); !ok {
		return fault.New(fault.AgentUnknown, "there is no agent %q", agentName).With("agent", agentName)
	}
	if model == nil {
		return nil
	}
	_, err = settings.Models.Model(ctx, *model)
	return err
}

// Empty is the input of operations that take none.
type Empty struct{}

// SessionGet reads one session.
var SessionGet = op.New(op.Spec{
	Name: "session.get", Method: "GET", Path: "/api/session/{sessionID}", Summary: "Get one session.",
}, func(_ context.Context, s *runtime.Session, _ Empty) (session.Session, error) {
	return s.Row.Session, nil
})

// SessionListInput selects sessions.
type SessionListInput struct {
	Limit    int    `json:"limit,omitempty" doc:"Default 50, at most 200; more is taken as 200."`
	Order    string `json:"order,omitempty" enum:"asc,desc" doc:"Default desc."`
	Path     string `json:"path,omitempty" doc:"Only sessions at or below this path of the work tree; implies scope=project."`
	Roots    bool   `json:"roots,omitempty" doc:"Only sessions without a parent."`
	Start    int64  `json:"start,omitempty" doc:"Only sessions updated at or after this time, in milliseconds since the epoch."`
	Search   string `json:"search,omitempty" maxLength:"1000" doc:"Only titles that contain this, in any case."`
	Cursor   string `json:"cursor,omitempty"`
	Sort     string `json:"sort,omitempty" enum:"created,updated" doc:"Default created, which pages without shifting."`
	Archived string `json:"archived,omitempty" enum:"exclude,include,only" doc:"Default exclude."`
	Scope    string `json:"scope,omitempty" enum:"context,workspace,project,server" doc:"Default context."`
}

// SessionList pages through sessions.
var SessionList = op.New(op.Spec{
	Name: "session.list", Method: "GET", Path: "/api/session",
	Summary: "List sessions for the current runtime context by default.",
	Codes:   []fault.Code{fault.CursorInvalid, fault.PathOutside},
	Example: SessionListInput{Limit: 20, Roots: true, Search: "parser"},
}, func(ctx context.Context, rt *runtime.Request, in SessionListInput) (op.Page[session.Session], error) {
	filter, err := sessionFilter(ctx, rt, in)
	if err != nil {
		return op.Page[session.Session]{}, err
	}
	page, err := rt.Sessions.List(ctx, session.ListInput{
		Filter: filter, Cursor: in.Cursor, Limit: in.Limit, Count: in.Search == "" && in.Path == "" && in.Start == 0,
	})
	if err != nil {
		return op.Page[session.Session]{}, err
	}
	return pageOf(page.Items, page.Previous, page.Next, page.Total, nil), nil
})

func sessionFilter(ctx context.Context, rt *runtime.Request, in SessionListInput) (store.SessionFilter, error) {
	f := store.SessionFilter{
		Search: in.Search, Roots: in.Roots, UpdatedSince: in.Start, ByUpdated: in.Sort == "updated", Ascending: in.Order == "asc",
	}
	switch in.Archived {
	case "include":
		f.Archived = store.ArchivedInclude
	case "only":
		f.Archived = store.ArchivedOnly
	}
	where := rt.Location()
	workspace := string(where.WorkspaceID)
	scope := in.Scope
	if in.Path != "" {
		prefix, err := rt.WorktreePath(in.Path)
		if err != nil {
			return f, err
		}
		f.PathPrefix, scope = &prefix, "project"
	}
	switch scope {
	case "", "context":
		f.Directory, f.WorkspaceID = &where.Directory, &workspace
	case "workspace":
		f.WorkspaceID = &workspace
		if workspace != "" {
			return f, nil
		}
		fallthrough // the local workspace is that of one project
	case "project":
		projectID, err := rt.Project(ctx)
		if err != nil {
			return f, err
		}
		text := string(projectID)
		f.ProjectID = &text
	}
	return f, nil
}

func pageOf[T any](items []T, previous, next string, total, start *int64) op.Page[T] {
	page := op.Page[T]{Items: items, Cursor: op.Cursor{Previous: previous, Next: next}}
	if page.Items == nil {
		page.Items = []T{}
	}
	toInt := func(n *int64) *int {
		if n == nil {
			return nil
		}
		i := int(*n)
		return &i
	}
	page.Total, page.StartIndex = toInt(total), toInt(start)
	return page
}

// SessionUpdateInput changes a session; absent fields stay.
type SessionUpdateInput struct {
	Title      *string                `json:"title,omitempty" minLength:"1" maxLength:"1000"`
	Archived   op.Opt[int64]          `json:"archived,omitzero" doc:"When the session was archived, in milliseconds since the epoch; null or 0 brings it back."`
	Permission op.Opt[[]rule.Rule]    `json:"permission,omitzero" doc:"Replaces the session's own rules; null removes them."`
	Agent      op.Opt[string]         `json:"agent,omitzero"`
	Model      op.Opt[chat.ModelRef]  `json:"model,omitzero"`
	Metadata   op.Opt[map[string]any] `json:"metadata,omitzero" doc:"Replaces the metadata; null removes it."`
}

// SessionUpdate changes a session's title, archival state or metadata.
var SessionUpdate = op.New(op.Spec{
	Name: "session.update", Method: "PATCH", Path: "/api/session/{sessionID}",
	Summary: "Update title, archival state, or session metadata.",
	Codes:   []fault.Code{fault.AgentUnknown, fault.ModelUnavailable, fault.DirectoryMissing},
	Aliases: map[string]string{"time.archived": "archived", "model.id": "model.modelID"},
	Example: SessionUpdateInput{Archived: op.Some(int64(1_760_000_000_000))},
}, func(ctx context.Context, s *runtime.Session, in SessionUpdateInput) (session.Session, error) {
	change := session.Change{Title: in.Title}
	if in.Archived.Set {
		change.Archived = &in.Archived.Value
	}
	if in.Permission.Set {
		change.Permission = &in.Permission.Value
	}
	if in.Metadata.Set {
		metadata, err := encodeMetadata(in.Metadata.Value)
		if err != nil {
			return session.Session{}, err
		}
		change.Metadata = &metadata
	}
	if in.Agent.Set {
		change.Agent = &in.Agent.Value
	}
	if in.Model.Set {
		var model *chat.ModelRef
		if !in.Model.Null {
			model = &in.Model.Value
		}
		change.Model = &model
	}
	if in.Agent.Value != "" || in.Model.Set && !in.Model.Null {
		if err := checkUpdate(ctx, s, in); err != nil {
			return session.Session{}, err
		}
	}
	return s.Sessions.Update(ctx, s.ID, change)
})

func checkUpdate(ctx context.Context, s *runtime.Session, in SessionUpdateInput) error {
	parts, err := s.Parts()
	if err != nil {
		return err
	}
	var model *chat.ModelRef
	if in.Model.Set && !in.Model.Null {
		model = &in.Model.Value
	}
	return checkChoice(ctx, parts, in.Agent.Value, model)
}

// SessionDelete removes a session with all below it.
var SessionDelete = op.New(op.Spec{
	Name: "session.delete", Method: "DELETE", Path: "/api/session/{sessionID}", Summary: "Delete a session.",
	Doc: "Removes the session and its children, whatever they are doing. Each publishes one session.deleted.",
}, func(ctx context.Context, s *runtime.Session, _ Empty) (op.None, error) {
	gone, err := s.Sessions.Delete(ctx, s.ID)
	if err != nil {
		return op.None{}, err
	}
	s.Agent.Forget(gone)
	return op.None{}, nil
})

// SessionChildren lists the sessions directly below one.
var SessionChildren = op.New(op.Spec{
	Name: "session.children", Method: "GET", Path: "/api/session/{sessionID}/children", Summary: "List the direct children of a session, oldest first.",
}, func(ctx context.Context, s *runtime.Session, _ Empty) ([]session.Session, error) {
	return s.Sessions.Children(ctx, s.ID)
})

// SessionTodo reads a session's plan.
var SessionTodo = op.New(op.Spec{
	Name: "session.todo", Method: "GET", Path: "/api/session/{sessionID}/todo", Summary: "Return todos associated with the session.",
}, func(ctx context.Context, s *runtime.Session, _ Empty) ([]chat.Todo, error) {
	return s.Sessions.Todos(ctx, s.ID)
})

// SessionActiveInput selects sessions that are not idle.
type SessionActiveInput struct {
	Scope string `json:"scope,omitempty" enum:"context,server" doc:"Default context."`
}

// SessionActive gives the status of every session that is not idle.
var SessionActive = op.New(op.Spec{
	Name: "session.active", Method: "GET", Path: "/api/session/active",
	Summary: "Status of the sessions that are not idle, by session id.",
}, func(ctx context.Context, rt *runtime.Request, in SessionActiveInput) (map[id.Session]session.Status, error) {
	all, err := rt.Agent.Active(ctx)
	if err != nil || in.Scope == "server" {
		return all, err
	}
	for ses := range all {
		row, err := rt.Sessions.Get(ctx, ses)
		if err != nil || row.Context() != rt.Location() {
			delete(all, ses) // of another context, or deleted meanwhile
		}
	}
	return all, nil
})
