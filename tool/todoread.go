package tool

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/tool/input"
)

//go:embed todoread.md
var todoReadDoc string

type todoReadInput struct{}

type todoReadTool struct{ info Info }

func newTodoRead() Tool {
	return todoReadTool{Info{
		Name: "todoread", Description: todoReadDoc, Schema: input.Schema[todoReadInput](), Class: Read, Permission: "todoread",
	}}
}

func (t todoReadTool) Info() Info { return t.info }

func (t todoReadTool) Plan(context.Context, *Call) (Plan, error) {
	return wholePlan("todoread"), nil
}

func (t todoReadTool) Run(ctx context.Context, c *Call) (Result, error) {
	if c.Todos == nil {
		return Result{}, unavailable("todoread")
	}
	todos, err := c.Todos.Todos(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("reading todos: %w", err)
	}
	if todos == nil {
		todos = []chat.Todo{}
	}
	return todoResult(todos)
}
