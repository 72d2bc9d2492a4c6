package openapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/op/openapi"
	"github.com/switchyard-dev/switchyard/op/schema"
	"github.com/switchyard-dev/switchyard/runtime"
)

type envelope struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Time    int64           `json:"time"`
	Context event.Context   `json:"context"`
	Payload json.RawMessage `json:"payload"`
}

type promptInput struct {
	Text  string                `json:"text" doc:"What to do."`
	Model *chat.ModelRef        `json:"model,omitempty"`
	Force bool                  `json:"force,omitempty" in:"query"`
	Title op.Opt[string]        `json:"title,omitzero"`
	Ref   op.Opt[chat.ModelRef] `json:"ref,omitzero"`
	Key   credential            `json:"credential"`
	IfKey string                `json:"Idempotency-Key,omitempty" in:"header"`
}

type credential struct{ of any }

var credentials = schema.NewUnion(nil, "Credential", "type", apiKey{}, oauth{})

type apiKey struct {
	Type string `json:"type" enum:"api"`
	Key  string `json:"key"`
}

type oauth struct {
	Type    string `json:"type" enum:"oauth"`
	Expires int64  `json:"expires"`
}

func (credential) Schema(r huma.Registry) *huma.Schema { return credentials.Schema(r) }

func (c *credential) UnmarshalJSON(data []byte) (err error) {
	c.of, err = credentials.Decode(data)
	return err
}

func (c credential) MarshalJSON() ([]byte, error) { return json.Marshal(c.of) }

type listInput struct {
	Limit *int     `json:"limit,omitempty" minimum:"1"`
	Types []string `json:"types,omitempty" list:"comma"`
	Tag   []string `json:"tag,omitempty"`
}

func operation[C op.Scope, In, Out any](s op.Spec) op.Any {
	if s.Summary == "" {
		s.Summary = "Does " + s.Name + "."
	}
	return op.New(s, func(context.Context, C, In) (out Out, err error) { return out, nil })
}

func sample() openapi.Config {
	return openapi.Config{
		Title: "Switchyard", Version: "1.2.3", Description: "Agents.",
		Tags:  map[string]string{"session": "Conversations."},
		Names: map[reflect.Type]string{reflect.TypeFor[chat.Item](): "MessageItem"},
		Unions: []schema.Union{
			schema.NewUnion(reflect.TypeFor[chat.Message](), "Message", "role", chat.UserMessage{}, chat.AssistantMessage{}),
			schema.NewUnion(reflect.TypeFor[chat.Part](), "Part", "type",
				chat.TextPart{}, chat.ReasoningPart{}, chat.FilePart{}, chat.ToolPart{}, chat.AgentPart{},
				chat.StepStartPart{}, chat.StepFinishPart{}, chat.RetryPart{}, chat.CompactionPart{}),
			schema.NewUnion(reflect.TypeFor[chat.ToolState](), "ToolState", "status",
				chat.ToolPending{}, chat.ToolRunning{}, chat.ToolCompleted{}, chat.ToolError{}),
			schema.NewEvents(reflect.TypeFor[envelope](), "Event",
				schema.EventKind{Type: "session.idle", Payload: reflect.TypeFor[chat.Todo]()},
				schema.EventKind{Type: "message.part.updated", Payload: reflect.TypeFor[struct {
					Part chat.Part `json:"part"`
				}]()}),
		},
		Operations: []op.Any{
			operation[*runtime.Session, promptInput, chat.Item](op.Spec{
				Name: "session.prompt", Method: "POST", Path: "/api/session/{sessionID}/prompt", Codes: []fault.Code{fault.IdempotencyConflict, fault.QueueFull},
				Aliases: map[string]string{"prompt": "text"}, Values: map[string]map[string]string{"text": {"x": "y"}},
				Example: promptInput{Text: "Hello", Key: credential{apiKey{"api", "k"}}, Force: true},
			}),
			operation[*runtime.Session, listInput, op.Page[op.JSON[chat.Item]]](op.Spec{
				Name: "session.message.list", Method: "GET", Path: "/api/session/{sessionID}/message",
			}),
			operation[*runtime.Request, listInput, op.Alt[op.Tagged[chat.ModelRef], op.Raw]](op.Spec{
				Name: "fs.file", Method: "GET", Path: "/api/fs/file", Produces: []string{"application/octet-stream", "text/x-diff"},
			}),
			operation[*runtime.Request, listInput, op.Alt[[]chat.Todo, op.Lines[chat.Todo]]](op.Spec{
				Name: "fs.grep", Method: "POST", Path: "/api/fs/grep", Returns: []chat.Todo{{Content: "a", Status: "pending", Priority: "high"}},
			}),
			operation[*runtime.Request, struct {
				PtyID string `json:"ptyID"`
			}, op.None](op.Spec{Name: "pty.delete", Method: "DELETE", Path: "/api/pty/{ptyID}", Item: true}),
			operation[*runtime.Request, struct{}, op.Stream[envelope]](op.Spec{
				Name: "event.subscribe", Method: "GET", Path: "/api/event", Many: true, NoCursor: true,
			}),
			operation[*runtime.Server, struct{}, map[string]string](op.Spec{Name: "health.get", Method: "GET", Path: "/api/health", Public: true}),
			operation[*runtime.Session, struct{}, op.Early[chat.Todo]](op.Spec{Name: "session.wait", Method: "POST", Path: "/api/session/{sessionID}/wait"}),
		},
	}
}

// tree reads a document as JSON and gives what is at a path of names.
func tree(t *testing.T, c openapi.Config) func(path ...string) any {
	t.Helper()
	text, err := openapi.New(c).JSON()
	if err != nil {
		t.Fatal(err)
	}
	var root any
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	return func(path ...string) any {
		at := root
		for _, name := range path {
			switch v := at.(type) {
			case map[string]any:
				at = v[name]
			default:
				return nil
			}
		}
		return at
	}
}

func TestDocumentIsOpenAPI(t *testing.T) {
	t.Parallel()
	for name, render := range map[string]func(*openapi.Document) ([]byte, error){
		"JSON": (*openapi.Document).JSON, "YAML": (*openapi.Document).YAML,
	} {
		text, err := render(openapi.New(sample()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := testkit.NewContract(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDocumentIsDeterministic(t *testing.T) {
	t.Parallel()
	first, err := openapi.New(sample()).YAML()
	if err != nil {
		t.Fatal(err)
	}
	c := sample()
	slices.Reverse(c.Operations)
	second, err := openapi.New(c).YAML()
	if err != nil || !bytes.Equal(first, second) {
		t.Error("the order of the operations changes the document", err)
	}
	if !bytes.HasPrefix(first, []byte("openapi: 3.1.0\ninfo:\n  title: Switchyard\n  version: 1.2.3\n")) {
		t.Errorf("%s", first[:200])
	}
}

func TestOperationsAreDocumented(t *testing.T) {
	t.Parallel()
	at := tree(t, sample())
	prompt := []string{"paths", "/api/session/{sessionID}/prompt", "post"}
	if at(append(prompt, "operationId")...) != "session.prompt" || at(append(prompt, "x-context")...) != "session" {
		t.Error(at(prompt...))
	}
	if fmt.Sprint(at(append(prompt, "tags")...)) != "[session]" || fmt.Sprint(at("tags")) == "" {
		t.Error(at("tags"))
	}
	if text := fmt.Sprint(at(append(prompt, "description")...)); !strings.Contains(text, "`prompt` for `text`") || !strings.Contains(text, "`text` `x` for `y`") {
		t.Error(text)
	}
	for path, want := range map[string]string{
		"/api/session/{sessionID}/prompt post": "query.force header.Idempotency-Key path.sessionID",
		"/api/session/{sessionID}/message get": "query.limit query.types query.tag path.sessionID",
		"/api/fs/grep post":                    "query.directory query.workspace header.Idempotency-Key",
		"/api/pty/{ptyID} delete":              "path.ptyID",
		"/api/health get":                      "",
	} {
		place := strings.Fields(path)
		var got []string
		list, _ := at("paths", place[0], place[1], "parameters").([]any)
		for _, p := range list {
			if ref, ok := p.(map[string]any)["$ref"].(string); ok {
				p = at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
			}
			got = append(got, fmt.Sprintf("%s.%s", p.(map[string]any)["in"], p.(map[string]any)["name"]))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", path, got, want)
		}
	}
	types := at("paths", "/api/session/{sessionID}/message", "get", "parameters").([]any)[1].(map[string]any)
	if types["explode"] != false {
		t.Error(types)
	}
	if got := at("paths", "/api/event", "get", "parameters").([]any)[0].(map[string]any)["schema"].(map[string]any)["type"]; got != "array" {
		t.Error("several contexts are not a list:", got)
	}
}

func TestFailuresAreDocumentedWithTheirCodes(t *testing.T) {
	t.Parallel()
	at := tree(t, sample())
	codes := func(path, method, status string) string {
		r := at("paths", path, method, "responses", status)
		ref, _ := r.(map[string]any)["$ref"].(string)
		list, _ := at("components", "responses", strings.TrimPrefix(ref, "#/components/responses/"), "x-codes").([]any)
		return strings.Trim(fmt.Sprint(list), "[]")
	}
	for place, want := range map[string]string{
		"/api/session/{sessionID}/prompt post 400": "context_not_accepted malformed_json",
		"/api/session/{sessionID}/prompt post 404": "session_not_found",
		"/api/session/{sessionID}/prompt post 409": "idempotency_conflict",
		"/api/session/{sessionID}/prompt post 429": "queue_full rate_limited",
		"/api/session/{sessionID}/prompt post 507": "store_full",
		"/api/fs/file get 400":                     "context_ambiguous directory_invalid directory_outside_workspace",
		"/api/fs/file get 404":                     "directory_not_found workspace_not_found",
		"/api/fs/file get 416":                     "range_invalid",
		"/api/pty/{ptyID} delete 422":              "unknown_parameter validation_failed",
		"/api/health get 400":                      "context_not_accepted",
		"/api/health get 500":                      "internal",
	} {
		p := strings.Fields(place)
		if got := codes(p[0], p[1], p[2]); got != want {
			t.Errorf("%s: %q, want %q", place, got, want)
		}
	}
	if at("paths", "/api/health", "get", "responses", "401") != nil {
		t.Error("a public operation documents 401")
	}
	if at("paths", "/api/fs/file", "get", "responses", "413") != nil || at("paths", "/api/pty/{ptyID}", "delete", "responses", "415") != nil {
		t.Error("an operation without a body documents failures of bodies")
	}
}

func TestAnswersAreDocumented(t *testing.T) {
	t.Parallel()
	at := tree(t, sample())
	ok := func(path, method, status string, rest ...string) any {
		return at(append([]string{"paths", path, method, "responses", status}, rest...)...)
	}
	page := ok("/api/session/{sessionID}/message", "get", "200", "content", "application/json", "schema", "properties").(map[string]any)
	if fmt.Sprint(page["data"]) != "map[items:map[$ref:#/components/schemas/MessageItem] type:array]" || page["cursor"] == nil || page["total"] == nil || page["context"] != nil {
		t.Error(page)
	}
	file := ok("/api/fs/file", "get", "200", "content").(map[string]any)
	if len(file) != 3 || file["text/x-diff"] == nil || ok("/api/fs/file", "get", "304") == nil || ok("/api/fs/file", "get", "206", "content", "text/x-diff") == nil {
		t.Error(file)
	}
	if ok("/api/fs/file", "get", "200", "headers", "X-Context-Directory") == nil || ok("/api/fs/file", "get", "200", "headers", "ETag") == nil {
		t.Error(ok("/api/fs/file", "get", "200", "headers"))
	}
	grep := ok("/api/fs/grep", "post", "200", "content").(map[string]any)
	if grep["application/x-ndjson"] == nil || grep["application/json"].(map[string]any)["example"].(map[string]any)["context"] == nil {
		t.Error(grep)
	}
	if ok("/api/pty/{ptyID}", "delete", "204") == nil || ok("/api/pty/{ptyID}", "delete", "200") != nil {
		t.Error(ok("/api/pty/{ptyID}", "delete", "204"))
	}
	if got := ok("/api/event", "get", "200", "content", "text/event-stream", "schema", "$ref"); got != "#/components/schemas/Event" {
		t.Error(got)
	}
	if ok("/api/event", "get", "200", "headers", "X-Event-Cursor") != nil || ok("/api/health", "get", "200", "headers", "X-Event-Cursor") == nil {
		t.Error("the event cursor is documented in the wrong places")
	}
}

func TestInputsAreClosedAndAnswersOpen(t *testing.T) {
	t.Parallel()
	at := tree(t, sample())
	for name, want := range map[string]any{
		"SessionPromptInput": false, "ModelRefInput": false, "ApiKey": false,
		"ModelRef": nil, "TextPart": nil, "EventSessionIdle": nil, "Problem": nil,
	} {
		s, there := at("components", "schemas", name).(map[string]any)
		if got := s["additionalProperties"]; !there || got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	body := at("paths", "/api/session/{sessionID}/prompt", "post", "requestBody").(map[string]any)
	if body["required"] != true {
		t.Error(body)
	}
	example := body["content"].(map[string]any)["application/json"].(map[string]any)["example"].(map[string]any)
	if example["text"] != "Hello" || example["force"] != nil {
		t.Error(example)
	}
	input := at("components", "schemas", "SessionPromptInput", "properties").(map[string]any)
	if fmt.Sprint(input["title"].(map[string]any)["type"]) != "[string null]" || input["ref"].(map[string]any)["anyOf"] == nil ||
		input["credential"].(map[string]any)["$ref"] != "#/components/schemas/Credential" {
		t.Error(input)
	}
}

func TestSecurityAndServers(t *testing.T) {
	t.Parallel()
	c := sample()
	c.BasePath = "/x/y"
	at := tree(t, c)
	if fmt.Sprint(at("servers")) != "[map[url:/x/y]]" || fmt.Sprint(at("security")) != "[map[bearer:[]] map[basic:[]]]" {
		t.Error(at("servers"), at("security"))
	}
	if got := fmt.Sprint(at("paths", "/api/health", "get", "security")); !strings.HasPrefix(got, "[map[]") {
		t.Error(got)
	}
	if fmt.Sprint(tree(t, sample())("servers")) != "[map[url:/]]" {
		t.Error("no base path is not /")
	}
}
