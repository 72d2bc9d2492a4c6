package jsonflag_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/cli/internal/jsonflag"
)

func TestValuesBecomeTheJSONOfTheirKind(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "value")
	if err := os.WriteFile(file, []byte("\n{\"a\": 1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		value jsonflag.Value
		given []string
		want  string
	}{
		{jsonflag.Value{Kind: "string"}, []string{`a "b" @c`}, `"a \"b\" @c"`},
		{jsonflag.Value{Kind: "string"}, []string{"first", "last"}, `"last"`},
		{jsonflag.Value{Kind: "integer"}, []string{"+9223372036854775807"}, `9223372036854775807`},
		{jsonflag.Value{Kind: "integer"}, []string{"007"}, `7`},
		{jsonflag.Value{Kind: "number"}, []string{"1e3"}, `1000`},
		{jsonflag.Value{Kind: "boolean"}, []string{"T"}, `true`},
		{jsonflag.Value{Kind: "object"}, []string{` {"a":1} `}, `{"a":1}`},
		{jsonflag.Value{Kind: "object"}, []string{"@" + file}, `{"a": 1}`},
		{jsonflag.Value{Kind: "object", Stdin: strings.NewReader("[1]")}, []string{"@-"}, `[1]`},
		{jsonflag.Value{Kind: "object"}, []string{"null"}, `null`},
		{jsonflag.Value{Kind: "object"}, []string{"npm test"}, `"npm test"`},
		{jsonflag.Value{Kind: "string", List: true}, []string{"a,b", "[c]"}, `["a,b","[c]"]`},
		{jsonflag.Value{Kind: "integer", List: true}, []string{"1", "2"}, `[1,2]`},
		{jsonflag.Value{Kind: "object", List: true}, []string{`{"a":1}`, `[{"b":2},3]`}, `[{"a":1},{"b":2},3]`},
	}
	for _, tt := range tests {
		for _, text := range tt.given {
			if err := tt.value.Set(text); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
		}
		if got := tt.value.JSON(); string(got) != tt.want {
			t.Errorf("%q became %s, not %s", tt.given, got, tt.want)
		}
	}
}

func TestValuesRefuseWhatIsNotOfTheirKind(t *testing.T) {
	t.Parallel()
	for kind, bad := range map[string][]string{
		"integer": {"", "1.5", "9223372036854775808", "1_000", "x"}, "number": {"", "one", "NaN", "Inf"},
		"boolean": {"", "yes"}, "object": {"{", `["a"`, `"a`, "@/no/such/file"},
	} {
		for _, text := range bad {
			v := jsonflag.Value{Kind: kind}
			if err := v.Set(text); err == nil {
				t.Errorf("%s took %q as %s", kind, text, v.JSON())
			}
		}
	}
}

func TestKindOfGoTypes(t *testing.T) {
	t.Parallel()
	type named string
	for want, v := range map[string]any{
		"string": named(""), "integer": new(int64), "number": 1.5, "boolean": true, "object": struct{}{},
		"string list": []named{}, "object list": []struct{}{}, "object list ": [][]string{},
	} {
		kind, list := jsonflag.KindOf(reflect.TypeOf(v))
		if list {
			kind += " list"
		}
		if kind != strings.TrimSpace(want) {
			t.Errorf("%T is %s, not %s", v, kind, want)
		}
	}
	if kind, list := jsonflag.KindOf(reflect.TypeFor[json.RawMessage]()); kind != "object" || list {
		t.Errorf("raw JSON is %s, a list: %t", kind, list)
	}
}
