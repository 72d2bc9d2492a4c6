// Package schema makes JSON Schemas of Go types through huma's registry, with
// the rules of this API: names that are unique across packages, closed objects
// for inputs and open ones for answers, lists that are never null, and unions
// with a discriminator.
package schema

import (
	"fmt"
	"path"
	"reflect"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

// Prefix begins every reference to a component.
const Prefix = "#/components/schemas/"

// settings puts huma's package variables to what this API promises; everything
// that makes or checks a schema goes through it first.
var settings = sync.OnceFunc(func() {
	huma.DefaultArrayNullable = false
	huma.ValidateStrictCasing = true
})

// Options say how a registry names its components.
type Options struct {
	// Names are for types whose own name would mislead.
	Names map[reflect.Type]string
	// Reserved tells the names that belong to answers, which are open to further
	// members while inputs are closed: an input's type of that name gets the
	// suffix "Input". Nil reserves none.
	Reserved func(name string) bool
}

// NewRegistry makes a registry of closed objects.
func NewRegistry(o Options) huma.Registry {
	settings()
	n := &namer{Options: o, types: map[string]reflect.Type{}, names: map[reflect.Type]string{}}
	return huma.NewMapRegistry(Prefix, n.name)
}

// namer gives component names to Go types: the type's own name, with its
// package's in front where another type has it already.
type namer struct {
	Options
	types map[string]reflect.Type
	names map[reflect.Type]string
}

func (n *namer) name(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if name, ok := markedName(t); ok {
		n.types[name] = t
		return name
	}
	if t.Kind() != reflect.Struct {
		return huma.DefaultSchemaNamer(t, hint)
	}
	if name, ok := n.names[t]; ok {
		return name
	}
	base, given := n.Names[t]
	if !given {
		base = huma.DefaultSchemaNamer(t, hint)
	}
	base = n.free(base)
	name := base
	if _, taken := n.types[name]; taken {
		pkg := path.Base(t.PkgPath())
		name = strings.ToUpper(pkg[:1]) + pkg[1:] + base
	}
	for i := 2; n.types[name] != nil; i++ {
		name = fmt.Sprintf("%s%d", base, i)
	}
	n.types[name], n.names[t] = t, name
	return name
}

func (n *namer) free(name string) string {
	if n.Reserved != nil && n.Reserved(name) && !strings.HasSuffix(name, "Input") {
		return name + "Input"
	}
	return name
}

// Property is one field of a struct as JSON has it.
type Property struct {
	Name     string
	Required bool
	Field    reflect.StructField
}

// PropertiesOf lists the properties of a struct in its order. The fields of
// embedded structs count as its own. A field without a name in its json tag has
// the name "".
func PropertiesOf(t reflect.Type) []Property {
	if t.Kind() != reflect.Struct {
		return nil
	}
	var list []Property
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || f.Anonymous && name == "" {
			continue
		}
		p := Property{Name: name, Required: !strings.Contains(options, "omit"), Field: f}
		if tag, ok := f.Tag.Lookup("required"); ok {
			p.Required = tag == "true"
		}
		list = append(list, p)
	}
	return list
}

// Of is the schema of one property, with the rule that huma has for the fields
// of a struct: a pointer that may be left out is not nullable for that. It
// panics for a type that JSON cannot have.
func (p Property) Of(reg huma.Registry) *huma.Schema {
	s := huma.SchemaFromField(reg, p.Field, p.Field.Name)
	if s == nil {
		panic(fmt.Sprintf("schema: field %s of type %s has no schema", p.Field.Name, p.Field.Type))
	}
	if p.Field.Type.Kind() == reflect.Pointer && p.Field.Tag.Get("nullable") != "true" && !p.Required {
		s.Nullable = false
	}
	return s
}

// Object is a closed object of some properties.
func Object(reg huma.Registry, properties []Property) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeObject, Properties: map[string]*huma.Schema{}, AdditionalProperties: false}
	for _, p := range properties {
		s.Properties[p.Name] = p.Of(reg)
		if p.Required {
			s.Required = append(s.Required, p.Name)
		}
	}
	s.PrecomputeMessages()
	return s
}

// OpenUp lets all objects of a registry have further members: what a server answers
// must not break an older client.
func OpenUp(reg huma.Registry) {
	for _, s := range reg.Map() {
		walk(s, func(s *huma.Schema) {
			if closed, ok := s.AdditionalProperties.(bool); ok && !closed {
				s.AdditionalProperties = nil
			}
		})
	}
}

// walk visits a schema and everything written inside it; references are not
// followed.
func walk(s *huma.Schema, visit func(*huma.Schema)) {
	if s == nil {
		return
	}
	visit(s)
	walk(s.Items, visit)
	walk(s.Not, visit)
	if extra, ok := s.AdditionalProperties.(*huma.Schema); ok {
		walk(extra, visit)
	}
	for _, p := range s.Properties {
		walk(p, visit)
	}
	for _, list := range [][]*huma.Schema{s.OneOf, s.AnyOf, s.AllOf} {
		for _, m := range list {
			walk(m, visit)
		}
	}
}

// Deref follows references.
func Deref(reg huma.Registry, s *huma.Schema) *huma.Schema {
	for s != nil && s.Ref != "" {
		s = reg.SchemaFromRef(s.Ref)
	}
	return s
}
