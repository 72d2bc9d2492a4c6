package op

import (
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/op/schema"
)

// Description is all that can be told of an operation without running it: what
// documents, command lines and lists are made of.
type Description struct {
	Spec
	Kind   Kind
	Inputs []Input
	Output Output
	// Failures are the error codes by HTTP status, each list sorted.
	Failures map[int][]fault.Code

	plan func() *plan
}

// Describe implements Any.
func (c *core) Describe() Description {
	return Description{Spec: c.spec, Kind: c.kind, Inputs: c.inputs, Output: c.output, Failures: c.failures(), plan: c.plan}
}

// Tag is the group of the operation: the first segment of its name.
func (d Description) Tag() string {
	first, _, _ := strings.Cut(d.Name, ".")
	return first
}

// Field describes one input field in the words of JSON.
type Field struct {
	Name string
	// In is path, query, header or body.
	In string
	// Type is string, integer, number, boolean, array or object, and "" for any.
	// Items is the type of an array's items.
	Type, Items string
	Required    bool
	// Comma lets one value hold several, with commas between.
	Comma   bool
	Enum    []string
	Default any
	Doc     string
}

// Fields describes the input fields in the order of their declaration.
func (d Description) Fields() []Field {
	p := d.plan()
	list := make([]Field, 0, len(p.fields))
	for i := range p.fields {
		f := &p.fields[i]
		s := schema.Deref(p.reg, f.schema)
		field := Field{
			Name: f.Name, In: f.In, Type: typeOf(s), Required: f.Required, Comma: f.Comma,
			Enum: enumOf(s), Default: f.schema.Default, Doc: f.schema.Description,
		}
		if s.Items != nil {
			items := schema.Deref(p.reg, s.Items)
			field.Items, field.Enum = typeOf(items), enumOf(items)
		}
		list = append(list, field)
	}
	return list
}

func typeOf(s *huma.Schema) string {
	if s.Type == "" && (s.OneOf != nil || s.AnyOf != nil) {
		return huma.TypeObject
	}
	return s.Type
}

func enumOf(s *huma.Schema) []string {
	var words []string
	for _, v := range s.Enum {
		if word, ok := v.(string); ok {
			words = append(words, word)
		}
	}
	return words
}

// The codes that operations give because of what they are. Spec.Codes adds what
// a single one gives.
var (
	codesOfAll = []fault.Code{
		fault.HostNotAllowed, fault.OriginNotAllowed, fault.ValidationFailed, fault.UnknownParameter,
		fault.Internal, fault.StoreUnavailable, fault.Stopping,
	}
	codesOfPrivate = []fault.Code{fault.Unauthorized, fault.Forbidden, fault.RateLimited}
	codesOfBodies  = []fault.Code{fault.MalformedJSON, fault.BodyTooLarge, fault.UnsupportedMediaType}
	codesOfWrites  = []fault.Code{fault.StoreFull}
	codesOfHints   = []fault.Code{
		fault.DirectoryInvalid, fault.ContextAmbiguous, fault.DirectoryOutsideWorkspace,
		fault.DirectoryNotFound, fault.WorkspaceNotFound,
	}
)

// failures gives the documented codes by status.
func (c *core) failures() map[int][]fault.Code {
	all := slices.Concat(codesOfAll, c.spec.Codes)
	if !c.spec.Public {
		all = append(all, codesOfPrivate...)
	}
	if hasBody(c.spec.Method) {
		all = append(all, codesOfBodies...)
	}
	if c.spec.Method != http.MethodGet {
		all = append(all, codesOfWrites...)
	}
	switch {
	case c.kind == KindSession:
		all = append(all, fault.SessionNotFound, fault.ContextNotAccepted)
	case c.kind == KindServer:
		all = append(all, fault.ContextNotAccepted)
	case !c.spec.Item:
		all = append(all, codesOfHints...)
	}
	if slices.ContainsFunc(c.output.Forms(), func(o Output) bool { return o.Shape == ShapeRaw }) {
		all = append(all, fault.RangeInvalid, fault.ETagMismatch)
	}
	byStatus := map[int][]fault.Code{}
	slices.Sort(all)
	for _, code := range slices.Compact(all) {
		status := fault.HTTPStatus(code)
		byStatus[status] = append(byStatus[status], code)
	}
	return byStatus
}
