package bind

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"limit", "order", "directory", "workspace"}
	for name, want := range map[string]string{
		"limti": "limit", "LIMIT": "limit", "odrer": "order", "dir": "order", "directry": "directory", "work_space": "workspace",
	} {
		if got := nearest(name, known); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	if got := nearest("x", nil); got != "" {
		t.Errorf("%q among none", got)
	}
}

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"abc", "abc", 0}, {"ab", "ba", 2}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestPathParams(t *testing.T) {
	t.Parallel()
	if got := PathParams("/api/model/{providerID}/x/{modelID}"); len(got) != 2 || got[0] != "providerID" || got[1] != "modelID" {
		t.Error(got)
	}
	if got := PathParams("/api/{x"); got != nil {
		t.Error(got)
	}
}

// FuzzFlat feeds any text to the reader of inputs: it must answer with an input
// or a fault, and never panic.
func FuzzFlat(f *testing.F) {
	type input struct {
		Name string         `json:"name"`
		N    *int           `json:"n,omitempty" minimum:"1"`
		Size map[string]int `json:"size,omitempty"`
		Tags []string       `json:"tags,omitempty"`
	}
	p := New(Config{
		Method: "POST", Path: "/a", Inputs: Inputs("POST", "/a", reflect.TypeFor[input]()),
		Aliases: map[string]string{"size.cols": "size.columns", "title": "name", "*": "size"},
		Values:  map[string]map[string]string{"name": {"a": "b"}},
	})
	for _, seed := range []string{`{}`, `{"name":"a","n":1}`, `{"title":"x","size":{"cols":1}}`, `{"q":1}`, `{"size":5,"title":{}}`, `[`, "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var in input
		if err := p.Flat(text, &in); err == nil && len(text) > 0 && !json.Valid(text) {
			t.Errorf("%q was read", text)
		}
	})
}
