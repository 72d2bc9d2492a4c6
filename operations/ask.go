package operations

import (
	"context"

	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/permission"
	"github.com/switchyard-dev/switchyard/question"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/runtime"
)

// AskListInput selects pending requests.
type AskListInput struct {
	Scope     string `json:"scope,omitempty" enum:"context,server" doc:"Default context."`
	SessionID string `json:"sessionID,omitempty" doc:"Only those of this session and the sessions below it, in any context."`
}

// selection gives the filter of a list: one session, the server, or the context.
func (in AskListInput) selection(rt *runtime.Request) (*event.Context, id.Session, error) {
	if in.SessionID != "" {
		ses, ok := id.Parse[id.Session](in.SessionID)
		if !ok {
			return nil, "", fault.New(fault.SessionNotFound, "there is no session %q", in.SessionID).With("sessionID", in.SessionID)
		}
		return nil, ses, nil
	}
	if in.Scope == "server" {
		return nil, "", nil
	}
	where := rt.Location()
	return &where, "", nil
}

// PermissionList lists the pending permission requests.
var PermissionList = op.New(op.Spec{
	Name: "permission.list", Method: "GET", Path: "/api/permission", Summary: "Pending permission requests.",
	Codes: []fault.Code{fault.SessionNotFound},
}, func(ctx context.Context, rt *runtime.Request, in AskListInput) ([]rule.Request, error) {
	where, ses, err := in.selection(rt)
	if err != nil {
		return nil, err
	}
	return rt.Permissions.List(ctx, permission.Filter{Context: where, SessionID: ses})
})

// PermissionReplyInput answers a permission request.
type PermissionReplyInput struct {
	PermissionID string `json:"permissionID"`
	Response     string `json:"response" enum:"once,always,reject"`
	Message      string `json:"message,omitempty" maxLength:"10000" doc:"With reject: told to the model, and the turn goes on. Without it the turn ends."`
}

// PermissionReply answers a permission request.
var PermissionReply = op.New(op.Spec{
	Name: "permission.reply", Method: "POST", Path: "/api/permission/{permissionID}/reply", Summary: "Reply to a permission request.",
	Item: true, Codes: []fault.Code{fault.PermissionNotFound, fault.AlreadyReplied}, Aliases: map[string]string{"reply": "response"},
	Example: PermissionReplyInput{PermissionID: "per_01K3ZQ8V6T3Y2M9X4B7C5D1E0F", Response: "reject", Message: "Not that file."},
}, func(ctx context.Context, rt *runtime.Request, in PermissionReplyInput) (op.None, error) {
	per, ok := id.Parse[id.Permission](in.PermissionID)
	if !ok {
		return op.None{}, fault.New(fault.PermissionNotFound, "there is no permission request %q", in.PermissionID).With("permissionID", in.PermissionID)
	}
	where, err := rt.Permissions.Reply(ctx, per, rule.Reply(in.Response), in.Message)
	rt.Bind(where)
	return op.None{}, err
})

// QuestionList lists the pending questions.
var QuestionList = op.New(op.Spec{
	Name: "question.list", Method: "GET", Path: "/api/question", Summary: "Pending user questions.",
	Codes: []fault.Code{fault.SessionNotFound},
}, func(ctx context.Context, rt *runtime.Request, in AskListInput) ([]question.Request, error) {
	where, ses, err := in.selection(rt)
	if err != nil {
		return nil, err
	}
	return rt.Questions.List(ctx, question.Filter{Context: where, SessionID: ses})
})

// QuestionReplyInput answers a question.
type QuestionReplyInput struct {
	QuestionID string            `json:"questionID"`
	Response   question.Response `json:"response"`
}

// QuestionReply answers a question.
var QuestionReply = op.New(op.Spec{
	Name: "question.reply", Method: "POST", Path: "/api/question/{questionID}/reply", Summary: "Reply to a question.",
	Item: true, Codes: []fault.Code{fault.QuestionNotFound, fault.AlreadyReplied}, Aliases: map[string]string{"answers": "response.answers"},
	Example: QuestionReplyInput{QuestionID: "que_01K3ZQ8V6T3Y2M9X4B7C5D1E0F", Response: question.Response{Answers: [][]string{{"blue"}}}},
}, func(ctx context.Context, rt *runtime.Request, in QuestionReplyInput) (op.None, error) {
	que, err := questionID(in.QuestionID)
	if err != nil {
		return op.None{}, err
	}
	where, err := rt.Questions.Reply(ctx, que, in.Response)
	rt.Bind(where)
	return op.None{}, err
})

// QuestionRejectInput refuses a question.
type QuestionRejectInput struct {
	QuestionID string `json:"questionID"`
	Message    string `json:"message,omitempty" maxLength:"10000" doc:"Told to the model, and the turn goes on. Without it the turn ends."`
}

// QuestionReject refuses to answer a question.
var QuestionReject = op.New(op.Spec{
	Name: "question.reject", Method: "POST", Path: "/api/question/{questionID}/reject", Summary: "Reject a question.",
	Item: true, Codes: []fault.Code{fault.QuestionNotFound, fault.AlreadyReplied},
	Example: QuestionRejectInput{QuestionID: "que_01K3ZQ8V6T3Y2M9X4B7C5D1E0F", Message: "Choose yourself."},
}, func(ctx context.Context, rt *runtime.Request, in QuestionRejectInput) (op.None, error) {
	que, err := questionID(in.QuestionID)
	if err != nil {
		return op.None{}, err
	}
	where, err := rt.Questions.Reject(ctx, que, in.Message)
	rt.Bind(where)
	return op.None{}, err
})

func questionID(s string) (id.Question, error) {
	que, ok := id.Parse[id.Question](s)
	if !ok {
		return "", fault.New(fault.QuestionNotFound, "there is no question %q", s).With("questionID", s)
	}
	return que, nil
}
