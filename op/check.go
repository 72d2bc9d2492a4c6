package op

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/switchyard-dev/switchyard/op/internal/bind"
)

var (
	namePattern  = regexp.MustCompile(`^[a-z][A-Za-z0-9]*(\.[a-z][A-Za-z0-9]*)+$`)
	fieldPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)
	methods      = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
)

// ofContext tells names that belong to the context of an operation, so that an
// input may not have them where there is a context that they could contradict.
func ofContext(k Kind, name string) bool {
	switch k {
	case KindSession:
		return name == "directory" || name == "workspace" || name == "sessionID"
	case KindRequest:
		return name == "directory" || name == "workspace"
	case KindServer:
	}
	return false
}

// check panics where a declaration contradicts itself. These are mistakes in the
// program, found the moment it starts.
func check(c *core, in reflect.Type) {
	s := c.spec
	fail := func(format string, args ...any) {
		panic(fmt.Sprintf("op %s: ", s.Name) + fmt.Sprintf(format, args...))
	}
	if !namePattern.MatchString(s.Name) {
		fail("the name is not of the form noun.verb")
	}
	if !slices.Contains(methods, s.Method) || !strings.HasPrefix(s.Path, "/") || s.Summary == "" {
		fail("it needs a method, a path and a summary")
	}
	if in.Kind() != reflect.Struct {
		fail("the input is %s, it must be a struct", in)
	}
	checkContext(c, fail)
	checkPath(c, fail)
	checkFields(c, fail)
	checkSynonyms(c, fail)
	if s.Example != nil && reflect.TypeOf(s.Example) != in {
		fail("the example is a %T, the input is a %s", s.Example, in)
	}
}

func checkContext(c *core, fail func(string, ...any)) {
	s := c.spec
	pinned := slices.Contains(bind.PathParams(s.Path), "sessionID")
	if pinned != (c.kind == KindSession) {
		fail("path %q does not fit a %s operation", s.Path, c.kind)
	}
	if (s.Item || s.Many) && c.kind != KindRequest {
		fail("only request operations can be Item or Many")
	}
	if s.Item && (s.Many || len(bind.PathParams(s.Path)) == 0) {
		fail("an Item operation names one object in its path")
	}
}

func checkPath(c *core, fail func(string, ...any)) {
	params := bind.PathParams(c.spec.Path)
	for i, name := range params {
		if slices.Contains(params[:i], name) {
			fail("path parameter %q stands twice", name)
		}
		declared := slices.ContainsFunc(c.inputs, func(f Input) bool { return f.Name == name && f.In == InPath })
		if !declared && !(c.kind == KindSession && name == "sessionID") {
			fail("path parameter %q is not an input field", name)
		}
	}
	if c.spec.Tail && !strings.HasSuffix(c.spec.Path, "}") {
		fail("a Tail operation ends in a path parameter")
	}
}

func checkFields(c *core, fail func(string, ...any)) {
	seen := map[string]bool{}
	for _, f := range c.inputs {
		if !fieldPattern.MatchString(f.Name) {
			fail("field %s has no name in a json tag", f.Field.Name)
		}
		if seen[f.Name] {
			fail("input field %q is declared twice", f.Name)
		}
		seen[f.Name] = true
		if ofContext(c.kind, f.Name) {
			fail("input field %q belongs to the context", f.Name)
		}
		if f.In != InBody && c.kind == KindServer && (f.Name == "directory" || f.Name == "workspace") {
			fail("%q outside the body would look like a context hint", f.Name)
		}
		checkPlace(c, f, fail)
	}
}

func checkPlace(c *core, f Input, fail func(string, ...any)) {
	_, list := bind.ListOf(f.Field.Type)
	ok := false
	switch f.In {
	case InPath:
		ok = slices.Contains(bind.PathParams(c.spec.Path), f.Name) && bind.Scalar(f.Field.Type) && f.Field.Type.Kind() != reflect.Pointer
	case InQuery:
		ok = bind.Scalar(f.Field.Type) || list
	case InHeader:
		ok = bind.Scalar(f.Field.Type)
	case InBody:
		ok = bind.HasBody(c.spec.Method) && f.Field.Type != reflect.TypeFor[Body]()
	case InRaw:
		ok = bind.HasBody(c.spec.Method) && f.Field.Type == reflect.TypeFor[Body]() && !c.has(InBody)
	}
	if !ok {
		fail("field %q of type %s cannot stand in %q", f.Name, f.Field.Type, f.In)
	}
}

// has tells whether a field stands in a place.
func (c *core) has(place string) bool {
	return slices.ContainsFunc(c.inputs, func(f Input) bool { return f.In == place })
}

func checkSynonyms(c *core, fail func(string, ...any)) {
	declared := func(path string) bool {
		head, _, _ := strings.Cut(path, ".")
		return slices.ContainsFunc(c.inputs, func(f Input) bool {
			return f.Name == head && (f.In == InBody || f.In == InQuery)
		})
	}
	for _, from := range slices.Sorted(maps.Keys(c.spec.Aliases)) {
		to := c.spec.Aliases[from]
		if !declared(to) {
			fail("alias %q leads to %q, which is no field", from, to)
		}
		if declared(from) && !strings.Contains(from, ".") {
			fail("alias %q is a field itself", from)
		}
		if ofContext(c.kind, from) {
			fail("alias %q belongs to the context", from)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(c.spec.Values)) {
		if !declared(path) {
			fail("value synonyms for %q, which is no field", path)
		}
	}
}

// CheckAll panics when two operations share a name or a route.
func CheckAll(operations []Any) {
	names, routes := map[string]bool{}, map[string]string{}
	for _, o := range operations {
		d := o.Describe()
		if names[d.Name] {
			panic("op: two operations are called " + d.Name)
		}
		names[d.Name] = true
		route := d.Method + " " + braces.ReplaceAllString(d.Path, "{}")
		if other, taken := routes[route]; taken {
			panic(fmt.Sprintf("op: %s and %s share the route %s", other, d.Name, route))
		}
		routes[route] = d.Name
	}
}

var braces = regexp.MustCompile(`\{[^}]*\}`)
