package operations

import (
	"context"
	"io"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/runtime"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/transfer"
)

// SessionForkInput says where a fork ends.
type SessionForkInput struct {
	MessageID string `json:"messageID,omitempty" doc:"Copy what is before this message; absent means everything."`
}

// SessionFork copies a session, or its beginning, into a new one.
var SessionFork = op.New(op.Spec{
	Name: "session.fork", Method: "POST", Path: "/api/session/{sessionID}/fork",
	Summary: "Copy a session, up to a message, into a new root session.",
	Doc: "Every id in the copy is new and every reference leads into it; `metadata.forkedFrom` tells the origin. Children are not copied. " +
		"A running session can be forked: what its turn left open is closed as aborted in the copy, and goes on in the original.",
	Codes: []fault.Code{fault.MessageNotFound}, Repeatable: true,
}, func(ctx context.Context, s *runtime.Session, in SessionForkInput) (session.Session, error) {
	if in.MessageID != "" {
		if _, ok := id.Parse[id.Message](in.MessageID); !ok {
			return session.Session{}, messageNotFound(s.ID, in.MessageID)
		}
	}
	return s.Transfer.Fork(ctx, transfer.ForkInput{SessionID: s.ID, Before: id.Message(in.MessageID), ID: op.SessionID(ctx)})
})

// SessionExportInput chooses the form of an export.
type SessionExportInput struct {
	Format string `json:"format,omitempty" enum:"json,markdown" doc:"A document for session.import (default), or a transcript to read."`
}

const typeMarkdown = "text/markdown"

// SessionExport writes a session with its children as a document.
var SessionExport = op.New(op.Spec{
	Name: "session.export", Method: "GET", Path: "/api/session/{sessionID}/export",
	Summary: "Export a session with all its children.", NoCursor: true,
	Doc: "JSON: `{format, version, sessions: [{info, messages: [{info, parts}], todos}], attachments: [{id, mime, name?, data}]}`, parents " +
		"before children, messages in the order of creation, data in base64. It is sent as it is made, without ranges.",
	Produces: []string{op.TypeJSON, typeMarkdown},
}, func(_ context.Context, s *runtime.Session, in SessionExportInput) (op.Raw, error) {
	out := op.Raw{Type: op.TypeJSON, Name: string(s.ID) + ".json"}
	if in.Format == string(transfer.Markdown) {
		out = op.Raw{Type: typeMarkdown + "; charset=utf-8", Name: string(s.ID) + ".md"}
	}
	out.Write = func(ctx context.Context, w io.Writer) error {
		return s.Transfer.Export(ctx, s.ID, transfer.Format(in.Format), w)
	}
	return out, nil
})

// SessionImportInput is a document.
type SessionImportInput struct {
	Body op.Body `json:"body" doc:"What session.export gave as JSON, as application/json (on the command line: the file's name)."`
}

// SessionImport stores the sessions of a document.
var SessionImport = op.New(op.Spec{
	Name: "session.import", Method: "POST", Path: "/api/session/import",
	Summary: "Import sessions that were exported as JSON, into the resolved context.",
	Doc: "All or nothing. Ids are kept, so that importing a document again changes nothing; a session that is here with other content is " +
		"`import_conflict`. Whatever the document has wrong is named by its JSON pointer. At most 64 MiB, 10,000 sessions, 50,000 messages and " +
		"250,000 parts. Turns that ran are closed as interrupted; permission rules that allow something are left out.",
	BodyLimit: transfer.MaxBytes, Consumes: []string{op.TypeJSON},
	Codes: []fault.Code{fault.MalformedJSON, fault.ImportConflict},
}, func(ctx context.Context, rt *runtime.Request, in SessionImportInput) (transfer.Imported, error) {
	to := transfer.Place{Context: rt.Location(), Path: rt.PathInWorktree(), Project: rt.Project}
	return rt.Transfer.Import(ctx, to, in.Body)
})
