package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

const hidden = "***"

// Secret is a string that prints as ***, or as nothing when it is empty, so
// that set and unset can be told apart. Only Reveal shows it. Keep it in
// exported fields: fmt reads unexported ones past all methods.
type Secret string

// Reveal gives the text itself.
func (s Secret) Reveal() string { return string(s) }

// String gives "***" or "".
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// Format writes String for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText gives String; JSON uses it too.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue gives String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Raw is a part of the configuration that the package concerned decodes by
// itself. It may hold secrets and prints as ***.
type Raw struct {
	data    []byte
	project bool
}

func rawOf(n *node) Raw {
	return Raw{data: n.json(), project: n.any(func(x *node) bool { return x.project })}
}

// IsZero reports whether the part is absent.
func (r Raw) IsZero() bool { return r.data == nil }

// Project reports whether any of it comes from a project file, which may be
// anybody's work: what it starts needs a trusted directory.
func (r Raw) Project() bool { return r.project }

// Decode decodes the part, secrets included, into v like json.Unmarshal. It
// leaves v alone when the part is absent.
func (r Raw) Decode(v any) error {
	if r.data == nil {
		return nil
	}
	if err := json.Unmarshal(r.data, v); err != nil {
		// The decoder's error may quote a value.
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return fmt.Errorf("decoding configuration: %s is not a %s", wrong.Field, wrong.Type)
		}
		return errors.New("decoding configuration: invalid JSON")
	}
	return nil
}

// String gives "***" or "".
func (r Raw) String() string {
	if r.data == nil {
		return ""
	}
	return hidden
}

// Format writes String for every verb.
func (r Raw) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, r.String()) }

// MarshalText gives String; JSON uses it too.
func (r Raw) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// LogValue gives String.
func (r Raw) LogValue() slog.Value { return slog.StringValue(r.String()) }
