package openapi

import (
	"encoding/json"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/op/schema"
)

// input describes the parameters and the body of an operation.
func (b *builder) input(d op.Description, o *huma.Operation) {
	shown := exampleInput(d)
	var body []schema.Property
	for _, f := range d.Inputs {
		if f.In == op.InBody {
			body = append(body, f.Property)
			continue
		}
		if f.In == op.InRaw {
			o.RequestBody = rawBody(b.in, d, f)
			continue
		}
		p := parameter(b.in, f)
		p.Example = shown[f.Name]
		o.Parameters = append(o.Parameters, p)
	}
	o.Parameters = append(o.Parameters, contextParameters(d)...)
	own := func(f op.Input) bool { return f.Name == op.HeaderIdempotencyKey }
	if d.Keyed && !slices.ContainsFunc(d.Inputs, own) {
		o.Parameters = append(o.Parameters, &huma.Param{Ref: "#/components/parameters/" + op.HeaderIdempotencyKey})
	}
	if len(body) > 0 {
		o.RequestBody = requestBody(b.in, d, body, shown)
	}
}

func parameter(reg huma.Registry, f op.Input) *huma.Param {
	s := f.Of(reg)
	p := &huma.Param{Name: f.Name, In: f.In, Required: f.Required, Description: s.Description, Schema: s}
	s.Description = ""
	s.Nullable = false // There is no null in a URL.
	if s.Type == huma.TypeArray {
		exploded := !f.Comma
		p.Explode = &exploded
	}
	return p
}

// contextParameters are those that name the context.
func contextParameters(d op.Description) []*huma.Param {
	text := func() *huma.Schema { return &huma.Schema{Type: huma.TypeString} }
	directory := &huma.Param{
		Name: "directory", In: op.InQuery, Schema: text(),
		Description: "Absolute directory to work in; without it the server's default one. The header x-opencode-directory (percent-encoded) is read when no context is in the query.",
	}
	workspace := &huma.Param{
		Name: "workspace", In: op.InQuery, Schema: text(),
		Description: "Workspace to work in; its root when no directory is given. The header x-opencode-workspace is read when no context is in the query.",
	}
	switch {
	case d.Kind == op.KindSession:
		return []*huma.Param{{Name: "sessionID", In: op.InPath, Required: true, Description: "The session.", Schema: text()}}
	case d.Kind != op.KindRequest || d.Item:
		return nil
	case d.Many:
		for _, p := range []*huma.Param{directory, workspace} {
			p.Schema = &huma.Schema{Type: huma.TypeArray, Items: text()}
			p.Description += " May be given several times."
		}
	}
	return []*huma.Param{directory, workspace}
}

func requestBody(reg huma.Registry, d op.Description, body []schema.Property, shown map[string]any) *huma.RequestBody {
	name := schema.Camel(d.Name) + "Input"
	s := schema.Object(reg, body)
	if reg.Map()[name] != nil {
		panic("openapi: a type of an input is called " + name + ", as is an operation's body")
	}
	reg.Map()[name] = s
	media := &huma.MediaType{Schema: &huma.Schema{Ref: schema.Prefix + name}}
	if shown != nil {
		example := map[string]any{}
		for _, p := range body {
			if value, ok := shown[p.Name]; ok {
				example[p.Name] = value
			}
		}
		media.Example = example
	}
	return &huma.RequestBody{Required: len(s.Required) > 0, Content: map[string]*huma.MediaType{op.TypeJSON: media}}
}

// rawBody is a body that the operation reads itself.
func rawBody(reg huma.Registry, d op.Description, f op.Input) *huma.RequestBody {
	s := f.Of(reg)
	doc := s.Description
	s.Description = ""
	body := &huma.RequestBody{Required: f.Required, Description: doc, Content: map[string]*huma.MediaType{}}
	for _, t := range d.Consumes {
		body.Content[t] = &huma.MediaType{Schema: rawSchema(t)}
	}
	if len(d.Consumes) == 0 {
		body.Content["*/*"] = &huma.MediaType{Schema: s}
	}
	return body
}

// exampleInput is the example as JSON has it; nil for none.
func exampleInput(d op.Description) map[string]any {
	if d.Example == nil {
		return nil
	}
	text, err := json.Marshal(d.Example)
	var shown map[string]any
	if err == nil {
		err = json.Unmarshal(text, &shown)
	}
	if err != nil {
		panic("openapi: the example of " + d.Name + " is no JSON: " + err.Error())
	}
	return shown
}
