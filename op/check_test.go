package op_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/runtime"
)

func declare[C op.Scope, In any](s op.Spec) func() op.Any {
	return func() op.Any {
		if s.Summary == "" {
			s.Summary = "Does."
		}
		return op.New(s, func(context.Context, C, In) (op.None, error) { return op.None{}, nil })
	}
}

type (
	empty struct{}
	named struct {
		Name string `json:"name"`
	}
	unnamed struct{ Name string }
	byID    struct {
		ID string `json:"id"`
	}
	optional struct {
		ID *string `json:"id"`
	}
	withDir struct {
		Directory string `json:"directory"`
	}
	withSes struct {
		SessionID string `json:"sessionID"`
	}
	object struct {
		O struct{ A int } `json:"o"`
	}
	bodyOnGet struct {
		A int `json:"a" in:"body"`
	}
	elsewhere struct {
		A int `json:"a" in:"cookie"`
	}
	inner struct {
		B int `json:"a"`
	}
	twice struct {
		A int `json:"a"`
		inner
	}
)

func TestDeclarationsThatContradictThemselvesPanic(t *testing.T) {
	t.Parallel()
	get := func(path string) op.Spec { return op.Spec{Name: "a.b", Method: "GET", Path: path} }
	post := func(path string) op.Spec { return op.Spec{Name: "a.b", Method: "POST", Path: path} }
	with := func(s op.Spec, change func(*op.Spec)) op.Spec { change(&s); return s }
	for _, c := range []struct {
		why     string
		declare func() op.Any
	}{
		{"form noun.verb", declare[*runtime.Server, empty](op.Spec{Name: "ab", Method: "GET", Path: "/a"})},
		{"form noun.verb", declare[*runtime.Server, empty](op.Spec{Name: "A.b", Method: "GET", Path: "/a"})},
		{"needs a method", declare[*runtime.Server, empty](op.Spec{Name: "a.b", Method: "FETCH", Path: "/a"})},
		{"needs a method", declare[*runtime.Server, empty](get("a"))},
		{"must be a struct", declare[*runtime.Server, string](get("/a"))},
		{"does not fit a session", declare[*runtime.Session, empty](get("/a"))},
		{"does not fit a server", declare[*runtime.Server, withSes](get("/a/{sessionID}"))},
		{"does not fit a request", declare[*runtime.Request, empty](get("/a/{sessionID}"))},
		{"is not an input field", declare[*runtime.Server, empty](get("/a/{id}"))},
		{"stands twice", declare[*runtime.Server, byID](get("/a/{id}/{id}"))},
		{"cannot stand", declare[*runtime.Server, optional](get("/a/{id}"))},
		{"no name in a json tag", declare[*runtime.Server, unnamed](get("/a"))},
		{"declared twice", declare[*runtime.Server, twice](get("/a"))},
		{"belongs to the context", declare[*runtime.Request, withDir](post("/a"))},
		{"belongs to the context", declare[*runtime.Session, withDir](post("/a/{sessionID}"))},
		{"belongs to the context", declare[*runtime.Session, withSes](post("/a/{sessionID}"))},
		{"look like a context hint", declare[*runtime.Server, withDir](get("/a"))},
		{"cannot stand", declare[*runtime.Server, object](get("/a"))},
		{"cannot stand", declare[*runtime.Server, bodyOnGet](get("/a"))},
		{"cannot stand", declare[*runtime.Server, elsewhere](get("/a"))},
		{"only request operations", declare[*runtime.Server, byID](with(get("/a/{id}"), func(s *op.Spec) { s.Item = true }))},
		{"names one object", declare[*runtime.Request, empty](with(get("/a"), func(s *op.Spec) { s.Item = true }))},
		{"ends in a path parameter", declare[*runtime.Server, empty](with(get("/a"), func(s *op.Spec) { s.Tail = true }))},
		{"leads to", declare[*runtime.Server, named](with(post("/a"), func(s *op.Spec) { s.Aliases = map[string]string{"x": "y"} }))},
		{"is a field itself", declare[*runtime.Server, named](with(post("/a"), func(s *op.Spec) { s.Aliases = map[string]string{"name": "name"} }))},
		{"belongs to the context", declare[*runtime.Request, named](with(post("/a"), func(s *op.Spec) { s.Aliases = map[string]string{"directory": "name"} }))},
		{"value synonyms", declare[*runtime.Server, named](with(post("/a"), func(s *op.Spec) { s.Values = map[string]map[string]string{"x": nil} }))},
		{"the example is a", declare[*runtime.Server, named](with(post("/a"), func(s *op.Spec) { s.Example = 1 }))},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, c.why) {
					t.Errorf("got %q, want %q", got, c.why)
				}
			}()
			c.declare()
		}()
	}
}

func TestGoodDeclarations(t *testing.T) {
	t.Parallel()
	for _, o := range []op.Any{
		declare[*runtime.Server, withDir](op.Spec{Name: "workspace.create", Method: "POST", Path: "/api/workspace"})(),
		declare[*runtime.Server, withSes](op.Spec{Name: "workspace.warp", Method: "POST", Path: "/api/workspace/warp"})(),
		declare[*runtime.Session, named](op.Spec{Name: "session.update", Method: "PATCH", Path: "/api/session/{sessionID}"})(),
		declare[*runtime.Request, byID](op.Spec{Name: "pty.get", Method: "GET", Path: "/api/pty/{id}", Item: true})(),
	} {
		if o.Describe().Name == "" {
			t.Error("no name")
		}
	}
}

func TestOperationsDoNotShareNamesOrRoutes(t *testing.T) {
	t.Parallel()
	one := declare[*runtime.Server, byID](op.Spec{Name: "a.one", Method: "GET", Path: "/a/{id}"})()
	route := declare[*runtime.Server, named](op.Spec{Name: "a.two", Method: "GET", Path: "/a/{name}"})()
	name := declare[*runtime.Server, empty](op.Spec{Name: "a.one", Method: "GET", Path: "/b"})()
	op.CheckAll([]op.Any{one})
	for want, pair := range map[string][]op.Any{"share the route": {one, route}, "two operations": {one, name}} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			}()
			op.CheckAll(pair)
		}()
	}
}

func TestDescription(t *testing.T) {
	t.Parallel()
	d := echo[listInput](op.Spec{Name: "thing.list", Method: "GET", Path: "/api/thing"}).Describe()
	if d.Kind != op.KindRequest || d.Tag() != "thing" || d.Output.Shape != op.ShapeValue {
		t.Errorf("%+v", d)
	}
	fields := map[string]op.Field{}
	for _, f := range d.Fields() {
		fields[f.Name] = f
	}
	if f := fields["types"]; f.Type != "array" || f.Items != "string" || !f.Comma || len(f.Enum) != 3 {
		t.Errorf("%+v", f)
	}
	if f := fields["limit"]; f.Type != "integer" || f.In != op.InQuery || f.Required {
		t.Errorf("%+v", f)
	}
	if f := fields["size"]; f.Default != 50 {
		t.Errorf("%+v", f)
	}
	if f := fields["If-Match"]; f.In != op.InHeader {
		t.Errorf("%+v", f)
	}
	patch := echo[patchInput](op.Spec{Name: "thing.patch", Method: "PATCH", Path: "/api/thing/{thingID}"}).Describe()
	if f := patch.Fields()[0]; f.In != op.InPath || !f.Required {
		t.Errorf("%+v", f)
	}
}
