package schema_test

import (
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
	"github.com/switchyard-dev/switchyard/op/schema"
)

// Item has the name of a type of chat and of one of fault.
type Item struct {
	Names []string `json:"names"`
}

func TestNamesAreQualifiedOnlyOnConflict(t *testing.T) {
	t.Parallel()
	reg := schema.NewRegistry(schema.Options{})
	for _, c := range []struct {
		t    reflect.Type
		want string
	}{
		{reflect.TypeFor[fault.Item](), "Item"},
		{reflect.TypeFor[Item](), "Schema_testItem"},
		{reflect.TypeFor[*fault.Item](), "Item"},
		{reflect.TypeFor[chat.Usage](), "Usage"},
	} {
		if got := reg.Schema(c.t, true, "").Ref; got != schema.Prefix+c.want {
			t.Errorf("%s: %s, want %s", c.t, got, c.want)
		}
	}
}

func TestNamesCanBeGiven(t *testing.T) {
	t.Parallel()
	reg := schema.NewRegistry(schema.Options{Names: map[reflect.Type]string{reflect.TypeFor[chat.Item](): "MessageItem"}})
	if got := reg.Schema(reflect.TypeFor[chat.Item](), true, "").Ref; got != schema.Prefix+"MessageItem" {
		t.Error(got)
	}
}

func TestReservedNamesAreThoseOfInputs(t *testing.T) {
	t.Parallel()
	reg := schema.NewRegistry(schema.Options{Reserved: func(name string) bool { return name == "ModelRef" }})
	if got := reg.Schema(reflect.TypeFor[chat.ModelRef](), true, "").Ref; got != schema.Prefix+"ModelRefInput" {
		t.Error(got)
	}
}

func TestObjectsAreClosedUntilOpenedAndListsNeverNull(t *testing.T) {
	t.Parallel()
	reg := schema.NewRegistry(schema.Options{})
	reg.Schema(reflect.TypeFor[Item](), true, "")
	if s := reg.Map()["Item"]; s.AdditionalProperties != false || s.Properties["names"].Nullable {
		t.Errorf("%+v", s)
	}
	schema.OpenUp(reg)
	if s := reg.Map()["Item"]; s.AdditionalProperties != nil {
		t.Errorf("%+v", s)
	}
}

func chatUnions() []schema.Union {
	return []schema.Union{
		schema.NewUnion(reflect.TypeFor[chat.Message](), "Message", "role", chat.UserMessage{}, &chat.AssistantMessage{}),
		schema.NewUnion(reflect.TypeFor[chat.Part](), "Part", "type",
			chat.TextPart{}, chat.ReasoningPart{}, chat.FilePart{}, chat.ToolPart{}, chat.AgentPart{},
			chat.StepStartPart{}, chat.StepFinishPart{}, chat.RetryPart{}, chat.CompactionPart{}),
		schema.NewUnion(reflect.TypeFor[chat.ToolState](), "ToolState", "status",
			chat.ToolPending{}, chat.ToolRunning{}, chat.ToolCompleted{}, chat.ToolError{}),
	}
}

func TestUnionsAreDocumentedWhereverTheirInterfaceStands(t *testing.T) {
	t.Parallel()
	reg := schema.NewRegistry(schema.Options{})
	schema.RegisterUnions(reg, chatUnions()...)
	reg.Schema(reflect.TypeFor[chat.Item](), true, "")
	schemas := reg.Map()
	if got := schemas["Item"].Properties["info"].Ref; got != schema.Prefix+"Message" {
		t.Error("info is", got)
	}
	if got := schemas["Item"].Properties["parts"].Items.Ref; got != schema.Prefix+"Part" {
		t.Error("parts are", got)
	}
	if got := schemas["ToolPart"].Properties["state"].Ref; got != schema.Prefix+"ToolState" {
		t.Error("state is", got)
	}
	part := schemas["Part"]
	if len(part.OneOf) != 9 || part.Discriminator.PropertyName != "type" || part.Discriminator.Mapping["step-start"] != schema.Prefix+"StepStartPart" {
		t.Errorf("%+v", part)
	}
	if got := schemas["TextPart"].Properties["type"].Enum; len(got) != 1 || got[0] != "text" {
		t.Error(got)
	}
	if got := schemas["UserMessage"].Required; !slices.Contains(got, "role") || !slices.Contains(got, "id") {
		t.Error(got)
	}
}

func TestRegisterUnionAlone(t *testing.T) {
	t.Parallel()
	reg := schema.NewRegistry(schema.Options{})
	schema.RegisterUnion(reg, reflect.TypeFor[chat.ToolState](), "ToolState", "status", chat.ToolPending{}, chat.ToolError{})
	if got := reg.Schema(reflect.TypeFor[[]chat.ToolState](), true, "").Items.Ref; got != schema.Prefix+"ToolState" {
		t.Error(got)
	}
}

func TestMembersTellTheirDiscriminator(t *testing.T) {
	t.Parallel()
	defer func() {
		if got := fmt.Sprint(recover()); !strings.Contains(got, `no field "kind"`) {
			t.Error(got)
		}
	}()
	schema.NewUnion(reflect.TypeFor[chat.Part](), "Part", "kind", chat.TextPart{})
}

type envelope struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Time    int64           `json:"time"`
	Context event.Context   `json:"context"`
	Payload json.RawMessage `json:"payload"`
}

type idlePayload struct {
	SessionID string `json:"sessionID"`
}

func TestEventsAreAUnionOfEnvelopes(t *testing.T) {
	t.Parallel()
	reg := schema.NewRegistry(schema.Options{})
	schema.RegisterUnions(reg, append(chatUnions(), schema.NewEvents(reflect.TypeFor[envelope](), "Event",
		schema.EventKind{Type: "session.idle", Payload: reflect.TypeFor[idlePayload](), Doc: "Idle.", Invalidates: []string{"session.list"}},
		schema.EventKind{Type: "message.part.updated", Payload: reflect.TypeFor[struct {
			Part chat.Part `json:"part"`
		}]()},
	))...)
	if got := reg.Schema(reflect.TypeFor[envelope](), true, "").Ref; got != schema.Prefix+"Event" {
		t.Fatal(got)
	}
	schemas := reg.Map()
	if got := schemas["Event"].Discriminator.Mapping; got["session.idle"] != schema.Prefix+"EventSessionIdle" || len(got) != 2 {
		t.Error(got)
	}
	idle := schemas["EventSessionIdle"]
	if idle.Properties["payload"].Ref != schema.Prefix+"IdlePayload" || idle.Properties["context"].Ref != schema.Prefix+"Context" ||
		idle.Properties["type"].Enum[0] != "session.idle" || len(idle.Required) != 5 || idle.Extensions["x-invalidates"] == nil {
		t.Errorf("%+v", idle)
	}
	updated := schemas["MessagePartUpdatedPayload"]
	if updated == nil || updated.Properties["part"].Ref != schema.Prefix+"Part" {
		t.Errorf("%+v", updated)
	}
}

type apiKey struct {
	Type string `json:"type" enum:"api"`
	Key  string `json:"key"`
}

type oauth struct {
	Type    string `json:"type" enum:"oauth"`
	Expires int64  `json:"expires"`
}

var credentials = schema.NewUnion(nil, "Credential", "type", apiKey{}, oauth{})

func TestUnionDecodes(t *testing.T) {
	t.Parallel()
	got, err := credentials.Decode([]byte(`{"type":"api","key":"k"}`))
	if key, ok := got.(*apiKey); err != nil || !ok || key.Key != "k" {
		t.Errorf("%+v %v", got, err)
	}
	for _, bad := range []string{`null`, `5`, `{}`, `{"type":5}`, `{"type":"other"}`} {
		if _, err := credentials.Decode([]byte(bad)); !fault.Is(err, fault.ValidationFailed) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	reg := schema.NewRegistry(schema.Options{})
	for range 2 {
		if got := credentials.Schema(reg); got.Ref != schema.Prefix+"Credential" {
			t.Error(got.Ref)
		}
	}
	if s := schema.Deref(reg, &huma.Schema{Ref: schema.Prefix + "Credential"}); len(s.OneOf) != 2 {
		t.Errorf("%+v", s)
	}
}

func TestCamel(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"session.message.list": "SessionMessageList", "step-start": "StepStart", "": "", "äb_c": "ÄbC"} {
		if got := schema.Camel(name); got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
}
