package operations

import (
	"context"

	"github.com/switchyard-dev/switchyard/attachment"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/runtime"
)

// AttachmentCreateInput is a file.
type AttachmentCreateInput struct {
	Body op.Body `json:"body" doc:"The file's bytes, with any Content-Type (on the command line: the file's name)."`
	Name string  `json:"name,omitempty" in:"query" maxLength:"1024" doc:"What the file is called."`
}

// AttachmentCreate keeps a file for prompts to name.
var AttachmentCreate = op.New(op.Spec{
	Name: "attachment.create", Method: "POST", Path: "/api/attachment", Summary: "Keep a file for prompts to name.", NoCursor: true,
	Doc: "Images (PNG, JPEG, GIF, WebP), PDF and UTF-8 text; what a file is, is told by its content. A prompt names it as `attachment:` and its id. " +
		"The same bytes give the same attachment again. One that no session refers to goes after 24 hours.",
	BodyLimit: attachment.MaxSize,
	Codes:     []fault.Code{fault.UnsupportedMediaType},
}, func(ctx context.Context, s *runtime.Server, in AttachmentCreateInput) (attachment.Attachment, error) {
	staged, err := s.Attachments.Stage(in.Body, in.Name)
	if err != nil {
		return attachment.Attachment{}, err
	}
	kept, err := s.Attachments.Keep(ctx, "", staged)
	if err != nil {
		return attachment.Attachment{}, err
	}
	return kept[0], nil
})

// SessionAttachmentGetInput names an attachment.
type SessionAttachmentGetInput struct {
	AttachmentID string `json:"attachmentID"`
}

// SessionAttachmentGet serves a file of a session.
var SessionAttachmentGet = op.New(op.Spec{
	Name: "session.attachment.get", Method: "GET", Path: "/api/session/{sessionID}/attachment/{attachmentID}",
	Summary: "The bytes of a file that the session refers to.", NoCursor: true,
	Doc:      "They never change: the ETag is their hash. Parts of type `file` carry this path as their `url`.",
	Codes:    []fault.Code{fault.AttachmentNotFound},
	Produces: attachment.Types(),
}, func(ctx context.Context, s *runtime.Session, in SessionAttachmentGetInput) (op.Raw, error) {
	att, ok := id.Parse[id.Attachment](in.AttachmentID)
	if !ok {
		return op.Raw{}, attachment.NotFound(id.Attachment(in.AttachmentID))
	}
	a, err := s.Attachments.OfSession(ctx, s.ID, att)
	if err != nil {
		return op.Raw{}, err
	}
	content, err := s.Attachments.Open(a)
	if err != nil {
		return op.Raw{}, err
	}
	mime := a.Mime
	if mime == attachment.TypeText {
		mime += "; charset=utf-8"
	}
	return op.Raw{Content: content, Type: mime, ETag: a.Hash, Immutable: true, Name: a.Name, Inline: a.Inline()}, nil
})
