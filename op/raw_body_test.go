package op_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/op/openapi"
	"github.com/switchyard-dev/switchyard/runtime"
)

type uploadInput struct {
	Body op.Body `json:"body" doc:"The bytes."`
	Name string  `json:"name,omitempty" in:"query"`
}

// upload answers with what it was sent.
func upload() op.Any {
	return op.New(op.Spec{Name: "thing.upload", Method: "POST", Path: "/api/thing", Summary: "Takes bytes.", BodyLimit: 1000},
		func(_ context.Context, _ *runtime.Server, in uploadInput) (string, error) {
			text, err := io.ReadAll(in.Body)
			return in.Name + ":" + in.Body.Type + ":" + string(text), err
		})
}

func TestARawBodyIsReadAsItIs(t *testing.T) {
	t.Parallel()
	b := setup(t, upload())
	for _, mediaType := range []string{"image/png", "application/json", ""} {
		b.send("POST", "/api/thing?name=n", "no { json", "Content-Type", "", "Content-Type", mediaType).
			wantData(t, `"n:`+mediaType+`:no { json"`)
	}
	b.send("POST", "/api/thing", "").wantData(t, `"::"`)
	b.send("POST", "/api/thing?other=1", "x").wantProblem(t, fault.UnknownParameter, "query.other")
}

func TestARawBodyOverTheLimitIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t, upload())
	b.send("POST", "/api/thing", strings.Repeat("x", 1000)).wantData(t, `":application/json:`+strings.Repeat("x", 1000)+`"`)
	b.send("POST", "/api/thing", strings.Repeat("x", 1001)).wantProblem(t, fault.BodyTooLarge)
	// One without an announced length.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/api/thing", io.MultiReader(bytes.NewReader(make([]byte, 5000))))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(text), `"code":"body_too_large"`) {
		t.Fatalf("%d %s", res.StatusCode, text)
	}
}

func TestARawBodyInProcessIsBase64(t *testing.T) {
	t.Parallel()
	got, err := upload().Invoke(t.Context(), &host{}, op.Target{}, json.RawMessage(`{"body":"aGVsbG8=","name":"n"}`))
	if err != nil || got != "n::hello" {
		t.Fatal(got, err)
	}
	for _, bad := range []string{`{"body":"!"}`, `{"body":1}`, `{}`} {
		if _, err := upload().Invoke(t.Context(), &host{}, op.Target{}, json.RawMessage(bad)); !fault.Is(err, fault.ValidationFailed) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestARawBodyIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := openapi.New(openapi.Config{Title: "T", Version: "1", Operations: []op.Any{upload()}}).JSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"*/*"`, `"format":"binary"`, `"required":true`} {
		if !strings.Contains(strings.ReplaceAll(string(text), ": ", ":"), want) {
			t.Errorf("the document lacks %s", want)
		}
	}
	if strings.Contains(string(text), string(fault.MalformedJSON)) {
		t.Error("bytes cannot be malformed JSON")
	}
}

func TestARawBodyIsAlone(t *testing.T) {
	t.Parallel()
	type both struct {
		Body  op.Body `json:"body"`
		Title string  `json:"title"`
	}
	type placed struct {
		Body op.Body `json:"body" in:"body"`
	}
	spec := op.Spec{Name: "thing.upload", Method: "POST", Path: "/api/thing", Summary: "Takes bytes."}
	get := spec
	get.Method = "GET"
	for name, declare := range map[string]func(){
		"beside another field": func() {
			op.New(spec, func(context.Context, *runtime.Server, both) (op.None, error) { return op.None{}, nil })
		},
		"as JSON": func() {
			op.New(spec, func(context.Context, *runtime.Server, placed) (op.None, error) { return op.None{}, nil })
		},
		"on GET": func() {
			op.New(get, func(context.Context, *runtime.Server, uploadInput) (op.None, error) { return op.None{}, nil })
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			declare()
		}()
	}
}

func TestARawAnswerSaysHowToSaveIt(t *testing.T) {
	t.Parallel()
	type in struct {
		Name   string `json:"name,omitempty"`
		Inline bool   `json:"inline,omitempty"`
	}
	b := setup(t, op.New(op.Spec{Name: "thing.get", Method: "GET", Path: "/api/thing", Summary: "Gives bytes."},
		func(_ context.Context, _ *runtime.Server, in in) (op.Raw, error) {
			return op.Raw{Bytes: []byte("x"), Name: in.Name, Inline: in.Inline, Immutable: true}, nil
		}))
	for query, want := range map[string]string{
		"":                         "",
		"inline=true":              "inline",
		"inline=true&name=a.png":   "inline; filename=a.png",
		"name=a%20b.txt":           `attachment; filename="a b.txt"`,
		"name=%C3%BC.txt":          "attachment; filename*=utf-8''%C3%BC.txt",
		"name=%22%0D%0AX-Bad:%20y": `attachment; filename="\"%0D%0AX-Bad: y"`,
	} {
		got := b.send("GET", "/api/thing?"+query, "")
		if got.header.Get("Content-Disposition") != want && !strings.Contains(query, "Bad") || got.header.Get("X-Bad") != "" {
			t.Errorf("%s: %q, want %q", query, got.header.Get("Content-Disposition"), want)
		}
	}
}

func TestARawBodyMayBeOfNamedTypesOnly(t *testing.T) {
	t.Parallel()
	b := setup(t, op.New(op.Spec{
		Name: "thing.take", Method: "POST", Path: "/api/thing", Summary: "Takes JSON.", Consumes: []string{op.TypeJSON},
	}, func(_ context.Context, _ *runtime.Server, in uploadInput) (string, error) { return in.Body.Type, nil }))
	b.send("POST", "/api/thing", "{").wantData(t, `"application/json"`)
	for _, other := range []string{"", "text/plain", "application/json-seq"} {
		b.send("POST", "/api/thing", "{", "Content-Type", "", "Content-Type", other).wantProblem(t, fault.UnsupportedMediaType)
	}
}

func TestContentThatIsMadeAsItIsSent(t *testing.T) {
	t.Parallel()
	type input struct {
		Fail string `json:"fail,omitempty"`
	}
	b := setup(t, op.New(op.Spec{
		Name: "thing.write", Method: "GET", Path: "/api/thing", Summary: "Writes.", Produces: []string{"text/plain"},
	}, func(_ context.Context, _ *runtime.Server, in input) (op.Raw, error) {
		return op.Raw{Type: "text/plain", Name: "a.txt", Write: func(_ context.Context, w io.Writer) error {
			if in.Fail == "early" {
				return fault.New(fault.SessionNotFound, "gone")
			}
			_, err := io.WriteString(w, "begun")
			if in.Fail == "late" {
				return fault.New(fault.SessionNotFound, "gone")
			}
			return err
		}}, nil
	}))
	get := func(query string) (*http.Response, string, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/api/thing"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			return nil, "", err
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		return res, string(text), err
	}
	res, text, err := get("")
	if err != nil || text != "begun" || res.Header.Get("Content-Disposition") != "attachment; filename=a.txt" || res.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%q %v %v", text, res.Header, err)
	}
	if res, text, err := get("?fail=early"); err != nil || res.StatusCode != http.StatusNotFound || res.Header.Get("Content-Disposition") != "" {
		t.Errorf("%q %v", text, err)
	}
	if _, text, err := get("?fail=late"); err == nil {
		t.Errorf("half an answer looks whole: %q", text)
	}
}
