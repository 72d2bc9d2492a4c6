package session

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// Service keeps sessions. It is safe for concurrent use.
type Service struct {
	store *store.DB
	ids   *id.Source
	live  *Live
}

// NewService makes a Service over a store; bus receives the events that are not
// stored.
func NewService(s *store.DB, ids *id.Source, bus *event.Bus) *Service {
	return &Service{store: s, ids: ids, live: newLive(bus)}
}

// Live gives the text that running turns have not stored yet.
func (s *Service) Live() *Live { return s.live }

// CreateInput is what a new session starts with.
type CreateInput struct {
	// ID is chosen by who must be able to create once; empty for a new one. When a
	// session has it already, that one is the answer.
	ID         id.Session
	ProjectID  id.Project
	Context    event.Context
	Path       string
	ParentID   id.Session
	Title      string
	Agent      string
	Model      *chat.ModelRef
	Permission []rule.Rule
	Metadata   json.RawMessage
}

// Create stores a new session and publishes session.created. An unknown parent
// is a session_not_found fault.
func (s *Service) Create(ctx context.Context, in CreateInput) (Session, error) {
	var out Row
	err := s.store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) (err error) {
		if in.ID != "" {
			if out, err = read(ctx, tx.Reader, in.ID); !fault.Is(err, fault.SessionNotFound) {
				return err
			}
		}
		params, err := s.newRow(ctx, tx, in)
		if err != nil {
			return err
		}
		row, err := tx.SessionInsert(ctx, params)
		if err != nil {
			return err
		}
		if out, err = fromRow(row); err != nil {
			return err
		}
		return Created.Append(tx, out.Origin(), Info{SessionID: out.ID, Info: out.Session})
	})
	if err != nil {
		return Session{}, fmt.Errorf("creating a session: %w", err)
	}
	return out.Session, nil
}

func (s *Service) newRow(ctx context.Context, tx *store.Tx, in CreateInput) (db.SessionInsertParams, error) {
	ord, err := tx.CounterNext(ctx, db.CounterNextParams{Name: "session"})
	if err != nil {
		return db.SessionInsertParams{}, err
	}
	now, sid := clock.Now(), in.ID
	if sid == "" {
		sid = id.New[id.Session](s.ids)
	}
	title, source := clean(in.Title), titleManual
	if title == "" {
		title, source = DefaultTitle, titleDefault
	}
	p := db.SessionInsertParams{
		ID: string(sid), Ord: ord, ProjectID: string(in.ProjectID), WorkspaceID: string(in.Context.WorkspaceID),
		Directory: in.Context.Directory, Path: in.Path, RootID: string(sid),
		Title: title, TitleFold: fold(title), TitleSource: source, Agent: clean(in.Agent),
		Model: mustJSON(in.Model), Permission: mustJSON(in.Permission), Metadata: orNull(in.Metadata),
		Tokens: mustJSON(chat.Usage{}), Created: now, Updated: now,
	}
	if in.ParentID == "" {
		return p, nil
	}
	parent, err := tx.SessionGet(ctx, db.SessionGetParams{ID: string(in.ParentID)})
	if store.IsNoRows(err) {
		return p, notFound(in.ParentID)
	}
	p.ParentID, p.RootID = &parent.ID, parent.RootID
	return p, err
}

func orNull(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return []byte("null")
	}
	return raw
}

// Get reads a session.
func (s *Service) Get(ctx context.Context, ses id.Session) (Row, error) {
	return store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) (Row, error) { return read(ctx, r, ses) })
}

func read(ctx context.Context, r store.Reader, ses id.Session) (Row, error) {
	row, err := r.SessionGet(ctx, db.SessionGetParams{ID: string(ses)})
	if store.IsNoRows(err) {
		return Row{}, notFound(ses)
	}
	if err != nil {
		return Row{}, fmt.Errorf("reading session %s: %w", ses, err)
	}
	return fromRow(row)
}

// Children lists the direct children of a session, oldest first.
func (s *Service) Children(ctx context.Context, ses id.Session) ([]Session, error) {
	return store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) ([]Session, error) {
		rows, err := r.SessionChildren(ctx, db.SessionChildrenParams{ParentID: string(ses)})
		if err != nil {
			return nil, fmt.Errorf("reading the children of %s: %w", ses, err)
		}
		return sessions(rows)
	})
}

func sessions(rows []db.Session) ([]Session, error) {
	out := make([]Session, 0, len(rows))
	for _, row := range rows {
		r, err := fromRow(row)
		if err != nil {
			return nil, err
		}
		out = append(out, r.Session)
	}
	return out, nil
}

// Change is what an update sets; nil fields stay. A pointer to nil clears.
type Change struct {
	Title      *string
	Agent      *string
	Model      **chat.ModelRef
	Permission *[]rule.Rule
	Metadata   *json.RawMessage
	// Archived is the moment of archiving in milliseconds; 0 brings the session back.
	Archived *int64
	// generated marks a title that the server made; it never replaces a manual one.
	generated string
}

// Update changes a session and publishes session.updated.
func (s *Service) Update(ctx context.Context, ses id.Session, c Change) (Session, error) {
	var out Row
	err := s.store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) (err error) {
		out, err = s.update(ctx, tx, ses, c)
		return err
	})
	if err != nil {
		return Session{}, fmt.Errorf("updating session %s: %w", ses, err)
	}
	return out.Session, nil
}

func (s *Service) update(ctx context.Context, tx *store.Tx, ses id.Session, c Change) (Row, error) {
	// Touching first locks the row, so that what is read next cannot change.
	locked, err := tx.SessionTouch(ctx, db.SessionTouchParams{ID: string(ses), Updated: clock.Now()})
	if store.IsNoRows(err) {
		return Row{}, notFound(ses)
	}
	if err != nil {
		return Row{}, err
	}
	p := db.SessionUpdateParams{
		ID: locked.ID, Title: locked.Title, TitleFold: locked.TitleFold, TitleSource: locked.TitleSource, Agent: locked.Agent,
		Model: locked.Model, Permission: locked.Permission, Metadata: locked.Metadata, Archived: locked.Archived, Updated: locked.Updated,
	}
	apply(&p, c)
	row, err := tx.SessionUpdate(ctx, p)
	if err != nil {
		return Row{}, err
	}
	out, err := fromRow(row)
	if err != nil {
		return Row{}, err
	}
	return out, Updated.Append(tx, out.Origin(), Info{SessionID: out.ID, Info: out.Session})
}

func apply(p *db.SessionUpdateParams, c Change) {
	if c.Title != nil && (c.generated == "" || p.TitleSource != titleManual) {
		p.Title = clean(*c.Title)
		p.TitleFold, p.TitleSource = fold(p.Title), titleManual
		if c.generated != "" {
			p.TitleSource = c.generated
		}
	}
	if c.Agent != nil {
		p.Agent = clean(*c.Agent)
	}
	if c.Model != nil {
		p.Model = mustJSON(*c.Model)
	}
	if c.Permission != nil {
		p.Permission = mustJSON(*c.Permission)
	}
	if c.Metadata != nil {
		p.Metadata = orNull(*c.Metadata)
	}
	if c.Archived != nil {
		p.Archived = c.Archived
		if *c.Archived == 0 {
			p.Archived = nil
		}
	}
}

// SetGeneratedTitle sets a title that the server made, unless a person chose one.
// That is decided twice: here, to leave such a session alone, and in the write.
func (s *Service) SetGeneratedTitle(ctx context.Context, ses id.Session, title string) error {
	if row, err := s.Get(ctx, ses); err != nil || !row.WantsTitle() {
		return err
	}
	_, err := s.Update(ctx, ses, Change{Title: &title, generated: titleGenerated})
	return err
}

// Delete removes a session with all below it and publishes one session.deleted
// for each. It gives the ids that went, children first.
func (s *Service) Delete(ctx context.Context, ses id.Session) ([]id.Session, error) {
	var gone []id.Session
	err := s.store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) (err error) {
		gone, err = s.deleteTree(ctx, tx, ses)
		if err == nil && len(gone) == 0 {
			return notFound(ses)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("deleting session %s: %w", ses, err)
	}
	return gone, nil
}

func (s *Service) deleteTree(ctx context.Context, tx *store.Tx, ses id.Session) ([]id.Session, error) {
	row, err := tx.SessionTouch(ctx, db.SessionTouchParams{ID: string(ses), Updated: clock.Now()})
	if store.IsNoRows(err) {
		return nil, nil // another delete was first
	}
	if err != nil {
		return nil, err
	}
	children, err := tx.SessionChildren(ctx, db.SessionChildrenParams{ParentID: string(ses)})
	if err != nil {
		return nil, err
	}
	var gone []id.Session
	for _, child := range children {
		more, err := s.deleteTree(ctx, tx, id.Session(child.ID))
		if err != nil {
			return nil, err
		}
		gone = append(gone, more...)
	}
	out, err := fromRow(row)
	if err != nil {
		return nil, err
	}
	if _, err := tx.SessionDelete(ctx, db.SessionDeleteParams{ID: string(ses)}); err != nil {
		return nil, err
	}
	return append(gone, ses), Deleted.Append(tx, out.Origin(), Info{SessionID: out.ID, Info: out.Session})
}

// Todos reads a session's plan.
func (s *Service) Todos(ctx context.Context, ses id.Session) ([]chat.Todo, error) {
	data, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) ([]byte, error) {
		data, err := r.TodoGet(ctx, db.TodoGetParams{SessionID: string(ses)})
		return data, err
	})
	todos := []chat.Todo{}
	if store.IsNoRows(err) {
		return todos, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &todos)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the todos of %s: %w", ses, err)
	}
	return todos, nil
}

// SetTodos replaces a session's plan as one write of a run.
func (s *Service) SetTodos(ctx context.Context, run Run, todos []chat.Todo) error {
	return s.Own(ctx, store.Durable, run, func(ctx context.Context, tx *store.Tx) error {
		err := tx.TodoSet(ctx, db.TodoSetParams{SessionID: string(run.SessionID), Todos: mustJSON(todos)})
		if err != nil {
			return err
		}
		return TodoUpdated.Append(tx, run.Origin, TodoPayload{SessionID: run.SessionID, Todos: todos})
	})
}
