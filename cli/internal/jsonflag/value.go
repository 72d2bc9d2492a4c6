// Package jsonflag holds flags whose values are JSON: read from what people type
// for a field of an operation's input, by the type of the field.
package jsonflag

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"strconv"
	"strings"
)

// The types of JSON that matter for flags, as descriptions of fields spell them.
const (
	TypeString  = "string"
	TypeInteger = "integer"
	TypeNumber  = "number"
	TypeBoolean = "boolean"
	TypeArray   = "array"
	TypeObject  = "object"
)

// Value is a flag that holds the JSON of an input field. It is a pflag.Value.
type Value struct {
	// Kind is the type of the field, or of its items when it is a list: string,
	// integer, number, boolean, else any JSON.
	Kind string
	List bool
	// Stdin is what "@-" reads.
	Stdin io.Reader

	items []json.RawMessage
}

// JSON gives the value to send, once the flag was given.
func (v *Value) JSON() json.RawMessage {
	if !v.List {
		return v.items[len(v.items)-1]
	}
	all := []json.RawMessage{}
	for _, item := range v.items {
		var several []json.RawMessage
		if v.Kind == TypeObject && json.Unmarshal(item, &several) == nil {
			all = append(all, several...)
			continue
		}
		all = append(all, item)
	}
	data, err := json.Marshal(all)
	if err != nil { // Set took JSON only.
		panic("jsonflag: " + err.Error())
	}
	return data
}

// Set implements pflag.Value. A list grows by one.
func (v *Value) Set(s string) error {
	raw, err := v.parse(s)
	if err == nil {
		v.items = append(v.items, raw)
	}
	return err
}

func (v *Value) parse(s string) (json.RawMessage, error) {
	switch v.Kind {
	case TypeString:
		return json.Marshal(s)
	case TypeInteger:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return nil, errors.New("a whole number is needed")
		}
		return json.Marshal(n)
	case TypeNumber:
		n, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return nil, errors.New("a number is needed")
		}
		return json.Marshal(n)
	case TypeBoolean:
		b, err := strconv.ParseBool(s)
		if err != nil {
			return nil, errors.New("true or false is needed")
		}
		return json.Marshal(b)
	}
	return v.parseAny(s)
}

// parseAny reads JSON, from a file after @. Text that does not look like JSON is
// a string.
func (v *Value) parseAny(s string) (json.RawMessage, error) {
	text, err := TextOf(s, v.Stdin)
	if err != nil {
		return nil, err
	}
	text = bytes.TrimSpace(text)
	if json.Valid(text) {
		return text, nil
	}
	if len(text) > 0 && strings.IndexByte(`{["`, text[0]) >= 0 {
		return nil, badJSON(text)
	}
	return json.Marshal(string(text))
}

// TextOf gives the text of an argument: of a file for @file, of the standard
// input for @-, else the argument itself.
func TextOf(s string, stdin io.Reader) ([]byte, error) {
	name, isFile := strings.CutPrefix(s, "@")
	switch {
	case !isFile:
		return []byte(s), nil
	case name == "-":
		return io.ReadAll(stdin)
	}
	return os.ReadFile(name)
}

func badJSON(text []byte) error {
	var value any
	err := json.Unmarshal(text, &value)
	if syntax, ok := err.(*json.SyntaxError); ok { //nolint:errorlint // json gives it unwrapped
		return fmt.Errorf("not JSON at byte %d: %w", syntax.Offset, err)
	}
	return fmt.Errorf("not JSON: %w", err)
}

// String implements pflag.Value; it shows nothing as a default.
func (v *Value) String() string { return "" }

// Type implements pflag.Value in pflag's own words: completion offers a flag
// again when its type is a slice.
func (v *Value) Type() string {
	name := map[string]string{
		TypeString: "string", TypeInteger: "int", TypeNumber: "float", TypeBoolean: "bool",
	}[v.Kind]
	if name == "" {
		name = "json"
	}
	if v.List {
		return name + "Slice"
	}
	return name
}

// Scalar reports whether a kind is that of a single value.
func Scalar(kind string) bool {
	return kind == TypeString || kind == TypeInteger || kind == TypeNumber || kind == TypeBoolean
}

// KindOf gives the kind of a Go type's JSON, and whether it is a list of them.
func KindOf(t reflect.Type) (kind string, list bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return TypeString, false
	case reflect.Bool:
		return TypeBoolean, false
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return TypeInteger, false
	case reflect.Float32, reflect.Float64:
		return TypeNumber, false
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 {
			kind, nested := KindOf(t.Elem())
			if nested {
				kind = TypeObject
			}
			return kind, true
		}
	}
	return TypeObject, false
}
