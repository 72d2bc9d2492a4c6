// Package id makes and reads the identifiers of the API: a prefix that names
// the kind, an underscore, and a ULID. Each kind has its own Go type, so that a
// message id cannot be passed where a session id is wanted.
//
// Ids are unique, not ordered: order is always an explicit sequence (design §6).
package id

import (
	"crypto/rand"
	"encoding/binary"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// The kinds of identifiers. The zero value of each means "none".
type (
	// Session names a conversation: "ses_" and UUIDv7 bits in ULID form.
	Session string
	// Message names one entry of a session: "msg_"; clients may choose it.
	Message string
	// Part names one piece of a message: "part_".
	Part string
	// Permission names a permission request: "per_".
	Permission string
	// SavedPermission names an approval kept by "always": "psv_".
	SavedPermission string
	// Question names a question to the user: "que_".
	Question string
	// Pty names a terminal: "pty_".
	Pty string
	// Workspace names a place where sessions run: "ws_".
	Workspace string
	// Project names a repository identity: "prj_".
	Project string
	// Account names a stored provider credential: "acc_".
	Account string
	// Turn names one run from a delivered prompt to idle: "trn_".
	Turn string
	// Call names a tool call: "call_".
	Call string
	// Attempt names a pending sign-in: "att_".
	Attempt string
	// Attachment names a file that was given with a prompt or made by a tool: "att_".
	Attachment string
	// Token names an access token: "tok_".
	Token string
)

// kind is a prefix with the spellings accepted beside it.
type kind struct{ prefix, synonym string }

func kindOf[T ~string](v T) kind {
	switch any(v).(type) {
	case Session:
		return kind{prefix: "ses_"}
	case Message:
		return kind{prefix: "msg_"}
	case Part:
		return kind{prefix: "part_", synonym: "prt_"}
	case Permission:
		return kind{prefix: "per_"}
	case SavedPermission:
		return kind{prefix: "psv_"}
	case Question:
		return kind{prefix: "que_"}
	case Pty:
		return kind{prefix: "pty_"}
	case Workspace:
		return kind{prefix: "ws_", synonym: "wrk_"}
	case Project:
		return kind{prefix: "prj_"}
	case Account:
		return kind{prefix: "acc_"}
	case Turn:
		return kind{prefix: "trn_"}
	case Call:
		return kind{prefix: "call_"}
	case Attempt:
		return kind{prefix: "att_"}
	case Attachment:
		return kind{prefix: "att_"}
	case Token:
		return kind{prefix: "tok_"}
	}
	panic("id: not an identifier type")
}

// messagePattern is what a client may choose as a message id (api.md 15).
var messagePattern = regexp.MustCompile(`^msg_[A-Za-z0-9_-]{1,64}$`)

// Parse reads an identifier of kind T. It accepts the synonyms of a prefix
// ("wrk_", "prt_") and gives the one spelling that the server emits. It reports
// false for everything else; callers answer that like an unknown id.
func Parse[T ~string](s string) (T, bool) {
	var zero T
	if _, ok := any(zero).(Message); ok {
		return T(s), messagePattern.MatchString(s)
	}
	k := kindOf(zero)
	rest, ok := strings.CutPrefix(s, k.prefix)
	if !ok && k.synonym != "" {
		rest, ok = strings.CutPrefix(s, k.synonym)
	}
	if !ok || len(rest) != ulid.EncodedSize {
		return zero, false
	}
	if _, err := ulid.ParseStrict(rest); err != nil {
		return zero, false
	}
	return T(k.prefix + strings.ToUpper(rest)), true
}

// Source makes identifiers. It is safe for concurrent use. A clock that steps
// backwards is clamped, so ids of one Source never go back in time.
type Source struct {
	now     func() time.Time
	entropy io.Reader

	mu   sync.Mutex // protects last
	last uint64     // milliseconds of the newest id
}

// NewSource returns a Source over a clock; entropy nil means crypto/rand.
func NewSource(now func() time.Time, entropy io.Reader) *Source {
	if entropy == nil {
		entropy = rand.Reader
	}
	return &Source{now: now, entropy: entropy}
}

// New makes an identifier of kind T from s.
func New[T ~string](s *Source) T {
	var zero T
	u := s.next()
	if _, ok := any(zero).(Session); ok {
		// The version and variant bits of UUIDv7 (RFC 9562 §5.7), so that the
		// sixteen bytes are a valid UUID for clients that want one.
		u[6] = u[6]&0x0f | 0x70
		u[8] = u[8]&0x3f | 0x80
	}
	return T(kindOf(zero).prefix + u.String())
}

func (s *Source) next() ulid.ULID {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms := ulid.Timestamp(s.now())
	s.last = max(s.last, ms)
	var u ulid.ULID
	if err := u.SetTime(s.last); err != nil {
		panic("id: clock beyond the year 10889")
	}
	if _, err := io.ReadFull(s.entropy, u[6:]); err != nil {
		panic("id: no entropy: " + err.Error())
	}
	return u
}

// UUID gives the sixteen bytes of a session id in the usual UUID spelling.
func UUID(s Session) (string, bool) {
	u, err := ulid.ParseStrict(strings.TrimPrefix(string(s), "ses_"))
	if err != nil {
		return "", false
	}
	const hexDigits = "0123456789abcdef"
	out := make([]byte, 0, 36)
	for i, b := range u {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			out = append(out, '-')
		}
		out = append(out, hexDigits[b>>4], hexDigits[b&15])
	}
	return string(out), true
}

// Time gives the moment in an identifier's ULID, for display only.
func Time[T ~string](v T) (time.Time, bool) {
	_, rest, _ := strings.Cut(string(v), "_")
	u, err := ulid.ParseStrict(rest)
	if err != nil {
		return time.Time{}, false
	}
	var b [8]byte
	copy(b[2:], u[:6])
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b[:]))), true
}
