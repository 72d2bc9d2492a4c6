package tool

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/tool/input"
	"github.com/switchyard-dev/switchyard/tool/output"
	"github.com/switchyard-dev/switchyard/tool/shell"
)

//go:embed bash.md
var bashDoc string

const (
	defaultTimeout = 120000   // ms
	maxCommand     = 64 << 10 // bytes
	maxTitle       = 100      // bytes
)

var errTimeout = errors.New("the command took too long")

type bashInput struct {
	Command     string `json:"command" alias:"cmd" doc:"Command line for the shell."`
	Description string `json:"description,omitempty" doc:"What it does, in 5 to 10 words, for the user."`
	Workdir     string `json:"workdir,omitempty" alias:"cwd" doc:"Directory to run in; the working directory without it. Better than cd."`
	Timeout     int    `json:"timeout,omitempty" min:"1" max:"600000" doc:"Milliseconds after which it is stopped; 120000 without it."`
}

type bashTool struct{ info Info }

func newBash() Tool {
	return bashTool{Info{
		Name: permBash, Description: bashDoc, Schema: input.Schema[bashInput](), Class: Effect, Permission: permBash,
	}}
}

func (t bashTool) Info() Info { return t.info }

func (t bashTool) input(c *Call) (bashInput, target, error) {
	in, err := input.Decode[bashInput](c.Input)
	switch {
	case err != nil:
		return in, target{}, err
	case strings.TrimSpace(in.Command) == "":
		return in, target{}, invalid("The input is not valid: command must not be empty.")
	case strings.ContainsRune(in.Command, 0):
		return in, target{}, invalid("The input is not valid: command must not contain NUL characters.")
	case len(in.Command) > maxCommand:
		return in, target{}, invalid("The input is not valid: command is longer than %d KiB. Write a script to a file and run that.", maxCommand>>10)
	}
	in.Timeout = cmp.Or(in.Timeout, defaultTimeout)
	at, err := c.locate(in.Workdir, false)
	if err == nil && at.dir != "" {
		at.dir = at.abs
	}
	return in, at, err
}

func (t bashTool) Plan(_ context.Context, c *Call) (Plan, error) {
	in, at, err := t.input(c)
	if err != nil {
		return Plan{}, err
	}
	r := shell.Read(in.Command, at.abs)
	metadata := map[string]any{"command": in.Command}
	if in.Description != "" {
		metadata["description"] = in.Description
	}
	if in.Workdir != "" {
		metadata["workdir"] = at.abs
	}
	own := Ask{Permission: permBash, Patterns: []string{}, Always: []string{}, Metadata: metadata, Opaque: r.Opaque, Veto: r.Veto}
	for _, cmd := range r.Commands {
		own.Patterns = append(own.Patterns, cmd.Text)
		if cmd.Plain {
			own.Always = append(own.Always, exact([]string{cmd.Text})...)
		}
	}
	outside, linked := c.outside(r.Paths)
	if linked {
		own.Opaque = append(own.Opaque, throughLink)
	}
	if len(own.Opaque) > 0 {
		metadata["opaque"] = own.Opaque
	}
	if at.dir != "" {
		outside = append([]string{at.dir}, outside...)
	}
	p := Plan{}
	if len(outside) > 0 {
		p.Asks = append(p.Asks, externalAsk(outside, map[string]any{"command": in.Command}))
	}
	p.Asks = append(p.Asks, own)
	return p, nil
}

// outside gives the directories outside of the root that the paths of a command
// are in, and whether one of the paths may be elsewhere than its name says.
func (c *Call) outside(paths []shell.Path) (dirs []string, linked bool) {
	for _, p := range paths {
		clean := path.Clean(p.Name)
		dir := clean
		if !p.Dir && clean != "/" && strings.Contains(clean, "/") {
			dir = path.Dir(clean)
		}
		if strings.HasPrefix(p.Name, "~") {
			dirs = append(dirs, dir)
			continue
		}
		linked = linked || c.turns(p.Name)
		switch _, err := c.locate(clean, false); {
		case err != nil:
			// Through a link out of the root, or to nowhere that can be told.
			linked = true
			dirs = append(dirs, dir)
		case !c.contains(clean):
			dirs = append(dirs, dir)
		}
	}
	return dirs, linked
}

func (c *Call) contains(abs string) bool {
	_, err := c.Env.Files().Rel(abs)
	return err == nil
}

// turns reports a path that goes up from a symbolic link: there the shell's
// programs and the clean form of the path part ways.
func (c *Call) turns(name string) bool {
	at := "/"
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." && at != "/" {
			if link, _, err := c.lookOutside(at); err != nil || link != "" {
				return true
			}
		}
		at = path.Join(at, part)
	}
	return false
}

func (t bashTool) Run(ctx context.Context, c *Call) (Result, error) {
	in, at, err := t.input(c)
	if err != nil {
		return Result{}, err
	}
	limit := time.Duration(in.Timeout) * time.Millisecond
	running, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	out := output.NewCapture(c.Progress)
	exit, err := start(running, c, in, at, out)
	if err != nil {
		return Result{}, c.explain(at, err)
	}
	res := Result{
		Title:    cmp.Or(in.Description, firstLine(in.Command)),
		Metadata: map[string]any{"exit": exit.Code, "took": exit.Took.Milliseconds(), "captureTruncated": out.Dropped() > 0},
	}
	if in.Description != "" {
		res.Metadata["description"] = in.Description
	}
	if exit.Signal != "" {
		res.Metadata["signal"] = exit.Signal
	}
	note := ""
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
		res.Metadata["interrupted"] = true
		note = "The command was interrupted by the user."
	case running.Err() != nil:
		res.Metadata["timeout"] = true
		note = fmt.Sprintf("The command was stopped because it took longer than %v. Use a longer timeout if it needs one.", limit)
	case exit.Err != nil:
		return res, fmt.Errorf("running a command: %w", exit.Err)
	case exit.Signal != "":
		note = fmt.Sprintf("The command was ended by %s.", exit.Signal)
	case exit.Code != 0:
		note = fmt.Sprintf("The command ended with exit code %d.", exit.Code)
	}
	res.Output = withNote(out.Text(), note)
	res.Metadata["output"] = res.Output
	return res, err
}

// start runs the command until it has ended, or until its group has been
// stopped because ctx ended.
func start(ctx context.Context, c *Call, in bashInput, at target, out *output.Capture) (env.Exit, error) {
	command := env.Command{Shell: in.Command, Dir: at.abs, Output: out, Call: c.Mark}
	if at.dir != "" {
		// Processes start inside of the root; this one was allowed to leave it.
		command.Dir = ""
		command.Shell = "cd -- " + quote(at.abs) + " || exit\n" + in.Command
	}
	p, err := c.Env.Start(ctx, command)
	if err != nil {
		return env.Exit{}, err
	}
	disarm := context.AfterFunc(ctx, p.Stop)
	exit := p.Wait()
	if !disarm() {
		p.Stop() // returns when the stopping that has begun is done
	}
	return exit, nil
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func firstLine(s string) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(s), "\n")
	switch {
	case len(line) > maxTitle:
		return line[:output.RuneStart(line, maxTitle)] + "…"
	case rest != "":
		return line + " …"
	}
	return line
}

func withNote(text, note string) string {
	switch {
	case text == "" && note == "":
		return "(no output)"
	case note == "":
		return text
	case text == "":
		return note
	}
	return strings.TrimSuffix(text, "\n") + "\n\n" + note
}
