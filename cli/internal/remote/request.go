package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/switchyard-dev/switchyard/op"
)

// Arguments are what an operation is called with.
type Arguments struct {
	// Values are the input's members by name, in whatever place they belong;
	// what no field is called goes into the body, for the server to judge.
	Values map[string]any
	// Directories and Workspace are the hints of request operations.
	Directories []string
	Workspace   string
}

// PathNames lists the parameters of an operation's path in order.
func PathNames(path string) []string {
	var names []string
	for segment := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(segment, "{") && strings.HasSuffix(segment, "}") {
			names = append(names, segment[1:len(segment)-1])
		}
	}
	return names
}

func hasBody(method string) bool {
	return method != http.MethodGet && method != http.MethodDelete
}

// draft is a request while its parts are collected.
type draft struct {
	op     op.Description
	fields map[string]op.Field
	path   string
	query  url.Values
	header http.Header
	body   map[string]json.RawMessage
	file   string // whose content is the body, where that is no JSON
}

// newRequest makes the request of a call to the server at base. It checks
// nothing that the server checks; only a path parameter that is missing is an
// error, since without it the path would be another operation's.
func newRequest(ctx context.Context, base string, d op.Description, a Arguments) (*http.Request, error) {
	r := draft{
		op: d, fields: map[string]op.Field{}, path: d.Path, query: url.Values{}, header: http.Header{},
		body: map[string]json.RawMessage{},
	}
	for _, f := range d.Fields() {
		r.fields[f.Name] = f
	}
	for _, name := range slices.Sorted(maps.Keys(a.Values)) {
		raw, err := json.Marshal(a.Values[name])
		if err != nil {
			return nil, Usagef("%s: %w", name, err)
		}
		r.put(name, raw)
	}
	for _, name := range PathNames(d.Path) {
		if strings.Contains(r.path, "{"+name+"}") {
			return nil, Usagef("%s needs --%s", d.Name, name)
		}
	}
	for _, dir := range a.Directories {
		r.query.Add("directory", dir)
	}
	if a.Workspace != "" {
		r.query.Set("workspace", a.Workspace)
	}
	return r.request(ctx, base)
}

// put puts one member where it belongs.
func (r *draft) put(name string, raw json.RawMessage) {
	f, known := r.fields[name]
	switch {
	case slices.Contains(PathNames(r.op.Path), name):
		if text := strings.Join(texts(raw), ","); text != "" {
			r.path = strings.Replace(r.path, "{"+name+"}", url.PathEscape(text), 1)
		}
	case f.In == op.InHeader:
		r.header[http.CanonicalHeaderKey(name)] = texts(raw)
	case f.In == op.InRaw:
		r.file = strings.Join(texts(raw), "")
	case f.In == op.InBody, !known && hasBody(r.op.Method):
		r.body[name] = raw
	case f.Comma:
		r.query.Set(name, strings.Join(texts(raw), ","))
	default:
		r.query[name] = texts(raw)
	}
}

func (r *draft) request(ctx context.Context, base string) (*http.Request, error) {
	target := base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	var body io.Reader
	switch {
	case r.file != "":
		data, err := os.ReadFile(r.file)
		if err != nil {
			return nil, Usagef("%s: %w", r.op.Name, err)
		}
		body = bytes.NewReader(data)
		r.header.Set("Content-Type", append(r.op.Consumes, op.TypeBytes)[0])
	case hasBody(r.op.Method):
		data, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("encoding the input of %s: %w", r.op.Name, err)
		}
		body = bytes.NewReader(data)
		r.header.Set("Content-Type", op.TypeJSON)
	}
	req, err := http.NewRequestWithContext(ctx, r.op.Method, target, body)
	if err != nil {
		return nil, Usagef("%s cannot be called like this: %w", r.op.Name, err)
	}
	req.Header = r.header
	req.Header.Set("Accept", "*/*")
	if r.op.Output.Shape == op.ShapeStream {
		req.Header.Set("Accept", op.TypeStream)
	}
	return req, nil
}

// texts gives a JSON value as parameters have it: a list as several, null as
// none, a string without its quotes, anything else as its JSON.
func texts(raw json.RawMessage) []string {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		out := []string{}
		for _, item := range list {
			out = append(out, texts(item)...)
		}
		return out
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return []string{s}
	}
	return []string{string(raw)}
}
