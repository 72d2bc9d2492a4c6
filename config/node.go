package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

const (
	// maxFile bounds every file that is read here, in bytes.
	maxFile = 1 << 20
	// maxDepth bounds the nesting of a file: parsing is recursive.
	maxDepth = 64
)

// kind is the kind of a JSON value.
type kind byte

const (
	kindNull   kind = 'n'
	kindBool   kind = 't'
	kindString kind = '"'
	kindNumber kind = '0'
	kindObject kind = '{'
	kindArray  kind = '['
)

// String is the word for messages.
func (k kind) String() string {
	switch k {
	case kindNull:
		return "null"
	case kindBool:
		return "true or false"
	case kindString:
		return "a string"
	case kindNumber:
		return "a number"
	case kindObject:
		return "an object"
	case kindArray:
		return "a list"
	}
	return "nothing"
}

// node is a JSON value that knows where it stands. Objects keep the order of
// their keys, because permissions are decided in it.
type node struct {
	kind    kind
	text    string // of a string, unescaped; of a number or bool, its literal
	members []member
	items   []*node
	at      Position
	project bool // from a project file, which may be anybody's work
	filled  bool // holds text from {env:} or {file:}
	closed  bool // a project file's provider with address and key of its own
}

type member struct {
	key   string
	at    Position
	value *node
}

// get gives the member of that key, or nil. It may be called on nil.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for i := range n.members {
		if n.members[i].key == key {
			return n.members[i].value
		}
	}
	return nil
}

// set replaces or appends a member.
func (n *node) set(m member) {
	for i := range n.members {
		if n.members[i].key == m.key {
			n.members[i] = m
			return
		}
	}
	n.members = append(n.members, m)
}

func (n *node) remove(key string) {
	n.members = slices.DeleteFunc(n.members, func(m member) bool { return m.key == key })
}

// dropNulls removes members that are null, at every level.
func (n *node) dropNulls() {
	n.members = slices.DeleteFunc(n.members, func(m member) bool { return m.value.kind == kindNull })
	for _, m := range n.members {
		m.value.dropNulls()
	}
}

// all visits n and everything below it.
func (n *node) all(visit func(*node)) {
	visit(n)
	for _, m := range n.members {
		m.value.all(visit)
	}
	for _, item := range n.items {
		item.all(visit)
	}
}

// any reports whether some node below n, or n, has a property.
func (n *node) any(has func(*node) bool) bool {
	found := false
	n.all(func(x *node) { found = found || has(x) })
	return found
}

// json gives n as JSON, keys in their order.
func (n *node) json() []byte { return n.append(nil) }

func (n *node) append(b []byte) []byte {
	switch n.kind {
	case kindObject:
		b = append(b, '{')
		for i, m := range n.members {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, m.key), ':')
			b = m.value.append(b)
		}
		return append(b, '}')
	case kindArray:
		b = append(b, '[')
		for i, item := range n.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.append(b)
		}
		return append(b, ']')
	case kindString:
		return appendString(b, n.text)
	case kindNull, kindBool, kindNumber:
	}
	return append(b, n.text...)
}

func appendString(b []byte, s string) []byte {
	quoted, err := json.Marshal(s)
	if err != nil { // strings always marshal
		return append(b, `""`...)
	}
	return append(b, quoted...)
}

// parser turns one file's text into nodes.
type parser struct {
	file    string
	project bool
	lines   []int // offsets of the beginnings of lines
	report  *report
}

// parse reads JSON with comments and trailing commas. Empty text is an empty
// object. It returns nil when the text cannot be used; the report says why.
func parse(file string, data []byte, project bool, r *report) *node {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	p := &parser{file: file, project: project, lines: []int{0}, report: r}
	for i, c := range data {
		if c == '\n' {
			p.lines = append(p.lines, i+1)
		}
	}
	if i := invalidUTF8(data); i >= 0 {
		r.errorf(p.position(i), "the file is not UTF-8")
		return nil
	}
	if i := tooDeep(data, maxDepth); i >= 0 {
		r.errorf(p.position(i), "more than %d levels of nesting", maxDepth)
		return nil
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return &node{kind: kindObject, at: p.position(0), project: project}
	}
	// A comment on the last line needs no line end for us.
	v, err := hujson.Parse(append(slices.Clip(data), '\n'))
	if err != nil {
		p.syntax(err)
		return nil
	}
	n := p.node(v)
	if n.kind != kindObject {
		r.errorf(n.at, "the file holds %v, not an object", n.kind)
		return nil
	}
	return n
}

// syntax reports an error of the parser, whose text begins with the position
// and may quote a wrong literal, which is left out.
func (p *parser) syntax(err error) {
	at := Position{File: p.file, Line: 1, Column: 1}
	_, _ = fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &at.Line, &at.Column)
	cause := err
	for inner := errors.Unwrap(cause); inner != nil; inner = errors.Unwrap(inner) {
		cause = inner
	}
	message, _, _ := bytes.Cut([]byte(cause.Error()), []byte("invalid literal"))
	if len(message) == 0 {
		p.report.errorf(at, "not valid JSON: invalid literal")
		return
	}
	p.report.errorf(at, "not valid JSON: %s", message)
}

func (p *parser) node(v hujson.Value) *node {
	n := &node{at: p.position(v.StartOffset), project: p.project}
	switch x := v.Value.(type) {
	case *hujson.Object:
		n.kind = kindObject
		p.members(n, x)
	case *hujson.Array:
		n.kind = kindArray
		for _, e := range x.Elements {
			n.items = append(n.items, p.node(e))
		}
	case hujson.Literal:
		n.kind = kind(x.Kind())
		if n.kind == 'f' {
			n.kind = kindBool
		}
		n.text = x.String()
	}
	return n
}

func (p *parser) members(n *node, o *hujson.Object) {
	seen := make(map[string]int, len(o.Members))
	for _, hm := range o.Members {
		name, _ := hm.Name.Value.(hujson.Literal)
		m := member{key: name.String(), at: p.position(hm.Name.StartOffset), value: p.node(hm.Value)}
		if i, twice := seen[m.key]; twice {
			p.report.warnf(m.at, "key %q stands twice; the second is taken", m.key)
			n.members[i] = m
			continue
		}
		seen[m.key] = len(n.members)
		n.members = append(n.members, m)
	}
}

func (p *parser) position(offset int) Position {
	line := sort.SearchInts(p.lines, offset+1)
	return Position{File: p.file, Line: line, Column: offset - p.lines[line-1] + 1}
}

func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
	return -1
}

// tooDeep gives the offset at which brackets nest deeper than limit, or -1.
func tooDeep(data []byte, limit int) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '[', '{':
			if depth++; depth > limit {
				return i
			}
		case ']', '}':
			depth--
		case '"':
			i = endOfString(data, i)
		case '/':
			i = endOfComment(data, i)
		}
	}
	return -1
}

// endOfString gives the offset of the quote that closes the string at i.
func endOfString(data []byte, i int) int {
	for i++; i < len(data) && data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i
}

// endOfComment gives the offset of the last byte of the comment at i, or i
// where there is none.
func endOfComment(data []byte, i int) int {
	var end string
	switch {
	case bytes.HasPrefix(data[i:], []byte("//")):
		end = "\n"
	case bytes.HasPrefix(data[i:], []byte("/*")):
		end = "*/"
	default:
		return i
	}
	n := bytes.Index(data[i+2:], []byte(end))
	if n < 0 {
		return len(data)
	}
	return i + 2 + n + len(end) - 1
}
