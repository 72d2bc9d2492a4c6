package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/danielgtaylor/huma/v2"

	"github.com/switchyard-dev/switchyard/fault"
)

// Union is a set of struct types of which a value is one; a member field, the
// discriminator, says which. Each type gives the discriminator's value in that
// field's enum tag.
type Union struct {
	// Type is the Go type that stands for the union: an interface, or a struct
	// such as an envelope. Nil for a union used through Schema only.
	Type          reflect.Type
	Name          string
	Discriminator string
	Doc           string

	members []member
}

type member struct {
	tag string
	typ reflect.Type
	// schema makes the member's component where it is not simply that of typ.
	schema func(reg huma.Registry) *huma.Schema
	name   string
}

// NewUnion makes a union; members are (pointers to) zero values. It panics when
// a member does not tell its discriminator.
func NewUnion(t reflect.Type, name, discriminator string, members ...any) Union {
	u := Union{Type: t, Name: name, Discriminator: discriminator}
	for _, m := range members {
		typ := reflect.TypeOf(m)
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		u.members = append(u.members, member{tag: tagOf(typ, discriminator), typ: typ})
	}
	return u
}

func tagOf(t reflect.Type, discriminator string) string {
	for _, sf := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if tag := sf.Tag.Get("enum"); name == discriminator && tag != "" && !strings.Contains(tag, ",") {
			return tag
		}
	}
	panic(fmt.Sprintf("schema: %s has no field %q with one enum value", t, discriminator))
}

// RegisterUnion documents every use of the type t as one of the members, with a
// discriminator and its mapping.
func RegisterUnion(reg huma.Registry, t reflect.Type, name, discriminator string, members ...any) {
	RegisterUnions(reg, NewUnion(t, name, discriminator, members...))
}

// RegisterUnions registers unions that may hold each other.
func RegisterUnions(reg huma.Registry, unions ...Union) {
	for _, u := range unions {
		mark := marker(u.Name)
		reg.RegisterTypeAlias(u.Type, mark)
		reg.Schema(mark, true, "")
	}
	for _, u := range unions {
		reg.Map()[u.Name] = u.object(reg)
	}
}

// Schema gives a reference to the union's schema, which it adds to reg when it
// is not there. An input type calls it in its own Schema method.
func (u Union) Schema(reg huma.Registry) *huma.Schema {
	if reg.Map()[u.Name] == nil {
		reg.Schema(marker(u.Name), true, "")
		reg.Map()[u.Name] = u.object(reg)
	}
	return &huma.Schema{Ref: Prefix + u.Name}
}

// Decode reads a value of the union; the result is a pointer to one of the
// members. An input type calls it in its own UnmarshalJSON method.
func (u Union) Decode(data []byte) (any, error) {
	var head map[string]json.RawMessage
	var tag string
	if json.Unmarshal(data, &head) != nil || json.Unmarshal(head[u.Discriminator], &tag) != nil {
		return nil, fault.New(fault.ValidationFailed, "%s must be an object with a %q", u.Name, u.Discriminator)
	}
	for _, m := range u.members {
		if m.tag == tag {
			v := reflect.New(m.typ).Interface()
			return v, json.Unmarshal(data, v)
		}
	}
	return nil, fault.New(fault.ValidationFailed, "%s has no %s %q", u.Name, u.Discriminator, tag)
}

func (u Union) object(reg huma.Registry) *huma.Schema {
	s := &huma.Schema{
		Description:   u.Doc,
		Discriminator: &huma.Discriminator{PropertyName: u.Discriminator, Mapping: map[string]string{}},
	}
	for _, m := range u.members {
		ref := m.ref(reg)
		s.OneOf = append(s.OneOf, &huma.Schema{Ref: ref})
		s.Discriminator.Mapping[m.tag] = ref
	}
	s.PrecomputeMessages()
	return s
}

func (m member) ref(reg huma.Registry) string {
	if m.schema == nil {
		return reg.Schema(m.typ, true, "").Ref
	}
	reg.Map()[m.name] = m.schema(reg)
	return Prefix + m.name
}

// marker is a type that the registry knows by a name of our choice. Registries
// find schemas by Go type only, and a union has none of its own that could
// provide a schema: so an alias leads from its interface to such a marker, whose
// component is then replaced.
func marker(name string) reflect.Type {
	return reflect.StructOf([]reflect.StructField{{
		Name: "Union", Type: reflect.TypeFor[string](), Tag: reflect.StructTag(`json:"-" component:"` + name + `"`),
	}})
}

func markedName(t reflect.Type) (string, bool) {
	if t.Kind() != reflect.Struct || t.Name() != "" || t.NumField() != 1 {
		return "", false
	}
	return t.Field(0).Tag.Lookup("component")
}

// EventKind is one kind of event for the document.
type EventKind struct {
	// Type is the envelope's "type", Payload the Go type of its payload.
	Type    string
	Payload reflect.Type
	Doc     string
	// Invalidates names the operations whose answers a client reads again.
	Invalidates []string
}

// NewEvents makes the union of all events: the envelope type t, which has a
// "type" and a "payload" beside its other members, by type. Each kind becomes a
// component of its own, the payload's schema among it.
func NewEvents(t reflect.Type, name string, kinds ...EventKind) Union {
	u := Union{Type: t, Name: name, Discriminator: "type", Doc: "An event of the server, by type. Clients ignore types that they do not know."}
	for _, k := range kinds {
		u.members = append(u.members, member{
			tag: k.Type, typ: k.Payload, name: name + Camel(k.Type),
			schema: func(reg huma.Registry) *huma.Schema { return envelopeSchema(reg, t, k) },
		})
	}
	return u
}

func envelopeSchema(reg huma.Registry, envelope reflect.Type, k EventKind) *huma.Schema {
	own := slices.DeleteFunc(PropertiesOf(envelope), func(p Property) bool { return p.Name == "type" || p.Name == "payload" })
	s := Object(reg, own)
	s.Description = k.Doc
	s.Properties["type"] = &huma.Schema{Type: huma.TypeString, Enum: []any{k.Type}}
	s.Properties["payload"] = reg.Schema(k.Payload, true, Camel(k.Type)+"Payload")
	s.Required = append(s.Required, "type", "payload")
	if len(k.Invalidates) > 0 {
		s.Extensions = map[string]any{"x-invalidates": k.Invalidates}
	}
	s.PrecomputeMessages()
	return s
}

// Camel writes a dotted or dashed name as a Go name: "message.part.updated" is
// MessagePartUpdated.
func Camel(name string) string {
	up := true
	return strings.Map(func(r rune) rune {
		switch {
		case r == '.' || r == '-' || r == '_':
			up = true
			return -1
		case up:
			up = false
			return unicode.ToUpper(r)
		}
		return r
	}, name)
}
