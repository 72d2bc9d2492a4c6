package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/switchyard-dev/switchyard/agent/definition"
	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/failpoint"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/tool"
)

const (
	// DefaultDepth is how many levels of sessions may be below a root.
	DefaultDepth = 1
	// delegateStop is how long a cancelled call waits for the end of its child: a
	// little longer than stopping a process group takes.
	delegateStop = 4 * time.Second
)

// taskName is the tool that delegates.
const taskName = "task"

// depth is how many levels of sessions may be below a root.
func (s Settings) depth() int { return cmp.Or(s.Depth, DefaultDepth) }

type delegate struct{ r *callRun }

// Delegate is part of tool.Delegate: the task is a prompt in a child session,
// whose turn is one like any other. The child's ids follow from the call's, so
// that running the call again after a crash finds the same child.
func (d delegate) Delegate(ctx context.Context, c *tool.Call, in tool.Task) (tool.TaskResult, error) {
	a, err := d.agent(in.Agent)
	if err != nil {
		return tool.TaskResult{}, err
	}
	failpoint.Before(failpoint.Delegate)
	child, err := d.child(ctx, in, a)
	if err != nil {
		return tool.TaskResult{}, err
	}
	failpoint.After(failpoint.Delegate)
	out := tool.TaskResult{SessionID: child}
	if err := d.show(ctx, child); err != nil {
		return out, err
	}
	turn, err := d.prompt(ctx, child, in, a)
	if err != nil {
		return out, err
	}
	e := d.r.of.turn.engine
	done, err := e.Wait(ctx, WaitInput{SessionID: child, TurnID: turn})
	if err != nil {
		return out, d.stop(ctx, child, err)
	}
	out.Text, err = d.report(ctx, child, done)
	return out, err
}

// agent finds the agent for a task.
func (d delegate) agent(name string) (definition.Agent, error) {
	agents := definition.Subagents(d.r.of.set.Agents)
	var names []string
	for _, a := range agents {
		if a.Name == name {
			return a, nil
		}
		names = append(names, a.Name)
	}
	return definition.Agent{}, fault.New(fault.AgentUnknown, "There is no agent %q for tasks. There are: %s.", name, strings.Join(names, ", "))
}

// child gives the session of a task: a new one, or an earlier one of this tree.
func (d delegate) child(ctx context.Context, in tool.Task, a definition.Agent) (id.Session, error) {
	t := d.r.of.turn
	if in.TaskID != "" {
		return d.resume(ctx, id.Session(in.TaskID))
	}
	if limit := d.r.of.set.depth(); t.level >= limit {
		return "", fault.New(fault.Forbidden, "Tasks may be %d levels deep at most (subagent_depth). Do this one yourself.", limit)
	}
	ses, err := t.engine.sessions.Create(ctx, session.CreateInput{
		ID: id.Session("ses_" + d.key()), ParentID: t.run.SessionID, ProjectID: t.row.ProjectID, Context: t.row.Context(),
		Path: t.row.Path, Title: in.Description, Agent: a.Name, Permission: slices.Concat(t.row.Permission, denies(d.r.of.set.agent)),
	})
	return ses.ID, err
}

// denies are what an agent may never do; its children may not either. Exceptions
// stay with the agent: as rules of a session they would lift configured denies.
func denies(a definition.Agent) []rule.Rule {
	return slices.DeleteFunc(slices.Clone(a.Guard()), func(r rule.Rule) bool { return r.Action != rule.Deny })
}

// key is the part of the call's id that the ids of the child and its prompt share.
func (d delegate) key() string {
	_, key, _ := strings.Cut(string(d.r.rowID), "_")
	return key
}

func (d delegate) resume(ctx context.Context, ses id.Session) (id.Session, error) {
	t := d.r.of.turn
	row, err := t.engine.sessions.Get(ctx, ses)
	if err == nil && row.RootSessionID == t.row.RootSessionID && ses != t.run.SessionID {
		var above []id.Session
		above, err = t.engine.sessions.Ancestors(ctx, t.run.SessionID)
		if err == nil && !slices.Contains(above, ses) {
			return ses, nil
		}
	}
	if err != nil && !fault.Is(err, fault.SessionNotFound) {
		return "", err
	}
	return "", fault.New(fault.SessionNotFound, "There is no task %q here. Leave task_id out to begin a new one.", ses)
}

// show tells clients where the task is worked on, from the beginning.
func (d delegate) show(ctx context.Context, child id.Session) error {
	r := d.r
	r.block.open.Change(func(chat.Part) {
		if running, ok := r.part.State.(*chat.ToolRunning); ok {
			running.Metadata = map[string]any{"sessionID": child}
		}
	})
	cs := r.of
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.write(ctx, r, func(context.Context, *store.Tx) error { return nil })
}

func (d delegate) prompt(ctx context.Context, child id.Session, in tool.Task, a definition.Agent) (id.Turn, error) {
	t := d.r.of.turn
	model := d.r.of.set.ref
	if a.Model != nil {
		model = *a.Model
	}
	admitted, err := t.engine.Prompt(ctx, session.Admission{
		SessionID: child, MessageID: id.Message("msg_" + d.key()), Prompt: session.Prompt{Text: in.Prompt}, Delivery: session.Deferred,
		Agent: a.Name, Model: model, Body: []byte(in.Prompt),
	})
	if err != nil {
		return "", err
	}
	if !admitted.Delivered {
		return "", nil // it waits behind another; then all of it is waited for
	}
	return admitted.TurnID, nil
}

// stop takes the wish to stop on to the child, whose end is waited for. A server
// that stops or has lost its lease ends its other turns by itself.
func (d delegate) stop(ctx context.Context, child id.Session, cause error) error {
	if stopping(ctx) || isLost(ctx, cause) || ctx.Err() == nil {
		return cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), delegateStop)
	defer cancel()
	e := d.r.of.turn.engine
	if err := e.Interrupt(ctx, child); err != nil {
		return errors.Join(cause, err)
	}
	_, _ = e.Wait(ctx, WaitInput{SessionID: child}) // its end is written by its own turn
	return cause
}

// report gives the last words of the child's turn.
func (d delegate) report(ctx context.Context, child id.Session, done WaitResult) (string, error) {
	if done.Outcome != string(session.Completed) {
		why := ""
		if done.Turn.Error != nil {
			why = ": " + done.Turn.Error.Data.Message
		}
		return "", fault.New(fault.Internal, "The task ended as %s%s", done.Outcome, why)
	}
	sessions := d.r.of.turn.engine.sessions
	answer, err := sessions.LastAnswer(ctx, child, done.Turn.ID)
	if err != nil || answer == nil {
		return "", err
	}
	raw, err := sessions.MessageGet(ctx, child, answer.ID)
	if err != nil {
		return "", err
	}
	items, err := session.Items([]json.RawMessage{raw})
	if err != nil {
		return "", fmt.Errorf("reading the report of %s: %w", child, err)
	}
	var texts []string
	for _, p := range items[0].Parts {
		if text, ok := p.(*chat.TextPart); ok && text.Text != "" {
			texts = append(texts, text.Text)
		}
	}
	return strings.Join(texts, "\n\n"), nil
}
