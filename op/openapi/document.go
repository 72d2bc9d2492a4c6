// Package openapi writes the OpenAPI 3.1 document of a set of operations. Equal
// operations give equal bytes, so that the document can be committed and compared.
package openapi

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/op/schema"
)

// Config says what a document describes.
type Config struct {
	Title, Version, Description string
	// BasePath is the prefix that a proxy puts before all paths; "" for none.
	BasePath   string
	Operations []op.Any
	// Unions are the types that answers hold one of: see schema.NewUnion and
	// schema.NewEvents.
	Unions []schema.Union
	// Tags describes first segments of names.
	Tags map[string]string
	// Names are components' names for types whose own name would mislead.
	Names map[reflect.Type]string
}

// Document is an OpenAPI document.
type Document struct{ api *huma.OpenAPI }

// New describes operations. It panics when two of them share a name or a route,
// and when a type has no schema.
func New(c Config) *Document {
	op.CheckAll(c.Operations)
	names := map[reflect.Type]string{reflect.TypeFor[fault.Item](): "ProblemItem"}
	maps.Copy(names, c.Names)
	b := &builder{out: schema.NewRegistry(schema.Options{Names: names})}
	b.in = schema.NewRegistry(schema.Options{Names: names, Reserved: func(name string) bool { return b.out.Map()[name] != nil }})
	b.api = frame(c, b.out)
	b.out.Schema(reflect.TypeFor[op.Problem](), true, "")
	schema.RegisterUnions(b.out, c.Unions...)
	var list []op.Description
	for _, o := range c.Operations {
		list = append(list, o.Describe())
	}
	slices.SortFunc(list, func(x, y op.Description) int { return strings.Compare(x.Name, y.Name) })
	// Answers first: they name the schemas that both sides use.
	operations := make([]*huma.Operation, len(list))
	for i, d := range list {
		operations[i] = b.answers(d)
	}
	for i, d := range list {
		b.input(d, operations[i])
		b.api.AddOperation(operations[i])
	}
	b.merge()
	return &Document{api: b.api}
}

// builder is a document being made. Answers and inputs have registries of their
// own, since the same Go type is open in one place and closed in the other.
type builder struct {
	api     *huma.OpenAPI
	out, in huma.Registry
}

// merge brings the schemas of inputs among those of answers.
func (b *builder) merge() {
	schema.OpenUp(b.out)
	schemas := b.out.Map()
	for name, s := range b.in.Map() {
		if schemas[name] != nil {
			panic("openapi: inputs and answers both define the schema " + name)
		}
		schemas[name] = s
	}
}

// frame is the document without its operations.
func frame(c Config, reg huma.Registry) *huma.OpenAPI {
	base := c.BasePath
	if base == "" {
		base = "/"
	}
	text := &huma.Schema{Type: huma.TypeString}
	return &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: c.Title, Version: c.Version, Description: c.Description,
			License: &huma.License{Name: "MIT", Identifier: "MIT"},
		},
		Servers:  []*huma.Server{{URL: base}},
		Security: []map[string][]string{{"bearer": {}}, {"basic": {}}},
		Tags:     tags(c),
		Components: &huma.Components{
			Schemas:   reg,
			Responses: map[string]*huma.Response{},
			Parameters: map[string]*huma.Param{
				op.HeaderIdempotencyKey: {
					Name: op.HeaderIdempotencyKey, In: op.InHeader, Schema: &huma.Schema{Type: huma.TypeString, Pattern: op.KeyPattern},
					Description: "Chosen by the client, new for each new request: sending the request again with it gives the first answer again, for 24 hours at least.",
				},
			},
			Headers: map[string]*huma.Header{
				op.HeaderRequestID:        {Description: "Names the request in the server's log.", Schema: text},
				op.HeaderEventCursor:      {Description: "Position of the event stream before what the answer tells: a stream that starts after it misses nothing.", Schema: text},
				headerETag:                {Description: "Names this state of the content, for If-None-Match.", Schema: text},
				op.HeaderContextDirectory: {Description: "Directory of the context, percent-encoded.", Schema: text},
				op.HeaderContextWorkspace: {Description: "Workspace of the context.", Schema: text},
				op.HeaderReplayed:         {Description: "`true` when the request was sent before with the same Idempotency-Key: this is what the first one was answered.", Schema: text},
			},
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"bearer": {Type: "http", Scheme: "bearer", Description: "The access token."},
				"basic":  {Type: "http", Scheme: "basic", Description: "Any user name, with the access token as password."},
			},
		},
	}
}

func tags(c Config) []*huma.Tag {
	names := map[string]bool{}
	for _, o := range c.Operations {
		names[o.Describe().Tag()] = true
	}
	var list []*huma.Tag
	for _, name := range slices.Sorted(maps.Keys(names)) {
		list = append(list, &huma.Tag{Name: name, Description: c.Tags[name]})
	}
	return list
}

// describe is an operation's text, with its synonyms at the end.
func describe(d op.Description) string {
	text := d.Doc
	if text == "" {
		text = d.Summary
	}
	var spellings []string
	for _, from := range slices.Sorted(maps.Keys(d.Aliases)) {
		if from != op.EverythingElse {
			spellings = append(spellings, fmt.Sprintf("`%s` for `%s`", from, d.Aliases[from]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Values)) {
		for _, from := range slices.Sorted(maps.Keys(d.Values[name])) {
			spellings = append(spellings, fmt.Sprintf("`%s` `%s` for `%s`", name, from, d.Values[name][from]))
		}
	}
	if len(spellings) > 0 {
		text += "\n\nAlso accepted: " + strings.Join(spellings, ", ") + "."
	}
	return text
}
