package tool

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/tool/input"
	"github.com/switchyard-dev/switchyard/tool/match"
)

//go:embed edit.md
var editDoc string

type editInput struct {
	Path       string `json:"path" alias:"filePath,file_path" doc:"File to change, relative to the working directory or absolute."`
	OldString  string `json:"oldString" alias:"old_string,oldText" doc:"Text to replace, exactly as in the file, without line numbers."`
	NewString  string `json:"newString" alias:"new_string,newText" doc:"Text to put in its place."`
	ReplaceAll bool   `json:"replaceAll,omitempty" alias:"replace_all" doc:"Replace every occurrence instead of exactly one."`
}

type editTool struct{ info Info }

func newEdit() Tool {
	return editTool{Info{
		Name: "edit", Description: editDoc, Schema: input.Schema[editInput](), Class: Write, Permission: permEdit,
	}}
}

func (t editTool) Info() Info { return t.info }

func (t editTool) Plan(_ context.Context, c *Call) (Plan, error) {
	ch, _, err := t.prepare(c)
	if err != nil && ch.dir != "" {
		return ch.unseen(), nil
	}
	if err != nil {
		return Plan{}, err
	}
	return ch.plan(), nil
}

func (t editTool) Run(ctx context.Context, c *Call) (Result, error) {
	ch, n, err := t.prepare(c)
	if err != nil {
		return Result{}, err
	}
	res, err := ch.apply(ctx, c)
	if err != nil {
		return res, err
	}
	res.Metadata["replacements"] = n
	res.Output = fmt.Sprintf("Replaced 1 occurrence in %s.", c.show(ch.abs))
	if n > 1 {
		res.Output = fmt.Sprintf("Replaced %d occurrences in %s.", n, c.show(ch.abs))
	}
	return res, nil
}

// prepare reads the file and makes the change; n is how many places it has.
func (t editTool) prepare(c *Call) (ch change, n int, err error) {
	in, err := input.Decode[editInput](c.Input)
	if err == nil {
		err = fileName(in.Path)
	}
	switch {
	case err != nil:
		return ch, 0, err
	case in.OldString == "":
		return ch, 0, invalid("oldString must not be empty. Use write to create a file or to replace all of one.")
	case in.OldString == in.NewString:
		return ch, 0, invalid("oldString and newString are equal: there is nothing to change.")
	}
	at, err := c.locate(in.Path, false)
	if err != nil {
		return ch, 0, err
	}
	if ch, err = c.load(at); err != nil {
		return ch, 0, c.explain(at, err)
	}
	if !ch.existed {
		return ch, 0, fault.New(fault.FileNotFound, "There is no file %s.", c.show(ch.abs))
	}
	if binary([]byte(ch.before[:min(len(ch.before), sniffed)])) {
		return ch, 0, fault.New(fault.NotAFile, "%s is a binary file and cannot be edited.", c.show(ch.abs))
	}
	ch.after, n, err = match.Replace(ch.before, in.OldString, in.NewString, in.ReplaceAll)
	if err != nil && c.stale(ch.abs, ch.oldHash()) {
		err = fault.New(fault.ETagMismatch, "%s The file has changed since you read it; read it again.", Message(err))
	}
	if err == nil && ch.after == ch.before {
		err = invalid("The file already is as it would be after this edit: there is nothing to change.")
	}
	return ch, n, err
}
