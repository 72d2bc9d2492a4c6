package transfer

import (
	"context"
	"slices"
	"strings"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// The sources of a title, as package session keeps them: a default one gives way
// to the first prompt's words, a manual one stays.
const (
	titleDefault = "default"
	titleManual  = "manual"
)

// scribe writes one session with all that is in it, inside a transaction.
type scribe struct {
	tx          *store.Tx
	ses         session.Session
	titleSource string

	seq, contextSeq, prompts int64
	// mark is the place of a compaction whose summary has not come yet.
	mark  int64
	turns []*copiedTurn
	cost  float64
	usage chat.Usage
}

// copiedTurn is a turn as its messages tell it.
type copiedTurn struct {
	id             id.Turn
	first          id.Message
	ord            int64
	started, ended int64
	// answer is the last one; nil when there was none.
	answer *chat.AssistantMessage
}

// begin stores the session itself, under the next place in the order of
// sessions.
func (w *scribe) begin(ctx context.Context) error {
	ord, err := w.tx.CounterNext(ctx, db.CounterNextParams{Name: "session"})
	if err != nil {
		return err
	}
	p := db.SessionInsertParams{
		ID: string(w.ses.ID), Ord: ord, ProjectID: string(w.ses.ProjectID), WorkspaceID: string(w.ses.WorkspaceID),
		Directory: w.ses.Directory, Path: w.ses.Path, RootID: string(w.ses.RootSessionID), Title: w.ses.Title,
		TitleFold: strings.ToLower(w.ses.Title), TitleSource: w.titleSource, Agent: w.ses.Agent, Model: encode(w.ses.Model),
		Permission: encode(w.ses.Permission), Metadata: encode(w.ses.Metadata), Tokens: encode(chat.Usage{}),
		Created: w.ses.Time.Created, Updated: w.ses.Time.Updated,
	}
	if w.ses.ParentID != "" {
		parent := string(w.ses.ParentID)
		p.ParentID = &parent
	}
	_, err = w.tx.SessionInsert(ctx, p)
	return err
}

// put stores the next message.
func (w *scribe) put(ctx context.Context, item chat.Item) error {
	w.seq++
	role := "user"
	if answer, ok := item.Info.(*chat.AssistantMessage); ok {
		role = "assistant"
		w.cost += answer.Cost
		w.usage = w.usage.Add(answer.Tokens)
	}
	w.note(item)
	err := w.tx.MessageInsert(ctx, db.MessageInsertParams{
		SessionID: string(w.ses.ID), Seq: w.seq, ID: string(item.Info.Head().ID), Role: role, TurnID: string(*turnOf(item.Info)),
		Info: encode(item.Info),
	})
	if err != nil {
		return err
	}
	for i, p := range item.Parts {
		if err := w.putPart(ctx, int64(i), p); err != nil {
			return err
		}
	}
	if role == "user" && !marks(item) {
		return w.admitted(ctx, item.Info)
	}
	return nil
}

func (w *scribe) putPart(ctx context.Context, ord int64, p chat.Part) error {
	state := ""
	if tool, ok := p.(*chat.ToolPart); ok {
		state = tool.State.Status()
	}
	err := w.tx.PartUpsert(ctx, db.PartUpsertParams{
		SessionID: string(w.ses.ID), MessageSeq: w.seq, Ord: ord, ID: string(p.Head().ID), Type: chat.PartType(p), State: state, Data: encode(p),
	})
	if err != nil {
		return err
	}
	return eachFile("", p, func(_ string, f *chat.FilePart) error { return w.refer(ctx, f.URL) })
}

// refer lets the session refer to an attachment. One that was lost before the
// copy was made stays lost.
func (w *scribe) refer(ctx context.Context, url string) error {
	_, att, ok := chat.ParseAttachmentURL(url)
	if !ok {
		return nil
	}
	_, err := w.tx.AttachmentGet(ctx, db.AttachmentGetParams{ID: string(att)})
	if store.IsNoRows(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return w.tx.AttachmentRefer(ctx, db.AttachmentReferParams{SessionID: string(w.ses.ID), AttachmentID: string(att)})
}

// admitted stores that a prompt was delivered. It keeps a client from using its
// message id again: with no hash of a body, every repetition is another body.
func (w *scribe) admitted(ctx context.Context, m chat.Message) error {
	w.prompts++
	user, _ := m.(*chat.UserMessage)
	return w.tx.InboxInsert(ctx, db.InboxInsertParams{
		SessionID: string(w.ses.ID), Ord: w.prompts, MessageID: string(user.ID), Kind: "prompt", Delivery: string(session.Immediate),
		State: "delivered", Prompt: []byte("{}"), TurnID: string(user.TurnID), Created: user.Time.Created,
	})
}

// note takes down what a message says of its turn and of compactions. The model
// sees the conversation from the last mark that has its summary behind it.
func (w *scribe) note(item chat.Item) {
	before := w.mark
	w.mark = 0
	if marks(item) {
		w.mark = w.seq
	}
	user, _ := item.Info.(*chat.UserMessage)
	answer, _ := item.Info.(*chat.AssistantMessage)
	if answer != nil && answer.Summary && answer.Error == nil && before != 0 {
		w.contextSeq = before
	}
	name := *turnOf(item.Info)
	if name == "" {
		return
	}
	t := w.turn(name)
	if t == nil {
		t = &copiedTurn{id: name, first: item.Info.Head().ID, ord: w.seq}
		w.turns = append(w.turns, t)
	}
	var at chat.MessageTime
	if user != nil {
		at = user.Time
	}
	if answer != nil {
		at, t.answer = answer.Time, answer
	}
	if t.started == 0 {
		t.started = at.Created
	}
	t.ended = max(t.ended, at.Created, at.Completed)
}

// turn finds a turn that was noted, most likely the last one.
func (w *scribe) turn(name id.Turn) *copiedTurn {
	for _, t := range slices.Backward(w.turns) {
		if t.id == name {
			return t
		}
	}
	return nil
}

// outcome tells how a turn ended, as far as its messages tell. One that stops
// between a call's result and the answer to it was cut.
func (t *copiedTurn) outcome() (session.Outcome, *chat.Error) {
	switch {
	case t.answer == nil:
		return session.Interrupted, nil
	case t.answer.Error != nil && t.answer.Error.Name == chat.ErrAborted:
		return session.Interrupted, nil
	case t.answer.Error != nil:
		return session.TurnFailed, t.answer.Error
	case t.answer.Finish == "tool-calls":
		return session.Interrupted, nil
	}
	return session.Completed, nil
}

// end stores the turns, the counters and the plan, and publishes
// session.created.
func (w *scribe) end(ctx context.Context, todos []chat.Todo) error {
	for _, t := range w.turns {
		state, failure := t.outcome()
		err := w.tx.TurnInsertEnded(ctx, db.TurnInsertEndedParams{
			ID: string(t.id), SessionID: string(w.ses.ID), State: string(state), Ord: t.ord, MessageID: string(t.first),
			Error: encode(failure), Started: t.started, Ended: t.ended,
		})
		if err != nil {
			return err
		}
	}
	p := db.SessionSealParams{
		ID: string(w.ses.ID), Cost: w.ses.Cost, Tokens: encode(w.ses.Tokens), Messages: w.seq, ContextSeq: w.contextSeq,
		InboxOrd: w.prompts, Updated: w.ses.Time.Updated,
	}
	if w.ses.Time.Archived != 0 {
		p.Archived = &w.ses.Time.Archived
	}
	if _, err := w.tx.SessionSeal(ctx, p); err != nil {
		return err
	}
	if len(todos) > 0 {
		if err := w.tx.TodoSet(ctx, db.TodoSetParams{SessionID: string(w.ses.ID), Todos: encode(todos)}); err != nil {
			return err
		}
	}
	return session.Created.Append(w.tx, w.ses.Origin(), session.Info{SessionID: w.ses.ID, Info: w.ses})
}
