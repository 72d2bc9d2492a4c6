package transfer

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"unicode/utf8"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/session"
)

// incoming is a document that was read.
type incoming struct {
	sessions []*incomingSession
	files    []incomingFile
}

type incomingSession struct {
	info  session.Session
	items []chat.Item
	todos []chat.Todo
}

// incomingFile is an attachment. What it is, its content tells.
type incomingFile struct {
	ID   id.Attachment `json:"id"`
	Mime string        `json:"mime"`
	Name string        `json:"name,omitempty"`
	Data string        `json:"data"`

	at      string
	content []byte
}

// parser reads a document as it comes, one message at a time, so that no more
// than what it becomes is held in memory.
type parser struct {
	dec    *json.Decoder
	shapes *shapes
	out    incoming

	messages, parts int
	format          string
	version         int
}

// parse reads a document. What is no JSON is a malformed_json fault, what is no
// document a validation_failed fault that names the place by its JSON pointer;
// faults of the reader stay. References are not looked at.
func parse(r io.Reader) (*incoming, error) {
	p := &parser{dec: json.NewDecoder(r), shapes: newShapes()}
	seen := map[string]bool{}
	err := p.object("", func(name string) error {
		seen[name] = true
		return p.top(name)
	})
	if err != nil {
		return nil, err
	}
	switch {
	case p.format != FormatName:
		return nil, invalid("/format", "expected %q", FormatName)
	case p.version != FormatVersion:
		return nil, invalid("/version", "expected %d, the version that this server knows", FormatVersion)
	case !seen["sessions"] || len(p.out.sessions) == 0:
		return nil, invalid("/sessions", "expected at least one session")
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errBehind
		}
		return nil, p.trouble(err)
	}
	return &p.out, nil
}

var errBehind = errors.New("there is something behind the document")

func (p *parser) top(name string) error {
	at := member("", name)
	switch name {
	case "format":
		return p.value(at, &p.format)
	case "version":
		return p.value(at, &p.version)
	case "sessions":
		return p.list(at, func(at string, n int) error {
			if n >= MaxSessions {
				return invalid(at, "more than %d sessions", MaxSessions)
			}
			return p.session(at)
		})
	case "attachments":
		return p.list(at, func(at string, _ int) error { return p.file(at) })
	}
	return invalid(at, "unknown field")
}

func (p *parser) session(at string) error {
	in := &incomingSession{}
	seen := map[string]bool{}
	err := p.object(at, func(name string) error {
		seen[name] = true
		switch at := member(at, name); name {
		case "info":
			return p.value(at, &in.info)
		case "messages":
			return p.list(at, func(at string, _ int) error { return p.item(at, in) })
		case "todos":
			return p.value(at, &in.todos)
		default:
			return invalid(at, "unknown field")
		}
	})
	if err != nil {
		return err
	}
	for _, name := range []string{"info", "messages"} {
		if !seen[name] {
			return invalid(member(at, name), "required")
		}
	}
	p.out.sessions = append(p.out.sessions, in)
	return nil
}

func (p *parser) item(at string, in *incomingSession) error {
	if p.messages++; p.messages > MaxMessages {
		return invalid(at, "more than %d messages", MaxMessages)
	}
	raw, err := p.checked(at, reflect.TypeFor[chat.Item]())
	if err != nil {
		return err
	}
	items, err := session.Items([]json.RawMessage{raw})
	if err != nil {
		return invalid(at, "not a message: %s", err)
	}
	if p.parts += len(items[0].Parts); p.parts > MaxParts {
		return invalid(at, "more than %d parts", MaxParts)
	}
	in.items = append(in.items, items[0])
	return nil
}

func (p *parser) file(at string) error {
	f := incomingFile{at: at}
	if err := p.value(at, &f); err != nil {
		return err
	}
	content, err := base64.StdEncoding.DecodeString(f.Data)
	if err != nil {
		return invalid(member(at, "data"), "not base64")
	}
	f.Data, f.content = "", content
	p.out.files = append(p.out.files, f)
	return nil
}

// value reads the next value into a variable.
func (p *parser) value(at string, into any) error {
	raw, err := p.checked(at, reflect.TypeOf(into).Elem())
	if err != nil {
		return err
	}
	if json.Unmarshal(raw, into) != nil { // Its shape was right.
		return invalid(at, "not acceptable")
	}
	return nil
}

// checked gives the text of the next value once it is known to have the shape of
// a type.
func (p *parser) checked(at string, t reflect.Type) (json.RawMessage, error) {
	var raw json.RawMessage
	if err := p.dec.Decode(&raw); err != nil {
		return nil, p.trouble(err)
	}
	if !utf8.Valid(raw) {
		return nil, fault.New(fault.MalformedJSON, "the JSON is not valid UTF-8 at %s", at)
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, p.trouble(err)
	}
	return withoutNUL(raw), p.shapes.check(at, v, t)
}

// nul matches an escape in JSON text: those before the NUL's are matched too, so
// that a backslash which is escaped itself begins nothing.
var nul = regexp.MustCompile(`\\(u0000|.)`)

// withoutNUL puts U+FFFD in the place of NUL, as everywhere in the store.
func withoutNUL(raw []byte) []byte {
	if !bytes.Contains(raw, []byte(`\u0000`)) {
		return raw
	}
	return nul.ReplaceAllFunc(raw, func(escape []byte) []byte {
		if string(escape) == `\u0000` {
			return []byte(`\ufffd`)
		}
		return escape
	})
}

// object reads the members of an object one by one: take reads the value.
func (p *parser) object(at string, take func(name string) error) error {
	if err := p.open('{', at, "an object"); err != nil {
		return err
	}
	seen := map[string]bool{}
	for p.dec.More() {
		token, err := p.dec.Token()
		if err != nil {
			return p.trouble(err)
		}
		name, _ := token.(string)
		if seen[name] {
			return invalid(member(at, name), "stands twice")
		}
		seen[name] = true
		if err := take(name); err != nil {
			return err
		}
	}
	return p.close()
}

// list reads the items of a list one by one: item reads it.
func (p *parser) list(at string, item func(at string, i int) error) error {
	if err := p.open('[', at, "a list"); err != nil {
		return err
	}
	for i := 0; p.dec.More(); i++ {
		if err := item(element(at, i), i); err != nil {
			return err
		}
	}
	return p.close()
}

func (p *parser) open(delim json.Delim, at, what string) error {
	token, err := p.dec.Token()
	if err != nil {
		return p.trouble(err)
	}
	if token != delim {
		return invalid(at, "expected %s", what)
	}
	return nil
}

func (p *parser) close() error {
	if _, err := p.dec.Token(); err != nil {
		return p.trouble(err)
	}
	return nil
}

// trouble tells why the text could not be read.
func (p *parser) trouble(err error) error {
	if _, ok := fault.As(err); ok {
		return err // of the reader
	}
	at := p.dec.InputOffset()
	if _, syntax := errors.AsType[*json.SyntaxError](err); syntax || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errBehind) {
		return fault.New(fault.MalformedJSON, "not JSON at byte %d: %s", at, err).With("offset", at)
	}
	return fmt.Errorf("reading a document: %w", err)
}
