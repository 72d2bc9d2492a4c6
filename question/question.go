// Package question keeps the questions that a model asks a person. Like
// permission requests they are durable and are answered by id from anywhere.
package question

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

// Request is a set of questions asked together.
type Request struct {
	ID            id.Question      `json:"id"`
	SessionID     id.Session       `json:"sessionID"`
	RootSessionID id.Session       `json:"rootSessionID"`
	Questions     []Question       `json:"questions"`
	Tool          *rule.ToolRef    `json:"tool,omitempty"`
	Time          rule.RequestTime `json:"time"`
}

// Question is one question with the answers that the model offers.
type Question struct {
	Question string   `json:"question"`
	Header   string   `json:"header,omitempty" doc:"At most 30 characters."`
	Options  []Option `json:"options"`
	Multiple bool     `json:"multiple,omitempty" doc:"Several answers may be chosen."`
	Custom   *bool    `json:"custom,omitempty" doc:"False when only the options may be answered; true when absent."`
}

// Option is one offered answer.
type Option struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

// Response answers a Request: for each question, in order, the chosen labels.
type Response struct {
	Answers [][]string `json:"answers" maxItems:"64"`
}

// Replied is the payload of question.replied.
type Replied struct {
	SessionID  id.Session  `json:"sessionID"`
	QuestionID id.Question `json:"questionID"`
	Response   Response    `json:"response"`
}

// Rejected is the payload of question.rejected.
type Rejected struct {
	SessionID  id.Session  `json:"sessionID"`
	QuestionID id.Question `json:"questionID"`
	Message    string      `json:"message,omitempty"`
}

// The kinds of events that this package publishes.
var (
	Asked         = event.Define[Request]("question.asked")
	RepliedEvent  = event.Define[Replied]("question.replied")
	RejectedEvent = event.Define[Rejected]("question.rejected")
)

// Answer is what a person said. State is pending, replied, rejected or
// cancelled.
type Answer struct {
	State   string
	Answers [][]string
	Message string
}

// Service keeps questions. It is safe for concurrent use.
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
	Request Request
	Origin  event.Origin
	Context event.Context
	TurnID  id.Turn
	PartID  id.Part
}

// NewID makes the id of a request.
func (s *Service) NewID() id.Question { return id.New[id.Question](s.ids) }

// Add stores a request inside a write of the run that asks, and publishes
// question.asked.
func (s *Service) Add(ctx context.Context, tx *store.Tx, a Ask) error {
	data, err := json.Marshal(a.Request)
	if err != nil {
		return fmt.Errorf("encoding a question: %w", err)
	}
	err = tx.QuestionInsert(ctx, db.QuestionInsertParams{
		ID: string(a.Request.ID), SessionID: string(a.Request.SessionID), RootSessionID: string(a.Request.RootSessionID),
		WorkspaceID: string(a.Context.WorkspaceID), Directory: a.Context.Directory, TurnID: string(a.TurnID), PartID: string(a.PartID),
		Request: data, Answers: []byte("[]"), Created: a.Request.Time.Created,
	})
	if err != nil {
		return err
	}
	return Asked.Append(tx, a.Origin, a.Request)
}

// Filter selects pending requests. Nil fields do not filter; SessionID also
// finds the requests of sessions below it.
type Filter struct {
	Context   *event.Context
	SessionID id.Session
}

// List gives the pending requests, oldest first.
func (s *Service) List(ctx context.Context, f Filter) ([]Request, error) {
	p := db.QuestionPendingParams{}
	if f.Context != nil {
		workspace := string(f.Context.WorkspaceID)
		p.Directory, p.WorkspaceID = &f.Context.Directory, &workspace
	}
	if f.SessionID != "" {
		ses := string(f.SessionID)
		p.SessionID = &ses
	}
	rows, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) ([]db.Question, error) {
		return r.QuestionPending(ctx, p)
	})
	if err != nil {
		return nil, fmt.Errorf("listing questions: %w", err)
	}
	out := make([]Request, 0, len(rows))
	for _, row := range rows {
		req, err := decode(row)
		if err != nil {
			return nil, err
		}
		out = append(out, req)
	}
	return out, nil
}

func decode(row db.Question) (Request, error) {
	var req Request
	if err := json.Unmarshal(row.Request, &req); err != nil {
		return req, fmt.Errorf("reading question %s: %w", row.ID, err)
	}
	return req, nil
}

// Reply answers a request and gives the context it belongs to. The answers must
// be as many as the questions and fit them, else validation_failed. An unknown
// id is question_not_found, an answered one already_replied.
func (s *Service) Reply(ctx context.Context, que id.Question, r Response) (event.Context, error) {
	return s.settle(ctx, que, "replied", r.Answers, "", func(tx *store.Tx, req Request, origin event.Origin) error {
		if err := check(req, r); err != nil {
			return err
		}
		return RepliedEvent.Append(tx, origin, Replied{SessionID: req.SessionID, QuestionID: que, Response: r})
	})
}

// Reject refuses to answer; with a message the model gets it and goes on.
func (s *Service) Reject(ctx context.Context, que id.Question, message string) (event.Context, error) {
	return s.settle(ctx, que, "rejected", [][]string{}, message, func(tx *store.Tx, req Request, origin event.Origin) error {
		return RejectedEvent.Append(tx, origin, Rejected{SessionID: req.SessionID, QuestionID: que, Message: message})
	})
}

func (s *Service) settle(ctx context.Context, que id.Question, state string, answers [][]string, message string,
	publish func(*store.Tx, Request, event.Origin) error,
) (event.Context, error) {
	var where event.Context
	err := s.store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) error {
		data, err := json.Marshal(answers)
		if err != nil {
			return fmt.Errorf("encoding answers: %w", err)
		}
		n, err := tx.QuestionSettle(ctx, db.QuestionSettleParams{
			ID: string(que), State: state, Answers: data, Message: store.Clean(message), Replied: clock.Now(),
		})
		if err != nil {
			return err
		}
		row, err := tx.QuestionGet(ctx, db.QuestionGetParams{ID: string(que)})
		if store.IsNoRows(err) {
			return fault.New(fault.QuestionNotFound, "there is no question %q", que).With("questionID", que)
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.New(fault.AlreadyReplied, "question %q was settled before: %s", que, row.State).
				With("questionID", que).With("recorded", recorded(row))
		}
		req, err := decode(row)
		if err != nil {
			return err
		}
		where = event.Context{Directory: row.Directory, WorkspaceID: id.Workspace(row.WorkspaceID)}
		return publish(tx, req, event.At(where, req.SessionID, req.RootSessionID))
	})
	if err != nil {
		return where, fmt.Errorf("settling %s: %w", que, err)
	}
	s.woken.Wake(string(que))
	return where, nil
}

func recorded(row db.Question) any {
	if row.State == "replied" {
		return json.RawMessage(row.Answers)
	}
	return row.State
}

func check(req Request, r Response) error {
	bad := fault.New(fault.ValidationFailed, "the answers do not fit the questions")
	if len(r.Answers) != len(req.Questions) {
		return bad.At("body.response.answers", "%d answers for %d questions", len(r.Answers), len(req.Questions))
	}
	for i, q := range req.Questions {
		if len(r.Answers[i]) > 1 && !q.Multiple {
			bad.At(fmt.Sprintf("body.response.answers[%d]", i), "one answer only")
		}
		if q.Custom == nil || *q.Custom {
			continue
		}
		for _, label := range r.Answers[i] {
			if !offered(q, label) {
				bad.At(fmt.Sprintf("body.response.answers[%d]", i), "%q is not one of the options", label)
			}
		}
	}
	if len(bad.Items) > 0 {
		return bad
	}
	return nil
}

func offered(q Question, label string) bool {
	for _, o := range q.Options {
		if o.Label == label {
			return true
		}
	}
	return false
}

// Wake looks again at who waits for a request: another server may have got the
// answer.
func (s *Service) Wake(of id.Question) { s.woken.Wake(string(of)) }

// Await waits until a request is no longer pending.
func (s *Service) Await(ctx context.Context, que id.Question) (Answer, error) {
	return event.Await(ctx, s.woken, string(que), func(ctx context.Context) (Answer, bool, error) {
		row, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) (db.Question, error) {
			return r.QuestionGet(ctx, db.QuestionGetParams{ID: string(que)})
		})
		if err != nil {
			return Answer{}, false, fmt.Errorf("reading %s: %w", que, err)
		}
		a := Answer{State: row.State, Message: row.Message}
		if err := json.Unmarshal(row.Answers, &a.Answers); err != nil {
			return a, false, fmt.Errorf("reading the answers of %s: %w", que, err)
		}
		return a, row.State != "pending", nil
	})
}

// Held is a question of a turn with what became of it.
type Held struct {
	ID     id.Question
	PartID id.Part
	State  string
}

// Open tells whether the question still matters to its call: nobody answered, or
// the answer was not taken up yet.
func (h Held) Open() bool {
	return h.State == "pending" || h.State == "replied" || h.State == "rejected"
}

// OfTurn gives all questions of a turn, in the order of asking.
func (s *Service) OfTurn(ctx context.Context, ses id.Session, turn id.Turn) ([]Held, error) {
	rows, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) ([]db.Question, error) {
		return r.QuestionOfTurn(ctx, db.QuestionOfTurnParams{SessionID: string(ses), TurnID: string(turn)})
	})
	if err != nil {
		return nil, fmt.Errorf("reading the questions of %s: %w", turn, err)
	}
	out := make([]Held, 0, len(rows))
	for _, row := range rows {
		out = append(out, Held{ID: id.Question(row.ID), PartID: id.Part(row.PartID), State: row.State})
	}
	return out, nil
}

// Cancel takes back the pending questions of a turn, inside the write that ends
// it.
func (s *Service) Cancel(ctx context.Context, tx *store.Tx, turn id.Turn) error {
	rows, err := tx.QuestionCancel(ctx, db.QuestionCancelParams{TurnID: string(turn), Replied: clock.Now()})
	if err != nil {
		return err
	}
	for _, row := range rows {
		where := event.Context{Directory: row.Directory, WorkspaceID: id.Workspace(row.WorkspaceID)}
		origin := event.At(where, id.Session(row.SessionID), id.Session(row.RootSessionID))
		err := RejectedEvent.Append(tx, origin, Rejected{
			SessionID: id.Session(row.SessionID), QuestionID: id.Question(row.ID), Message: "the turn ended",
		})
		if err != nil {
			return err
		}
	}
	return nil
}
