package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// inputValue is a flag that holds the JSON of an input field.
type inputValue struct {
	// kind is the type of the field, or of its items when it is a list: string,
	// integer, number, boolean, else any JSON.
	kind string
	list bool
	// stdin is what "@-" reads.
	stdin io.Reader

	items []json.RawMessage
}

// json gives the value to send.
func (v *inputValue) json() json.RawMessage {
	if !v.list {
		return v.items[len(v.items)-1]
	}
	all := []json.RawMessage{}
	for _, item := range v.items {
		var several []json.RawMessage
		if v.kind == huma.TypeObject && json.Unmarshal(item, &several) == nil {
			all = append(all, several...)
			continue
		}
		all = append(all, item)
	}
	data, err := json.Marshal(all)
	if err != nil { // Set took JSON only.
		panic("cli: " + err.Error())
	}
	return data
}

// Set implements pflag.Value. A list grows by one.
func (v *inputValue) Set(s string) error {
	raw, err := v.parse(s)
	if err == nil {
		v.items = append(v.items, raw)
	}
	return err
}

func (v *inputValue) parse(s string) (json.RawMessage, error) {
	switch v.kind {
	case huma.TypeString:
		return json.Marshal(s)
	case huma.TypeInteger:
		if _, err := strconv.ParseInt(s, 10, 64); err != nil {
			return nil, fmt.Errorf("a whole number is needed")
		}
		return json.RawMessage(strings.TrimPrefix(s, "+")), nil
	case huma.TypeNumber:
		n, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil, fmt.Errorf("a number is needed")
		}
		return json.Marshal(n)
	case huma.TypeBoolean:
		b, err := strconv.ParseBool(s)
		if err != nil {
			return nil, fmt.Errorf("true or false is needed")
		}
		return json.Marshal(b)
	}
	return v.parseAny(s)
}

// parseAny reads JSON, from a file after @. Text that does not look like JSON is
// a string.
func (v *inputValue) parseAny(s string) (json.RawMessage, error) {
	text, err := textOf(s, v.stdin)
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

// textOf gives the text of an argument: of a file for @file, of the standard
// input for @-, else the argument itself.
func textOf(s string, stdin io.Reader) ([]byte, error) {
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
func (v *inputValue) String() string { return "" }

// Type implements pflag.Value in pflag's own words: completion offers a flag
// again when its type is a slice.
func (v *inputValue) Type() string {
	name := map[string]string{
		huma.TypeString: "string", huma.TypeInteger: "int", huma.TypeNumber: "float", huma.TypeBoolean: "bool",
	}[v.kind]
	if name == "" {
		name = "json"
	}
	if v.list {
		return name + "Slice"
	}
	return name
}

// kindOf gives the kind of a Go type's JSON, and whether it is a list of them.
func kindOf(t reflect.Type) (kind string, list bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return huma.TypeString, false
	case reflect.Bool:
		return huma.TypeBoolean, false
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return huma.TypeInteger, false
	case reflect.Float32, reflect.Float64:
		return huma.TypeNumber, false
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 {
			kind, nested := kindOf(t.Elem())
			if nested {
				kind = huma.TypeObject
			}
			return kind, true
		}
	}
	return huma.TypeObject, false
}
