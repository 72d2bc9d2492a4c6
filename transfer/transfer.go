// Package transfer copies conversations: within a server (Fork), out of it
// (Export, as JSON or Markdown) and into it (Import). What it writes is whole
// from the start: counters, the place of the last compaction and one ended turn
// for each turn that was copied, so that a copy is a session like any other.
package transfer

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/switchyard-dev/switchyard/attachment"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
)

// What a document says that it is.
const (
	// FormatName is the document's "format".
	FormatName = "switchyard.session"
	// FormatVersion is the document's "version".
	FormatVersion = 1
)

// The bounds of a document that is imported.
const (
	// MaxBytes bounds the document as it is sent.
	MaxBytes = 64 << 20
	// MaxSessions, MaxMessages and MaxParts bound what is in it, all sessions
	// together: it is stored in one transaction.
	MaxSessions = 10_000
	MaxMessages = 50_000
	MaxParts    = 250_000
)

// chunk is how many messages are held at once where they pass by.
const chunk = 100

// Service copies conversations. It is safe for concurrent use.
type Service struct {
	store    *store.DB
	ids      *id.Source
	sessions *session.Service
	files    *attachment.Service
}

// NewService makes a Service over a store and the services that keep its
// sessions and their files.
func NewService(s *store.DB, ids *id.Source, sessions *session.Service, files *attachment.Service) *Service {
	return &Service{store: s, ids: ids, sessions: sessions, files: files}
}

// encode gives values of our own types as JSON, which cannot fail.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("transfer: " + err.Error())
	}
	return data
}

// invalid is the fault for what is wrong with a document at a JSON pointer.
func invalid(at, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	where := at
	if where == "" {
		where = "the top"
	}
	return fault.New(fault.ValidationFailed, "the document is refused at %s: %s", where, what).At(at, "%s", what)
}

// member extends a JSON pointer (RFC 6901).
func member(at, name string) string {
	return at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// element extends a JSON pointer by a place in a list.
func element(at string, i int) string { return fmt.Sprintf("%s/%d", at, i) }
