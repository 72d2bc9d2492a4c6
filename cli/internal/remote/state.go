// Package remote reaches a server for the commands of the client: it finds the
// one that is meant, calls its operations by their descriptions, and follows its
// events. Its errors have the exit codes that the commands promise.
package remote

import (
	"os"
	"path/filepath"

	"github.com/switchyard-dev/switchyard/op"
)

// DefaultPort is where the server listens unless told otherwise.
const DefaultPort = 4700

// The names of files in the state directory.
const (
	// RuntimeFile tells where the running server is.
	RuntimeFile = "runtime.json"
	// TokenFile holds the server's token.
	TokenFile = "token"
)

// Runtime is the content of RuntimeFile.
type Runtime struct {
	URL     string `json:"url"`
	PID     int    `json:"pid"`
	Version string `json:"version"`
}

// Program is what a client knows of the program that it is part of.
type Program struct {
	Version    string
	Operations func() []op.Any
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
