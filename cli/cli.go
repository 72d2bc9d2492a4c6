// Package cli is the client side of the command line: it finds the running
// server and calls its operations over HTTP, by the same descriptions that make
// the routes and the document.
package cli

import (
	"context"
	"errors"
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

// Exit is an error with an exit code of its own.
type Exit struct {
	Code int
	Err  error
}

// Error implements error.
func (e *Exit) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *Exit) Unwrap() error { return e.Err }

// ExitCode gives the exit code of an error: its own, else 1.
func ExitCode(err error) int {
	var e *Exit
	if errors.As(err, &e) {
		return e.Code
	}
	return 1
}

// Commands gives the client commands.
func Commands(Config) []*cobra.Command { return nil }
