// Package input turns Go structs into the inputs of tools: their JSON schema for
// the model, and the reading of what a model sends, with errors that a model can
// act on.
//
// Inputs are structs whose tags say everything: json (a field without omitempty
// is required), doc, enum (comma list), min, max, and alias (comma list of
// further names that models use). Fields are strings, integers, booleans, slices,
// structs and pointers to these.
package input

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/switchyard-dev/switchyard/fault"
)

// Schema gives the JSON schema of an input type.
func Schema[T any]() json.RawMessage {
	data, err := json.Marshal(schema(reflect.TypeFor[T]()))
	if err != nil {
		panic(fmt.Sprintf("input: schema of %v: %v", reflect.TypeFor[T](), err))
	}
	return data
}

func schema(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		return schema(t.Elem())
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Int:
		return map[string]any{"type": "integer"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schema(t.Elem())}
	case reflect.Struct:
		return objectSchema(t)
	}
	panic(fmt.Sprintf("input: no schema for %v", t))
}

func objectSchema(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	for f := range fields(t) {
		p := schema(f.Type)
		if f.doc != "" {
			p["description"] = f.doc
		}
		if len(f.enum) > 0 {
			p["enum"] = f.enum
		}
		for key, value := range map[string]*int{"minimum": f.min, "maximum": f.max} {
			if value != nil {
				p[key] = *value
			}
		}
		properties[f.name] = p
		if f.required {
			required = append(required, f.name)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// field is one field of an input struct.
type field struct {
	reflect.StructField
	name, doc string
	required  bool
	aliases   []string
	enum      []string
	min, max  *int
}

func fields(t reflect.Type) iter.Seq[field] {
	return func(yield func(field) bool) {
		for i := range t.NumField() {
			sf := t.Field(i)
			name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
			f := field{
				StructField: sf, name: name, doc: sf.Tag.Get("doc"), required: options != "omitempty",
				aliases: list(sf.Tag.Get("alias")), enum: list(sf.Tag.Get("enum")),
				min: number(sf.Tag.Get("min")), max: number(sf.Tag.Get("max")),
			}
			if !yield(f) {
				return
			}
		}
	}
}

func list(tag string) []string {
	if tag == "" {
		return nil
	}
	return strings.Split(tag, ",")
}

func number(tag string) *int {
	n, err := strconv.Atoi(tag)
	if err != nil {
		return nil
	}
	return &n
}

// Decode reads an input. What is wrong is told all at once, field by field, as a
// validation_failed fault; fields that nobody knows are passed over.
func Decode[T any](raw json.RawMessage) (T, error) {
	var in T
	e := fault.New(fault.ValidationFailed, "")
	fill(e, reflect.ValueOf(&in).Elem(), field{}, raw, "")
	if len(e.Items) == 0 {
		return in, nil
	}
	problems := make([]string, 0, len(e.Items))
	for _, item := range e.Items {
		problems = append(problems, strings.TrimSpace(strings.TrimPrefix(item.Location, "input.")+" "+item.Message))
	}
	e.Detail = "The input is not valid: " + strings.Join(problems, "; ") + "."
	return in, e
}

// fill puts JSON into v and notes what is wrong.
func fill(e *fault.Error, v reflect.Value, f field, raw json.RawMessage, at string) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(e, v.Elem(), f, raw, at)
	case reflect.Struct:
		fillObject(e, v, raw, at)
	case reflect.Slice:
		fillList(e, v, raw, at)
	default:
		if err := json.Unmarshal(raw, v.Addr().Interface()); err != nil {
			e.At("input"+at, "must be %s, not %s", kindName(v.Kind()), jsonName(raw))
			return
		}
		check(e, v, f, at)
	}
}

func fillList(e *fault.Error, v reflect.Value, raw json.RawMessage, at string) {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		e.At("input"+at, "must be an array, not %s", jsonName(raw))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
	for i, item := range items {
		fill(e, v.Index(i), field{}, item, fmt.Sprintf("%s[%d]", at, i))
	}
}

func fillObject(e *fault.Error, v reflect.Value, raw json.RawMessage, at string) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		e.At("input"+at, "must be an object, not %s", jsonName(raw))
		return
	}
	for f := range fields(v.Type()) {
		value, ok := members[f.name]
		for _, alias := range f.aliases {
			if !ok {
				value, ok = members[alias]
			}
		}
		here := at + "." + f.name
		switch {
		case ok && string(value) != "null":
			fill(e, v.FieldByIndex(f.Index), f, value, here)
		case f.required:
			e.At("input"+here, "is required")
		}
	}
}

func check(e *fault.Error, v reflect.Value, f field, at string) {
	switch {
	case len(f.enum) > 0 && !slices.Contains(f.enum, v.String()):
		e.At("input"+at, "must be one of %s", strings.Join(f.enum, ", "))
	case v.Kind() == reflect.Int && f.min != nil && v.Int() < int64(*f.min):
		e.At("input"+at, "must be at least %d", *f.min)
	case v.Kind() == reflect.Int && f.max != nil && v.Int() > int64(*f.max):
		e.At("input"+at, "must be at most %d", *f.max)
	}
}

func kindName(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a string"
	case reflect.Int:
		return "an integer"
	}
	return "true or false"
}

// jsonName names what a JSON text is, never what it says.
func jsonName(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if !json.Valid(raw) {
		return "broken JSON"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "this number"
}
