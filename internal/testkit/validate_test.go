package testkit_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/internal/testkit"
)

const contractDocument = `
openapi: 3.1.0
info: {title: T, version: "1"}
paths:
  /thing/{id}:
    post:
      operationId: thing.post
      parameters:
        - {name: id, in: path, required: true, schema: {type: string}}
        - {name: n, in: query, schema: {type: integer}}
      requestBody:
        content:
          application/json: {schema: {type: object, additionalProperties: false, properties: {a: {type: string}}}}
      responses:
        "200":
          description: OK
          content:
            application/json: {schema: {$ref: "#/components/schemas/Thing"}}
            text/event-stream: {schema: {$ref: "#/components/schemas/Thing"}}
            application/x-ndjson: {schema: {$ref: "#/components/schemas/Thing"}}
        "204": {description: None}
        "404":
          description: No
          x-codes: [thing_not_found]
          content:
            application/problem+json: {schema: {type: object, required: [code, status]}}
components:
  schemas:
    Thing: {type: object, required: [x], properties: {x: {type: integer}}}
`

// report is a test that only notes what it is told.
type report struct {
	testing.TB
	lines []string
}

func (r *report) Errorf(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// exchange gives what a contract finds in one exchange.
func exchange(t *testing.T, request, status, mediaType, body string, headers ...string) []string {
	t.Helper()
	contract, err := testkit.NewContract([]byte(contractDocument))
	if err != nil {
		t.Fatal(err)
	}
	found := &report{TB: t}
	transport := contract.Transport(found, roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.Header.Get("X-Test-Undocumented") != "" {
			return nil, errors.New("a header of the test was sent")
		}
		res := &http.Response{Header: http.Header{"X-Request-Id": {"req_1"}}, Body: io.NopCloser(strings.NewReader(body))}
		if mediaType != "" {
			res.Header.Set("Content-Type", mediaType)
		}
		_, err := fmt.Sscan(status, &res.StatusCode)
		return res, err
	}))
	method, rest, _ := strings.Cut(request, " ")
	path, sent, _ := strings.Cut(rest, " ")
	r, err := http.NewRequestWithContext(t.Context(), method, "http://server.test"+path, strings.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		r.Header.Set(h, "yes")
	}
	res, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || string(text) != body {
		t.Errorf("the body came as %q, %v", text, err)
	}
	return found.lines
}

func TestContract(t *testing.T) {
	t.Parallel()
	const problem = `{"status":404,"code":"thing_not_found"}`
	for _, c := range []struct{ request, status, mediaType, body, finding string }{
		{`POST /thing/1?n=5 {"a":"x"}`, "200", "application/json", `{"x":1}`, ""},
		{`POST /thing/1 {"a":"x"}`, "204", "", ``, ""},
		{`POST /thing/1 {"a":"x"}`, "404", "application/problem+json", problem, ""},
		{`POST /thing/1 {"a":5}`, "404", "application/problem+json", problem, ""},
		{`POST /other`, "404", "application/problem+json", problem, ""},
		{`POST /thing/1 {}`, "200", "text/event-stream", "id: 1\ndata: {\"x\":1}\n\n: beat\n\n", ""},
		{`POST /thing/1 {}`, "200", "application/x-ndjson", "{\"x\":1}\n{\"x\":2}\n", ""},

		{`POST /thing/1 {}`, "200", "application/json", `{"x":"1"}`, "got string, want integer"},
		{`POST /thing/1 {}`, "200", "text/html", `<p>`, "text/html"},
		{`POST /thing/1 {}`, "500", "application/problem+json", problem, "not documented"},
		{`POST /thing/1 {"b":1}`, "200", "application/json", `{"x":1}`, "accepted, but not documented so"},
		{`POST /thing/1?n=x {}`, "200", "application/json", `{"x":1}`, "accepted, but not documented so"},
		{`POST /thing/1 {}`, "404", "application/problem+json", `{"status":404,"code":"other"}`, "the code other is not documented"},
		{`POST /thing/1 {}`, "404", "application/problem+json", `{"status":400,"code":"thing_not_found"}`, "another status"},
		{`POST /other`, "404", "text/plain", `404`, "no problem+json"},
		{`POST /thing/1 {}`, "200", "text/event-stream", "data: {\"x\":\"y\"}\n\n", "got string, want integer"},
		{`POST /thing/1 {}`, "200", "application/x-ndjson", "{\"x\":1}\n{}\n", "missing property"},
	} {
		found := strings.Join(exchange(t, c.request, c.status, c.mediaType, c.body), "\n")
		if (c.finding == "") != (found == "") || !strings.Contains(found, c.finding) {
			t.Errorf("%s, %s %s: found %q, want %q", c.request, c.status, c.body, found, c.finding)
		}
	}
	if found := exchange(t, `POST /thing/1 {"b":1}`, "200", "application/json", `{"x":1}`, "X-Test-Undocumented"); len(found) > 0 {
		t.Error(found)
	}
}

func TestContractComponents(t *testing.T) {
	t.Parallel()
	contract, err := testkit.NewContract([]byte(contractDocument))
	if err != nil {
		t.Fatal(err)
	}
	if err := contract.CheckComponent("Thing", []byte(`{"x":1}`)); err != nil {
		t.Error(err)
	}
	for name, text := range map[string]string{"Thing": `{}`, "Nothing": `{}`} {
		if contract.CheckComponent(name, []byte(text)) == nil {
			t.Errorf("%s %s is accepted", name, text)
		}
	}
	for _, bad := range []string{"", "openapi: 3.1.0\ninfo: {}\npaths: {}\n", "{"} {
		if _, err := testkit.NewContract([]byte(bad)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
