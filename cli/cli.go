// Package cli is the client side of the command line: it finds the running
// server and calls its operations over HTTP, by the same descriptions that make
// the routes and the document.
package cli

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/switchyard-dev/switchyard/op"
)

// DefaultPort is where the server listens unless told otherwise.
const DefaultPort = 4700

// RuntimeFile is the name of the file in the state directory that tells where
// the running server is.
const RuntimeFile = "runtime.json"

// Runtime is the content of RuntimeFile, and the line that serve prints for
// --port 0.
type Runtime struct {
	URL     string `json:"url"`
	PID     int    `json:"pid"`
	Version string `json:"version"`
}

// Config gives the commands what they need of the program.
type Config struct {
	Version    string
	Operations func() []op.Any
	// Embedded runs a server in this process and gives its address and token;
	// stop ends it.
	Embedded func(ctx context.Context, state string) (url, token string, stop func() error, err error)
}

// DefaultState is the directory of what the server keeps: SWITCHYARD_STATE,
// else below XDG_STATE_HOME, else below the home directory.
func DefaultState() string {
	if dir := os.Getenv("SWITCHYARD_STATE"); dir != "" {
		return dir
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "switchyard")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = os.TempDir()
	}
	return filepath.Join(home, ".local", "state", "switchyard")
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
