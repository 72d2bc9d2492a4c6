// Package agent runs turns: it takes delivered prompts, calls the model, asks
// for permissions, runs tools, and writes each step at the commit points of
// design §9, so that nothing acknowledged is lost and no session is ever stuck.
//
// A turn belongs to the Engine, never to the request that started it.
package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/llm"
	"github.com/switchyard-dev/switchyard/permission"
	"github.com/switchyard-dev/switchyard/question"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/snapshot"
	"github.com/switchyard-dev/switchyard/tool"
)

// Config wires an Engine.
type Config struct {
	Sessions    *session.Service
	Permissions *permission.Service
	Questions   *question.Service
	Tools       *tool.Registry
	Workplaces  Workplaces
	// Attachments nil leaves the files of tools in their parts.
	Attachments Attachments
	// Snapshots keeps what calls change in files; nil keeps nothing.
	Snapshots *snapshot.Service
	IDs       *id.Source
	// Owner and Generation name this server's runs in the store.
	Owner      string
	Generation int64
	// Lease is the right to run turns where servers share a store; nil for a
	// store of one server.
	Lease Lease
	// Mark goes into the environment of the runs' children.
	Mark env.Mark
	// Resume lets turns that a crash cut off go on (config recover: resume).
	Resume bool
	// Scan is how often to look for turns of other servers that are gone; 0 is
	// never, for a store of one server.
	Scan  time.Duration
	Retry llm.RetryPolicy
	Log   *slog.Logger
}

// Engine runs the turns of this server. It is safe for concurrent use.
type Engine struct {
	sessions    *session.Service
	permissions *permission.Service
	questions   *question.Service
	tools       *tool.Registry
	places      Workplaces
	attachments Attachments
	snapshots   *snapshot.Service
	ids         *id.Source
	owner       string
	generation  atomic.Int64 // raised by each new term of the lease
	lease       Lease
	resume      bool
	mark        env.Mark
	retry       llm.RetryPolicy
	log         *slog.Logger
	scan        time.Duration
	troubled    chan struct{}  // wakes the caretaker
	changed     *event.Wakeups // keyed by session: a turn began or ended

	ctx  context.Context // the life of all turns: they outlive every request
	stop context.CancelCauseFunc
	wg   sync.WaitGroup

	mu      sync.Mutex // protects what follows
	runs    map[id.Session]*turn
	closing bool
	// entitling are the sessions whose titles are being made.
	entitling map[id.Session]bool
}

// The causes that end a turn from outside.
var (
	errCancelled = errors.New("the turn was cancelled")
	errStopping  = errors.New("the server is stopping")
	// errGone ends a turn whose server stopped, when it does not go on.
	errGone = errors.New("the server stopped while the turn ran")
	// errParked leaves a turn as it is: it waits for a person, and the next
	// server takes it up.
	errParked = errors.New("the turn waits for the next server")
)

// New makes an Engine that works until Close.
func New(ctx context.Context, c Config) *Engine {
	run, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	e := &Engine{
		sessions: c.Sessions, permissions: c.Permissions, questions: c.Questions, tools: c.Tools, places: c.Workplaces, ids: c.IDs,
		owner: c.Owner, lease: c.Lease, resume: c.Resume, mark: c.Mark, retry: c.Retry, log: c.Log, changed: event.NewWakeups(),
		scan: c.Scan, attachments: c.Attachments, snapshots: c.Snapshots, troubled: make(chan struct{}, 1), ctx: run, stop: stop, runs: map[id.Session]*turn{},
		entitling: map[id.Session]bool{},
	}
	e.generation.Store(c.Generation)
	e.wg.Go(func() { e.tend(run) })
	return e
}

// Prompt admits a prompt and, when the session is idle, starts its turn. It
// returns as soon as the prompt is stored.
func (e *Engine) Prompt(ctx context.Context, a session.Admission) (session.Admitted, error) {
	if err := e.mayAdmit(); err != nil {
		return session.Admitted{}, err
	}
	a.Owner, a.Generation = e.owner, e.generation.Load()
	out, err := e.sessions.Admit(ctx, a)
	e.trouble(err)
	if err != nil {
		return out, err
	}
	if out.Started != nil {
		e.start(*out.Started, nil)
	}
	return out, nil
}

// mayAdmit refuses work that this server could not start.
func (e *Engine) mayAdmit() error {
	if e.isClosing() {
		return fault.New(fault.Stopping, "the server is stopping")
	}
	if !e.mayRun() {
		return fault.New(fault.StoreUnavailable, "this server may not run turns at the moment; try again")
	}
	return nil
}

// start runs a turn in a goroutine of the Engine; l is set when the turn lost an
// earlier run.
func (e *Engine) start(run session.Run, l *lost) { e.launch(&turn{run: run, lost: l}) }

func (e *Engine) launch(t *turn) {
	run := t.run
	ctx, cancel := context.WithCancelCause(e.ctx)
	t.engine, t.cancel, t.files = e, cancel, &seenFiles{seen: map[string]string{}}
	e.mu.Lock()
	if e.closing || run.Generation != e.generation.Load() {
		// The row says running; the next start, or term, of a server settles it.
		e.mu.Unlock()
		cancel(errStopping)
		return
	}
	e.runs[run.SessionID] = t
	e.wg.Add(1)
	e.mu.Unlock()
	go func() {
		defer e.wg.Done()
		defer cancel(nil)
		next := t.work(ctx)
		e.mu.Lock()
		if e.runs[run.SessionID] == t {
			delete(e.runs, run.SessionID)
		}
		e.mu.Unlock()
		if next != nil {
			e.start(*next, nil)
		}
		e.changed.Wake(string(run.SessionID))
	}()
}

// Interrupt stops what a session and those below it are doing. It returns once
// the wish is stored; the turns then end by themselves within seconds. A turn
// whose run is gone is ended here. On an idle session it does nothing.
func (e *Engine) Interrupt(ctx context.Context, ses id.Session) error {
	below, err := e.sessions.OpenBelow(ctx, ses)
	if err != nil {
		return err
	}
	for _, at := range append([]id.Session{ses}, below...) {
		if err := e.interrupt(ctx, at); err != nil && (at == ses || !fault.Is(err, fault.SessionNotFound)) {
			return err
		}
	}
	return nil
}

func (e *Engine) interrupt(ctx context.Context, ses id.Session) error {
	open, busy, err := e.sessions.Interrupt(ctx, ses)
	if err != nil || !busy {
		return err
	}
	if t := e.running(ses); t != nil && t.run.TurnID == open.ID {
		t.cancel(errCancelled)
		return nil
	}
	if open.Owner != e.owner {
		e.sessions.TellInterrupt(ses) // its owner reads the wish, now or at the next boundary
		return nil
	}
	err = e.sessions.ForceEnd(ctx, open, session.Cancelled, chat.NewError(chat.ErrAborted, "the run was gone"), e.settleParts)
	e.changed.Wake(string(ses))
	return err
}

func (e *Engine) running(ses id.Session) *turn {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runs[ses]
}

// Forget ends the runs of deleted sessions. Their rows are gone, so the runs can
// write nothing; this stops what they do outside of the store.
func (e *Engine) Forget(sessions []id.Session) {
	for _, ses := range sessions {
		if t := e.running(ses); t != nil {
			t.cancel(session.ErrLost)
		}
		e.changed.Wake(string(ses))
	}
}

// Interrupted obeys a wish to stop that another server stored.
func (e *Engine) Interrupted(ses id.Session) {
	if t := e.running(ses); t != nil {
		t.cancel(errCancelled)
	}
}

// Woken looks again at what waits for a session's turns to begin or end.
func (e *Engine) Woken(ses id.Session) { e.changed.Wake(string(ses)) }

// Drop stops all runs at once, without a word in the store: this server has lost
// the right to write them. Whoever has it takes the turns over.
func (e *Engine) Drop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range e.runs {
		t.cancel(session.ErrLost)
	}
}

// Active gives the status of every session that is not idle.
func (e *Engine) Active(ctx context.Context) (map[id.Session]session.Status, error) {
	out, err := e.sessions.Statuses(ctx)
	if err != nil {
		return nil, err
	}
	for ses := range out {
		if t := e.running(ses); t != nil {
			if retry, ok := t.retrying(); ok {
				out[ses] = retry
			}
		}
	}
	return out, nil
}

// Close stops all turns and waits until each has written its end. Running turns
// end as interrupted.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closing = true
	e.mu.Unlock()
	e.stop(errStopping)
	e.wg.Wait()
	return nil
}
