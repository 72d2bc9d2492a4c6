package input_test

import (
	"encoding/json"
	"testing"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/tool/input"
)

type sample struct {
	Path  string   `json:"path" alias:"filePath,file" doc:"A path."`
	Count int      `json:"count,omitempty" min:"1" max:"9"`
	Mode  string   `json:"mode,omitempty" enum:"on,off"`
	Deep  []nested `json:"deep,omitempty"`
	Flag  *bool    `json:"flag,omitempty"`
}

type nested struct {
	Name string `json:"name"`
}

func TestSchema(t *testing.T) {
	t.Parallel()
	want := `{"additionalProperties":false,"properties":{"count":{"maximum":9,"minimum":1,"type":"integer"},` +
		`"deep":{"items":{"additionalProperties":false,"properties":{"name":{"type":"string"}},"required":["name"],"type":"object"},"type":"array"},` +
		`"flag":{"type":"boolean"},"mode":{"enum":["on","off"],"type":"string"},"path":{"description":"A path.","type":"string"}},` +
		`"required":["path"],"type":"object"}`
	if got := input.Schema[sample](); string(got) != want {
		t.Errorf("%s", got)
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	in, err := input.Decode[sample]([]byte(`{"filePath":"a","count":3,"mode":"on","deep":[{"name":"b"}],"flag":false,"other":1}`))
	if err != nil || in.Path != "a" || in.Count != 3 || in.Mode != "on" || in.Deep[0].Name != "b" || *in.Flag {
		t.Errorf("%+v %v", in, err)
	}
	in, err = input.Decode[sample]([]byte(`{"path":"a","file":"b","count":null,"flag":null}`))
	if err != nil || in.Path != "a" || in.Count != 0 || in.Flag != nil {
		t.Errorf("the name itself wins over others: %+v %v", in, err)
	}
	_, err = input.Decode[sample]([]byte(`{"count":10,"mode":"x","deep":[{"name":1},{}],"flag":"yes"}`))
	e, ok := fault.As(err)
	if !ok || e.Code != fault.ValidationFailed {
		t.Fatal(err)
	}
	want := "The input is not valid: path is required; count must be at most 9; mode must be one of on, off; " +
		"deep[0].name must be a string, not this number; deep[1].name is required; flag must be true or false, not a string."
	if e.Detail != want {
		t.Errorf("%s", e.Detail)
	}
	if e.Items[1].Location != "input.count" {
		t.Errorf("%+v", e.Items)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"path":"a","count":3}`)
	f.Add(`{"deep":[{"name":null},7]`)
	f.Fuzz(func(t *testing.T, raw string) {
		in, err := input.Decode[sample](json.RawMessage(raw))
		if err == nil && (in.Count < 0 || in.Count > 9 || in.Mode != "" && in.Mode != "on" && in.Mode != "off") {
			t.Fatalf("%+v", in)
		}
		if e, ok := fault.As(err); err != nil && (!ok || e.Detail == "" || len(e.Items) == 0) {
			t.Fatalf("%v", err)
		}
	})
}
