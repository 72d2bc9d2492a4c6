package tool

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/tool/input"
)

//go:embed task.md
var taskDoc string

// Task is a piece of work for another agent (opencode contract §9).
type Task struct {
	Description string `json:"description" doc:"The task in 3 to 5 words, for people."`
	Prompt      string `json:"prompt" doc:"The whole task. The agent sees nothing else."`
	Agent       string `json:"subagent_type" doc:"The agent that does it."`
	TaskID      string `json:"task_id,omitempty" doc:"An earlier task to go on with."`
}

// TaskResult is what an agent reports.
type TaskResult struct {
	SessionID id.Session
	Text      string
}

// Delegate gives tasks to other agents.
type Delegate interface {
	// Delegate waits until the task is done. Doing the same call again does the
	// task once. A task that fails, or that nobody may do, is an error of the call;
	// the result names the session as soon as there is one.
	Delegate(ctx context.Context, c *Call, t Task) (TaskResult, error)
}

type taskTool struct{ info Info }

func newTask() Tool {
	return taskTool{Info{
		Name: "task", Description: taskDoc, Schema: input.Schema[Task](), Class: Keyed, Permission: "task", Concurrent: true,
	}}
}

func (t taskTool) Info() Info { return t.info }

func (t taskTool) input(c *Call) (Task, error) {
	in, err := input.Decode[Task](c.Input)
	if err != nil {
		return in, err
	}
	for name, value := range map[string]string{"description": in.Description, "prompt": in.Prompt, "subagent_type": in.Agent} {
		if strings.TrimSpace(value) == "" {
			return in, invalid("The input is not valid: %s must not be empty.", name)
		}
	}
	return in, nil
}

func (t taskTool) Plan(_ context.Context, c *Call) (Plan, error) {
	in, err := t.input(c)
	if err != nil {
		return Plan{}, err
	}
	return Plan{Asks: []Ask{{
		Permission: "task", Patterns: []string{in.Agent}, Always: []string{in.Agent},
		Metadata: map[string]any{"description": in.Description, "subagent_type": in.Agent},
	}}}, nil
}

func (t taskTool) Run(ctx context.Context, c *Call) (Result, error) {
	in, err := t.input(c)
	if err != nil {
		return Result{}, err
	}
	if c.Delegate == nil {
		return Result{}, unavailable("task")
	}
	done, err := c.Delegate.Delegate(ctx, c, in)
	res := Result{Title: in.Description, Metadata: map[string]any{"subagent_type": in.Agent}}
	if done.SessionID != "" {
		res.Metadata["sessionID"] = done.SessionID
	}
	if err != nil {
		return res, err
	}
	res.Output = fmt.Sprintf("task_id: %s (give it to go on with this task)\n\n<task_result>\n%s\n</task_result>", done.SessionID, done.Text)
	return res, nil
}
