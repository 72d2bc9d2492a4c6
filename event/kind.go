package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/store"
)

// Kind is a type of events whose payloads are P, a struct. It is a plain value,
// made once by the package that owns it; there is no registry.
type Kind[P any] struct{ def *definition }

// Descriptor is a Kind without its type parameter, for lists and the document.
type Descriptor interface {
	// Name is the "type" of the envelope, e.g. "session.created".
	Name() string
	// Payload is the Go type of the payload.
	Payload() reflect.Type
	// Durable tells whether events of this kind are kept in the log.
	Durable() bool
	// Invalidates lists the operations whose answers an event of this kind makes
	// stale; it is empty where the payload is the whole object.
	Invalidates() []string
}

type definition struct {
	name        string
	payload     reflect.Type
	ephemeral   bool
	invalidates []string
	merged      reflect.Type
	key         func(payload any) MergeKey
	merge       func(payloads [][]byte) ([]byte, bool)
}

// Option says something about a kind; see Define.
type Option func(*definition)

// Ephemeral marks a kind whose events are not kept in the log. Such an event is
// lost to a stream that resumes beyond the ring, so it fits only deltas of an
// open part and hints that something may be looked up again.
func Ephemeral(d *definition) { d.ephemeral = true }

// Invalidates names the operations that a client should call again.
func Invalidates(operations ...string) Option {
	return func(d *definition) { d.invalidates = append(d.invalidates, operations...) }
}

// MergeKey tells which deltas continue each other: those of one field of one
// part. The zero key continues nothing.
type MergeKey struct{ ID, Field string }

// Merge lets a slow stream get several events of a kind as one. key names the
// series of a payload; merge joins two or more payloads of one series, oldest
// first, or reports false when they do not follow each other without a hole.
func Merge[P any](key func(P) MergeKey, merge func([]P) (P, bool)) Option {
	return func(d *definition) {
		d.merged = reflect.TypeFor[P]()
		d.key = func(payload any) MergeKey { return key(payload.(P)) }
		d.merge = func(payloads [][]byte) ([]byte, bool) {
			run := make([]P, len(payloads))
			for i, data := range payloads {
				if json.Unmarshal(data, &run[i]) != nil {
					return nil, false
				}
			}
			joined, ok := merge(run)
			if !ok {
				return nil, false
			}
			data, err := encode(joined)
			return data, err == nil
		}
	}
}

var kindName = regexp.MustCompile(`^[a-z]+(\.[a-z]+)+$`)

// Define makes a kind. It panics when the name or the options are wrong, as
// kinds are made when the program starts.
func Define[P any](name string, options ...Option) Kind[P] {
	d := &definition{name: name, payload: reflect.TypeFor[P]()}
	for _, o := range options {
		o(d)
	}
	switch {
	case !kindName.MatchString(name):
		panic(fmt.Sprintf("event: %q is not a name of a kind", name))
	case d.payload.Kind() != reflect.Struct:
		panic(fmt.Sprintf("event: the payload of %s is %s, not a struct", name, d.payload))
	case d.merged != nil && (d.merged != d.payload || !d.ephemeral):
		panic(fmt.Sprintf("event: %s cannot merge %s", name, d.merged))
	}
	return Kind[P]{def: d}
}

// Name is the "type" of the envelope.
func (k Kind[P]) Name() string { return k.def.name }

// Payload is the Go type P.
func (k Kind[P]) Payload() reflect.Type { return k.def.payload }

// Durable tells whether events of this kind are kept in the log.
func (k Kind[P]) Durable() bool { return !k.def.ephemeral }

// Invalidates lists the operations whose answers the events make stale.
func (k Kind[P]) Invalidates() []string { return slices.Clone(k.def.invalidates) }

// Draft makes an event of now, without a position yet. It fails only when the
// payload cannot be encoded.
func (k Kind[P]) Draft(at Origin, payload P) (Draft, error) {
	data, err := encode(payload)
	if err != nil {
		return Draft{}, fmt.Errorf("encoding %s: %w", k.def.name, err)
	}
	d := Draft{Type: k.def.name, Origin: at, Time: clock.Now(), Payload: data, def: k.def}
	if k.def.key != nil {
		d.key = k.def.key(payload)
	}
	return d, nil
}

// Appender collects the events of a transaction; *store.Tx is one.
type Appender interface {
	Append(events ...store.Event)
}

// Append writes an event with the transaction that makes the change it tells of.
// An ephemeral kind is refused.
func (k Kind[P]) Append(tx Appender, at Origin, payload P) error {
	if k.def.ephemeral {
		return fmt.Errorf("event %s is ephemeral and has no place in the log", k.def.name)
	}
	d, err := k.Draft(at, payload)
	if err != nil {
		return err
	}
	tx.Append(store.Event{
		Type: d.Type, Time: d.Time,
		Directory: at.Context.Directory, WorkspaceID: string(at.Context.WorkspaceID),
		SessionID: string(at.SessionID), RootSessionID: string(at.RootSessionID),
		Payload: d.Payload,
	})
	return nil
}

// encode writes JSON without escaping <, > and &: nobody puts a frame in a page
// unescaped, and code is full of them.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
