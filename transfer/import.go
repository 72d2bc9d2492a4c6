package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// Place is where imported sessions are pinned.
type Place struct {
	Context event.Context
	// Path is the directory relative to the top of its work tree.
	Path string
	// Project gives the project of the directory; it is asked only when something
	// is stored.
	Project func(context.Context) (id.Project, error)
}

// Imported tells what an import made.
type Imported struct {
	Sessions []session.Session `json:"sessions" doc:"The sessions of the document in its order, as they are here."`
	Imported int               `json:"imported" doc:"How many of them were not here before."`
}

// Import stores what Export wrote as JSON, in one transaction with one
// session.created for each session. Ids are kept, so that importing again changes
// nothing; attachments get the ids that their contents have here. What a running
// turn had left open is closed as interrupted, and rules that allow something are
// left out: a document from elsewhere grants nothing.
//
// A document that is not exactly what Export writes is a malformed_json or
// validation_failed fault that names the place by its JSON pointer; a session
// that is here with other content is an import_conflict.
func (s *Service) Import(ctx context.Context, to Place, r io.Reader) (Imported, error) {
	doc, err := parse(r)
	if err != nil {
		return Imported{}, err
	}
	if err := doc.check(); err != nil {
		return Imported{}, err
	}
	doc.normalise()
	n, err := s.take(ctx, to, doc)
	if err != nil {
		return Imported{}, fmt.Errorf("importing sessions: %w", err)
	}
	out := Imported{Sessions: make([]session.Session, 0, len(doc.sessions)), Imported: n}
	for _, in := range doc.sessions {
		row, err := s.sessions.Get(ctx, in.info.ID)
		if err != nil {
			return Imported{}, fmt.Errorf("importing sessions: %w", err)
		}
		out.Sessions = append(out.Sessions, row.Session)
	}
	return out, nil
}

// normalise makes of each session what is stored of it. It depends on the
// document alone, so that the same document is the same sessions each time.
func (d *incoming) normalise() {
	for _, in := range d.sessions {
		in.info.Title, in.info.Agent = store.Clean(in.info.Title), store.Clean(in.info.Agent)
		in.info.Permission = restrict(in.info.Permission)
		in.info.Time.Compacting = 0
		// What calls changed in files is of the place where they ran.
		in.info.Summary, in.info.Revert = nil, nil
		if in.todos == nil {
			in.todos = []chat.Todo{}
		}
		for _, item := range in.items {
			settle(item, in.info.Time.Updated, "interrupted")
		}
	}
}

// restrict gives the rules that allow nothing.
func restrict(rules []rule.Rule) []rule.Rule {
	var out []rule.Rule
	for _, r := range rules {
		if r.Action != rule.Allow {
			out = append(out, r)
		}
	}
	return out
}

func (s *Service) take(ctx context.Context, to Place, doc *incoming) (int, error) {
	if err := s.takeFiles(ctx, doc); err != nil {
		return 0, err
	}
	// Most often all is new or nothing is. The latter must not even take a lock.
	missing, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) ([]*incomingSession, error) {
		return missing(ctx, r, doc)
	})
	if err != nil || len(missing) == 0 {
		return 0, err
	}
	project, err := to.Project(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	err = s.store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) (err error) {
		n, err = write(ctx, tx, to, project, doc)
		return err
	})
	return n, err
}

func write(ctx context.Context, tx *store.Tx, to Place, project id.Project, doc *incoming) (int, error) {
	// The counter's row is the lock: of two imports of one document the later one
	// finds what the earlier one stored.
	if _, err := tx.CounterNext(ctx, db.CounterNextParams{Name: "session"}); err != nil {
		return 0, err
	}
	todo, err := missing(ctx, tx.Reader, doc)
	if err != nil {
		return 0, err
	}
	for _, in := range todo {
		ses := in.info
		ses.ProjectID, ses.Path = project, to.Path
		ses.Directory, ses.WorkspaceID = to.Context.Directory, to.Context.WorkspaceID
		w := &scribe{tx: tx, ses: ses, titleSource: titleManual}
		if ses.Title == session.DefaultTitle {
			w.titleSource = titleDefault
		}
		if err := w.begin(ctx); err != nil {
			return 0, err
		}
		for _, item := range in.items {
			if err := w.put(ctx, item); err != nil {
				return 0, err
			}
		}
		if err := w.end(ctx, in.todos); err != nil {
			return 0, err
		}
	}
	return len(todo), nil
}

// missing gives the sessions of a document that are not here; one that is here
// with other content is an import_conflict.
func missing(ctx context.Context, r store.Reader, doc *incoming) ([]*incomingSession, error) {
	var out []*incomingSession
	for _, in := range doc.sessions {
		row, err := r.SessionGet(ctx, db.SessionGetParams{ID: string(in.info.ID)})
		if store.IsNoRows(err) {
			if err := turnsFree(ctx, r, in); err != nil {
				return nil, err
			}
			out = append(out, in)
			continue
		}
		if err != nil {
			return nil, err
		}
		same, err := in.equals(ctx, r, row)
		if err != nil {
			return nil, err
		}
		if !same {
			return nil, conflict(in.info.ID, "the session %q is here already with other content", in.info.ID)
		}
	}
	return out, nil
}

func conflict(ses id.Session, format string, args ...any) error {
	return fault.New(fault.ImportConflict, format, args...).With("sessionID", ses)
}

// turnsFree makes sure that the turns of a new session are no other session's.
func turnsFree(ctx context.Context, r store.Reader, in *incomingSession) error {
	var last id.Turn
	for _, item := range in.items {
		turn := *turnOf(item.Info)
		if turn == last || turn == "" {
			continue
		}
		last = turn
		_, err := r.TurnGet(ctx, db.TurnGetParams{ID: string(turn)})
		if err == nil {
			return conflict(in.info.ID, "the turn %q is of another session here", turn)
		}
		if !store.IsNoRows(err) {
			return err
		}
	}
	return nil
}

// equals tells whether a stored session is the one of the document: the same
// words, choices and rules, the same messages and plan. Where it is pinned, its
// costs and when it was last changed do not count, nor does the parent of a root
// of the document, which may be part of a larger tree here.
func (in *incomingSession) equals(ctx context.Context, r store.Reader, row db.Session) (bool, error) {
	var rules []rule.Rule
	if err := decodeInto(row.Permission, &rules); err != nil {
		return false, err
	}
	var model *chat.ModelRef
	if err := decodeInto(row.Model, &model); err != nil {
		return false, err
	}
	parent := in.info.ParentID == "" || row.ParentID != nil && *row.ParentID == string(in.info.ParentID)
	if !parent || row.Title != in.info.Title || row.Agent != in.info.Agent || row.Created != in.info.Time.Created ||
		row.MessageCount != int64(len(in.items)) || !equal(restrict(rules), in.info.Permission) || !equal(model, in.info.Model) ||
		!equal(rawOf(row.Metadata), in.info.Metadata) {
		return false, nil
	}
	todos, err := todosOf(ctx, r, in.info.ID)
	if err != nil || !equal(todos, in.todos) {
		return false, err
	}
	same, next := true, 0
	err = eachItem(ctx, r, in.info.ID, row.MessageSeq+1, func(item chat.Item) error {
		if next >= len(in.items) || !equal(item, in.items[next]) {
			same = false
			return errDiffers
		}
		next++
		return nil
	})
	if !same {
		return false, nil
	}
	return next == len(in.items), err
}

// takeFiles keeps the attachments of a document and lets its parts name them as
// they are called here.
func (s *Service) takeFiles(ctx context.Context, doc *incoming) error {
	names := map[id.Attachment]id.Attachment{}
	for _, f := range doc.files {
		name, err := s.takeFile(ctx, doc, f)
		if err != nil {
			return err
		}
		names[f.ID] = name
	}
	for i, in := range doc.sessions {
		for j, item := range in.items {
			at := member(element(member(element("/sessions", i), "messages"), j), "parts")
			if err := s.renameIn(ctx, at, in.info.ID, item.Parts, names); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Service) renameIn(ctx context.Context, at string, ses id.Session, parts []chat.Part, names map[id.Attachment]id.Attachment) error {
	for i, p := range parts {
		err := eachFile(element(at, i), p, func(at string, f *chat.FilePart) error { return s.rename(ctx, at, ses, f, names) })
		if err != nil {
			return err
		}
	}
	return nil
}

// takeFile keeps one attachment. One that the document's sessions have already is
// left alone.
func (s *Service) takeFile(ctx context.Context, doc *incoming, f incomingFile) (id.Attachment, error) {
	sum := sha256.Sum256(f.content)
	known, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) (db.Attachment, error) {
		return r.AttachmentByHash(ctx, db.AttachmentByHashParams{Hash: hex.EncodeToString(sum[:])})
	})
	if err != nil && !store.IsNoRows(err) {
		return "", err
	}
	if err == nil && slices.ContainsFunc(doc.sessions, func(in *incomingSession) bool {
		_, err := s.files.OfSession(ctx, in.info.ID, id.Attachment(known.ID))
		return err == nil
	}) {
		return id.Attachment(known.ID), nil
	}
	staged, err := s.files.Stage(bytes.NewReader(f.content), f.Name)
	if refused, ok := fault.As(err); ok {
		return "", invalid(member(f.at, "data"), "%s", refused.Detail)
	}
	if err != nil {
		return "", err
	}
	kept, err := s.files.Keep(ctx, "", staged)
	if err != nil {
		return "", err
	}
	return kept[0].ID, nil
}

// rename lets a part name an attachment as it is called here. One that the
// document does not hold was lost before it was written; it must not turn out to
// be another session's here.
func (s *Service) rename(ctx context.Context, at string, ses id.Session, f *chat.FilePart, names map[id.Attachment]id.Attachment) error {
	_, att, ok := chat.ParseAttachmentURL(f.URL)
	if !ok {
		return nil
	}
	if name, held := names[att]; held {
		f.URL = chat.AttachmentURL(ses, name)
		return nil
	}
	_, err := s.files.Get(ctx, att)
	if fault.Is(err, fault.AttachmentNotFound) {
		return nil
	}
	if err == nil {
		_, err = s.files.OfSession(ctx, ses, att)
	}
	if fault.Is(err, fault.AttachmentNotFound) {
		return invalid(member(at, "url"), "there is no attachment %q in the document", att)
	}
	return err
}
