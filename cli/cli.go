// Package cli is the client side of the command line: it finds the running
// server and calls its operations over HTTP, by the same descriptions that make
// the routes and the document.
package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/switchyard-dev/switchyard/cli/internal/remote"
	"github.com/switchyard-dev/switchyard/op"
)

// DefaultPort is where the server listens unless told otherwise.
const DefaultPort = remote.DefaultPort

// RuntimeFile is the name of the file in the state directory that tells where
// the running server is.
const RuntimeFile = remote.RuntimeFile

// Runtime is the content of RuntimeFile, and the line that serve prints for
// --port 0.
type Runtime = remote.Runtime

// Exit is an error with an exit code of its own.
type Exit = remote.Exit

// DefaultState is the directory of what the server keeps: SWITCHYARD_STATE,
// else below XDG_STATE_HOME, else below the home directory.
func DefaultState() string { return remote.DefaultState() }

// ExitCode gives the exit code of an error: its own, else 1.
func ExitCode(err error) int { return remote.ExitCode(err) }

// Config gives the commands what they need of the program.
type Config struct {
	Version    string
	Operations func() []op.Any
	// Embedded runs a server in this process and gives its address and token;
	// stop ends it.
	Embedded func(ctx context.Context, state string) (url, token string, stop func() error, err error)
}

func (c Config) program() remote.Program {
	return remote.Program{Version: c.Version, Operations: c.Operations}
}

// Commands gives the client commands.
func Commands(c Config) []*cobra.Command {
	list := []*cobra.Command{
		runCommand(c), callCommand(c), eventsCommand(c), configCommand(), doctorCommand(c), versionCommand(c),
	}
	for _, cmd := range list {
		strict(cmd)
	}
	return list
}

// exitHelp documents the exit codes in the help of commands that talk to a server.
const exitHelp = "Exit codes: 0 done, 1 the server refused or failed, 2 wrong usage, 3 no server\n" +
	"to be reached, 130 interrupted."

// strict makes wrong flags and arguments of a command, and of those below it,
// errors of usage.
func strict(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return remote.Usagef("%w; see %s --help", err, c.CommandPath())
	})
	if check := cmd.Args; check != nil {
		cmd.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return remote.Usagef("%w; see %s --help", err, c.CommandPath())
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		strict(sub)
	}
}
