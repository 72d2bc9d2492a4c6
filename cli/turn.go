package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/cli/internal/remote"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/question"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/session"
)

const (
	// stopTime bounds the wait for a turn to end after an interrupt; the server
	// ends it within three seconds.
	stopTime = 5 * time.Second
	// awayTime is how long a turn is waited for while its server is away.
	awayTime = 20 * time.Second
)

// turn follows one prompt from its sending to the end of its turn. It is for one
// goroutine.
type turn struct {
	server  *remote.Client
	session id.Session
	// prompt is the input of session.prompt; its messageID is ours.
	prompt map[string]any
	view   *view
	asks   *asker
	asJSON bool

	sent        bool
	interrupted bool
	// id is known once the prompt is delivered.
	id id.Turn
}

// run sends the prompt once the events flow, and returns when the turn is over:
// nil when it completed. When ctx ends it interrupts the turn.
func (t *turn) run(ctx context.Context) error {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	events, ended := make(chan remote.Frame), make(chan error, 1)
	var reading sync.WaitGroup
	defer reading.Wait()
	defer cancel()
	remarks := make(chan string)
	reading.Go(func() { ended <- t.follower(life, remarks).Follow(life, handOver(life, events)) })
	interrupt := ctx.Done()
	var late <-chan time.Time
	for {
		select {
		case e := <-events:
			if done, err := t.take(life, e); done || err != nil {
				return err
			}
		case err := <-ended:
			return err
		case remark := <-remarks:
			t.view.note(remark)
		case line, open := <-t.asks.lines():
			if err := t.asks.answer(life, line, open); err != nil {
				return err
			}
		case <-interrupt:
			interrupt = nil
			if !t.sent {
				return remote.Interrupted()
			}
			if err := t.stop(life); err != nil {
				return err
			}
			late = time.After(stopTime)
		case <-late:
			return remote.Interrupted()
		}
	}
}

// follower follows the session's tree. What it has to remark goes to the one
// goroutine that shows things.
func (t *turn) follower(ctx context.Context, remarks chan<- string) *remote.Follower {
	remark := handOver(ctx, remarks)
	return &remote.Follower{
		Client: t.server, Filter: remote.Arguments{Values: map[string]any{"session": t.session}}, Patience: awayTime,
		Lost: func(err error, _ time.Duration) {
			_ = remark(err.Error() + "; trying again") // It fails when nobody listens any more.
		},
	}
}

func handOver[T any](ctx context.Context, to chan<- T) func(T) error {
	return func(v T) error {
		select {
		case to <- v:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// stop asks the server to end the turn; that it has ended comes as an event.
func (t *turn) stop(ctx context.Context) error {
	t.interrupted = true
	t.asks.forget()
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	err := t.server.Call(ctx, "session.interrupt", remote.Arguments{Values: map[string]any{"sessionID": t.session}}, nil)
	if err != nil {
		return remote.Exitf(remote.ExitInterrupted, "interrupted, but the turn may go on: %w", err)
	}
	return nil
}

// take acts on one event. done tells that the turn is over.
func (t *turn) take(ctx context.Context, e remote.Frame) (done bool, err error) {
	if t.asJSON {
		if err := t.view.emit(e.Data + "\n"); err != nil {
			return false, err
		}
	}
	var ev envelope
	if err := json.Unmarshal([]byte(e.Data), &ev); err != nil {
		return false, fmt.Errorf("reading an event: %w", err)
	}
	switch ev.Type {
	case "server.connected", "server.resync":
		return false, t.begin(ctx, ev)
	case "session.idle":
		return read(ev, t.idle)
	case "session.deleted":
		return read(ev, func(p session.Info) (bool, error) {
			return false, t.ours(p.SessionID, remote.Exitf(remote.ExitFailed, "the session was deleted"))
		})
	case "message.updated":
		return read(ev, t.message)
	case "permission.asked", "permission.replied", "question.asked", "question.replied", "question.rejected":
		return false, t.ask(ctx, ev)
	}
	if t.asJSON {
		return false, nil
	}
	return false, t.show(ev)
}

// read decodes the payload of an event.
func read[P any](ev envelope, then func(P) (bool, error)) (bool, error) {
	var p P
	if err := json.Unmarshal(ev.Payload, &p); err != nil {
		return false, fmt.Errorf("reading %s: %w", ev.Type, err)
	}
	return then(p)
}

// ours gives err when it is about our session, as the sessions below it have
// events too.
func (t *turn) ours(ses id.Session, err error) error {
	if ses != t.session {
		return nil
	}
	return err
}

// begin sends the prompt when the stream begins: nothing of the turn is missed
// then. Later on it tells that the stream was lost for too long.
func (t *turn) begin(ctx context.Context, ev envelope) error {
	if t.sent {
		if ev.Type == "server.resync" {
			return remote.Exitf(remote.ExitFailed, "the stream of events has a gap: see the turn with: switchyard call session.context %s", t.session)
		}
		return nil
	}
	t.sent = true
	if err := t.asks.pending(ctx, t.session); err != nil {
		return err
	}
	return t.server.Call(ctx, "session.prompt", remote.Arguments{Values: t.prompt}, nil)
}

// messageHead is what is needed of the head of a message.
type messageHead struct {
	SessionID id.Session `json:"sessionID"`
	Info      struct {
		ID     id.Message `json:"id"`
		Role   string     `json:"role"`
		TurnID id.Turn    `json:"turnID"`
	} `json:"info"`
}

func (t *turn) message(p messageHead) (bool, error) {
	switch {
	case p.SessionID != t.session:
	case p.Info.Role == "user" && p.Info.ID == t.prompt["messageID"]:
		t.id = p.Info.TurnID
	case p.Info.Role == "assistant" && p.Info.TurnID == t.id:
		t.view.answer(p.Info.ID)
	}
	return false, nil
}

func (t *turn) idle(p session.Idle) (bool, error) {
	switch {
	case p.SessionID != t.session:
		return false, nil
	case t.interrupted:
		return true, remote.Interrupted()
	case t.id == "" || p.TurnID != t.id:
		return false, nil
	}
	t.view.end()
	switch p.Outcome {
	case session.Completed:
		return true, nil
	case session.Cancelled:
		return true, remote.Exitf(remote.ExitInterrupted, "the turn was cancelled")
	}
	failure := "no reason is known"
	if p.Error != nil {
		failure = p.Error.Data.Message
	}
	return true, remote.Exitf(remote.ExitFailed, "the turn %s: %s", p.Outcome, printable(failure))
}

// ask handles requests to a person. Those of sessions below ours count too.
func (t *turn) ask(ctx context.Context, ev envelope) error {
	var p struct {
		ID           string `json:"id"`
		PermissionID string `json:"permissionID"`
		QuestionID   string `json:"questionID"`
	}
	if err := json.Unmarshal(ev.Payload, &p); err != nil {
		return fmt.Errorf("reading %s: %w", ev.Type, err)
	}
	switch {
	case t.interrupted:
		return nil
	case ev.Type == "permission.asked":
		_, err := read(ev, func(r rule.Request) (bool, error) { return false, t.asks.add(ctx, &permissionDialog{request: r}) })
		return err
	case ev.Type == "question.asked":
		_, err := read(ev, func(r question.Request) (bool, error) { return false, t.asks.add(ctx, &questionDialog{request: r}) })
		return err
	}
	t.asks.drop(p.PermissionID + p.QuestionID)
	return nil
}

// show prints what an event adds to the picture.
func (t *turn) show(ev envelope) error {
	var err error
	switch ev.Type {
	case "message.part.updated":
		_, err = read(ev, func(p struct {
			Part json.RawMessage `json:"part"`
		},
		) (bool, error) {
			part, err := chat.DecodePart(p.Part)
			if err != nil {
				return false, nil //nolint:nilerr // A newer server may have parts that we do not know.
			}
			return false, t.view.part(part)
		})
	case "message.part.delta":
		_, err = read(ev, func(p session.PartDelta) (bool, error) { return false, t.view.delta(p) })
	case "session.status":
		_, err = read(ev, func(p session.StatusPayload) (bool, error) {
			if p.Status.Type == "retry" && p.SessionID == t.session {
				t.view.note(fmt.Sprintf("attempt %d failed, trying again: %s", p.Status.Attempt, p.Status.Message))
			}
			return false, nil
		})
	}
	return err
}

var errNobody = errors.New("nobody can answer: there is no terminal")
