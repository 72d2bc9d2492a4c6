package operations

import (
	"context"
	"encoding/json"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/runtime"
	"github.com/switchyard-dev/switchyard/session"
)

// SessionMessageListInput selects a page of messages.
type SessionMessageListInput struct {
	Limit  int    `json:"limit,omitempty" doc:"Default 50, at most 200; more is taken as 200. A page ends early at 512 KiB."`
	Order  string `json:"order,omitempty" enum:"asc,desc" doc:"Default desc, newest first."`
	Cursor string `json:"cursor,omitempty"`
	Index  *int64 `json:"index,omitempty" minimum:"0" doc:"Start at this position in the order of creation."`
	Around string `json:"around,omitempty" doc:"Put this message in the middle of the page."`
}

// SessionMessageList pages through a session's messages.
var SessionMessageList = op.New(op.Spec{
	Name: "session.message.list", Method: "GET", Path: "/api/session/{sessionID}/message",
	Summary: "Page through session messages.",
	Doc:     "total counts all messages; startIndex is the position of the page's oldest message in the order of creation.",
	Codes:   []fault.Code{fault.CursorInvalid, fault.MessageNotFound},
	Example: SessionMessageListInput{Limit: 50, Order: "asc"},
}, func(ctx context.Context, s *runtime.Session, in SessionMessageListInput) (op.Page[op.JSON[chat.Item]], error) {
	none := op.Page[op.JSON[chat.Item]]{}
	given := 0
	for _, set := range []bool{in.Cursor != "", in.Index != nil, in.Around != ""} {
		if set {
			given++
		}
	}
	if given > 1 {
		return none, fault.New(fault.ValidationFailed, "cursor, index and around exclude each other")
	}
	if in.Around != "" {
		if _, ok := id.Parse[id.Message](in.Around); !ok {
			return none, messageNotFound(s.ID, in.Around)
		}
	}
	page, err := s.Sessions.MessageList(ctx, session.MessageListInput{
		SessionID: s.ID, Limit: in.Limit, Ascending: in.Order == "asc", Cursor: in.Cursor, Index: in.Index, Around: id.Message(in.Around),
	})
	if err != nil {
		return none, err
	}
	return pageOf(items(page.Items), page.Previous, page.Next, page.Total, page.StartIndex), nil
})

func items(raw []json.RawMessage) []op.JSON[chat.Item] {
	out := make([]op.JSON[chat.Item], 0, len(raw))
	for _, r := range raw {
		out = append(out, op.JSON[chat.Item](r))
	}
	return out
}

func messageNotFound(ses id.Session, msg string) error {
	return fault.New(fault.MessageNotFound, "session %s has no message %q", ses, msg).With("sessionID", ses).With("messageID", msg)
}

// SessionMessageGetInput names a message.
type SessionMessageGetInput struct {
	MessageID string `json:"messageID"`
}

// SessionMessageGet reads one message.
var SessionMessageGet = op.New(op.Spec{
	Name: "session.message.get", Method: "GET", Path: "/api/session/{sessionID}/message/{messageID}", Summary: "Get one message with its parts.",
	Codes: []fault.Code{fault.MessageNotFound},
}, func(ctx context.Context, s *runtime.Session, in SessionMessageGetInput) (op.JSON[chat.Item], error) {
	msg, ok := id.Parse[id.Message](in.MessageID)
	if !ok {
		return nil, messageNotFound(s.ID, in.MessageID)
	}
	raw, err := s.Sessions.MessageGet(ctx, s.ID, msg)
	return op.JSON[chat.Item](raw), err
})

// SessionContext reads what the model sees.
var SessionContext = op.New(op.Spec{
	Name: "session.context", Method: "GET", Path: "/api/session/{sessionID}/context",
	Summary: "Return active context messages after the last compaction.",
}, func(ctx context.Context, s *runtime.Session, _ Empty) ([]op.JSON[chat.Item], error) {
	raw, err := s.Sessions.Context(ctx, s.ID)
	return items(raw), err
})
