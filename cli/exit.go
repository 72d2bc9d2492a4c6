package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// The exit codes of the client commands beside 0.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitUnreachable = 3
	exitInterrupted = 130
)

// exitHelp documents the codes in the help of commands that talk to a server.
const exitHelp = "Exit codes: 0 done, 1 the server refused or failed, 2 wrong usage, 3 no server\n" +
	"to be reached, 130 interrupted."

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
	return exitFailed
}

func exitf(code int, format string, args ...any) error {
	return &Exit{Code: code, Err: fmt.Errorf(format, args...)}
}

func usagef(format string, args ...any) error { return exitf(exitUsage, format, args...) }

// interrupted is the error of a command that the user ended.
func interrupted() error { return &Exit{Code: exitInterrupted, Err: errors.New("interrupted")} }

// strict makes wrong flags and arguments of a command, and of those below it,
// errors of usage.
func strict(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usagef("%w; see %s --help", err, c.CommandPath())
	})
	if check := cmd.Args; check != nil {
		cmd.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return usagef("%w; see %s --help", err, c.CommandPath())
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		strict(sub)
	}
}

// ended gives the error for a request that did not come back: the user's
// interrupt where that is why.
func ended(ctx context.Context, base string, err error) error {
	if ctx.Err() != nil {
		return interrupted()
	}
	return exitf(exitUnreachable, "cannot reach the server at %s: %w", base, err)
}
