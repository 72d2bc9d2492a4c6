package op

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// The media types of answers.
const (
	TypeJSON   = "application/json"
	TypeLines  = "application/x-ndjson"
	TypeStream = "text/event-stream"
	TypeBytes  = "application/octet-stream"
)

// The headers that name the context of an answer that is not JSON. The directory
// is percent-encoded.
const (
	HeaderContextDirectory = "X-Context-Directory"
	HeaderContextWorkspace = "X-Context-Workspace"
)

// answer is the answer to one request while it is made.
type answer struct {
	ctx     context.Context
	w       *Writer
	r       *http.Request
	serving *Serving
	held    scope
	// etag is what a Tagged output asks for; tagged tells that it did.
	etag   string
	tagged bool
}

// beside is a member of the JSON object that stands beside "data".
type beside struct {
	name  string
	value any
}

// write sends an operation's output.
func write(a *answer, out any) error {
	if r, ok := out.(result); ok {
		return r.write(a)
	}
	return a.json(out)
}

// json sends the envelope around data.
func (a *answer) json(data any, rest ...beside) error {
	buf := a.serving.buffer()
	defer a.serving.keep(buf)
	if err := a.envelope(buf, data, rest); err != nil {
		return err
	}
	h := a.w.Header()
	if a.tagged {
		tag := a.etag
		if tag == "" {
			sum := sha256.Sum256(buf.Bytes())
			tag = base64.RawURLEncoding.EncodeToString(sum[:12])
		}
		// Weak: the same value may be sent compressed.
		tag = "W/" + strconv.Quote(tag)
		h.Set("ETag", tag)
		h.Set("Cache-Control", "private, no-cache")
		if ETagMatches(a.r.Header.Get("If-None-Match"), tag) {
			a.w.WriteHeader(http.StatusNotModified)
			return nil
		}
	} else {
		h.Set("Cache-Control", "no-store")
	}
	h.Set("Content-Type", TypeJSON)
	h.Set("Content-Length", strconv.Itoa(buf.Len()))
	a.w.WriteHeader(http.StatusOK)
	_, _ = a.w.Write(buf.Bytes()) // The client may be gone: nobody is left to tell.
	return nil
}

func (a *answer) envelope(buf *bytes.Buffer, data any, rest []beside) error {
	buf.WriteString(`{"data":`)
	if err := encode(buf, data); err != nil {
		return err
	}
	if location := locationOf(a.held); location != nil {
		rest = append(rest, beside{"context", location})
	}
	for _, m := range rest {
		buf.WriteString(`,"` + m.name + `":`)
		if err := encode(buf, m.value); err != nil {
			return err
		}
	}
	buf.WriteString("}\n")
	return nil
}

// encode appends a value: as it is when it is JSON already, and never null for a
// list.
func encode(buf *bytes.Buffer, v any) error {
	switch v := v.(type) {
	case verbatim:
		return encodeRaw(buf, v.verbatim())
	case json.RawMessage:
		return encodeRaw(buf, v)
	}
	if rv := reflect.ValueOf(v); rv.Kind() == reflect.Slice && rv.IsNil() {
		buf.WriteString("[]")
		return nil
	}
	e := json.NewEncoder(buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	buf.Truncate(buf.Len() - 1) // The encoder ends in a newline.
	return nil
}

func encodeRaw(buf *bytes.Buffer, text []byte) error {
	if len(text) == 0 {
		buf.WriteString("null")
		return nil
	}
	buf.Write(text)
	return nil
}

// encodeList appends items one by one: those that are JSON already stay as they
// are.
func encodeList[T any](buf *bytes.Buffer, items []T) error {
	buf.WriteByte('[')
	for i := range items {
		if i > 0 {
			buf.WriteByte(',')
		}
		if err := encode(buf, items[i]); err != nil {
			return err
		}
	}
	buf.WriteByte(']')
	return nil
}

func (None) write(a *answer) error {
	a.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (p Page[T]) write(a *answer) error {
	rest := []beside{{"cursor", p.Cursor}}
	if p.Total != nil {
		rest = append(rest, beside{"total", *p.Total})
	}
	if p.StartIndex != nil {
		rest = append(rest, beside{"startIndex", *p.StartIndex})
	}
	data := any(p.Items)
	switch any(*new(T)).(type) {
	case verbatim, json.RawMessage:
		buf := a.serving.buffer()
		defer a.serving.keep(buf)
		if err := encodeList(buf, p.Items); err != nil {
			return err
		}
		data = json.RawMessage(buf.Bytes())
	}
	return a.json(data, rest...)
}

func (t Tagged[T]) write(a *answer) error {
	a.etag, a.tagged = t.ETag, true
	return write(a, t.Value)
}

func (o Alt[T, R]) write(a *answer) error {
	if o.Other != nil {
		return write(a, *o.Other)
	}
	return write(a, o.Value)
}

func (s Stream[T]) write(a *answer) error {
	if a.held != nil {
		a.nameContext()
		a.held.Release()
	}
	if a.r.Method == http.MethodHead {
		a.w.Header().Set("Content-Type", TypeStream)
		a.w.WriteHeader(http.StatusOK)
		return nil
	}
	return s.Serve(a.ctx, a.w, a.r.WithContext(a.ctx))
}

func (l Lines[T]) write(a *answer) error {
	a.nameContext()
	h := a.w.Header()
	h.Set("Content-Type", TypeLines)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	if a.r.Method == http.MethodHead {
		a.w.WriteHeader(http.StatusOK)
		return nil
	}
	buf := a.serving.buffer()
	defer a.serving.keep(buf)
	for item, err := range l.Items {
		if err != nil {
			return err
		}
		buf.Reset()
		if err := encode(buf, item); err != nil {
			return err
		}
		buf.WriteByte('\n')
		if _, err := a.w.Write(buf.Bytes()); err != nil {
			return nil // the client is gone: nobody is left to tell
		}
		a.w.Flush()
	}
	if a.w.Status() == 0 {
		a.w.WriteHeader(http.StatusOK)
	}
	return nil
}

// nameContext puts the context of a request operation into headers.
func (a *answer) nameContext() {
	location := locationOf(a.held)
	if location == nil || location.Directory == "" {
		return
	}
	directory := strings.ReplaceAll(url.PathEscape(location.Directory), "%2F", "/")
	a.w.Header().Set(HeaderContextDirectory, directory)
	if location.WorkspaceID != "" {
		a.w.Header().Set(HeaderContextWorkspace, string(location.WorkspaceID))
	}
}

// early is an Early output without its type.
type early struct {
	out any
	err error
}

func (e Early[T]) write(a *answer) error {
	h := a.w.Header()
	h.Set("Content-Type", TypeJSON)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	a.w.WriteHeader(http.StatusOK)
	a.w.Flush()
	ctx, cancel := context.WithCancel(a.ctx)
	done := make(chan early, 1)
	go func() {
		defer close(done)
		defer func() {
			if value := recover(); value != nil {
				done <- early{err: &panicked{value: value}}
			}
		}()
		out, err := e.Wait(ctx)
		done <- early{out: out, err: err}
	}()
	got := a.beat(done)
	cancel()
	for range done { // Wait has ended before the context is released.
	}
	if got.err != nil {
		return got.err
	}
	buf := a.serving.buffer()
	defer a.serving.keep(buf)
	if err := a.envelope(buf, got.out, nil); err != nil {
		return err
	}
	_, _ = a.w.Write(buf.Bytes()) // The client may be gone: nobody is left to tell.
	return nil
}

// beat writes a space now and then until the output is there. It gives up when
// the client has gone.
func (a *answer) beat(done <-chan early) early {
	every := a.serving.Beat
	if every <= 0 {
		every = defaultBeat
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case got := <-done:
			return got
		case <-a.ctx.Done():
			return early{err: a.ctx.Err()}
		case <-ticker.C:
			if _, err := a.w.Write([]byte(" ")); err != nil {
				return early{err: context.Canceled}
			}
			a.w.Flush()
		}
	}
}

// ETagMatches reports whether an If-None-Match or If-Match header names the tag,
// weak or strong.
func ETagMatches(header, tag string) bool {
	tag = strings.TrimPrefix(tag, "W/")
	if !strings.HasPrefix(tag, `"`) {
		tag = strconv.Quote(tag)
	}
	for given := range strings.SplitSeq(header, ",") {
		given = strings.TrimSpace(given)
		if given == "*" || strings.TrimPrefix(given, "W/") == tag {
			return true
		}
	}
	return false
}
