package op

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"

	"github.com/switchyard-dev/switchyard/fault"
)

func (raw Raw) write(a *answer) error {
	content := raw.Content
	if content == nil {
		content = bytes.NewReader(raw.Bytes)
	}
	if c, ok := content.(io.Closer); ok {
		defer c.Close()
	}
	h := a.w.Header()
	a.nameContext()
	mediaType := raw.Type
	if mediaType == "" {
		mediaType = TypeBytes
	}
	h.Set("Content-Type", mediaType)
	// Files are other people's: a page among them must not act in our name.
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("X-Content-Type-Options", "nosniff")
	if raw.Name != "" || raw.Inline {
		h.Set("Content-Disposition", raw.disposition())
	}
	if raw.Write != nil {
		return raw.stream(a)
	}
	if raw.ETag != "" {
		h.Set("ETag", strconv.Quote(raw.ETag))
	}
	if raw.Immutable {
		h.Set("Cache-Control", "private, max-age=31536000, immutable")
	} else {
		h.Set("Cache-Control", "private, no-cache")
	}
	w := &rangeWriter{Writer: a.w}
	http.ServeContent(w, a.r, "", raw.ModTime, content)
	return w.failure
}

// disposition says whether to show or to save the content, and under which name.
func (raw Raw) disposition() string {
	how := "attachment"
	if raw.Inline {
		how = "inline"
	}
	if raw.Name == "" {
		return how
	}
	if full := mime.FormatMediaType(how, map[string]string{"filename": raw.Name}); full != "" {
		return full
	}
	return how
}

// stream sends content of a size that nobody knows yet.
func (raw Raw) stream(a *answer) error {
	a.w.Header().Set("Cache-Control", "no-store")
	if a.r.Method != http.MethodHead {
		to := &sink{Writer: a.w}
		if err := raw.Write(a.ctx, to); err != nil && !to.gone {
			return err
		}
	}
	if a.w.Status() == 0 {
		a.w.WriteHeader(http.StatusOK)
	}
	return nil
}

// sink notes that the client is gone: then nobody is left to tell.
type sink struct {
	*Writer
	gone bool
}

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	n, err := s.Writer.Write(p)
	s.gone = s.gone || err != nil
	return n, err
}

// rangeWriter turns the plain-text failures of http.ServeContent into problems.
type rangeWriter struct {
	*Writer
	failure error
}

// WriteHeader holds a failure back.
func (w *rangeWriter) WriteHeader(status int) {
	switch {
	case status == http.StatusRequestedRangeNotSatisfiable:
		w.failure = fault.New(fault.RangeInvalid, "the range is outside the content: %s", w.Header().Get("Content-Range"))
	case status == http.StatusPreconditionFailed:
		w.failure = fault.New(fault.ETagMismatch, "the content is another one by now")
	case status >= http.StatusInternalServerError:
		w.failure = fmt.Errorf("serving bytes: status %d", status)
	default:
		w.Writer.WriteHeader(status)
	}
}

// Write drops the text of a failure.
func (w *rangeWriter) Write(p []byte) (int, error) {
	if w.failure != nil {
		return len(p), nil //nolint:nilerr // the failure becomes a problem afterwards
	}
	return w.Writer.Write(p)
}
