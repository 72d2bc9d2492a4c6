package agent

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/fs"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/question"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/tool"
)

// outputField is where the live output of a running call is, for deltas.
const outputField = "state.metadata.output"

// toolCall puts together what a tool may use.
func (t *turn) toolCall(r *callRun) *tool.Call {
	return &tool.Call{
		ID: r.part.CallID, SessionID: t.run.SessionID, MessageID: r.part.MessageID, Mark: t.engine.mark.For(string(r.rowID)), Input: r.call.Input,
		Env: t.place.Environment(), Directory: t.row.Directory, Limits: r.of.set.ToolOutput,
		Progress: r.progress(), Todos: todos{t}, Asker: asker{r}, Delegate: delegate{r}, Outputs: t.place.Outputs(), Tracker: t.tracker(),
		Edited: t.edited,
	}
}

// progress publishes live output as deltas and keeps it readable.
func (r *callRun) progress() func(string) {
	var text strings.Builder
	return func(delta string) {
		offset := int64(text.Len())
		text.WriteString(delta)
		err := r.block.open.Grow(outputField, offset, delta, func(chat.Part) {
			if running, ok := r.part.State.(*chat.ToolRunning); ok {
				running.Metadata = map[string]any{"output": text.String()}
			}
		})
		if err != nil {
			r.of.turn.engine.log.Warn("publishing live output", "error", err)
		}
	}
}

func (t *turn) edited(ctx context.Context, path string) {
	err := t.engine.sessions.Own(ctx, store.Relaxed, t.run, func(_ context.Context, tx *store.Tx) error {
		return fs.Edited.Append(tx, t.run.Origin, fs.FileEdited{File: path})
	})
	if err != nil {
		t.engine.log.Warn("publishing file.edited", "path", path, "error", err)
	}
}

type todos struct{ t *turn }

// Todos is part of tool.Todos.
func (x todos) Todos(ctx context.Context) ([]chat.Todo, error) {
	return x.t.engine.sessions.Todos(ctx, x.t.run.SessionID)
}

// SetTodos is part of tool.Todos.
func (x todos) SetTodos(ctx context.Context, list []chat.Todo) error {
	return x.t.engine.sessions.SetTodos(ctx, x.t.run, list)
}

type asker struct{ r *callRun }

// Ask is part of tool.Asker: the question is stored, the turn waits for a
// person, and the stored answer is what counts.
func (x asker) Ask(ctx context.Context, _ *tool.Call, questions []tool.Question) ([][]string, error) {
	t, cs := x.r.of.turn, x.r.of
	que, err := x.earlier(ctx)
	if err != nil {
		return nil, err
	}
	var add func(context.Context, *store.Tx) error
	if que == "" {
		que = t.engine.questions.NewID()
		add = func(ctx context.Context, tx *store.Tx) error {
			return t.engine.questions.Add(ctx, tx, x.ask(que, questions))
		}
	}
	if err := cs.wait(ctx, 1, add); err != nil {
		return nil, err
	}
	answer, err := t.engine.questions.Await(ctx, que)
	if err != nil {
		return nil, err
	}
	if err := cs.wait(ctx, -1, nil); err != nil {
		return nil, err
	}
	switch {
	case answer.State == "replied":
		return answer.Answers, nil
	case answer.State == "rejected" && answer.Message != "":
		return nil, fault.New(fault.Forbidden, "The user did not answer: %s", answer.Message)
	}
	return nil, errRejected
}

// earlier gives the question that an earlier run of the call asked, or "".
func (x asker) earlier(ctx context.Context) (id.Question, error) {
	if !x.r.begun {
		return "", nil
	}
	t := x.r.of.turn
	all, err := t.engine.questions.OfTurn(ctx, t.run.SessionID, t.run.TurnID)
	for _, h := range all {
		if h.PartID == x.r.part.ID && h.Open() {
			return h.ID, err
		}
	}
	return "", err
}

func (x asker) ask(que id.Question, questions []tool.Question) question.Ask {
	t := x.r.of.turn
	return question.Ask{
		Origin: t.run.Origin, Context: t.row.Context(), TurnID: t.run.TurnID, PartID: x.r.part.ID,
		Request: question.Request{
			ID: que, SessionID: t.run.SessionID, RootSessionID: t.row.RootSessionID, Questions: convert(questions),
			Tool: &rule.ToolRef{MessageID: x.r.part.MessageID, CallID: x.r.part.CallID}, Time: rule.RequestTime{Created: clock.Now()},
		},
	}
}

// wait moves a running call to waiting for a person (n = 1) and back (n = -1).
func (cs *calls) wait(ctx context.Context, n int, fn func(context.Context, *store.Tx) error) error {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.running -= n
	cs.waiting[session.TurnAwaitingQuestion] += n
	return cs.writeState(ctx, fn)
}

func convert(in []tool.Question) []question.Question {
	out := make([]question.Question, 0, len(in))
	for _, q := range in {
		next := question.Question{Question: q.Question, Header: q.Header, Multiple: q.Multiple, Custom: q.Custom, Options: []question.Option{}}
		for _, o := range q.Options {
			next.Options = append(next.Options, question.Option{Label: o.Label, Description: o.Description})
		}
		out = append(out, next)
	}
	return out
}

// seenFiles is what the model of a session has seen of files, for as long as the
// turn runs.
type seenFiles struct {
	mu   sync.Mutex // protects seen
	seen map[string]string
}

// Saw is part of tool.FileTracker.
func (f *seenFiles) Saw(path, hash string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[path] = hash
}

// Seen is part of tool.FileTracker.
func (f *seenFiles) Seen(path string) (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	hash, ok := f.seen[path]
	return hash, ok
}

func (t *turn) tracker() tool.FileTracker { return t.files }

// mustJSON encodes values of our own types, which cannot fail.
func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("agent: " + err.Error())
	}
	return data
}
