package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/cli/internal/remote"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/session"
)

const runLong = `Run one turn and follow it: the answer goes to the standard output, tool calls and
remarks to the standard error. The prompt is the arguments, or the standard input
when there are none or the only one is "-".

The turn runs on the server that is named or runs here; where there is none, a
server is started inside this program for the time of the turn.

When the agent wants a permission or has a question you are asked on the terminal.
Without one, requests are rejected with that reason, so that the agent can go on
without them; --yes allows every permission once. An interrupt (^C) stops the turn.

Exit codes: 0 the turn completed, 1 it failed or the server refused, 2 wrong usage,
3 no server to be reached, 130 interrupted or cancelled.`

const runExample = `  switchyard run "explain this repository"
  switchyard run --model anthropic/claude-sonnet-4-5 "add a test for the parser"
  git diff | switchyard run
  switchyard run --session ses_01J… "and now the second one"
  switchyard run --yes --json "run the tests" | jq .type`

// runFlags are the flags of run as they were given.
type runFlags struct {
	to                                          remote.Connection
	session, agent, model, directory, workspace string
	asJSON, yes                                 bool
}

func runCommand(cfg Config) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use: "run [PROMPT...]", Short: "Run a prompt and follow the turn", Long: runLong, Example: runExample,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd, cfg, args) },
	}
	flags := cmd.Flags()
	f.to.Flags(flags)
	flags.StringVar(&f.session, "session", "", "go on in the session with this `id` (default: a new one)")
	flags.StringVar(&f.agent, "agent", "", "`agent` to run (default: the session's, else the configured one)")
	flags.StringVar(&f.model, "model", "", "model to run, as `provider/model`")
	flags.StringVar(&f.directory, "directory", "", "`directory` of a new session (default: the working directory)")
	flags.StringVar(&f.workspace, "workspace", "", "workspace of a new session, by its `id`")
	flags.BoolVar(&f.asJSON, "json", false, "print every event as one JSON text a line")
	flags.BoolVar(&f.yes, "yes", false, "allow every permission that is asked for, once")
	if err := cmd.MarkFlagDirname("directory"); err != nil { // The flag is there.
		panic("cli: " + err.Error())
	}
	complete(cmd, "session", nil)
	complete(cmd, "agent", []string{"build", "plan"})
	complete(cmd, "model", nil)
	return cmd
}

func (f *runFlags) run(cmd *cobra.Command, cfg Config, args []string) error {
	prompt, err := promptOf(args, cmd.InOrStdin())
	if err != nil {
		return err
	}
	model, err := parseModel(f.model)
	if err != nil {
		return err
	}
	if f.session != "" && (f.directory != "" || f.workspace != "") {
		return remote.Usagef("a session has a directory of its own: leave --directory and --workspace out")
	}
	ctx := cmd.Context()
	server, stop, err := f.server(ctx, cfg)
	if err != nil {
		return err
	}
	err = f.turn(ctx, cmd, server, prompt, model)
	return errors.Join(err, stop())
}

// promptOf gives the text to send.
func promptOf(args []string, stdin io.Reader) (string, error) {
	text := strings.Join(args, " ")
	if text == "-" || len(args) == 0 && !isTerminal(stdin) {
		data, err := io.ReadAll(stdin)
		if err != nil {
			return "", fmt.Errorf("reading the prompt: %w", err)
		}
		text = string(data)
	}
	if strings.TrimSpace(text) == "" {
		return "", remote.Usagef(`there is no prompt: give it as an argument, or as standard input`)
	}
	return text, nil
}

func parseModel(s string) (*chat.ModelRef, error) {
	if s == "" {
		return nil, nil
	}
	provider, model, ok := strings.Cut(s, "/")
	if !ok || provider == "" || model == "" {
		return nil, remote.Usagef("--model is provider/model, not %q", s)
	}
	return &chat.ModelRef{ProviderID: provider, ModelID: model}, nil
}

// server gives a client of the server to run on, and what ends the server where
// it is one of our own.
func (f *runFlags) server(ctx context.Context, cfg Config) (*remote.Client, func() error, error) {
	none := func() error { return nil }
	server, err := f.to.Find(ctx, cfg.program())
	if !errors.Is(err, remote.ErrNoServer) || cfg.Embedded == nil {
		return server, none, err
	}
	base, token, stop, err := cfg.Embedded(ctx, f.to.State)
	if err != nil {
		return nil, none, fmt.Errorf("starting a server for this turn: %w", err)
	}
	return remote.NewClient(cfg.program(), base, token), stop, nil
}

func (f *runFlags) turn(ctx context.Context, cmd *cobra.Command, server *remote.Client, text string, model *chat.ModelRef) error {
	ses, err := f.conversation(ctx, server, model)
	if err != nil {
		return err
	}
	v := newView(cmd.OutOrStdout(), cmd.ErrOrStderr())
	prompt := map[string]any{
		"sessionID": ses.ID, "prompt": session.Prompt{Text: text}, "messageID": id.New[id.Message](id.NewSource(time.Now, nil)),
	}
	if f.session != "" {
		choose(prompt, f.agent, model)
	}
	t := &turn{server: server, session: ses.ID, prompt: prompt, view: v, asJSON: f.asJSON}
	t.asks = &asker{server: server, yes: f.yes, say: v.note, open: func() (*terminal, error) {
		if !isTerminal(cmd.InOrStdin()) && !isTerminal(cmd.ErrOrStderr()) {
			return nil, errNobody
		}
		return openTerminal()
	}}
	defer func() { _ = t.asks.Close() }() // nothing was written to it
	if !f.asJSON {
		v.note("session " + string(ses.ID) + " in " + ses.Directory)
	}
	return t.run(ctx)
}

// conversation gives the session to run in.
func (f *runFlags) conversation(ctx context.Context, server *remote.Client, model *chat.ModelRef) (session.Session, error) {
	var ses session.Session
	if f.session != "" {
		err := server.Call(ctx, "session.get", remote.Arguments{Values: map[string]any{"sessionID": f.session}}, &ses)
		return ses, err
	}
	var given []string
	if f.directory != "" {
		given = []string{f.directory}
	}
	list, err := directories(given, f.workspace != "")
	if err != nil {
		return ses, err
	}
	a := remote.Arguments{Values: map[string]any{}, Directories: list, Workspace: f.workspace}
	choose(a.Values, f.agent, model)
	err = server.Call(ctx, "session.create", a, &ses)
	return ses, err
}

// choose puts the agent and the model into an input where they are given.
func choose(input map[string]any, agent string, model *chat.ModelRef) {
	if agent != "" {
		input["agent"] = agent
	}
	if model != nil {
		input["model"] = model
	}
}
