package agent

import (
	"context"
	"fmt"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/failpoint"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/permission"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/tool"
)

// plan finds each call's tool and what it needs. Calls that cannot run get their
// error at once and are not in the result.
func (cs *calls) plan(ctx context.Context) ([]*callRun, error) {
	if err := cs.recall(ctx); err != nil {
		return nil, err
	}
	var out []*callRun
	for _, c := range cs.step.calls {
		b := cs.step.blocks[c.Index]
		if b == nil {
			return nil, fmt.Errorf("the call %q has no part", c.CallID)
		}
		part, ok := b.part.(*chat.ToolPart)
		if !ok {
			return nil, fmt.Errorf("the part of call %q is no tool part", c.CallID)
		}
		r := &callRun{of: cs, block: b, part: part, call: c}
		if earlier, ok := cs.step.begun[part.ID]; ok {
			r.rowID, r.begun = earlier.ID, true
		} else {
			r.rowID = id.New[id.Call](cs.turn.engine.ids)
		}
		refused, err := r.prepare(ctx)
		if err != nil {
			return nil, err
		}
		if refused == "" {
			out = append(out, r)
			continue
		}
		if err := r.refuse(ctx, refused, nil); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// prepare gives the reason why a call cannot run, or "".
func (r *callRun) prepare(ctx context.Context) (refused string, err error) {
	t := r.of.turn
	if r.call.Malformed {
		return "The input of the call is not a JSON object: " + r.call.Raw, nil
	}
	var ok bool
	if r.tool, ok = t.engine.tools.Lookup(r.call.Name); !ok {
		return fmt.Sprintf("There is no tool %q.", r.call.Name), nil
	}
	r.input = t.toolCall(r)
	if r.plan, err = r.tool.Plan(ctx, r.input); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return tool.Message(err), nil
	}
	if r.part.Typed() {
		return "", nil // who typed it need not be asked
	}
	r.plan.Asks = append(r.plan.Asks, r.loopAsks()...)
	decisions := tool.Decide(r.of.set.rules, r.plan)
	if denied, ok := decisions.Denied(); ok {
		return fmt.Sprintf("The rule {permission: %q, pattern: %q, action: deny} does not allow this call.", denied.Permission, denied.Pattern), nil
	}
	if r.begun {
		return "", nil
	}
	if r.waits = r.of.held[r.part.ID]; len(r.waits) > 0 {
		return "", nil // a person was asked before; that answer counts
	}
	for _, d := range decisions.Pending() {
		a := t.permissionAsk(r, d)
		r.asks, r.waits = append(r.asks, a), append(r.waits, a.ID)
	}
	return "", nil
}

// recall finds the requests of a turn that lost its run.
func (cs *calls) recall(ctx context.Context) error {
	if cs.step.begun == nil {
		return nil
	}
	t := cs.turn
	all, err := t.engine.permissions.OfTurn(ctx, t.run.SessionID, t.run.TurnID)
	cs.held = map[id.Part][]id.Permission{}
	for _, h := range all {
		if h.Open() {
			cs.held[h.PartID] = append(cs.held[h.PartID], h.ID)
		}
	}
	return err
}

func (t *turn) permissionAsk(r *callRun, d tool.Decision) permission.Ask {
	per := t.engine.permissions.NewID()
	metadata := d.Ask.Metadata
	if metadata == nil {
		metadata = map[string]any{}
	}
	if len(d.Ask.Opaque) > 0 {
		metadata["opaque"] = d.Ask.Opaque
	}
	return permission.Ask{
		ID: per, Origin: t.run.Origin, Context: t.row.Context(), ProjectID: t.row.ProjectID, TurnID: t.run.TurnID, PartID: r.part.ID,
		Request: rule.Request{
			ID: per, SessionID: t.run.SessionID, RootSessionID: t.row.RootSessionID, Permission: d.Ask.Permission,
			Patterns: list(d.Ask.Patterns), Always: list(d.Ask.Always), Metadata: metadata,
			Tool: &rule.ToolRef{MessageID: r.part.MessageID, CallID: r.part.CallID}, Rule: d.Rule,
			Time: rule.RequestTime{Created: clock.Now()},
		},
	}
}

func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// ask stores all requests of the answer in one write.
func (cs *calls) ask(ctx context.Context, runs []*callRun) error {
	var all []permission.Ask
	waits := 0
	for _, r := range runs {
		all, waits = append(all, r.asks...), waits+len(r.waits)
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.waiting[session.TurnAwaitingPermission] = waits
	if len(all) == 0 {
		return nil
	}
	e := cs.turn.engine
	failpoint.Before(failpoint.Ask)
	defer failpoint.After(failpoint.Ask)
	return e.sessions.Own(ctx, store.Durable, cs.turn.run, func(ctx context.Context, tx *store.Tx) error {
		if err := e.permissions.Add(ctx, tx, all); err != nil {
			return err
		}
		return e.sessions.SetState(ctx, tx, cs.turn.run, session.TurnAwaitingPermission)
	})
}
