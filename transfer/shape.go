package transfer

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/switchyard-dev/switchyard/chat"
)

// shapes holds JSON values against Go types, more strictly than encoding/json:
// no unknown members, none missing that is always there, no null, no word outside
// of an enum. Values behind `any` and json.RawMessage are free.
type shapes struct {
	unions  map[reflect.Type]union
	structs map[reflect.Type]map[string]shapeField
}

// union is an interface type: a member of the object says which of the types it
// is.
type union struct {
	tag string
	of  map[string]reflect.Type
}

type shapeField struct {
	typ      reflect.Type
	required bool
	words    []string
}

func newShapes() *shapes {
	return &shapes{structs: map[reflect.Type]map[string]shapeField{}, unions: map[reflect.Type]union{
		reflect.TypeFor[chat.Message](): unionOf("role", chat.UserMessage{}, chat.AssistantMessage{}),
		reflect.TypeFor[chat.Part](): unionOf("type", chat.TextPart{}, chat.ReasoningPart{}, chat.FilePart{}, chat.ToolPart{}, chat.AgentPart{},
			chat.StepStartPart{}, chat.StepFinishPart{}, chat.RetryPart{}, chat.CompactionPart{}),
		reflect.TypeFor[chat.ToolState](): unionOf("status", chat.ToolPending{}, chat.ToolRunning{}, chat.ToolCompleted{}, chat.ToolError{}),
	}}
}

// unionOf reads from the types' enum tags which word stands for each.
func unionOf(tag string, members ...any) union {
	u := union{tag: tag, of: map[string]reflect.Type{}}
	for _, m := range members {
		t := reflect.TypeOf(m)
		for _, f := range reflect.VisibleFields(t) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name == tag {
				u.of[f.Tag.Get("enum")] = t
			}
		}
	}
	return u
}

// fields lists the members of a struct's object.
func (s *shapes) fields(t reflect.Type) map[string]shapeField {
	if known := s.structs[t]; known != nil {
		return known
	}
	out := map[string]shapeField{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue // an embedded struct, whose fields are visible themselves
		}
		field := shapeField{typ: f.Type, required: !strings.Contains(options, "omit")}
		if enum := f.Tag.Get("enum"); enum != "" {
			field.words = strings.Split(enum, ",")
		}
		out[name] = field
	}
	s.structs[t] = out
	return out
}

var free = []reflect.Type{reflect.TypeFor[any](), reflect.TypeFor[json.RawMessage]()}

// check tells the first thing that is wrong with a value as a fault naming its
// JSON pointer. Numbers in the value must be json.Number.
func (s *shapes) check(at string, v any, t reflect.Type) error {
	if slices.Contains(free, t) {
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.check(at, v, t.Elem())
	case reflect.Interface:
		return s.checkUnion(at, v, s.unions[t])
	case reflect.Struct, reflect.Map:
		return s.checkObject(at, v, t)
	case reflect.Slice:
		list, ok := v.([]any)
		if !ok {
			return invalid(at, "expected a list")
		}
		for i, item := range list {
			if err := s.check(element(at, i), item, t.Elem()); err != nil {
				return err
			}
		}
		return nil
	}
	return checkScalar(at, v, t)
}

func (s *shapes) checkUnion(at string, v any, u union) error {
	object, ok := v.(map[string]any)
	if !ok {
		return invalid(at, "expected an object")
	}
	word, _ := object[u.tag].(string)
	t, ok := u.of[word]
	if !ok {
		return invalid(member(at, u.tag), "expected one of %s", strings.Join(slices.Sorted(maps.Keys(u.of)), ", "))
	}
	return s.checkObject(at, v, t)
}

func (s *shapes) checkObject(at string, v any, t reflect.Type) error {
	object, ok := v.(map[string]any)
	if !ok {
		return invalid(at, "expected an object")
	}
	names := slices.Sorted(maps.Keys(object))
	if t.Kind() == reflect.Map {
		for _, name := range names {
			if err := s.check(member(at, name), object[name], t.Elem()); err != nil {
				return err
			}
		}
		return nil
	}
	fields := s.fields(t)
	for _, name := range names {
		f, ok := fields[name]
		if !ok {
			return invalid(member(at, name), "unknown field")
		}
		if err := s.check(member(at, name), object[name], f.typ); err != nil {
			return err
		}
		if word, ok := object[name].(string); ok && f.words != nil && !slices.Contains(f.words, word) {
			return invalid(member(at, name), "expected one of %s", strings.Join(f.words, ", "))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if _, there := object[name]; fields[name].required && !there {
			return invalid(member(at, name), "required")
		}
	}
	return nil
}

func checkScalar(at string, v any, t reflect.Type) error {
	var ok bool
	want := t.Kind().String()
	switch t.Kind() {
	case reflect.String:
		_, ok = v.(string)
	case reflect.Bool:
		_, ok = v.(bool)
	case reflect.Int, reflect.Int64:
		want = "a whole number"
		if n, number := v.(json.Number); number {
			_, err := n.Int64()
			ok = err == nil
		}
	case reflect.Float64:
		want = "a number"
		if n, number := v.(json.Number); number {
			_, err := n.Float64()
			ok = err == nil
		}
	}
	if !ok {
		return invalid(at, "expected %s", want)
	}
	return nil
}
