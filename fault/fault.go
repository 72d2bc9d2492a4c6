// Package fault is the one error type that crosses floors: a stable code for
// programs, a sentence for people, the identifiers concerned, and a cause that
// stays in the log. Each protocol turns a code into its own status; this package
// holds the table for HTTP.
package fault

import (
	"errors"
	"fmt"
	"maps"
)

// Error is a failure that a caller may be told about.
//
// Detail and Fields are shown to clients; the cause never is.
type Error struct {
	Code   Code
	Detail string
	// Fields are further members of the answer: identifiers concerned
	// ("sessionID", "path"), positions, the recorded answer.
	Fields map[string]any
	// Items say which parts of an input are wrong.
	Items []Item

	cause error
}

// Item is one wrong place of an input.
type Item struct {
	Location string `json:"location" doc:"Where the value stands, e.g. body.title or query.limit."`
	Message  string `json:"message"`
}

// New makes an Error; the detail is formatted like fmt.Sprintf.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Wrap gives err a code and a detail for clients. It returns nil for nil.
func Wrap(err error, code Code, format string, args ...any) error {
	if err == nil {
		return nil
	}
	e := New(code, format, args...)
	e.cause = err
	return e
}

// With adds a member to the answer and returns e.
func (e *Error) With(key string, value any) *Error {
	fields := maps.Clone(e.Fields)
	if fields == nil {
		fields = map[string]any{}
	}
	fields[key] = value
	e.Fields = fields
	return e
}

// At adds a wrong place of the input and returns e.
func (e *Error) At(location, format string, args ...any) *Error {
	e.Items = append(e.Items, Item{Location: location, Message: fmt.Sprintf(format, args...)})
	return e
}

// Error is the line for logs: it includes the cause.
func (e *Error) Error() string {
	s := string(e.Code) + ": " + e.Detail
	if e.cause != nil {
		s += ": " + e.cause.Error()
	}
	return s
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.cause }

// As finds the outermost Error in err's chain.
func As(err error) (*Error, bool) {
	var e *Error
	ok := errors.As(err, &e)
	return e, ok
}

// CodeOf gives the code of err, or Internal when it has none. It is "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := As(err); ok {
		return e.Code
	}
	return Internal
}

// Is reports whether err carries the code.
func Is(err error, code Code) bool { return err != nil && CodeOf(err) == code }
