package op_test

import (
	"encoding/json"
	"testing"

	"github.com/switchyard-dev/switchyard/op"
)

func TestOptTellsAbsentFromNullFromValue(t *testing.T) {
	t.Parallel()
	type patch struct {
		Name op.Opt[string] `json:"name,omitzero"`
	}
	for text, want := range map[string]op.Opt[string]{
		`{}`: {}, `{"name":null}`: op.Null[string](), `{"name":""}`: op.Some(""), `{"name":"x"}`: op.Some("x"),
	} {
		var got patch
		if err := json.Unmarshal([]byte(text), &got); err != nil || got.Name != want {
			t.Errorf("%s: %+v %v", text, got, err)
		}
		back, err := json.Marshal(got)
		if err != nil || string(back) != text {
			t.Errorf("%s came back as %s, %v", text, back, err)
		}
		value, ok := got.Name.Get()
		if ok != (want.Set && !want.Null) || value != want.Value {
			t.Errorf("%s: %q %v", text, value, ok)
		}
	}
	var got patch
	if json.Unmarshal([]byte(`{"name":5}`), &got) == nil {
		t.Error("a number became a string")
	}
}
