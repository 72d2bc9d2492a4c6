package llm

import (
	"errors"
	"time"

	"github.com/switchyard-dev/switchyard/chat"
)

// Kind sorts failures by what a caller does about them.
type Kind string

// The kinds. Those marked (retry) usually pass by themselves; Error.Retryable
// has the last word.
const (
	KindAuth          Kind = "auth"           // no key, or refused
	KindQuota         Kind = "quota"          // the account has no credit left
	KindRateLimit     Kind = "rate_limit"     // (retry) too many requests
	KindOverloaded    Kind = "overloaded"     // (retry) the provider is busy
	KindServer        Kind = "server"         // (retry) the provider failed
	KindNetwork       Kind = "network"        // (retry) not reached, reset, or silent for too long
	KindTruncated     Kind = "truncated"      // (retry) the answer broke off or was garbled
	KindOverflow      Kind = "overflow"       // the conversation exceeds the model's context
	KindContentFilter Kind = "content_filter" // the provider refuses the content
	KindInvalid       Kind = "invalid"        // the request is wrong: model, parameters, address
	KindCanceled      Kind = "canceled"       // ctx ended
)

// Error is how Stream fails. Message is one short line for people; it never
// holds a key or a raw body.
type Error struct {
	Kind       Kind
	ProviderID string
	// StatusCode is the HTTP status, 0 when there was none. An error inside a
	// stream that began well has the status that it stands for, or 0.
	StatusCode int
	Retryable  bool
	// RetryAfter is how long the provider asks to wait; 0 when it does not.
	RetryAfter time.Duration
	Message    string

	cause error
}

// Error is the line for logs and for people.
func (e *Error) Error() string {
	if e.ProviderID == "" {
		return e.Message
	}
	return e.ProviderID + ": " + e.Message
}

// Unwrap gives the end of the context for KindCanceled, else nil.
func (e *Error) Unwrap() error { return e.cause }

// Chat gives the error as messages and events carry it.
func (e *Error) Chat() *chat.Error {
	name := chat.ErrAPI
	switch e.Kind {
	case KindAuth:
		name = chat.ErrProviderAuth
	case KindOverflow:
		name = chat.ErrContextOverflow
	case KindContentFilter:
		name = chat.ErrContentFilter
	case KindCanceled:
		name = chat.ErrAborted
	}
	return &chat.Error{Name: name, Data: chat.ErrorData{
		Message:     e.Message,
		ProviderID:  e.ProviderID,
		StatusCode:  e.StatusCode,
		IsRetryable: e.Retryable,
	}}
}

// IsOverflow tells whether a request was refused because the conversation
// exceeds the model's context.
func IsOverflow(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == KindOverflow
}
