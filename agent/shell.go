package agent

import (
	"context"

	"github.com/switchyard-dev/switchyard/session"
)

// Shell runs a command that a person typed, as a turn of its own on an idle
// session; a busy one is session_busy. It returns as soon as the turn is stored.
func (e *Engine) Shell(ctx context.Context, a session.ShellAdmission) (session.Admitted, error) {
	if err := e.mayAdmit(); err != nil {
		return session.Admitted{}, err
	}
	a.Owner, a.Generation = e.owner, e.generation.Load()
	out, err := e.sessions.AdmitShell(ctx, a)
	e.trouble(err)
	if err == nil && out.Started != nil {
		e.launch(&turn{run: *out.Started, shell: true})
	}
	return out, err
}

// runShell runs the command that the turn began with. Prompts that came meanwhile
// are answered afterwards, in the same turn.
func (t *turn) runShell(ctx context.Context) error {
	if err := t.enter(ctx); err != nil {
		return err
	}
	left, err := t.engine.sessions.Remains(ctx, session.Turn{ID: t.run.TurnID, SessionID: t.run.SessionID})
	if err != nil {
		return err
	}
	t.steps = left.Steps
	s := t.reopen(left)
	defer s.close()
	s.calls = s.openCalls()
	set, err := t.typedSetting(ctx)
	if err != nil {
		return err
	}
	return t.runCalls(ctx, s, set)
}

// typed tells whether an open answer holds what a person typed.
func typed(left session.Remains) bool {
	for _, p := range left.Tools() {
		if p.Typed() {
			return true
		}
	}
	return false
}

// typedSetting is what a command runs with: no model has a part in it.
func (t *turn) typedSetting(ctx context.Context) (*setting, error) {
	settings, err := t.place.Settings(ctx)
	return &setting{Settings: settings}, err
}
