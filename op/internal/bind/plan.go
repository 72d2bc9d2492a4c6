package bind

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/op/schema"
)

// Config says what a Plan reads.
type Config struct {
	Method, Path string
	// Tail lets the last path parameter hold slashes.
	Tail bool
	// Aliases are synonyms of fields, Values those of their values.
	Aliases map[string]string
	Values  map[string]map[string]string
	// Context are the query parameters that name a context: they are read
	// elsewhere, and known here.
	Context []string
	Inputs  []Input
	// Consumes are the media types of a raw body; none means any.
	Consumes []string
}

// Plan is how an operation's input is read and checked. It is made at the first
// use of the operation, so that starting the program costs nothing for it. Its
// schemas are its own: those of the document have the same content, but names
// that only matter there.
type Plan struct {
	Config
	reg    huma.Registry
	fields []planned
	places map[string]bool
}

type planned struct {
	Input
	schema *huma.Schema
}

// New makes a plan. It panics when a field's type has no schema.
func New(c Config) *Plan {
	p := &Plan{Config: c, reg: schema.NewRegistry(schema.Options{}), places: map[string]bool{}}
	for _, f := range c.Inputs {
		p.fields = append(p.fields, planned{Input: f, schema: f.Of(p.reg)})
		p.places[f.In] = true
	}
	return p
}

// HTTP reads the input from a request: in is a pointer to its struct.
// Everything that is wrong is told at once, except for a body that cannot be
// read at all.
func (p *Plan) HTTP(w http.ResponseWriter, r *http.Request, query url.Values, limit int64, in any) error {
	bad := &findings{}
	v := reflect.ValueOf(in).Elem()
	if HasBody(p.Method) && !p.places[InRaw] {
		data, err := readBody(w, r, limit)
		if err != nil {
			return err
		}
		if err := p.bindBody(data, in, bad); err != nil {
			return err
		}
	}
	p.checkQuery(query, bad)
	if len(p.Aliases)+len(p.Values) > 0 {
		query = p.canonical(query, bad)
	}
	for i := range p.fields {
		f := &p.fields[i]
		switch f.In {
		case InPath:
			p.bindValues(v, f, []string{PathValue(r, p.Path, p.Tail, f.Name)}, bad)
		case InQuery:
			p.bindValues(v, f, query[f.Name], bad)
		case InHeader:
			p.bindValues(v, f, r.Header.Values(f.Name), bad)
		case InRaw:
			body, err := rawBody(w, r, limit, p.Consumes)
			if err != nil {
				return err
			}
			v.FieldByIndex(f.Field.Index).Set(reflect.ValueOf(body))
		}
	}
	return bad.err()
}

// Flat reads the input from one JSON object that holds all fields.
func (p *Plan) Flat(data json.RawMessage, in any) error {
	if len(bytes.TrimSpace(data)) == 0 {
		data = json.RawMessage("{}")
	}
	bad := &findings{}
	all := func(string) bool { return true }
	if err := p.bindObject(data, in, "input", all, bad); err != nil {
		return err
	}
	return bad.err()
}

func (p *Plan) bindBody(data []byte, in any, bad *findings) error {
	if len(data) == 0 && !p.places[InBody] {
		return nil
	}
	if len(data) == 0 {
		data = []byte("{}")
	}
	return p.bindObject(data, in, InBody, func(place string) bool { return place == InBody }, bad)
}

// bindObject checks a JSON object against the fields of the places that here
// accepts and reads it into in. An error is about the text as a whole.
func (p *Plan) bindObject(data []byte, in any, where string, here func(place string) bool, bad *findings) error {
	value, err := parse(data)
	if err != nil {
		return err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return fault.New(fault.ValidationFailed, "the %s must be a JSON object", where).At(where, "expected object")
	}
	if len(p.Aliases)+len(p.Values) > 0 {
		if data, object = p.rewrite(data, object, where, bad); bad.any() {
			return nil
		}
	}
	known := map[string]bool{}
	v := reflect.ValueOf(in).Elem()
	for i := range p.fields {
		f := &p.fields[i]
		if !here(f.In) {
			continue
		}
		known[f.Name] = true
		given, present := object[f.Name]
		switch {
		case !present && f.Required:
			bad.add(where+"."+f.Name, "required")
		case !present:
			setDefault(v, f)
		case given != nil || f.Required:
			p.validate(f, where+"."+f.Name, given, bad)
		}
	}
	for name := range object {
		if !known[name] {
			bad.add(where+"."+name, "%s", p.unknownField(name, known))
		}
	}
	if bad.any() {
		return nil
	}
	return decode(data, in, where)
}

// decode fills in once the schema is satisfied: what still fails is a number
// that the Go type cannot hold, or a type with a reader of its own.
func decode(data []byte, in any, where string) error {
	err := json.Unmarshal(data, in)
	if err == nil {
		return nil
	}
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return fault.New(fault.ValidationFailed, "%s.%s cannot be %s", where, mismatch.Field, mismatch.Value).
			At(where+"."+mismatch.Field, "expected %s", mismatch.Type)
	}
	if f, ok := fault.As(err); ok {
		return f
	}
	return fault.New(fault.ValidationFailed, "the %s holds a value that is not acceptable", where).At(where, "not acceptable")
}

func parse(data []byte) (any, error) {
	if !utf8.Valid(data) {
		return nil, fault.New(fault.MalformedJSON, "the JSON is not valid UTF-8")
	}
	var value any
	err := json.Unmarshal(data, &value)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return nil, fault.New(fault.MalformedJSON, "not JSON at byte %d: %s", syntax.Offset, syntax.Error()).With("offset", syntax.Offset)
	}
	if err != nil {
		return nil, fault.New(fault.MalformedJSON, "not JSON")
	}
	return value, nil
}

func setDefault(v reflect.Value, f *planned) {
	if f.schema.Default != nil {
		v.FieldByIndex(f.Field.Index).Set(reflect.ValueOf(f.schema.Default))
	}
}

// validate checks one value against its field's schema. A union is checked here,
// since the validator neither names the choices nor refuses what is no object.
func (p *Plan) validate(f *planned, where string, value any, bad *findings) {
	s := schema.Deref(p.reg, f.schema)
	if s.Discriminator == nil {
		p.run(f.schema, where, value, bad)
		return
	}
	object, ok := value.(map[string]any)
	if !ok {
		bad.add(where, "expected object")
		return
	}
	key := s.Discriminator.PropertyName
	tag, ok := object[key].(string)
	if !ok {
		bad.add(where+"."+key, "required: it says which kind of object this is")
		return
	}
	ref, ok := s.Discriminator.Mapping[tag]
	if !ok {
		bad.add(where+"."+key, "expected value to be one of %s", quoted(s.Discriminator.Mapping))
		return
	}
	p.run(p.reg.SchemaFromRef(ref), where, value, bad)
}

func (p *Plan) run(s *huma.Schema, where string, value any, bad *findings) {
	var res huma.ValidateResult
	path := huma.NewPathBuffer(make([]byte, 0, 64), 0)
	path.Push(where)
	huma.Validate(p.reg, s, path, huma.ModeWriteToServer, value, &res)
	for _, err := range res.Errors {
		var d *huma.ErrorDetail
		if !errors.As(err, &d) {
			continue
		}
		if name, ok := missingName(d.Message); ok {
			bad.add(d.Location+"."+name, "required")
			continue
		}
		// The value itself is not repeated: it may be a secret.
		bad.add(d.Location, "%s", d.Message)
	}
}

// missingName reads the name out of the validator's message for a property that
// is not there; its location is that of the object.
func missingName(message string) (string, bool) {
	head, tail, _ := strings.Cut(validation.MsgExpectedRequiredProperty, "%s")
	rest, ok := strings.CutPrefix(message, head)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, tail)
}
