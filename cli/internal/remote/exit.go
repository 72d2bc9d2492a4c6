package remote

import (
	"context"
	"errors"
	"fmt"
)

// The exit codes of client commands beside 0.
const (
	ExitFailed      = 1
	ExitUsage       = 2
	ExitUnreachable = 3
	ExitInterrupted = 130
)

// Exit is an error with an exit code of its own.
type Exit struct {
	Code int
	Err  error
}

// Error implements error.
func (e *Exit) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *Exit) Unwrap() error { return e.Err }

// ExitCode gives the exit code of an error: its own, else ExitFailed.
func ExitCode(err error) int {
	var e *Exit
	if errors.As(err, &e) {
		return e.Code
	}
	return ExitFailed
}

// Exitf makes an Exit; its error is formatted like fmt.Errorf.
func Exitf(code int, format string, args ...any) error {
	return &Exit{Code: code, Err: fmt.Errorf(format, args...)}
}

// Usagef makes the error of a command line that makes no sense.
func Usagef(format string, args ...any) error { return Exitf(ExitUsage, format, args...) }

// Interrupted makes the error of a command that the user ended.
func Interrupted() error { return &Exit{Code: ExitInterrupted, Err: errors.New("interrupted")} }

// ended gives the error for a request that did not come back: the user's
// interrupt where that is why.
func ended(ctx context.Context, base string, err error) error {
	if ctx.Err() != nil {
		return Interrupted()
	}
	return Exitf(ExitUnreachable, "cannot reach the server at %s: %w", base, err)
}
