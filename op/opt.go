package op

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// Opt is a field of a PATCH body that can be absent, null or a value. Its json
// tag says omitzero.
type Opt[T any] struct {
	// Value is T's zero value unless the field has a value.
	Value T
	// Set tells that the field was there, as null or as a value.
	Set bool
	// Null tells that it was null.
	Null bool
}

// Some makes an Opt with a value.
func Some[T any](v T) Opt[T] { return Opt[T]{Value: v, Set: true} }

// Null makes an Opt that clears.
func Null[T any]() Opt[T] { return Opt[T]{Set: true, Null: true} }

// Get gives the value and whether there is one.
func (o Opt[T]) Get() (T, bool) { return o.Value, o.Set && !o.Null }

// IsZero reports whether the field is absent.
func (o Opt[T]) IsZero() bool { return !o.Set }

// UnmarshalJSON reads null or a value.
func (o *Opt[T]) UnmarshalJSON(data []byte) error {
	var zero T
	o.Value, o.Set, o.Null = zero, true, bytes.Equal(data, []byte("null"))
	if o.Null {
		return nil
	}
	return json.Unmarshal(data, &o.Value)
}

// MarshalJSON writes the value, or null where there is none.
func (o Opt[T]) MarshalJSON() ([]byte, error) {
	if !o.Set || o.Null {
		return []byte("null"), nil
	}
	return json.Marshal(o.Value)
}

// Schema is T's schema with null allowed.
func (o Opt[T]) Schema(r huma.Registry) *huma.Schema {
	s := r.Schema(reflect.TypeFor[T](), true, "")
	if s.Ref != "" {
		null := &huma.Schema{Type: "null", Enum: []any{nil}}
		return &huma.Schema{AnyOf: []*huma.Schema{s, null}}
	}
	nullable := *s
	nullable.Nullable = true
	return &nullable
}
