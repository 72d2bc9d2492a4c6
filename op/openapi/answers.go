package openapi

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/op/schema"
)

const headerETag = "ETag"

// answers describes an operation except for its input.
func (b *builder) answers(d op.Description) *huma.Operation {
	o := &huma.Operation{
		OperationID: d.Name, Method: d.Method, Path: d.Path,
		Summary: d.Summary, Description: describe(d), Tags: []string{d.Tag()},
		Responses:  map[string]*huma.Response{},
		Extensions: map[string]any{"x-context": string(d.Kind)},
	}
	if d.Public {
		o.Security = []map[string][]string{{}, {"bearer": {}}, {"basic": {}}}
	}
	if len(d.Aliases) > 0 {
		o.Extensions["x-aliases"] = d.Aliases
	}
	b.successes(d, o.Responses)
	for _, status := range slices.Sorted(maps.Keys(d.Failures)) {
		o.Responses[strconv.Itoa(status)] = b.failure(status, d.Failures[status])
	}
	return o
}

func (b *builder) successes(d op.Description, to map[string]*huma.Response) {
	content := map[string]*huma.MediaType{}
	headers := headersOf(d)
	partial := map[string]*huma.MediaType{}
	for _, form := range d.Output.Forms() {
		maps.Copy(content, b.content(d, form))
		if form.Tagged {
			to["304"] = response(http.StatusNotModified, headers, nil)
		}
		if form.Shape == op.ShapeRaw {
			maps.Copy(partial, b.content(d, form))
		}
	}
	status := http.StatusOK
	if d.Output.Shape == op.ShapeNone {
		status = http.StatusNoContent
	}
	to[strconv.Itoa(status)] = response(status, headers, content)
	if len(partial) > 0 {
		to["206"] = response(http.StatusPartialContent, headers, partial)
	}
}

func response(status int, headers map[string]*huma.Param, content map[string]*huma.MediaType) *huma.Response {
	return &huma.Response{Description: http.StatusText(status), Headers: headers, Content: content}
}

// content gives the media types of one form of the output.
func (b *builder) content(d op.Description, form op.Output) map[string]*huma.MediaType {
	content := map[string]*huma.MediaType{}
	switch form.Shape {
	case op.ShapeNone:
	case op.ShapeValue, op.ShapePage:
		media := &huma.MediaType{Schema: b.envelope(d, form)}
		if d.Returns != nil {
			media.Example = example(d, form)
		}
		content[op.TypeJSON] = media
	case op.ShapeRaw:
		produced := d.Produces
		if len(produced) == 0 {
			produced = []string{op.TypeBytes}
		}
		for _, t := range produced {
			content[t] = &huma.MediaType{Schema: rawSchema(t)}
		}
	case op.ShapeStream:
		content[op.TypeStream] = &huma.MediaType{Schema: b.data(d, form)}
	case op.ShapeLines:
		content[op.TypeLines] = &huma.MediaType{Schema: b.data(d, form)}
	}
	return content
}

// rawSchema is the schema of bytes of a media type.
func rawSchema(mediaType string) *huma.Schema {
	switch {
	case mediaType == op.TypeJSON:
		return &huma.Schema{}
	case strings.HasPrefix(mediaType, "text/"):
		return &huma.Schema{Type: huma.TypeString}
	}
	return &huma.Schema{Type: huma.TypeString, Format: "binary"}
}

// data is the schema of what an output holds.
func (b *builder) data(d op.Description, form op.Output) *huma.Schema {
	s := b.out.Schema(form.Data, true, "")
	if s == nil {
		panic(fmt.Sprintf("openapi: the output %s of %s has no schema", form.Data, d.Name))
	}
	return s
}

// envelope is the object around an output's data.
func (b *builder) envelope(d op.Description, form op.Output) *huma.Schema {
	data := b.data(d, form)
	s := &huma.Schema{Type: huma.TypeObject, Properties: map[string]*huma.Schema{"data": data}, Required: []string{"data"}}
	if form.Shape == op.ShapePage {
		zero := 0.0
		count := func(doc string) *huma.Schema {
			return &huma.Schema{Type: huma.TypeInteger, Format: "int64", Minimum: &zero, Description: doc}
		}
		s.Properties["data"] = &huma.Schema{Type: huma.TypeArray, Items: data}
		s.Properties["cursor"] = b.out.Schema(reflect.TypeFor[op.Cursor](), true, "")
		s.Properties["total"] = count("Number of all items, where it is known.")
		s.Properties["startIndex"] = count("Position of the first item among all.")
		s.Required = append(s.Required, "cursor")
	}
	if d.Kind == op.KindRequest {
		s.Properties["context"] = b.out.Schema(reflect.TypeFor[event.Context](), true, "")
		s.Required = append(s.Required, "context")
	}
	return s
}

func example(d op.Description, form op.Output) any {
	shown := map[string]any{"data": d.Returns}
	if form.Shape == op.ShapePage {
		shown["cursor"] = op.Cursor{}
	}
	if d.Kind == op.KindRequest {
		shown["context"] = event.Context{Directory: "/home/me/project"}
	}
	return shown
}

// headersOf are the headers of an operation's successes.
func headersOf(d op.Description) map[string]*huma.Param {
	names := []string{op.HeaderRequestID}
	if !d.NoCursor {
		names = append(names, op.HeaderEventCursor)
	}
	if d.Keyed {
		names = append(names, op.HeaderReplayed)
	}
	for _, form := range d.Output.Forms() {
		if form.Tagged {
			names = append(names, headerETag)
		}
		if d.Kind == op.KindRequest && (form.Shape == op.ShapeRaw || form.Shape == op.ShapeLines) {
			names = append(names, op.HeaderContextDirectory, op.HeaderContextWorkspace)
		}
	}
	headers := map[string]*huma.Param{}
	for _, name := range names {
		headers[name] = &huma.Param{Ref: "#/components/headers/" + name}
	}
	return headers
}

// failure is the response of a status with its codes. Equal ones are shared.
func (b *builder) failure(status int, codes []fault.Code) *huma.Response {
	words := make([]string, len(codes))
	for i, code := range codes {
		words[i] = string(code)
	}
	r := response(status, map[string]*huma.Param{op.HeaderRequestID: {Ref: "#/components/headers/" + op.HeaderRequestID}},
		map[string]*huma.MediaType{op.ProblemType: {Schema: &huma.Schema{Ref: schema.Prefix + "Problem"}}})
	r.Description += ": `" + strings.Join(words, "`, `") + "`"
	r.Extensions = map[string]any{"x-codes": words}
	shared := b.api.Components.Responses
	for i := 1; ; i++ {
		name := fmt.Sprintf("Problem%d", status)
		if i > 1 {
			name = fmt.Sprintf("%sVariant%d", name, i)
		}
		if shared[name] == nil {
			shared[name] = r
		}
		if reflect.DeepEqual(shared[name].Extensions, r.Extensions) {
			return &huma.Response{Ref: "#/components/responses/" + name}
		}
	}
}
