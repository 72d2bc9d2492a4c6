package simulate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/switchyard-dev/switchyard/agent/definition"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/permission"
	"github.com/switchyard-dev/switchyard/question"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/session"
)

// act does one thing that may happen to a server.
func (w *world) act(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stillFor)
	defer cancel()
	w.gates.settle(ctx)
	ctx = context.WithoutCancel(ctx)
	n := w.rng.IntN(100)
	switch {
	case n < 40:
		w.say("open a gate")
		w.gates.release(w.rng.IntN(1 << 16))
		return nil
	case n < 60:
		return w.prompt(ctx)
	case n < 72:
		return w.reply(ctx)
	case n < 77:
		return w.interrupt(ctx)
	case n < 82:
		w.faults.arm(w.rng.IntN(2), w.rng.IntN(2))
		w.say("arm faults")
		return nil
	case n < 91:
		return w.subscribe(ctx)
	case n < 94:
		w.skew.jump(time.Duration(w.rng.IntN(7200)-3600) * time.Second)
		return nil
	case n < 96:
		return w.remove(ctx)
	}
	crash := w.rng.IntN(3) > 0
	w.say("halt, crash %v", crash)
	if err := w.halt(crash); err != nil {
		return fmt.Errorf("halting: %w", err)
	}
	return w.boot(ctx)
}

func (w *world) say(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

// expected tells whether an error is one that a caller may get: a fault of the
// store, a full queue, a session that is gone, an answer given before.
func expected(err error) bool {
	return slices.ContainsFunc([]fault.Code{
		fault.StoreUnavailable, fault.QueueFull, fault.SessionNotFound, fault.AlreadyReplied, fault.PermissionNotFound,
		fault.QuestionNotFound,
	}, func(c fault.Code) bool { return fault.Is(err, c) })
}

func unexpected(what string, err error) error {
	if err == nil || expected(err) {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// session gives a living session, at first a new one.
func (w *world) session(ctx context.Context) (id.Session, error) {
	if len(w.sessions) > 0 && (len(w.sessions) >= 3 || w.rng.IntN(3) > 0) {
		return w.sessions[w.rng.IntN(len(w.sessions))], nil
	}
	ses, err := w.server.sessions.Create(ctx, session.CreateInput{
		ProjectID: w.project, Context: event.Context{Directory: w.place.env.Root()},
	})
	if err != nil {
		return "", err
	}
	w.sessions = append(w.sessions, ses.ID)
	return ses.ID, nil
}

func (w *world) prompt(ctx context.Context) error {
	ses, err := w.session(ctx)
	if err != nil {
		return unexpected("creating", err)
	}
	msg := id.Message(fmt.Sprintf("msg_p%d", w.rng.IntN(40))) // sometimes one that was sent before
	delivery := session.Immediate
	if w.rng.IntN(3) == 0 {
		delivery = session.Deferred
	}
	_, err = w.server.engine.Prompt(ctx, session.Admission{
		SessionID: ses, MessageID: msg, Prompt: session.Prompt{Text: "go"}, Delivery: delivery, Agent: definition.DefaultAgent, Body: []byte("go"),
	})
	w.say("prompt %s %s: %v", ses, msg, err)
	if err == nil {
		w.acked = append(w.acked, ack{ses, msg})
	}
	return unexpected("prompting", err)
}

func (w *world) reply(ctx context.Context) error {
	asked, err := w.server.permissions.List(ctx, permission.Filter{})
	if err != nil {
		return err
	}
	if len(asked) > 0 && w.rng.IntN(4) > 0 {
		reply := []rule.Reply{rule.Once, rule.Once, rule.Always, rule.Reject}[w.rng.IntN(4)]
		message := []string{"", "not this"}[w.rng.IntN(2)]
		per := asked[w.rng.IntN(len(asked))].ID
		_, err := w.server.permissions.Reply(ctx, per, reply, message)
		w.say("reply %s %s: %v", per, reply, err)
		return unexpected("replying", err)
	}
	questions, err := w.server.questions.List(ctx, question.Filter{})
	if err != nil || len(questions) == 0 {
		return err
	}
	que := questions[w.rng.IntN(len(questions))].ID
	if w.rng.IntN(4) == 0 {
		_, err = w.server.questions.Reject(ctx, que, []string{"", "no"}[w.rng.IntN(2)])
	} else {
		_, err = w.server.questions.Reply(ctx, que, question.Response{Answers: [][]string{{"a"}}})
	}
	w.say("answer %s: %v", que, err)
	return unexpected("answering", err)
}

func (w *world) interrupt(ctx context.Context) error {
	ses, err := w.session(ctx)
	if err != nil {
		return unexpected("creating", err)
	}
	err = w.server.engine.Interrupt(ctx, ses)
	w.say("interrupt %s: %v", ses, err)
	return unexpected("interrupting", err)
}

func (w *world) remove(ctx context.Context) error {
	if len(w.sessions) == 0 {
		return nil
	}
	n := w.rng.IntN(len(w.sessions))
	ses := w.sessions[n]
	gone, err := w.server.sessions.Delete(ctx, ses)
	w.say("delete %s: %v", ses, err)
	w.server.engine.Forget(gone)
	if err != nil {
		// The answer may have been lost: whether it is gone is looked at in the end.
		if _, lookErr := w.server.sessions.Get(ctx, ses); !fault.Is(lookErr, fault.SessionNotFound) {
			return unexpected("deleting", err)
		}
		w.server.engine.Forget([]id.Session{ses})
	}
	w.gone[ses] = true
	w.sessions = slices.Delete(w.sessions, n, n+1)
	return unexpected("deleting", err)
}

func (w *world) subscribe(ctx context.Context) error {
	if len(w.clients) > 0 && w.rng.IntN(3) > 0 {
		c := w.clients[w.rng.IntN(len(w.clients))]
		c.disconnect()
		if w.rng.IntN(2) == 0 {
			return nil
		}
		w.say("reconnect")
		return c.connect(ctx, w.server.bus)
	}
	if len(w.clients) >= 3 {
		return nil
	}
	c := newClient()
	w.clients = append(w.clients, c)
	w.say("connect")
	return c.connect(ctx, w.server.bus)
}

// finish answers everything that is asked and lets every turn end.
func (w *world) finish(ctx context.Context) error {
	w.faults.arm(0, 0)
	w.gates.openAll()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for _, c := range w.clients {
		if err := c.connect(ctx, w.server.bus); err != nil {
			return err
		}
	}
	for {
		if err := w.answerAll(ctx); err != nil {
			return err
		}
		open, err := w.server.sessions.OpenTurns(ctx)
		if err != nil {
			return fmt.Errorf("waiting for the end: %w", err)
		}
		if len(open) == 0 {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("stuck turns: %+v", open)
		case <-time.After(2 * time.Millisecond):
		}
	}
	// Titles are made beside the turns: nothing may be written after the look.
	if err := w.server.engine.Close(); err != nil {
		return err
	}
	if err := w.nudge(ctx); err != nil {
		return err
	}
	_, head, err := w.server.store.EventBounds(ctx)
	if err != nil {
		return err
	}
	for _, c := range w.clients {
		if err := c.catchUp(ctx, head); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) answerAll(ctx context.Context) error {
	asked, err := w.server.permissions.List(ctx, permission.Filter{})
	if err != nil {
		return err
	}
	for _, a := range asked {
		if _, err := w.server.permissions.Reply(ctx, a.ID, rule.Once, ""); unexpected("", err) != nil {
			return err
		}
	}
	questions, err := w.server.questions.List(ctx, question.Filter{})
	if err != nil {
		return err
	}
	for _, q := range questions {
		_, err := w.server.questions.Reply(ctx, q.ID, question.Response{Answers: [][]string{{"b"}}})
		if unexpected("", err) != nil {
			return err
		}
	}
	return nil
}
