package op_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/op/schema"
)

type apiKey struct {
	Type string `json:"type" enum:"api"`
	Key  string `json:"key" minLength:"1"`
}

type oauth struct {
	Type    string `json:"type" enum:"oauth"`
	Expires int64  `json:"expires"`
}

var credentials = schema.NewUnion(nil, "Credential", "type", apiKey{}, oauth{})

type credential struct{ of any }

func (credential) Schema(r huma.Registry) *huma.Schema { return credentials.Schema(r) }

func (c *credential) UnmarshalJSON(data []byte) (err error) {
	c.of, err = credentials.Decode(data)
	return err
}

func (c credential) MarshalJSON() ([]byte, error) { return json.Marshal(c.of) }

type authInput struct {
	Credential  credential   `json:"credential"`
	Spare       *credential  `json:"spare,omitempty"`
	More        []credential `json:"more,omitempty"`
	Description string       `json:"description,omitempty" maxLength:"3"`
}

func TestUnionsInInputs(t *testing.T) {
	t.Parallel()
	b := setup(t, echo[authInput](op.Spec{Method: "POST", Path: "/api/auth"}))
	const key = `{"type":"api","key":"k"}`
	for body, want := range map[string]string{
		`{"credential":{"key":"k","type":"api"}}`:                         `{"credential":{"key":"k","type":"api"}}`,
		`{"credential":{"type":"oauth","expires":5},"spare":` + key + `}`: `{"credential":{"expires":5,"type":"oauth"},"spare":{"key":"k","type":"api"}}`,
		`{"credential":` + key + `,"spare":null,"more":[` + key + `]}`:    `{"credential":{"key":"k","type":"api"},"more":[{"key":"k","type":"api"}]}`,
	} {
		b.send("POST", "/api/auth", body).wantData(t, want)
	}
	for credential, location := range map[string]string{
		`null`: "body.credential", `5`: "body.credential", `[]`: "body.credential", `{}`: "body.credential.type", `{"type":5}`: "body.credential.type",
		`{"type":"other"}`: "body.credential.type", `{"type":"api"}`: "body.credential.key", `{"type":"api","key":""}`: "body.credential.key",
		`{"type":"api","key":"k","x":1}`: "body.credential.x", `{"type":"oauth","key":"k","expires":1}`: "body.credential.key",
	} {
		got := b.send("POST", "/api/auth", `{"description":"long","credential":`+credential+`}`)
		got.wantProblem(t, fault.ValidationFailed, location, "body.description")
	}
	got := b.send("POST", "/api/auth", `{"credential":{"type":"other"}}`)
	if !strings.Contains(got.text, `one of \"api\", \"oauth\"`) {
		t.Error(got.text)
	}
	if got := b.send("POST", "/api/auth", `{"credential":`+key+`,"more":[{"type":"other"}]}`); got.status != 422 {
		t.Error(got.text)
	}
	if got := b.send("POST", "/api/auth", `{"credential":`+key+`,"more":[5]}`); got.status != 422 {
		t.Error(got.text)
	}
}
