package operations

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"

	"github.com/switchyard-dev/switchyard/agent"
	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/fs"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/op/schema"
	"github.com/switchyard-dev/switchyard/permission"
	"github.com/switchyard-dev/switchyard/project"
	"github.com/switchyard-dev/switchyard/question"
	"github.com/switchyard-dev/switchyard/runtime"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/vcs"
	"github.com/switchyard-dev/switchyard/workspace"
)

// Event is an envelope on the stream.
type Event = event.Envelope[json.RawMessage]

// EventSubscribeInput selects the events of a stream.
type EventSubscribeInput struct {
	Context     []string `json:"context,omitempty" doc:"Context keys, <workspaceID or local>:<directory>; may repeat."`
	Scope       string   `json:"scope,omitempty" enum:"context,server" doc:"server follows every context; default context."`
	Session     string   `json:"session,omitempty" doc:"Only events of this session and the sessions below it."`
	Types       string   `json:"types,omitempty" doc:"Comma list of types; x.* for all below x, !x to leave out."`
	After       string   `json:"after,omitempty" doc:"Id of the last event seen. Last-Event-ID wins over it."`
	Until       string   `json:"until,omitempty" enum:"idle" doc:"With session: end after its next session.idle."`
	LastEventID string   `json:"Last-Event-ID,omitempty" in:"header"`
}

// EventSubscribe follows events as they happen.
var EventSubscribe = op.New(op.Spec{
	Name: "event.subscribe", Method: "GET", Path: "/api/event", Summary: "Server-sent events for the resolved runtime context.",
	Doc: "The first frame is server.connected, or server.resync when the cursor could not be resumed from. " +
		"A cursor never makes an error. directory may repeat; a directory that is missing is named in the first frame.",
	Example: EventSubscribeInput{Types: "session.*,message.*"},
	Many:    true, NoCursor: true, Codes: []fault.Code{fault.Stopping, fault.StoreUnavailable, fault.SessionNotFound},
}, func(ctx context.Context, rt *runtime.Request, in EventSubscribeInput) (op.Stream[Event], error) {
	filter, err := event.ParseFilter(event.FilterQuery{Scope: in.Scope, Session: in.Session, Types: in.Types, Until: in.Until})
	if err != nil {
		return op.Stream[Event]{}, err
	}
	hints, err := hintsOf(op.Hints(ctx), in.Context)
	if err != nil {
		return op.Stream[Event]{}, err
	}
	requested, found, err := resolveAll(ctx, rt, hints)
	if err != nil {
		return op.Stream[Event]{}, err
	}
	filter.Contexts = found
	cursor := in.LastEventID
	if cursor == "" {
		cursor = in.After
	}
	sub, err := rt.Bus.Subscribe(ctx, event.Options{Cursor: cursor, Filter: filter, Contexts: requested})
	if err != nil {
		return op.Stream[Event]{}, err
	}
	// Before the first frame is sent, so that the client misses no checkout.
	leave := rt.Follow(found...)
	return op.Stream[Event]{Serve: func(ctx context.Context, w http.ResponseWriter, _ *http.Request) error {
		defer leave()
		defer sub.Close()
		stop := rejoin(ctx, rt.Host, sub, hints, requested)
		defer stop()
		sub.Stream(ctx, w)
		return nil
	}}, nil
})

// hintsOf adds the contexts given by their keys.
func hintsOf(hints []runtime.Hint, keys []string) ([]runtime.Hint, error) {
	for _, key := range keys {
		workspace, directory, ok := strings.Cut(key, ":")
		if !ok || workspace == "" || directory == "" {
			return nil, fault.New(fault.ValidationFailed, "%q is not a context key", key).At("query.context", "expected <workspaceID or local>:<directory>")
		}
		hint := runtime.Hint{Directory: directory, HasDirectory: true}
		if workspace != "local" {
			hint.Workspace, hint.HasWorkspace = workspace, true
		}
		hints = append(hints, hint)
	}
	return hints, nil
}

// resolveAll resolves the hints of a stream; none is the default runtime. A
// single context must be there, of several the missing ones are told.
func resolveAll(ctx context.Context, rt *runtime.Request, hints []runtime.Hint) ([]event.Requested, []event.Context, error) {
	if len(hints) == 0 {
		hints = []runtime.Hint{{}}
	}
	requested, found := []event.Requested{}, []event.Context{}
	for _, hint := range hints {
		r := event.Requested{Requested: hint.Directory}
		where, err := rt.Resolve(ctx, hint)
		switch {
		case err != nil && len(hints) == 1:
			return nil, nil, err
		case err != nil:
			r.Error = string(fault.CodeOf(err))
		default:
			r.Directory, r.WorkspaceID = where.Directory, where.WorkspaceID
			found = append(found, where)
		}
		requested = append(requested, r)
	}
	return requested, found, nil
}

// Kinds lists every kind of event, so that the document has a closed union and
// no kind can be forgotten.
func Kinds() []event.Descriptor {
	return []event.Descriptor{
		event.ServerConnected, event.ServerResync, event.ServerCursor, event.ServerLagged, event.ServerStopping,
		session.Created, session.Updated, session.Deleted, session.StatusChanged, session.BecameIdle, session.Failed,
		session.MessageUpdated, session.PartUpdated, session.PartChanged, session.Compacted, session.TodoUpdated, session.InboxAdded,
		session.InboxUpdated, session.InboxGone,
		permission.Asked, permission.RepliedEvent, question.Asked, question.RepliedEvent, question.RejectedEvent, fs.Edited,
		vcs.BranchUpdated, project.Updated, session.Moved, agent.DiffChanged,
		workspace.Created, workspace.Updated, workspace.BeReady, workspace.BeFailed, workspace.Deleted, workspace.Going,
	}
}

// Unions are the types of answers and events that hold one of several shapes.
func Unions() []schema.Union {
	kinds := []schema.EventKind{}
	for _, k := range Kinds() {
		kinds = append(kinds, schema.EventKind{Type: k.Name(), Payload: k.Payload(), Invalidates: k.Invalidates()})
	}
	return []schema.Union{
		schema.NewUnion(reflect.TypeFor[chat.ToolState](), "ToolState", "status",
			chat.ToolPending{}, chat.ToolRunning{}, chat.ToolCompleted{}, chat.ToolError{}),
		schema.NewUnion(reflect.TypeFor[chat.Part](), "Part", "type",
			chat.TextPart{}, chat.ReasoningPart{}, chat.FilePart{}, chat.ToolPart{}, chat.AgentPart{}, chat.StepStartPart{},
			chat.StepFinishPart{}, chat.RetryPart{}, chat.CompactionPart{}),
		schema.NewUnion(reflect.TypeFor[chat.Message](), "Message", "role", chat.UserMessage{}, chat.AssistantMessage{}),
		schema.NewEvents(reflect.TypeFor[Event](), "Event", kinds...),
	}
}
