package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2/yaml"
)

// JSON gives the document as indented JSON.
func (d *Document) JSON() ([]byte, error) {
	text, err := d.ordered()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return nil, fmt.Errorf("indenting the document: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// YAML gives the document as YAML.
func (d *Document) YAML() ([]byte, error) {
	text, err := d.ordered()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := yaml.Convert(&out, bytes.NewReader(text)); err != nil {
		return nil, fmt.Errorf("writing the document as YAML: %w", err)
	}
	return out.Bytes(), nil
}

// ordered gives the document as JSON with its members in the order in which
// people read them.
func (d *Document) ordered() ([]byte, error) {
	text, err := json.Marshal(d.api)
	if err != nil {
		return nil, fmt.Errorf("encoding the document: %w", err)
	}
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return nil, fmt.Errorf("ordering the document: %w", err)
	}
	var out bytes.Buffer
	if err := writeOrdered(&out, tree, false); err != nil {
		return nil, fmt.Errorf("ordering the document: %w", err)
	}
	return out.Bytes(), nil
}

// keyOrder lists the members that come first, in their order; the others follow
// by name. maps lists those whose own members are names, not members.
var (
	keyOrder = strings.Fields(`
		openapi info title version servers tags paths get put post patch delete
		operationId x-context $ref type name in summary description required parameters requestBody responses
		schema format enum properties items content headers security components`)
	mapsOfNames = strings.Fields(`
		paths responses properties schemas headers content mapping examples example securitySchemes x-aliases`)
)

func writeOrdered(out *bytes.Buffer, v any, names bool) error {
	switch v := v.(type) {
	case map[string]any:
		return writeObject(out, v, names)
	case []any:
		out.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := writeOrdered(out, item, false); err != nil {
				return err
			}
		}
		out.WriteByte(']')
		return nil
	}
	return encode(out, v)
}

func writeObject(out *bytes.Buffer, object map[string]any, names bool) error {
	keys := slices.Sorted(maps.Keys(object))
	if !names {
		slices.SortStableFunc(keys, func(a, b string) int { return rank(a) - rank(b) })
	}
	out.WriteByte('{')
	for i, key := range keys {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := encode(out, key); err != nil {
			return err
		}
		out.WriteByte(':')
		if err := writeOrdered(out, object[key], !names && slices.Contains(mapsOfNames, key)); err != nil {
			return err
		}
	}
	out.WriteByte('}')
	return nil
}

func rank(key string) int {
	if i := slices.Index(keyOrder, key); i >= 0 {
		return i
	}
	return len(keyOrder)
}

func encode(out *bytes.Buffer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	out.Truncate(out.Len() - 1) // The encoder ends in a newline.
	return nil
}
