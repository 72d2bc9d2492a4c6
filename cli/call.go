package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/switchyard-dev/switchyard/cli/internal/jsonflag"
	"github.com/switchyard-dev/switchyard/cli/internal/remote"
	"github.com/switchyard-dev/switchyard/op"
)

const callLong = `Call an operation of the server. Its input's members are flags: single values as they
are, lists by repeating the flag, anything nested as JSON or @file. Parameters of
the path may be given as arguments instead. --json gives the whole input at once;
flags go over it. The server checks all of it.

Operations that run in a directory use the working directory unless --directory
names another; --directory "" leaves the choice to the server.

JSON is indented on a terminal and as the server sent it elsewhere. Streams print
one JSON text a line.

` + exitHelp

const callExample = `  switchyard call --list
  switchyard call session.list --limit 5 --output table
  switchyard call session.create --title "Mend the parser"
  switchyard call session.prompt ses_01J… --text "Explain this repository."
  switchyard call session.update ses_01J… --json '{"archived": null}'`

// callCommand makes the command whose subcommands are the operations. What an
// operation takes is worked out only when one is called or completed: the whole
// list would cost every start of the program tens of milliseconds.
func callCommand(cfg Config) *cobra.Command {
	cmd := &cobra.Command{
		Use: "call OPERATION", Short: "Call an operation of the server", Long: callLong, Example: callExample,
		DisableFlagParsing: true,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return newCaller(cfg, cmd, args).ExecuteContext(cmd.Context())
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		return completeCall(cfg, cmd, append(slices.Clone(args), word))
	}
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		_ = newCaller(cfg, cmd, nil).Help() // It writes to the terminal: nobody is left to tell.
	})
	return cmd
}

// completeCall completes a command line below call by what cobra does for the
// commands of it.
func completeCall(cfg Config, cmd *cobra.Command, args []string) ([]string, cobra.ShellCompDirective) {
	args = append([]string{cobra.ShellCompRequestCmd}, args...)
	var out bytes.Buffer
	inner := newCaller(cfg, cmd, args)
	inner.SetOut(&out)
	inner.SetErr(io.Discard)
	if inner.ExecuteContext(cmd.Context()) != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	directive, err := strconv.Atoi(strings.TrimPrefix(lines[len(lines)-1], ":"))
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return lines[:len(lines)-1], cobra.ShellCompDirective(directive)
}

const callUsage = `Usage:
  {{.UseLine}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{if .HasAvailableInheritedFlags}}

Server:
{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}
`

// newCaller makes the tree of commands below call. Only operations that args name
// get their flags.
func newCaller(cfg Config, outer *cobra.Command, args []string) *cobra.Command {
	var to remote.Connection
	var format string
	var list bool
	root := &cobra.Command{
		Use: "call OPERATION", Short: outer.Short, Long: outer.Long, Example: outer.Example,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: outer.CommandPath()},
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
	}
	root.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case list && len(args) == 0:
			return listOperations(cmd.OutOrStdout(), cfg)
		case len(args) == 0:
			return cmd.Help()
		}
		return unknownOperation(cmd, args[0])
	}
	root.Flags().BoolVar(&list, "list", false, "list the operations")
	to.Flags(root.PersistentFlags())
	root.PersistentFlags().StringVar(&format, "output", "", "one of "+strings.Join(formats(), ", ")+" (default: json on a terminal, raw elsewhere)")
	complete(root, "output", formats())
	for _, o := range cfg.Operations() {
		d := o.Describe()
		c := &call{cfg: cfg, to: &to, format: &format, op: d}
		cmd := &cobra.Command{Use: d.Name, Short: d.Summary, RunE: c.run}
		root.AddCommand(cmd)
		if slices.Contains(args, d.Name) {
			c.build(cmd, outer.InOrStdin())
		}
	}
	strict(root)
	root.SetUsageTemplate(callUsage)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(&cobra.Command{Use: "no-help", Hidden: true})
	root.SetIn(outer.InOrStdin())
	root.SetOut(outer.OutOrStdout())
	root.SetErr(outer.ErrOrStderr())
	// Nil would mean the arguments of the process.
	root.SetArgs(append([]string{}, args...))
	return root
}

func unknownOperation(root *cobra.Command, name string) error {
	root.SuggestionsMinimumDistance = 3
	if near := root.SuggestionsFor(name); len(near) > 0 {
		return remote.Usagef("there is no operation %q: did you mean %s?", name, strings.Join(near, ", "))
	}
	return remote.Usagef("there is no operation %q: %s --list names them", name, root.CommandPath())
}

func listOperations(w io.Writer, cfg Config) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, o := range cfg.Operations() {
		d := o.Describe()
		fmt.Fprintf(tw, "%s\t%s\n", d.Name, d.Summary)
	}
	return tw.Flush()
}

// call is the command of one operation.
type call struct {
	cfg    Config
	to     *remote.Connection
	format *string
	op     op.Description

	input       *inputFlags
	object      string
	directories []string
	workspace   string
}

// takesContext reports whether the operation runs in a context that a hint names.
func (c *call) takesContext() bool { return c.op.Kind == op.KindRequest && !c.op.Item }

func (c *call) build(cmd *cobra.Command, stdin io.Reader) {
	names := remote.PathNames(c.op.Path)
	cmd.Use = strings.TrimSpace(c.op.Name + " " + strings.ToUpper(brackets(names)))
	cmd.Long = c.long()
	cmd.Example = c.example(cmd.Root().Annotations[cobra.CommandDisplayNameAnnotation])
	cmd.Args = cobra.MaximumNArgs(len(names))
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.Flags().StringVar(&c.object, "json", "", "the whole input as `JSON`, @file or @- for the standard input")
	if c.takesContext() {
		usage := "`directory` to run in (default: the working directory)"
		if c.op.Many {
			usage += "; may repeat"
		}
		cmd.Flags().StringArrayVar(&c.directories, "directory", nil, usage)
		cmd.Flags().StringVar(&c.workspace, "workspace", "", "workspace to run in, by its `id`")
		if err := cmd.MarkFlagDirname("directory"); err != nil { // The flag is there.
			panic("cli: " + err.Error())
		}
	}
	c.input = addInput(cmd, c.op, stdin)
	spellings(cmd.Flags())
}

func brackets(names []string) string {
	out := make([]string, 0, len(names))
	for _, n := range names {
		out = append(out, "["+n+"]")
	}
	return strings.Join(out, " ")
}

func (c *call) long() string {
	text := c.op.Summary
	if c.op.Doc != "" {
		text += "\n\n" + c.op.Doc
	}
	return text + "\n\n" + c.op.Method + " " + c.op.Path
}

// example shows the call with the example of the declaration, or else with
// nothing but what the path needs.
func (c *call) example(path string) string {
	line := "  " + path + " " + c.op.Name
	for _, name := range remote.PathNames(c.op.Path) {
		line += " " + strings.ToUpper(name)
	}
	if c.op.Example == nil {
		return line
	}
	data, err := json.Marshal(c.op.Example)
	if err != nil || strings.ContainsAny(string(data), "'") {
		return line
	}
	return line + " --json '" + string(data) + "'"
}

func (c *call) run(cmd *cobra.Command, args []string) error {
	if f := *c.format; f != "" && !slices.Contains(formats(), f) {
		return remote.Usagef("--output is one of %s", strings.Join(formats(), ", "))
	}
	a, err := c.arguments(cmd, args)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	server, err := c.to.Find(ctx, c.cfg.program())
	if err != nil {
		return err
	}
	res, err := server.Do(ctx, c.op, a)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	err = printAnswer(cmd.OutOrStdout(), res, *c.format)
	if err != nil && ctx.Err() != nil {
		return remote.Interrupted()
	}
	return err
}

// arguments collects what was given on the command line.
func (c *call) arguments(cmd *cobra.Command, args []string) (remote.Arguments, error) {
	object, err := jsonflag.TextOf(c.object, cmd.InOrStdin())
	if err != nil {
		return remote.Arguments{}, remote.Usagef("--json: %w", err)
	}
	values, err := c.input.given(object)
	if err != nil {
		return remote.Arguments{}, err
	}
	names := remote.PathNames(c.op.Path)
	for i, arg := range args {
		if _, both := values[names[i]]; both {
			return remote.Arguments{}, remote.Usagef("%s is given twice: as an argument and as a flag", names[i])
		}
		values[names[i]] = arg
	}
	a := remote.Arguments{Values: values, Workspace: c.workspace}
	if !c.takesContext() {
		return a, nil
	}
	_, keys := values["context"]
	elsewhere := c.workspace != "" || c.op.Many && keys
	a.Directories, err = directories(c.directories, elsewhere)
	return a, err
}

// directories makes directories absolute. None at all is the working directory
// unless the context is known otherwise; "" stands for none.
func directories(given []string, elsewhere bool) ([]string, error) {
	if len(given) == 0 && !elsewhere {
		given = []string{"."}
	}
	out := []string{}
	for _, d := range given {
		if d == "" {
			continue
		}
		full, err := filepath.Abs(d)
		if err != nil {
			return nil, fmt.Errorf("--directory: %w", err)
		}
		out = append(out, full)
	}
	return out, nil
}
