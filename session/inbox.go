package session

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/failpoint"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// MaxQueued bounds the prompts that wait in one session; the next is queue_full.
const MaxQueued = 64

// titleRunes bounds a title that is made from a prompt's first words.
const titleRunes = 60

// Delivery says when a prompt that meets a running turn is delivered.
type Delivery string

// The deliveries of a prompt.
const (
	// Immediate joins the running turn at its next step boundary.
	Immediate Delivery = "immediate"
	// Deferred waits until the session is idle.
	Deferred Delivery = "deferred"
)

// Prompt is what a user sends (api.md 15).
type Prompt struct {
	Text   string        `json:"text" maxLength:"33554432"`
	Files  []PromptFile  `json:"files,omitempty" maxItems:"64"`
	Agents []PromptAgent `json:"agents,omitempty" maxItems:"16"`
	// Synthetic are texts that the server adds, such as the content of files.
	Synthetic []string `json:"-"`
}

// PromptFile is a file given with a prompt: a data:, file: or attachment: URI.
type PromptFile struct {
	URI    string           `json:"uri" minLength:"1"`
	Name   string           `json:"name,omitempty" maxLength:"1024"`
	Mime   string           `json:"mime,omitempty" maxLength:"200"`
	Source *chat.SourceText `json:"source,omitempty"`
}

// path is what the file is called where it is mentioned: attachments have a name
// only.
func (f PromptFile) path() string {
	if _, _, ok := chat.ParseAttachmentURL(f.URI); ok {
		return f.Name
	}
	return f.URI
}

// PromptAgent mentions an agent.
type PromptAgent struct {
	Name   string           `json:"name" minLength:"1" maxLength:"200"`
	Source *chat.SourceText `json:"source,omitempty"`
}

// Admission is a prompt with what it runs with.
type Admission struct {
	SessionID id.Session
	// MessageID is the client's choice, or empty.
	MessageID id.Message
	Prompt    Prompt
	Delivery  Delivery
	Agent     string
	Model     chat.ModelRef
	// Key is an idempotency key; empty for none.
	Key string
	// Body is what a repeated admission must equal.
	Body []byte
	// Owner and Generation are of the server that runs the turn if the session
	// is idle.
	Owner      string
	Generation int64
}

// Admitted tells what became of a prompt.
type Admitted struct {
	MessageID id.Message
	Delivery  Delivery
	// Delivered is false while the prompt waits in the inbox.
	Delivered bool
	// Position is the prompt's place among the waiting ones, from 1.
	Position int
	TurnID   id.Turn
	// Replayed marks a repetition of an earlier admission, Cancelled one whose
	// prompt was withdrawn meanwhile.
	Replayed, Cancelled bool
	// Started is the run that the admission began, nil when none.
	Started *Run
}

// stored is the prompt column of an inbox row.
type stored struct {
	Prompt    Prompt        `json:"prompt"`
	Synthetic []string      `json:"synthetic,omitempty"`
	Agent     string        `json:"agent"`
	Model     chat.ModelRef `json:"model"`
}

// Admit stores a prompt in the inbox (C0) and, when the session is idle,
// delivers it in the same transaction (C1). The same message id or key with the
// same body gives the first answer again; with another body it is an
// idempotency_conflict. A full inbox is queue_full.
func (s *Service) Admit(ctx context.Context, a Admission) (Admitted, error) {
	hash := bodyHash(a.Body)
	if a.MessageID == "" {
		a.MessageID = id.New[id.Message](s.ids)
	}
	var out Admitted
	failpoint.Before(failpoint.Admit)
	defer failpoint.After(failpoint.Admit)
	err := s.store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) error {
		out = Admitted{MessageID: a.MessageID, Delivery: a.Delivery}
		// Taking the next place locks the session's row: admissions to one
		// session and the end of its turn take turns.
		ord, err := tx.SessionNextInbox(ctx, db.SessionNextInboxParams{ID: string(a.SessionID)})
		if store.IsNoRows(err) {
			return notFound(a.SessionID)
		}
		if err != nil {
			return err
		}
		if earlier, found, err := findAdmission(ctx, tx.Reader, a); err != nil {
			return err
		} else if found {
			return replay(ctx, tx.Reader, earlier, hash, &out)
		}
		return s.admit(ctx, tx, a, ord, hash, &out)
	})
	if err != nil {
		return Admitted{}, fmt.Errorf("admitting a prompt to %s: %w", a.SessionID, err)
	}
	return out, nil
}

func (s *Service) admit(ctx context.Context, tx *store.Tx, a Admission, ord int64, hash string, out *Admitted) error {
	queued, err := tx.InboxQueuedCount(ctx, db.InboxQueuedCountParams{SessionID: string(a.SessionID)})
	if err != nil {
		return err
	}
	if queued >= MaxQueued {
		return fault.New(fault.QueueFull, "%d prompts wait already", queued).With("sessionID", a.SessionID).With("retryAfter", 5)
	}
	ses, err := read(ctx, tx.Reader, a.SessionID)
	if err != nil {
		return err
	}
	if err := unusedID(ctx, tx, a); err != nil {
		return err
	}
	now := clock.Now()
	row := db.Inbox{
		SessionID: string(a.SessionID), Ord: ord, MessageID: string(a.MessageID), Delivery: string(a.Delivery), Created: now,
		Prompt: mustJSON(stored{Prompt: a.Prompt, Synthetic: a.Prompt.Synthetic, Agent: a.Agent, Model: a.Model}),
	}
	p := db.InboxInsertParams{
		SessionID: row.SessionID, Ord: ord, MessageID: row.MessageID, Kind: kindPrompt, Delivery: row.Delivery, State: "queued",
		BodyHash: hash, Prompt: row.Prompt, Created: now,
	}
	if a.Key != "" {
		p.IdempotencyKey = &a.Key
	}
	if err := tx.InboxInsert(ctx, p); err != nil {
		return err
	}
	if err := refer(ctx, tx, a.SessionID, a.Prompt.Files); err != nil {
		return err
	}
	item := InboxItem{
		MessageID: a.MessageID, SessionID: a.SessionID, Delivery: a.Delivery, Prompt: mustJSON(a.Prompt), Time: InboxTime{Created: now},
	}
	if err := InboxAdded.Append(tx, ses.Origin(), item); err != nil {
		return err
	}
	if _, err := tx.SessionPark(ctx, db.SessionParkParams{ID: row.SessionID}); err != nil {
		return err
	}
	turn, err := tx.TurnOpen(ctx, db.TurnOpenParams{SessionID: row.SessionID})
	if err == nil {
		out.TurnID, out.Position = id.Turn(turn.ID), int(queued)+1
		return nil
	}
	if !store.IsNoRows(err) {
		return err
	}
	run, err := s.startTurn(ctx, tx, ses, row, a.Owner, a.Generation)
	out.Delivered, out.TurnID, out.Started = true, run.TurnID, &run
	return err
}

// unusedID refuses an id that a message of the session has which was no prompt:
// the prompt could never be delivered.
func unusedID(ctx context.Context, tx *store.Tx, a Admission) error {
	_, err := tx.MessageByID(ctx, db.MessageByIDParams{SessionID: string(a.SessionID), ID: string(a.MessageID)})
	if err == nil {
		return fault.New(fault.IdempotencyConflict, "%q is the id of another message", a.MessageID).
			With("sessionID", a.SessionID).With("messageID", a.MessageID)
	}
	return orNone(err)
}

// refer lets a session refer to the attachments among a prompt's files. One that
// is gone is an attachment_not_found fault.
func refer(ctx context.Context, tx *store.Tx, ses id.Session, files []PromptFile) error {
	for _, f := range files {
		_, att, ok := chat.ParseAttachmentURL(f.URI)
		if !ok {
			continue
		}
		_, err := tx.AttachmentGet(ctx, db.AttachmentGetParams{ID: string(att)})
		if store.IsNoRows(err) {
			return fault.New(fault.AttachmentNotFound, "there is no attachment %q", att).With("attachmentID", att)
		}
		if err != nil {
			return err
		}
		if err := tx.AttachmentRefer(ctx, db.AttachmentReferParams{SessionID: string(ses), AttachmentID: string(att)}); err != nil {
			return err
		}
	}
	return nil
}

// startTurn delivers an inbox row to an idle session: a new turn and its user
// message (C1).
func (s *Service) startTurn(ctx context.Context, tx *store.Tx, ses Row, row db.Inbox, owner string, generation int64) (Run, error) {
	run := Run{SessionID: ses.ID, TurnID: id.New[id.Turn](s.ids), Owner: owner, Generation: generation, Origin: ses.Origin()}
	err := tx.TurnInsert(ctx, db.TurnInsertParams{
		ID: string(run.TurnID), SessionID: string(ses.ID), State: string(TurnRunning), Owner: owner, Generation: generation,
		Attempt: 1, Ord: ses.row.MessageSeq + 1, MessageID: row.MessageID, Error: []byte("null"), Started: clock.Now(),
	})
	if err != nil {
		return run, err
	}
	status := Status{Type: "busy", TurnID: run.TurnID}
	if err := StatusChanged.Append(tx, run.Origin, StatusPayload{SessionID: ses.ID, Status: status}); err != nil {
		return run, err
	}
	if row.Kind == kindCompact || row.Kind == kindShell {
		return run, nil // its messages come with the summary, or the command
	}
	return run, s.deliver(ctx, tx, run, ses, row)
}

// deliver turns an inbox row into a user message of the run's turn.
func (s *Service) deliver(ctx context.Context, tx *store.Tx, run Run, ses Row, row db.Inbox) error {
	n, err := tx.InboxSettle(ctx, db.InboxSettleParams{SessionID: row.SessionID, Ord: row.Ord, State: "delivered", TurnID: string(run.TurnID)})
	if err != nil || n == 0 {
		return err // cancelled meanwhile
	}
	var in stored
	if err := json.Unmarshal(row.Prompt, &in); err != nil {
		return fmt.Errorf("reading an inbox row: %w", err)
	}
	in.Prompt.Synthetic = in.Synthetic
	undone, err := s.keepReverted(ctx, tx, ses)
	if err != nil {
		return err
	}
	if undone != "" {
		in.Prompt.Synthetic = append(in.Prompt.Synthetic, undone)
	}
	msg := chat.NewUser(chat.MessageHead{ID: id.Message(row.MessageID), SessionID: ses.ID}, in.Agent, in.Model, clock.Now())
	msg.TurnID = run.TurnID
	seq, err := s.insertMessage(ctx, tx, run, msg)
	if err != nil {
		return err
	}
	for i, part := range s.promptParts(msg.MessageHead, in.Prompt) {
		if err := s.putPart(ctx, tx, run, PartWrite{Seq: seq, Ord: int64(i), Part: part, Event: true}); err != nil {
			return err
		}
	}
	gone := InboxRemoved{SessionID: ses.ID, MessageID: msg.ID, Reason: "delivered"}
	if err := InboxGone.Append(tx, run.Origin, gone); err != nil {
		return err
	}
	return s.adopt(ctx, tx, ses, in)
}

// adopt makes a prompt's choices the session's new defaults and derives a title
// from its first words.
func (s *Service) adopt(ctx context.Context, tx *store.Tx, ses Row, in stored) error {
	var c Change
	if in.Agent != ses.Agent {
		c.Agent = &in.Agent
	}
	if !in.Model.IsZero() && (ses.Model == nil || *ses.Model != in.Model) {
		model := &in.Model
		c.Model = &model
	}
	if title := deriveTitle(in.Prompt.Text); ses.HasDefaultTitle() && title != "" {
		c.Title, c.generated = &title, titleDerived
	}
	if c.Agent == nil && c.Model == nil && c.Title == nil {
		return nil
	}
	_, err := s.update(ctx, tx, ses.ID, c)
	return err
}

func deriveTitle(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	words := strings.Join(strings.Fields(line), " ")
	if r := []rune(words); len(r) > titleRunes {
		words = string(r[:titleRunes-1]) + "…"
	}
	return words
}

func (s *Service) promptParts(head chat.MessageHead, p Prompt) []chat.Part {
	next := func() chat.PartHead {
		return chat.PartHead{ID: id.New[id.Part](s.ids), SessionID: head.SessionID, MessageID: head.ID}
	}
	parts := []chat.Part{chat.NewText(next(), p.Text)}
	for _, f := range p.Files {
		part := chat.NewFile(next(), f.Mime, f.Name, f.URI)
		if f.Source != nil {
			part.Source = &chat.FileSource{Text: *f.Source, Type: "file", Path: f.path()}
		}
		parts = append(parts, part)
	}
	for _, text := range p.Synthetic {
		part := chat.NewText(next(), text)
		part.Synthetic = true
		parts = append(parts, part)
	}
	for _, a := range p.Agents {
		part := chat.NewAgent(next(), a.Name)
		part.Source = a.Source
		parts = append(parts, part)
	}
	return parts
}

// Boundary is what a turn finds at a step boundary.
type Boundary struct {
	// Joined is how many prompts became messages of the turn.
	Joined int
	// Interrupt tells that the turn was asked to stop.
	Interrupt bool
	// Compact is a wish to compact the conversation, nil for none.
	Compact *CompactWish
}

// Join delivers the waiting immediate prompts to the running turn, at a step
// boundary, and tells what else is wanted of it.
func (s *Service) Join(ctx context.Context, run Run) (Boundary, error) {
	var out Boundary
	failpoint.Before(failpoint.Join)
	defer failpoint.After(failpoint.Join)
	err := s.Own(ctx, store.Durable, run, func(ctx context.Context, tx *store.Tx) (err error) {
		out, err = s.join1(ctx, tx, run)
		return err
	})
	if err != nil {
		return Boundary{}, fmt.Errorf("joining prompts: %w", err)
	}
	return out, nil
}

func (s *Service) join1(ctx context.Context, tx *store.Tx, run Run) (Boundary, error) {
	var out Boundary
	turn, err := tx.TurnGet(ctx, db.TurnGetParams{ID: string(run.TurnID)})
	if err != nil || turn.Interrupt != 0 {
		return Boundary{Interrupt: turn.Interrupt != 0}, err
	}
	rows, err := tx.InboxQueued(ctx, db.InboxQueuedParams{SessionID: string(run.SessionID)})
	if err != nil || !slices.ContainsFunc(rows, func(row db.Inbox) bool { return row.Kind == kindCompact || immediate(row) }) {
		return out, err
	}
	// Whoever changes the inbox holds this lock: what is read under it counts.
	if _, err := hold(ctx, tx, run.SessionID); err != nil {
		return out, err
	}
	if rows, err = tx.InboxQueued(ctx, db.InboxQueuedParams{SessionID: string(run.SessionID)}); err != nil {
		return out, err
	}
	for _, row := range rows {
		if row.Kind == kindCompact {
			out.Compact = &CompactWish{MessageID: id.Message(row.MessageID), ord: row.Ord}
			continue
		}
		if !immediate(row) {
			continue
		}
		ses, err := read(ctx, tx.Reader, run.SessionID)
		if err != nil {
			return out, err
		}
		if ses.row.InboxParked != 0 {
			continue // the turn only compacts: prompts wait for the next prompt
		}
		if err := s.deliver(ctx, tx, run, ses, row); err != nil {
			return out, err
		}
		out.Joined++
	}
	return out, nil
}
