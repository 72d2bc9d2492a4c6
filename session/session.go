// Package session keeps conversations: sessions, their messages and parts, the
// inbox of prompts, turns and todos. It writes the commit points of a turn
// (design §9) and owns the events that go with them; it does not run anything.
package session

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// Session is a conversation, pinned to a runtime context.
type Session struct {
	ID            id.Session      `json:"id"`
	ProjectID     id.Project      `json:"projectID"`
	WorkspaceID   id.Workspace    `json:"workspaceID,omitempty"`
	Directory     string          `json:"directory" doc:"Absolute directory that the session is pinned to."`
	Path          string          `json:"path,omitempty" doc:"The directory relative to the work tree; absent at its top."`
	ParentID      id.Session      `json:"parentID,omitempty"`
	RootSessionID id.Session      `json:"rootSessionID" doc:"Top of the session's tree; itself for a root."`
	Title         string          `json:"title"`
	Agent         string          `json:"agent,omitempty"`
	Model         *chat.ModelRef  `json:"model,omitempty"`
	Permission    []rule.Rule     `json:"permission,omitempty"`
	Metadata      json.RawMessage `json:"metadata,omitempty"`
	Summary       *Summary        `json:"summary,omitempty" doc:"What its calls changed in files, as of the last turn that did."`
	Revert        *Revert         `json:"revert,omitempty" doc:"Set while changes of files are undone."`
	Cost          float64         `json:"cost" doc:"US dollars."`
	Tokens        chat.Usage      `json:"tokens"`
	Time          Time            `json:"time"`
}

// Time holds milliseconds since the epoch.
type Time struct {
	Created    int64 `json:"created"`
	Updated    int64 `json:"updated"`
	Archived   int64 `json:"archived,omitempty"`
	Compacting int64 `json:"compacting,omitempty"`
}

// Context is the runtime context that the session is pinned to.
func (s Session) Context() event.Context {
	return event.Context{Directory: s.Directory, WorkspaceID: s.WorkspaceID}
}

// Origin is where the session's events happen.
func (s Session) Origin() event.Origin {
	return event.At(s.Context(), s.ID, s.RootSessionID)
}

// Where a title came from; a manual one is never replaced.
const (
	titleDefault   = "default"
	titleDerived   = "derived"
	titleGenerated = "generated"
	titleManual    = "manual"
)

// DefaultTitle is that of a session which nobody named and whose first prompt has
// not come.
const DefaultTitle = "New session"

// Row is a session with what only the server needs.
type Row struct {
	Session
	titleSource string
	row         db.Session
}

// HasDefaultTitle reports whether nobody gave the session a title yet.
func (r Row) HasDefaultTitle() bool { return r.titleSource == titleDefault }

// WantsTitle reports whether a generated title may replace the present one.
func (r Row) WantsTitle() bool {
	return r.titleSource == titleDefault || r.titleSource == titleDerived
}

// ContextSeq is the sequence of the first message that the model still sees.
func (r Row) ContextSeq() int64 { return r.row.ContextSeq }

func fromRow(row db.Session) (Row, error) {
	s := Session{
		ID: id.Session(row.ID), ProjectID: id.Project(row.ProjectID), WorkspaceID: id.Workspace(row.WorkspaceID),
		Directory: row.Directory, Path: row.Path, RootSessionID: id.Session(row.RootID), Title: row.Title, Agent: row.Agent,
		Cost: row.Cost, Time: Time{Created: row.Created, Updated: row.Updated},
	}
	if row.ParentID != nil {
		s.ParentID = id.Session(*row.ParentID)
	}
	if row.Archived != nil {
		s.Time.Archived = *row.Archived
	}
	if row.Compacting != nil {
		s.Time.Compacting = *row.Compacting
	}
	if string(row.Metadata) != "null" {
		s.Metadata = json.RawMessage(row.Metadata)
	}
	for _, f := range []struct {
		data []byte
		into any
	}{{row.Model, &s.Model}, {row.Permission, &s.Permission}, {row.Tokens, &s.Tokens}, {row.Summary, &s.Summary}, {row.Revert, &s.Revert}} {
		if err := json.Unmarshal(f.data, f.into); err != nil {
			return Row{}, fmt.Errorf("reading session %s: %w", row.ID, err)
		}
	}
	return Row{Session: s, titleSource: row.TitleSource, row: row}, nil
}

func notFound(ses id.Session) error {
	return fault.New(fault.SessionNotFound, "there is no session %q", ses).With("sessionID", ses)
}

// fold makes titles comparable: search ignores case.
func fold(s string) string { return strings.ToLower(s) }

// mustJSON encodes values of our own types, which cannot fail.
func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("session: " + err.Error())
	}
	return data
}

func clean(s string) string { return store.Clean(s) }
