package agent

import (
	"context"

	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/session"
)

// Redeliver changes when a waiting prompt is delivered; immediate starts a parked
// inbox of an idle session. The faults are those of session.Service.Redeliver.
func (e *Engine) Redeliver(ctx context.Context, in session.Redelivery) (session.Queued, error) {
	if err := e.mayAdmit(); err != nil {
		return session.Queued{}, err
	}
	in.Owner, in.Generation = e.owner, e.generation.Load()
	out, run, err := e.sessions.Redeliver(ctx, in)
	e.trouble(err)
	if run != nil {
		e.start(*run, nil)
	}
	return out, err
}

// StartQueued starts the next waiting prompt of a session that is idle and not
// parked; it does nothing otherwise.
func (e *Engine) StartQueued(ctx context.Context, ses id.Session) error {
	if err := e.mayAdmit(); err != nil {
		return err
	}
	run, err := e.sessions.StartQueued(ctx, ses, e.owner, e.generation.Load())
	e.trouble(err)
	if run != nil {
		e.start(*run, nil)
	}
	return err
}

// Withdraw takes a waiting prompt back. The faults are those of
// session.Service.Withdraw.
func (e *Engine) Withdraw(ctx context.Context, ses id.Session, msg id.Message) error {
	if err := e.sessions.Withdraw(ctx, ses, msg); err != nil {
		return err
	}
	e.changed.Wake(string(ses)) // there may be nothing to wait for any more
	return nil
}
