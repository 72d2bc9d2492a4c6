package bind

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

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
