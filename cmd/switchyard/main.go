// Command switchyard serves coding-agent sessions over many directories, and is
// the client of such a server in a terminal.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/switchyard-dev/switchyard/cli"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The second signal ends the program at once: the first one's handler is
	// taken away as soon as it was seen.
	context.AfterFunc(ctx, stop)
	if err := root().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "switchyard:", err)
		return cli.ExitCode(err)
	}
	return 0
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "switchyard",
		Short: "Serve coding-agent sessions over many directories",
		Long: "switchyard serves coding-agent sessions over many directories at once: an HTTP API\n" +
			"with a stream of events, and a small client for it.",
		Example:       "  switchyard serve\n  switchyard run \"explain this repository\"\n  switchyard call session.list --limit 5",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
	}
	cmd.AddCommand(serveCommand(), tokenCommand(), openAPICommand())
	cmd.AddCommand(cli.Commands(cli.Config{Version: version(), Operations: operationsAll, Embedded: embedded})...)
	return cmd
}

// version is that of the module, or of the commit that it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "dev-" + s.Value[:12]
		}
	}
	return "dev"
}
