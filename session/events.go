package session

import (
	"encoding/json"
	"strings"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/id"
)

// Info is the payload of session.created, session.updated and session.deleted.
type Info struct {
	SessionID id.Session `json:"sessionID"`
	Info      Session    `json:"info"`
}

// StatusPayload is the payload of session.status.
type StatusPayload struct {
	SessionID id.Session `json:"sessionID"`
	Status    Status     `json:"status"`
}

// Status says what a session is doing.
type Status struct {
	Type    string  `json:"type" enum:"idle,busy,retry"`
	TurnID  id.Turn `json:"turnID,omitempty"`
	Waiting string  `json:"waiting,omitempty" enum:"permission,question" doc:"Set while the turn waits for a person."`
	Attempt int     `json:"attempt,omitempty" doc:"For retry: the attempt that failed."`
	Message string  `json:"message,omitempty" doc:"For retry: why."`
	Next    int64   `json:"next,omitempty" doc:"For retry: when the next attempt starts, in milliseconds since the epoch."`
}

// Idle is the payload of session.idle, the only event that says a turn is over.
type Idle struct {
	SessionID id.Session  `json:"sessionID"`
	TurnID    id.Turn     `json:"turnID"`
	Outcome   Outcome     `json:"outcome" enum:"completed,failed,cancelled,interrupted"`
	Error     *chat.Error `json:"error,omitempty"`
}

// ErrorPayload is the payload of session.error.
type ErrorPayload struct {
	SessionID id.Session  `json:"sessionID"`
	Error     *chat.Error `json:"error"`
}

// MessagePayload is the payload of message.updated.
type MessagePayload struct {
	SessionID id.Session   `json:"sessionID"`
	Info      chat.Message `json:"info"`
}

// PartPayload is the payload of message.part.updated; it replaces the part.
type PartPayload struct {
	SessionID id.Session `json:"sessionID"`
	Part      chat.Part  `json:"part"`
	Time      int64      `json:"time"`
}

// PartDelta is the payload of message.part.delta: text to put at a byte offset
// of a field of the part. It always ends on a code point.
type PartDelta struct {
	SessionID id.Session `json:"sessionID"`
	MessageID id.Message `json:"messageID"`
	PartID    id.Part    `json:"partID"`
	Field     string     `json:"field" enum:"text,state.raw,state.metadata.output"`
	Delta     string     `json:"delta"`
	Offset    int64      `json:"offset" doc:"UTF-8 bytes of the field before the delta."`
}

// TodoPayload is the payload of todo.updated.
type TodoPayload struct {
	SessionID id.Session  `json:"sessionID"`
	Todos     []chat.Todo `json:"todos"`
}

// InboxItem is a prompt that was admitted.
type InboxItem struct {
	MessageID id.Message      `json:"messageID"`
	SessionID id.Session      `json:"sessionID"`
	Delivery  Delivery        `json:"delivery" enum:"immediate,deferred"`
	Kind      string          `json:"kind,omitempty" enum:"compact" doc:"compact for a wish to compact the conversation; absent for a prompt."`
	Prompt    json.RawMessage `json:"prompt"`
	Time      InboxTime       `json:"time"`
}

// CompactedPayload is the payload of session.compacted: the model now sees the
// summary, the messages that stayed, and what comes after.
type CompactedPayload struct {
	SessionID id.Session `json:"sessionID"`
	MessageID id.Message `json:"messageID" doc:"The message with the summary."`
}

// InboxTime holds milliseconds since the epoch.
type InboxTime struct {
	Created int64 `json:"created"`
}

// InboxRemoved is the payload of session.inbox.removed.
type InboxRemoved struct {
	SessionID id.Session `json:"sessionID"`
	MessageID id.Message `json:"messageID"`
	Reason    string     `json:"reason" enum:"delivered,cancelled"`
}

// The kinds of events that this package publishes.
var (
	Created        = event.Define[Info]("session.created", event.Invalidates("session.children", "session.message.list", "session.todo"))
	Updated        = event.Define[Info]("session.updated")
	Deleted        = event.Define[Info]("session.deleted")
	StatusChanged  = event.Define[StatusPayload]("session.status")
	BecameIdle     = event.Define[Idle]("session.idle")
	Failed         = event.Define[ErrorPayload]("session.error")
	MessageUpdated = event.Define[MessagePayload]("message.updated")
	PartUpdated    = event.Define[PartPayload]("message.part.updated")
	PartChanged    = event.Define[PartDelta]("message.part.delta", event.Ephemeral, event.Merge(deltaKey, joinDeltas))
	Compacted      = event.Define[CompactedPayload]("session.compacted", event.Invalidates("session.context"))
	TodoUpdated    = event.Define[TodoPayload]("todo.updated")
	InboxAdded     = event.Define[InboxItem]("session.inbox.added")
	InboxUpdated   = event.Define[InboxItem]("session.inbox.updated")
	InboxGone      = event.Define[InboxRemoved]("session.inbox.removed")
)

func deltaKey(d PartDelta) event.MergeKey {
	return event.MergeKey{ID: string(d.PartID), Field: d.Field}
}

// joinDeltas makes one delta of several that follow each other without a hole.
func joinDeltas(run []PartDelta) (PartDelta, bool) {
	out := run[0]
	var text strings.Builder
	for _, d := range run {
		if d.Offset != out.Offset+int64(text.Len()) {
			return out, false
		}
		text.WriteString(d.Delta)
	}
	out.Delta = text.String()
	return out, true
}

// Moved is published on both contexts when a session was moved.
var Moved = event.Define[MovedPayload]("session.moved")

// MovedPayload is the payload of session.moved.
type MovedPayload struct {
	SessionID id.Session    `json:"sessionID"`
	Info      Session       `json:"info"`
	From      event.Context `json:"from"`
	To        event.Context `json:"to"`
}
