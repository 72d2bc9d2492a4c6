// Package bind reads the input of an operation: from the path, the query, the
// headers and the body of a request, or from one JSON object. It checks
// everything and tells all that is wrong at once.
package bind

import (
	"encoding"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/switchyard-dev/switchyard/op/schema"
)

// Where an input field stands in an HTTP request.
const (
	InPath   = "path"
	InQuery  = "query"
	InHeader = "header"
	InBody   = "body"
	// InRaw is a body that is no JSON: the field of type Body takes it whole.
	InRaw = "raw"
)

// Input is one field of an operation's input.
type Input struct {
	schema.Property
	// In is path, query, header, body or raw.
	In string
	// Comma lets one query value hold several, with commas between.
	Comma bool
}

var textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()

// Inputs lists the input fields of an operation in the order of the struct.
func Inputs(method, path string, t reflect.Type) []Input {
	var list []Input
	for _, p := range schema.PropertiesOf(t) {
		f := Input{Property: p, In: locate(method, path, p), Comma: p.Field.Tag.Get("list") == "comma"}
		f.Required = f.Required || f.In == InPath
		list = append(list, f)
	}
	return list
}

// locate says where a field stands: what its "in" tag says, else a path
// parameter when the path names it, else a query parameter on methods without a
// body, else the body.
func locate(method, path string, p schema.Property) string {
	switch in := p.Field.Tag.Get("in"); {
	case in != "":
		return in
	case p.Field.Type == bodyType:
		return InRaw
	case slices.Contains(PathParams(path), p.Name):
		return InPath
	case !HasBody(method):
		return InQuery
	}
	return InBody
}

// HasBody reports whether requests of a method carry their input in a body.
func HasBody(method string) bool {
	return method != http.MethodGet && method != http.MethodDelete
}

// PathParams lists the names in braces of a path, in order.
func PathParams(path string) []string {
	var names []string
	for segment := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(segment, "{") && strings.HasSuffix(segment, "}") {
			names = append(names, segment[1:len(segment)-1])
		}
	}
	return names
}

// Scalar reports whether values of t can be read from one string.
func Scalar(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(textUnmarshaler) {
		return true
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	}
	return false
}

// ListOf gives the element type of a repeatable query parameter.
func ListOf(t reflect.Type) (reflect.Type, bool) {
	if t.Kind() != reflect.Slice || reflect.PointerTo(t).Implements(textUnmarshaler) {
		return nil, false
	}
	return t.Elem(), Scalar(t.Elem()) && t.Elem().Kind() != reflect.Pointer
}
