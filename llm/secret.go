package llm

import "fmt"

const hidden = "***"

// Secret is a credential that prints as *** in every form: formatted, logged,
// marshalled. The zero value is no credential and prints as nothing. Two
// Secrets of the same text are not equal to ==.
type Secret struct {
	// A pointer, because fmt reaches into unexported fields without asking the
	// type's methods: of a pointer it prints the address.
	v *string
}

// NewSecret wraps a credential. "" gives the zero Secret.
func NewSecret(s string) Secret {
	if s == "" {
		return Secret{}
	}
	return Secret{v: &s}
}

// IsZero reports whether there is no credential.
func (s Secret) IsZero() bool { return s.v == nil }

// Reveal gives the credential itself, for the request that needs it.
func (s Secret) Reveal() string {
	if s.v == nil {
		return ""
	}
	return *s.v
}

// String gives *** or nothing.
func (s Secret) String() string {
	if s.v == nil {
		return ""
	}
	return hidden
}

// Format prints String whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, s.String()) }

// MarshalText serves JSON and structured logs.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
