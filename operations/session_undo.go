package operations

import (
	"context"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/runtime"
	"github.com/switchyard-dev/switchyard/snapshot"
	"github.com/switchyard-dev/switchyard/undo"
)

// SessionDiffInput selects changes.
type SessionDiffInput struct {
	MessageID string `json:"messageID,omitempty" doc:"Only what the turn of this message changed."`
	Patch     bool   `json:"patch,omitempty" doc:"Also the lines, at most 512 KiB a file."`
}

// SessionDiff sums up what a session changed in files.
var SessionDiff = op.New(op.Spec{
	Name: "session.diff", Method: "GET", Path: "/api/session/{sessionID}/diff", Summary: "Return session diff summary.",
	Doc: "What the tools of the session, or of one turn, changed, each file once; what others changed meanwhile is not in it. " +
		"Files that were ignored or beyond what is kept say why they are not covered, where they are known.",
	Codes: []fault.Code{fault.MessageNotFound},
}, func(ctx context.Context, s *runtime.Session, in SessionDiffInput) ([]snapshot.FileDiff, error) {
	q := snapshot.Query{SessionID: s.ID, Directory: s.Row.Directory, Patch: in.Patch}
	if in.MessageID != "" {
		msg, ok := id.Parse[id.Message](in.MessageID)
		if !ok {
			return nil, messageNotFound(s.ID, in.MessageID)
		}
		_, turn, err := s.Sessions.Place(ctx, s.ID, msg)
		if err != nil {
			return nil, err
		}
		q.TurnID = turn
	}
	return s.Snapshots.Diff(ctx, q)
})

// SessionRevertInput says from where on.
type SessionRevertInput struct {
	MessageID string `json:"messageID" doc:"What it and everything after it changed is undone."`
	PartID    string `json:"partID,omitempty" doc:"With it, what this part of the message and everything after it changed."`
}

// SessionRevert undoes what a session changed in files.
var SessionRevert = op.New(op.Spec{
	Name: "session.revert", Method: "POST", Path: "/api/session/{sessionID}/revert", Summary: "Undo the changes of files from a message on.",
	Doc: "A file that is not as the agent left it was changed by somebody else: it is a conflict and left alone. Nothing of git's is touched: " +
		"HEAD, index and commits stay. Reverting to another message moves the boundary; session.unrevert brings everything back. The next prompt " +
		"keeps what is undone, and its model is told.",
	Codes: []fault.Code{fault.MessageNotFound, fault.SessionBusy, fault.DirectoryMissing}, Repeatable: true,
}, func(ctx context.Context, s *runtime.Session, in SessionRevertInput) (undo.Result, error) {
	msg, ok := id.Parse[id.Message](in.MessageID)
	if !ok {
		return undo.Result{}, messageNotFound(s.ID, in.MessageID)
	}
	var part id.Part
	if in.PartID != "" {
		if part, ok = id.Parse[id.Part](in.PartID); !ok {
			return undo.Result{}, fault.New(fault.ValidationFailed, "%q is no part", in.PartID).At("body.partID", "no part")
		}
	}
	parts, err := s.Parts()
	if err != nil {
		return undo.Result{}, err
	}
	return s.Undo.Revert(ctx, parts.Env, s.ID, msg, part)
})

// SessionUnrevert brings back what was undone.
var SessionUnrevert = op.New(op.Spec{
	Name: "session.unrevert", Method: "POST", Path: "/api/session/{sessionID}/unrevert", Summary: "Bring back the changes that session.revert undid.",
	Doc:   "A file that was changed since is a conflict and left alone. Where nothing is undone, nothing happens.",
	Codes: []fault.Code{fault.SessionBusy, fault.DirectoryMissing}, Repeatable: true,
}, func(ctx context.Context, s *runtime.Session, _ Empty) (undo.Result, error) {
	parts, err := s.Parts()
	if err != nil {
		return undo.Result{}, err
	}
	return s.Undo.Unrevert(ctx, parts.Env, s.ID)
})
