// Package permission keeps the requests by which a tool asks a person whether it
// may act, and the approvals that were given for good (design §10). Requests are
// durable: they survive a restart and are answered by id from anywhere.
package permission

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// Replied is the payload of permission.replied.
type Replied struct {
	SessionID    id.Session    `json:"sessionID"`
	PermissionID id.Permission `json:"permissionID"`
	Response     rule.Reply    `json:"response" enum:"once,always,reject"`
	Message      string        `json:"message,omitempty"`
}

// The kinds of events that this package publishes.
var (
	Asked        = event.Define[rule.Request]("permission.asked")
	RepliedEvent = event.Define[Replied]("permission.replied")
)

// Answer is what a person said to a request. State is pending until then, and
// cancelled when the turn ended first.
type Answer struct {
	State   string
	Reply   rule.Reply
	Message string
}

// Service keeps requests and approvals. It is safe for concurrent use.
type Service struct {
	store *store.DB
	ids   *id.Source
	woken *event.Wakeups
}

// NewService makes a Service.
func NewService(s *store.DB, ids *id.Source) *Service {
	return &Service{store: s, ids: ids, woken: event.NewWakeups()}
}

// Ask is a request to store.
type Ask struct {
	ID        id.Permission
	Request   rule.Request
	Origin    event.Origin
	Context   event.Context
	ProjectID id.Project
	TurnID    id.Turn
	PartID    id.Part
}

// NewID makes the id of a request.
func (s *Service) NewID() id.Permission { return id.New[id.Permission](s.ids) }

// Add stores requests inside a write of the run that asks, in the order of the
// calls, and publishes permission.asked for each.
func (s *Service) Add(ctx context.Context, tx *store.Tx, asks []Ask) error {
	for i, a := range asks {
		data, err := json.Marshal(a.Request)
		if err != nil {
			return fmt.Errorf("encoding a permission request: %w", err)
		}
		err = tx.PermissionInsert(ctx, db.PermissionInsertParams{
			ID: string(a.ID), Ord: int64(i), SessionID: string(a.Request.SessionID), RootSessionID: string(a.Request.RootSessionID),
			ProjectID: string(a.ProjectID), WorkspaceID: string(a.Context.WorkspaceID), Directory: a.Context.Directory,
			TurnID: string(a.TurnID), PartID: string(a.PartID), Request: data, Created: a.Request.Time.Created,
		})
		if err != nil {
			return err
		}
		if err := Asked.Append(tx, a.Origin, a.Request); err != nil {
			return err
		}
	}
	return nil
}

// Filter selects pending requests. Nil fields do not filter; SessionID also
// finds the requests of sessions below it.
type Filter struct {
	Context   *event.Context
	SessionID id.Session
}

// List gives the pending requests, oldest first.
func (s *Service) List(ctx context.Context, f Filter) ([]rule.Request, error) {
	p := db.PermissionPendingParams{}
	if f.Context != nil {
		workspace := string(f.Context.WorkspaceID)
		p.Directory, p.WorkspaceID = &f.Context.Directory, &workspace
	}
	if f.SessionID != "" {
		ses := string(f.SessionID)
		p.SessionID = &ses
	}
	rows, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) ([]db.Permission, error) {
		return r.PermissionPending(ctx, p)
	})
	if err != nil {
		return nil, fmt.Errorf("listing permission requests: %w", err)
	}
	out := make([]rule.Request, 0, len(rows))
	for _, row := range rows {
		var req rule.Request
		if err := json.Unmarshal(row.Request, &req); err != nil {
			return nil, fmt.Errorf("reading permission request %s: %w", row.ID, err)
		}
		out = append(out, req)
	}
	return out, nil
}

// Reply answers a request and gives the context it belongs to. An unknown id is
// permission_not_found; one that was answered before is already_replied with the
// recorded answer. Always saves exactly the patterns that were shown.
func (s *Service) Reply(ctx context.Context, per id.Permission, reply rule.Reply, message string) (event.Context, error) {
	var where event.Context
	err := s.store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) error {
		n, err := tx.PermissionReply(ctx, db.PermissionReplyParams{
			ID: string(per), Reply: string(reply), Message: store.Clean(message), Replied: clock.Now(),
		})
		if err != nil {
			return err
		}
		row, err := tx.PermissionGet(ctx, db.PermissionGetParams{ID: string(per)})
		if store.IsNoRows(err) {
			return fault.New(fault.PermissionNotFound, "there is no permission request %q", per).With("permissionID", per)
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return alreadyReplied(per, row)
		}
		where = event.Context{Directory: row.Directory, WorkspaceID: id.Workspace(row.WorkspaceID)}
		if reply == rule.Always {
			if err := s.save(ctx, tx, row); err != nil {
				return err
			}
		}
		origin := event.At(where, id.Session(row.SessionID), id.Session(row.RootSessionID))
		return RepliedEvent.Append(tx, origin, Replied{
			SessionID: id.Session(row.SessionID), PermissionID: per, Response: reply, Message: message,
		})
	})
	if err != nil {
		return where, fmt.Errorf("replying to %s: %w", per, err)
	}
	s.woken.Wake(string(per))
	return where, nil
}

func alreadyReplied(per id.Permission, row db.Permission) error {
	recorded := row.Reply
	if recorded == "" {
		recorded = row.State
	}
	return fault.New(fault.AlreadyReplied, "permission request %q was answered before: %s", per, recorded).
		With("permissionID", per).With("recorded", recorded)
}

func (s *Service) save(ctx context.Context, tx *store.Tx, row db.Permission) error {
	var req rule.Request
	if err := json.Unmarshal(row.Request, &req); err != nil {
		return fmt.Errorf("reading permission request %s: %w", row.ID, err)
	}
	for _, pattern := range req.Always {
		err := tx.PermissionSave(ctx, db.PermissionSaveParams{
			ID: string(id.New[id.SavedPermission](s.ids)), ProjectID: row.ProjectID, Permission: req.Permission, Pattern: pattern, Created: clock.Now(),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Saved gives the approvals of a project as rules.
func (s *Service) Saved(ctx context.Context, project id.Project) ([]rule.Rule, error) {
	rows, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) ([]db.PermissionSaved, error) {
		return r.PermissionSavedList(ctx, db.PermissionSavedListParams{ProjectID: string(project)})
	})
	if err != nil {
		return nil, fmt.Errorf("reading saved approvals: %w", err)
	}
	out := make([]rule.Rule, 0, len(rows))
	for _, row := range rows {
		out = append(out, rule.Rule{Permission: row.Permission, Pattern: row.Pattern, Action: rule.Allow})
	}
	return out, nil
}

// Wake looks again at who waits for a request: another server may have got the
// answer.
func (s *Service) Wake(of id.Permission) { s.woken.Wake(string(of)) }

// Await waits until a request is no longer pending. The row decides; the wake-up
// only says when to look.
func (s *Service) Await(ctx context.Context, per id.Permission) (Answer, error) {
	return event.Await(ctx, s.woken, string(per), func(ctx context.Context) (Answer, bool, error) {
		row, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) (db.Permission, error) {
			return r.PermissionGet(ctx, db.PermissionGetParams{ID: string(per)})
		})
		if err != nil {
			return Answer{}, false, fmt.Errorf("reading %s: %w", per, err)
		}
		return Answer{State: row.State, Reply: rule.Reply(row.Reply), Message: row.Message}, row.State != "pending", nil
	})
}

// Held is a request of a turn with what became of it.
type Held struct {
	ID     id.Permission
	PartID id.Part
	State  string
}

// Open tells whether the request still matters to its call: nobody answered, or
// the answer was not taken up yet.
func (h Held) Open() bool { return h.State == "pending" || h.State == "replied" }

// OfTurn gives all requests of a turn, in the order of asking.
func (s *Service) OfTurn(ctx context.Context, ses id.Session, turn id.Turn) ([]Held, error) {
	rows, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) ([]db.Permission, error) {
		return r.PermissionOfTurn(ctx, db.PermissionOfTurnParams{SessionID: string(ses), TurnID: string(turn)})
	})
	if err != nil {
		return nil, fmt.Errorf("reading the requests of %s: %w", turn, err)
	}
	out := make([]Held, 0, len(rows))
	for _, row := range rows {
		out = append(out, Held{ID: id.Permission(row.ID), PartID: id.Part(row.PartID), State: row.State})
	}
	return out, nil
}

// Cancel takes back the pending requests of a turn, inside the write that ends
// it.
func (s *Service) Cancel(ctx context.Context, tx *store.Tx, turn id.Turn) error {
	rows, err := tx.PermissionCancel(ctx, db.PermissionCancelParams{TurnID: string(turn), Replied: clock.Now()})
	if err != nil {
		return err
	}
	for _, row := range rows {
		where := event.Context{Directory: row.Directory, WorkspaceID: id.Workspace(row.WorkspaceID)}
		origin := event.At(where, id.Session(row.SessionID), id.Session(row.RootSessionID))
		err := RepliedEvent.Append(tx, origin, Replied{
			SessionID: id.Session(row.SessionID), PermissionID: id.Permission(row.ID), Response: rule.Reject, Message: "the turn ended",
		})
		if err != nil {
			return err
		}
	}
	return nil
}
