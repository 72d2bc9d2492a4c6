package op

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// None is the output of an operation that answers 204.
type None struct{}

// Page is the output of an operation that lists in pages.
type Page[T any] struct {
	Items []T `json:"data"`
	// Cursor leads to the neighbours; a member is empty when there is nothing.
	Cursor Cursor `json:"cursor"`
	// Total counts all items, where a counter is kept.
	Total *int `json:"total,omitempty"`
	// StartIndex is the position of the first item among all.
	StartIndex *int `json:"startIndex,omitempty"`
}

// Cursor holds the cursors of a page.
type Cursor struct {
	Previous string `json:"previous,omitempty" doc:"Cursor of the page before; absent when there is none."`
	Next     string `json:"next,omitempty" doc:"Cursor of the page after; absent when there is none."`
}

// JSON is a T that is encoded already. It is written as it is, so it must be one
// complete JSON text; empty is null.
type JSON[T any] []byte

// MarshalJSON gives the text.
func (j JSON[T]) MarshalJSON() ([]byte, error) {
	if len(j) == 0 {
		return []byte("null"), nil
	}
	return j, nil
}

// UnmarshalJSON keeps the text.
func (j *JSON[T]) UnmarshalJSON(data []byte) error {
	*j = append((*j)[:0], data...)
	return nil
}

// Tagged is an output with an ETag: the answer is 304 when the client has it.
type Tagged[T any] struct {
	Value T
	// ETag is an opaque word; empty means a hash of the answer.
	ETag string
}

// Raw is an output of bytes. It answers ranges and conditions.
type Raw struct {
	// Bytes are the content, or else Content; it is closed when it can be.
	Bytes   []byte
	Content io.ReadSeeker
	// Write, where it is set, writes the content as it comes: it has no size, no
	// ranges and no tag. An error before the first byte becomes a problem, a
	// later one aborts the connection.
	Write func(ctx context.Context, w io.Writer) error
	// Type is the media type, application/octet-stream when empty.
	Type string
	// ETag is an opaque word, unique to these exact bytes; empty for none.
	ETag string
	// ModTime is zero when unknown.
	ModTime time.Time
	// Immutable content never changes under its URL.
	Immutable bool
	// Name is what the content is called when it is saved; empty for none.
	// Inline lets a browser show it in place, which is for types that cannot act.
	Name   string
	Inline bool
}

// Stream is an output of server-sent events with data of type T. The lease of
// the context is given back before it is served.
type Stream[T any] struct {
	// Serve writes the whole answer, headers included. An error before anything
	// is written becomes a problem, a later one aborts the connection.
	Serve func(ctx context.Context, w http.ResponseWriter, r *http.Request) error
}

// Lines is an output of NDJSON: one T a line, sent as it comes.
type Lines[T any] struct {
	// Items may end with an error: as a problem before the first item, else by
	// aborting the connection.
	Items iter.Seq2[T, error]
}

// Early is an output that takes long: status and headers go out at once, then a
// space every ten seconds, so that proxies keep waiting, then the JSON.
type Early[T any] struct {
	// Wait ends with ctx. Its error can no longer become a problem: it aborts the
	// connection.
	Wait func(ctx context.Context) (T, error)
}

// Alt is an output in one of two forms: T, or R where the caller asked for it.
// R is Raw or Lines.
type Alt[T, R any] struct {
	Value T
	// Other is nil for the usual form.
	Other *R
}

// result is an output with a way of its own of being written.
type result interface {
	write(a *answer) error
	output() Output
}

// waiter is an output that is not there yet.
type waiter interface {
	wait(ctx context.Context) (any, error)
}

func (e Early[T]) wait(ctx context.Context) (any, error) { return e.Wait(ctx) }

// verbatim is an output, or an item of one, that is encoded already.
type verbatim interface{ verbatim() []byte }

func (j JSON[T]) verbatim() []byte { return j }

// Schema is T's schema.
func (JSON[T]) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[T](), true, "")
}

// Shape names the forms that an answer can have.
type Shape string

// The shapes of answers.
const (
	ShapeNone   Shape = "none"
	ShapeValue  Shape = "value"
	ShapePage   Shape = "page"
	ShapeRaw    Shape = "raw"
	ShapeStream Shape = "stream"
	ShapeLines  Shape = "lines"
)

// Output is what a document says of an operation's output.
type Output struct {
	Shape Shape
	// Data is the type in "data", of one item for pages, streams and lines; nil
	// for none and raw.
	Data reflect.Type
	// Tagged outputs have an ETag.
	Tagged bool
	// Early outputs are not there yet when their status is sent.
	Early bool
	// Other is the second form of an Alt; nil for none.
	Other *Output
}

// Forms lists the forms of an output, the usual one first.
func (o Output) Forms() []Output {
	if o.Other == nil {
		return []Output{o}
	}
	return append([]Output{o}, o.Other.Forms()...)
}

func outputOf(t reflect.Type) Output {
	if r, ok := reflect.Zero(t).Interface().(result); ok {
		return r.output()
	}
	return Output{Shape: ShapeValue, Data: t}
}

func (None) output() Output { return Output{Shape: ShapeNone} }

func (Page[T]) output() Output {
	return Output{Shape: ShapePage, Data: reflect.TypeFor[T]()}
}

func (Tagged[T]) output() Output {
	o := outputOf(reflect.TypeFor[T]())
	o.Tagged = true
	return o
}

func (Raw) output() Output { return Output{Shape: ShapeRaw, Tagged: true} }

func (Stream[T]) output() Output {
	return Output{Shape: ShapeStream, Data: reflect.TypeFor[T]()}
}

func (Lines[T]) output() Output {
	return Output{Shape: ShapeLines, Data: reflect.TypeFor[T]()}
}

func (Early[T]) output() Output {
	o := outputOf(reflect.TypeFor[T]())
	o.Early = true
	return o
}

func (Alt[T, R]) output() Output {
	o := outputOf(reflect.TypeFor[T]())
	other := outputOf(reflect.TypeFor[R]())
	o.Other = &other
	return o
}

var (
	_ result         = None{}
	_ result         = Raw{}
	_ json.Marshaler = JSON[int](nil)
)
