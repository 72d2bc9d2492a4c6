package bind

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/switchyard-dev/switchyard/fault"
)

// readBody reads a JSON body of at most limit bytes. A body of white space only
// is none, and needs no Content-Type. It may take as long as the client likes:
// the connection's own limits apply.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, tooLarge(w, limit)
	}
	var buf bytes.Buffer
	if r.ContentLength > 0 { // What is announced need not come: no more than 1 MiB on trust.
		buf.Grow(int(min(r.ContentLength, 1<<20)) + bytes.MinRead)
	}
	_, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, tooLarge(w, limit)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fault.New(fault.MalformedJSON, "the body ended before its announced length")
	case err != nil:
		return nil, fault.Wrap(err, fault.MalformedJSON, "the body could not be read")
	}
	data := bytes.TrimSpace(buf.Bytes())
	if len(data) > 0 && !isJSON(r.Header.Get("Content-Type")) {
		return nil, fault.New(fault.UnsupportedMediaType,
			"the body must be sent as Content-Type: application/json (curl --json does it)")
	}
	return data, nil
}

// tooLarge closes the connection, so that the rest is not read for nothing.
func tooLarge(w http.ResponseWriter, limit int64) error {
	w.Header().Set("Connection", "close")
	return fault.New(fault.BodyTooLarge, "the body is larger than %d bytes", limit).With("limit", limit)
}

// isJSON accepts no missing type: a page on another origin can send a body
// without one, or as text, but not as JSON, without asking first.
func isJSON(contentType string) bool {
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && (t == "application/json" || strings.HasPrefix(t, "application/") && strings.HasSuffix(t, "+json"))
}

// Body is a request's body that is no JSON, read as it comes. As JSON, in calls
// that are not over HTTP, it is base64.
type Body struct {
	io.Reader
	// Type is the Content-Type as it was sent; nothing is known to be true of it.
	Type string
}

var bodyType = reflect.TypeFor[Body]()

// Schema tells what a body is.
func (Body) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "binary"}
}

// UnmarshalJSON reads base64.
func (b *Body) UnmarshalJSON(data []byte) error {
	var content []byte
	if err := json.Unmarshal(data, &content); err != nil {
		return fault.New(fault.ValidationFailed, "the body is not base64").At(InBody, "expected base64")
	}
	b.Reader = bytes.NewReader(content)
	return nil
}

// rawBody gives a body of at most limit bytes for reading. It may take as long as
// the client likes. Types are the media types it may have; none means any.
func rawBody(w http.ResponseWriter, r *http.Request, limit int64, types []string) (Body, error) {
	if given, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); len(types) > 0 && (err != nil || !slices.Contains(types, given)) {
		return Body{}, fault.New(fault.UnsupportedMediaType, "the body must be sent as Content-Type: %s", strings.Join(types, " or "))
	}
	if r.ContentLength > limit {
		return Body{}, tooLarge(w, limit)
	}
	from := &rawReader{from: http.MaxBytesReader(w, r.Body, limit), w: w, limit: limit}
	return Body{Reader: from, Type: r.Header.Get("Content-Type")}, nil
}

// rawReader tells what is wrong with a body as faults.
type rawReader struct {
	from  io.Reader
	w     http.ResponseWriter
	limit int64
}

// Read implements io.Reader.
func (r *rawReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return n, tooLarge(r.w, r.limit)
	}
	return n, fault.Wrap(err, fault.ValidationFailed, "the body ended before its announced length, or could not be read")
}
