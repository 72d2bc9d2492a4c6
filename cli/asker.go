package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/switchyard-dev/switchyard/cli/internal/remote"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/question"
	"github.com/switchyard-dev/switchyard/rule"
)

// nobody is told to the model when a request meets no person.
const nobody = "nobody can answer: switchyard run has no terminal here. Go on without it, or tell the user " +
	"to run it in a terminal or with --yes."

// dialog is a request to a person, answered line by line.
type dialog interface {
	// key is the id of the request.
	key() string
	// ask gives the text to show before the next line is read.
	ask() string
	// take takes a line; done tells that there is nothing more to ask.
	take(line string) (done bool)
	// settle answers without a person: yes allows what can be allowed, anything
	// else is rejected with the message.
	settle(yes bool, message string)
	// send sends the answer.
	send(ctx context.Context, server *remote.Client) error
}

// asker brings the requests of a turn to the person at the terminal, one after
// the other, or answers for a person that is not there. It is for one goroutine.
type asker struct {
	server *remote.Client
	yes    bool
	say    func(note string)
	// open gives the terminal; it is called when the first request comes, since a
	// program in the background must not read from it.
	open func() (*terminal, error)

	term   *terminal
	absent bool // there is no terminal, or no more
	queue  []dialog
}

// pending adds the requests that wait already.
func (a *asker) pending(ctx context.Context, ses id.Session) error {
	args := remote.Arguments{Values: map[string]any{"sessionID": ses}}
	var permissions []rule.Request
	if err := a.server.Call(ctx, "permission.list", args, &permissions); err != nil {
		return err
	}
	for _, r := range permissions {
		if err := a.add(ctx, &permissionDialog{request: r}); err != nil {
			return err
		}
	}
	var questions []question.Request
	if err := a.server.Call(ctx, "question.list", args, &questions); err != nil {
		return err
	}
	for _, r := range questions {
		if err := a.add(ctx, &questionDialog{request: r}); err != nil {
			return err
		}
	}
	return nil
}

// add takes a request up. One that is known already is not asked again.
func (a *asker) add(ctx context.Context, d dialog) error {
	if slices.ContainsFunc(a.queue, func(q dialog) bool { return q.key() == d.key() }) {
		return nil
	}
	if a.yes || !a.present() {
		d.settle(a.yes, nobody)
		return a.send(ctx, d)
	}
	a.queue = append(a.queue, d)
	if len(a.queue) == 1 {
		a.show()
	}
	return nil
}

// present reports whether there is a person, as far as a terminal tells.
func (a *asker) present() bool {
	if a.term != nil || a.absent {
		return !a.absent
	}
	term, err := a.open()
	a.term, a.absent = term, err != nil
	return err == nil
}

func (a *asker) show() {
	if len(a.queue) > 0 {
		a.term.write(a.queue[0].ask())
	}
}

// lines gives what is typed while a request waits, else nil: what is typed at
// other times is no answer.
func (a *asker) lines() <-chan string {
	if len(a.queue) == 0 {
		return nil
	}
	return a.term.lines
}

// answer takes a line for the first request. When the terminal is at its end all
// are rejected.
func (a *asker) answer(ctx context.Context, line string, open bool) error {
	if !open {
		a.absent = true
		for _, d := range a.queue {
			d.settle(false, "")
			if err := a.send(ctx, d); err != nil {
				return err
			}
		}
		a.queue = nil
		return nil
	}
	d := a.queue[0]
	if !d.take(line) {
		a.show()
		return nil
	}
	a.queue = a.queue[1:]
	if err := a.send(ctx, d); err != nil {
		return err
	}
	a.show()
	return nil
}

// send sends an answer. That somebody else was first is no error.
func (a *asker) send(ctx context.Context, d dialog) error {
	err := d.send(ctx, a.server)
	switch remote.CodeOf(err) {
	case fault.AlreadyReplied, fault.PermissionNotFound, fault.QuestionNotFound:
		a.say("somebody else has answered already")
		return nil
	}
	return err
}

// drop forgets a request that was answered elsewhere.
func (a *asker) drop(key string) {
	i := slices.IndexFunc(a.queue, func(q dialog) bool { return q.key() == key })
	if i < 0 {
		return
	}
	a.queue = slices.Delete(a.queue, i, i+1)
	if i == 0 {
		a.term.write("\nno answer is needed any more\n")
		a.show()
	}
}

// forget drops all requests, since the turn that made them is given up.
func (a *asker) forget() {
	if len(a.queue) > 0 {
		a.term.write("\n")
	}
	a.queue = nil
}

// Close gives the terminal back.
func (a *asker) Close() error {
	if a.term == nil {
		return nil
	}
	if err := a.term.Close(); err != nil {
		return fmt.Errorf("closing the terminal: %w", err)
	}
	return nil
}
