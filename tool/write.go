package tool

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/tool/input"
	"github.com/switchyard-dev/switchyard/tool/output"
)

//go:embed write.md
var writeDoc string

type writeInput struct {
	Path    string `json:"path" alias:"filePath,file_path" doc:"File to write, relative to the working directory or absolute."`
	Content string `json:"content" doc:"The whole new content."`
}

type writeTool struct{ info Info }

func newWrite() Tool {
	return writeTool{Info{
		Name: "write", Description: writeDoc, Schema: input.Schema[writeInput](), Class: Write, Permission: permEdit,
	}}
}

func (t writeTool) Info() Info { return t.info }

func (t writeTool) Plan(_ context.Context, c *Call) (Plan, error) {
	ch, err := t.prepare(c)
	if err != nil && ch.dir != "" {
		return ch.unseen(), nil
	}
	if err != nil {
		return Plan{}, err
	}
	return ch.plan(), nil
}

func (t writeTool) Run(ctx context.Context, c *Call) (Result, error) {
	ch, err := t.prepare(c)
	if err != nil {
		return Result{}, err
	}
	res, err := ch.apply(ctx, c)
	if err != nil {
		return res, err
	}
	verb := "Created"
	if ch.existed {
		verb = "Replaced"
	}
	res.Output = fmt.Sprintf("%s %s (%d lines).", verb, c.show(ch.abs), output.Lines(ch.after))
	return res, nil
}

func (t writeTool) prepare(c *Call) (change, error) {
	in, err := input.Decode[writeInput](c.Input)
	if err == nil {
		err = fileName(in.Path)
	}
	if err != nil {
		return change{}, err
	}
	at, err := c.locate(in.Path, false)
	if err != nil {
		return change{}, err
	}
	ch, err := c.load(at)
	if err != nil {
		return ch, c.explain(at, err)
	}
	if ch.existed && c.stale(ch.abs, ch.oldHash()) {
		return ch, fault.New(fault.ETagMismatch,
			"%s has changed since you read it. Read it again before you replace it.", c.show(ch.abs))
	}
	ch.after = in.Content
	if strings.HasPrefix(ch.before, bom) && !strings.HasPrefix(in.Content, bom) {
		ch.after = bom + in.Content
	}
	return ch, nil
}
