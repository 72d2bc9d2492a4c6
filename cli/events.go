package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchyard-dev/switchyard/cli/internal/remote"
	"github.com/switchyard-dev/switchyard/event"
)

// envelope is an event as a client reads it.
type envelope = event.Envelope[json.RawMessage]

// eventsFlags are the flags of events as they were given.
type eventsFlags struct {
	to                                      remote.Connection
	directories                             []string
	workspace, scope, session, types, after string
	asJSON                                  bool
}

func eventsCommand(cfg Config) *cobra.Command {
	f := &eventsFlags{}
	cmd := &cobra.Command{
		Use: "events", Short: "Follow what happens", Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		Long: "Follow what happens until interrupted: one line for each event with its time, type, session\n" +
			"and gist. A lost connection is made again and goes on after the last event seen; where that\n" +
			"is not possible server.resync tells why.\n\n" + exitHelp,
		Example: "  switchyard events\n  switchyard events --scope server --types 'session.*,permission.*'\n" +
			"  switchyard events --types '!message.part.delta'\n  switchyard events --json --after evt_… | jq .type",
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, cfg) },
	}
	flags := cmd.Flags()
	f.to.Flags(flags)
	flags.StringArrayVar(&f.directories, "directory", nil, "`directory` to follow (default: the working directory); may repeat")
	flags.StringVar(&f.workspace, "workspace", "", "workspace to follow, by its `id`")
	flags.StringVar(&f.scope, "scope", "", "server follows every directory, context (the default) those that are named")
	flags.StringVar(&f.session, "session", "", "follow only this session, by its `id`, and the sessions below it")
	flags.StringVar(&f.types, "types", "", "comma `list` of types; x.* for all below x, !x to leave out")
	flags.StringVar(&f.after, "after", "", "start after the event with this `id`")
	flags.BoolVar(&f.asJSON, "json", false, "one JSON text a line")
	complete(cmd, "scope", []string{"context", "server"})
	if err := cmd.MarkFlagDirname("directory"); err != nil { // The flag is there.
		panic("cli: " + err.Error())
	}
	return cmd
}

func (f *eventsFlags) run(cmd *cobra.Command, cfg Config) error {
	filter, err := f.filter()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	server, err := f.to.Find(ctx, cfg.program())
	if err != nil {
		return err
	}
	out, notes := cmd.OutOrStdout(), cmd.ErrOrStderr()
	follow := remote.Follower{Client: server, Filter: filter, Lost: func(err error, wait time.Duration) {
		fmt.Fprintf(notes, "%s; again in %s\n", oneLine(err.Error()), wait.Round(time.Millisecond))
	}}
	return follow.Follow(ctx, func(e remote.Frame) error {
		if f.asJSON {
			_, err := fmt.Fprintln(out, e.Data)
			return err
		}
		return printEvent(out, e.Data)
	})
}

func (f *eventsFlags) filter() (remote.Arguments, error) {
	a := remote.Arguments{Values: map[string]any{}, Workspace: f.workspace}
	for name, value := range map[string]string{"scope": f.scope, "session": f.session, "types": f.types, "after": f.after} {
		if value != "" {
			a.Values[name] = value
		}
	}
	var err error
	a.Directories, err = directories(f.directories, f.workspace != "" || f.session != "" || f.scope == "server")
	return a, err
}

// printEvent writes an event as one line for people.
func printEvent(w io.Writer, data string) error {
	var e envelope
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		return fmt.Errorf("reading an event: %w", err)
	}
	var of struct {
		SessionID string `json:"sessionID"`
	}
	_ = json.Unmarshal(e.Payload, &of) // Events of no session have none.
	_, err := fmt.Fprintf(w, "%s  %-22s  %s  %s\n",
		time.UnixMilli(e.Time).Format("15:04:05.000"), e.Type, cmp.Or(of.SessionID, "-"), gist(e))
	return err
}

// gists names the members of a payload that tell the most, by type of event.
var gists = map[string][]string{
	"server.connected":     {"version", "contexts"},
	"server.resync":        {"reason", "earliest"},
	"server.lagged":        {"reason"},
	"session.created":      {"info.title"},
	"session.updated":      {"info.title"},
	"session.deleted":      {"info.title"},
	"session.status":       {"status.type", "status.waiting", "status.attempt", "status.message"},
	"session.idle":         {"outcome", "error.data.message"},
	"session.error":        {"error.name", "error.data.message"},
	"session.inbox.added":  {"delivery", "prompt.text"},
	"message.updated":      {"info.role", "info.finish", "info.error.data.message"},
	"message.part.updated": {"part.type", "part.tool", "part.state.status", "part.state.title", "part.state.error", "part.text"},
	"message.part.delta":   {"field", "delta"},
	"permission.asked":     {"permission", "patterns"},
	"permission.replied":   {"response"},
	"question.asked":       {"questions"},
	"todo.updated":         {"todos"},
	"file.edited":          {"file"},
}

// gist tells in a few words what an event says.
func gist(e envelope) string {
	var payload map[string]any
	paths, known := gists[e.Type]
	if json.Unmarshal(e.Payload, &payload) != nil || !known {
		return printable(clip(oneLine(string(e.Payload)), 100))
	}
	var words []string
	for _, path := range paths {
		if word := wordOf(member(payload, path)); word != "" {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}

// member follows a dotted path into an object; nil where it leads nowhere.
func member(value any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[name]
	}
	return value
}

func wordOf(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		if strings.ContainsAny(v, " \n\t\"") {
			return printable(clip(fmt.Sprintf("%q", v), 80))
		}
		return printable(clip(v, 80))
	}
	data, err := json.Marshal(value)
	if err != nil { // It came from JSON.
		return ""
	}
	return printable(clip(string(data), 80))
}
