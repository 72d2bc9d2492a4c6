package tool

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/tool/input"
)

//go:embed todowrite.md
var todoWriteDoc string

const maxTodos = 200

type todoWriteInput struct {
	Todos []todoInput `json:"todos" doc:"The whole list, in order."`
}

type todoInput struct {
	Content  string `json:"content" doc:"What is to be done."`
	Status   string `json:"status" enum:"pending,in_progress,completed,cancelled"`
	Priority string `json:"priority,omitempty" enum:"high,medium,low" doc:"medium without it."`
}

type todoWriteTool struct{ info Info }

func newTodoWrite() Tool {
	return todoWriteTool{Info{
		Name: "todowrite", Description: todoWriteDoc, Schema: input.Schema[todoWriteInput](), Class: Keyed, Permission: "todowrite",
	}}
}

func (t todoWriteTool) Info() Info { return t.info }

func (t todoWriteTool) input(c *Call) ([]chat.Todo, error) {
	in, err := input.Decode[todoWriteInput](c.Input)
	if err != nil {
		return nil, err
	}
	if len(in.Todos) > maxTodos {
		return nil, invalid("The input is not valid: todos must have at most %d entries.", maxTodos)
	}
	todos := make([]chat.Todo, 0, len(in.Todos))
	for _, one := range in.Todos {
		if one.Priority == "" {
			one.Priority = "medium"
		}
		todos = append(todos, chat.Todo{Content: one.Content, Status: one.Status, Priority: one.Priority})
	}
	return todos, nil
}

func (t todoWriteTool) Plan(_ context.Context, c *Call) (Plan, error) {
	if _, err := t.input(c); err != nil {
		return Plan{}, err
	}
	return wholePlan("todowrite"), nil
}

func (t todoWriteTool) Run(ctx context.Context, c *Call) (Result, error) {
	todos, err := t.input(c)
	if err != nil {
		return Result{}, err
	}
	if c.Todos == nil {
		return Result{}, unavailable("todowrite")
	}
	if err := c.Todos.SetTodos(ctx, todos); err != nil {
		return Result{}, fmt.Errorf("keeping todos: %w", err)
	}
	return todoResult(todos)
}

// todoResult shows a list; the model gets it as JSON.
func todoResult(todos []chat.Todo) (Result, error) {
	open := 0
	for _, one := range todos {
		if one.Status == "pending" || one.Status == "in_progress" {
			open++
		}
	}
	data, err := json.MarshalIndent(todos, "", "  ")
	if err != nil {
		return Result{}, fmt.Errorf("writing todos: %w", err)
	}
	return Result{Title: fmt.Sprintf("%d todos", open), Output: string(data), Metadata: map[string]any{"todos": todos}}, nil
}

// wholePlan is the plan of a tool whose permission has no parts.
func wholePlan(permission string) Plan {
	return Plan{Asks: []Ask{{Permission: permission, Patterns: []string{"*"}, Always: []string{"*"}, Metadata: map[string]any{}}}}
}

func unavailable(name string) error {
	return fault.New(fault.ValidationFailed, "The tool %s is not available in this session.", name)
}
