// Package op is the machinery of an operation: one Go value from which come its
// HTTP route, its part of the OpenAPI document, its command line and its call
// in-process (design §4).
//
// An operation is declared with New. Its context kind is the type of the
// handler's context parameter, its input is one flat struct, and its output is
// a value or one of the result kinds of this package (None, Page, JSON, Tagged,
// Raw, Stream, Lines, Early, Alt).
package op

import (
	"context"
	"encoding/json"
	"reflect"
	"sync"

	"github.com/switchyard-dev/switchyard/access"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/op/internal/bind"
	"github.com/switchyard-dev/switchyard/runtime"
)

// Scope is the set of contexts that an operation can run in. A handler's
// signature picks one, so an operation cannot ask for more than its kind gives.
type Scope interface {
	*runtime.Server | *runtime.Request | *runtime.Session
}

// Host makes contexts; *runtime.Host is one.
type Host interface {
	Server(ctx context.Context, p access.Principal) (*runtime.Server, error)
	Request(ctx context.Context, p access.Principal, hint runtime.Hint) (*runtime.Request, error)
	Item(ctx context.Context, p access.Principal) (*runtime.Request, error)
	Session(ctx context.Context, p access.Principal, sessionID string) (*runtime.Session, error)
	EventCursor() string
}

// Kind is where an operation's context comes from.
type Kind string

// The context kinds.
const (
	KindServer  Kind = "server"
	KindRequest Kind = "request"
	KindSession Kind = "session"
)

// Spec declares an operation.
type Spec struct {
	// Name is dotted, such as "session.message.list"; its first segment is the
	// tag in the document.
	Name string
	// Method and Path are the route. A path parameter is written {name}.
	Method, Path string
	// Summary is one sentence, Doc is Markdown with whatever else callers need.
	Summary, Doc string

	// Item marks a request operation that finds its object by id: no hint is
	// resolved, the handler binds the object's own context.
	Item bool
	// Many marks a request operation that takes several contexts. No hint is
	// resolved; the handler gets them all from Hints.
	Many bool
	// Public operations answer without a token.
	Public bool
	// Tail lets the last path parameter hold slashes.
	Tail bool
	// NoCursor leaves the X-Event-Cursor header out.
	NoCursor bool
	// Repeatable requests with an Idempotency-Key run again when nobody knows how
	// the first ended, because the server died: they only read, or set something,
	// or make one session, under SessionID. Others are refused then.
	Repeatable bool

	// Codes are the error codes to document beside those that every operation of
	// this kind and method can give.
	Codes []fault.Code
	// BodyLimit in bytes replaces the server's default.
	BodyLimit int64
	// Aliases are accepted spellings of fields, synonym to canonical name, as
	// dotted paths in a body ("size.cols": "size.columns"). The synonym "*"
	// stands for all fields that are not declared. Both spellings at once are
	// refused.
	Aliases map[string]string
	// Values are accepted spellings of values: dotted field, then synonym to
	// canonical value.
	Values map[string]map[string]string
	// Consumes names the media types of a raw body; none means any.
	Consumes []string
	// Produces names the media types of a Raw result.
	Produces []string
	// Example is an input, Returns what is in the answer's data for it.
	Example, Returns any
}

type (
	// Input is one field of an operation's input.
	Input = bind.Input
	// Field describes an input field in the words of JSON.
	Field = bind.Field
)

// Where an input field stands in an HTTP request.
const (
	InPath   = bind.InPath
	InQuery  = bind.InQuery
	InHeader = bind.InHeader
	InBody   = bind.InBody
	InRaw    = bind.InRaw
)

// Body is an input field that takes a request's whole body, which is no JSON and
// may have any Content-Type. It is read from the connection while the handler
// runs: what is read beyond the limit is a body_too_large fault, and a client
// that goes is another error of Read. There is no other field in the body then.
type Body = bind.Body

// EverythingElse is the synonym for all fields of a body that are not declared.
const EverythingElse = bind.EverythingElse

// Operation is a declared operation with its types.
type Operation[C Scope, In, Out any] struct {
	*core
	handle func(context.Context, C, In) (Out, error)
}

// Any is an operation with its types erased, as lists of operations hold it.
type Any interface {
	// Describe says what the operation is called and takes.
	Describe() Description
	// Mount serves the operation over HTTP.
	Mount(r Router, s *Serving)
	// Invoke runs the operation in-process with a flat JSON object as input. The
	// context is released before it returns; a Stream is returned unserved.
	Invoke(ctx context.Context, h Host, t Target, input json.RawMessage) (any, error)
}

// Target says for whom and where an operation runs. Only request operations read
// Hint, only session operations read SessionID.
type Target struct {
	Principal access.Principal
	Hint      runtime.Hint
	SessionID string
}

// scope is a context that holds a lease.
type scope interface{ Release() }

// core is what an operation is without its types. call runs the typed handler. The scope is nil where there is
// nothing to release, else the caller releases it, on errors too.
type core struct {
	spec   Spec
	kind   Kind
	inputs []Input
	output Output
	plan   func() *bind.Plan
	call   func(ctx context.Context, h Host, t Target, s steps) (any, scope, error)
}

// steps are what the way into an operation adds to its run.
type steps struct {
	// read fills the input and gives the context to go on with.
	read func(ctx context.Context, in any) (context.Context, error)
	// begun, when not nil, hears that the handler is about to run.
	begun func()
}

// New declares an operation. It panics when the declaration contradicts itself:
// path and context kind disagree, a path parameter is no input field, an input
// field has the name of a context hint, an alias leads nowhere.
func New[C Scope, In, Out any](s Spec, handle func(context.Context, C, In) (Out, error)) *Operation[C, In, Out] {
	in := reflect.TypeFor[In]()
	c := &core{spec: s, kind: kindOf[C](), inputs: bind.Inputs(s.Method, s.Path, in), output: outputOf(reflect.TypeFor[Out]())}
	check(c, in)
	c.plan = sync.OnceValue(func() *bind.Plan { return bind.New(c.reads()) })
	o := &Operation[C, In, Out]{core: c, handle: handle}
	c.call = o.run
	return o
}

// reads says what the operation's input is read from.
func (c *core) reads() bind.Config {
	s := c.spec
	b := bind.Config{Method: s.Method, Path: s.Path, Tail: s.Tail, Aliases: s.Aliases, Values: s.Values, Inputs: c.inputs, Consumes: s.Consumes}
	if c.kind == KindRequest {
		b.Context = hintNames
	}
	return b
}

// Do runs the operation in a context that the caller made and will release.
func (o *Operation[C, In, Out]) Do(ctx context.Context, c C, in In) (Out, error) {
	return o.handle(ctx, c, in)
}

func (o *Operation[C, In, Out]) run(ctx context.Context, h Host, t Target, s steps) (any, scope, error) {
	in := new(In)
	ctx, err := s.read(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	c, err := resolve[C](ctx, h, t, o.spec.Item || o.spec.Many)
	if err != nil {
		return nil, nil, err
	}
	held, _ := any(c).(scope)
	done := false
	defer func() {
		if !done && held != nil { // The handler panicked: nobody else will.
			held.Release()
		}
	}()
	if s.begun != nil {
		s.begun()
	}
	out, err := o.handle(ctx, c, *in)
	done = true
	return out, held, err
}

// Invoke implements Any.
func (c *core) Invoke(ctx context.Context, h Host, t Target, input json.RawMessage) (any, error) {
	if c.spec.Many {
		ctx = withHints(ctx, []runtime.Hint{t.Hint})
	}
	out, held, err := c.call(ctx, h, t, steps{read: func(ctx context.Context, in any) (context.Context, error) {
		return ctx, c.plan().Flat(input, in)
	}})
	if held != nil {
		defer held.Release()
	}
	if err != nil {
		return nil, err
	}
	if w, ok := out.(waiter); ok {
		return w.wait(ctx)
	}
	return out, nil
}

func kindOf[C Scope]() Kind {
	var c C
	switch any(c).(type) {
	case *runtime.Request:
		return KindRequest
	case *runtime.Session:
		return KindSession
	}
	return KindServer
}

func resolve[C Scope](ctx context.Context, h Host, t Target, unresolved bool) (c C, err error) {
	switch p := any(&c).(type) {
	case **runtime.Server:
		*p, err = h.Server(ctx, t.Principal)
	case **runtime.Request:
		if unresolved {
			*p, err = h.Item(ctx, t.Principal)
		} else {
			*p, err = h.Request(ctx, t.Principal, t.Hint)
		}
	case **runtime.Session:
		*p, err = h.Session(ctx, t.Principal, t.SessionID)
	}
	return c, err
}

// locationOf gives the context that an answer names: that of a request scope.
func locationOf(s scope) *event.Context {
	r, ok := s.(*runtime.Request)
	if !ok {
		return nil
	}
	l := r.Location()
	return &l
}
