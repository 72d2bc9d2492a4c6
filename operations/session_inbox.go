package operations

import (
	"context"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/runtime"
	"github.com/switchyard-dev/switchyard/session"
)

// SessionInboxList lists the prompts that wait.
var SessionInboxList = op.New(op.Spec{
	Name: "session.inbox.list", Method: "GET", Path: "/api/session/{sessionID}/inbox", Summary: "List the prompts that wait, in order.",
}, func(ctx context.Context, s *runtime.Session, _ Empty) ([]session.Queued, error) {
	return s.Sessions.Queue(ctx, s.ID)
})

// SessionInboxUpdateInput says when a waiting prompt is delivered.
type SessionInboxUpdateInput struct {
	MessageID string           `json:"messageID"`
	Delivery  session.Delivery `json:"delivery" enum:"immediate,deferred"`
}

// SessionInboxUpdate changes when a waiting prompt is delivered.
var SessionInboxUpdate = op.New(op.Spec{
	Name: "session.inbox.update", Method: "PATCH", Path: "/api/session/{sessionID}/inbox/{messageID}",
	Summary: "Change when a waiting prompt is delivered.",
	Doc:     "`immediate` also releases an inbox that an interrupt parked; when the session is idle the agent starts at once.",
	Codes:   []fault.Code{fault.MessageNotFound, fault.AlreadyDelivered},
	Values:  map[string]map[string]string{"delivery": {"steer": "immediate", "queue": "deferred"}},
}, func(ctx context.Context, s *runtime.Session, in SessionInboxUpdateInput) (session.Queued, error) {
	msg, ok := id.Parse[id.Message](in.MessageID)
	if !ok {
		return session.Queued{}, messageNotFound(s.ID, in.MessageID)
	}
	return s.Agent.Redeliver(ctx, session.Redelivery{SessionID: s.ID, MessageID: msg, Delivery: in.Delivery})
})

// SessionInboxDeleteInput names a waiting prompt.
type SessionInboxDeleteInput struct {
	MessageID string `json:"messageID"`
}

// SessionInboxDelete takes a waiting prompt back.
var SessionInboxDelete = op.New(op.Spec{
	Name: "session.inbox.delete", Method: "DELETE", Path: "/api/session/{sessionID}/inbox/{messageID}",
	Summary: "Take a waiting prompt back.",
	Codes:   []fault.Code{fault.MessageNotFound, fault.AlreadyDelivered},
}, func(ctx context.Context, s *runtime.Session, in SessionInboxDeleteInput) (op.None, error) {
	msg, ok := id.Parse[id.Message](in.MessageID)
	if !ok {
		return op.None{}, messageNotFound(s.ID, in.MessageID)
	}
	return op.None{}, s.Agent.Withdraw(ctx, s.ID, msg)
})
