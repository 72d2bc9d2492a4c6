package bind

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/switchyard-dev/switchyard/op/schema"
)

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
func (p *Plan) Fields() []Field {
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
