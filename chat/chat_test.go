package chat_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/switchyard-dev/switchyard/chat"
)

func TestPartsRoundTrip(t *testing.T) {
	t.Parallel()
	h := chat.PartHead{ID: "part_1", SessionID: "ses_1", MessageID: "msg_1"}
	tool := func(s chat.ToolState) *chat.ToolPart {
		p := chat.NewTool(h, "c1", "read")
		p.State = s
		return p
	}
	in := json.RawMessage(`{"path":"a"}`)
	span := chat.PartTime{Start: 1, End: 2}
	parts := []chat.Part{
		chat.NewText(h, "  a\n\tb  "),
		chat.NewReasoning(h, "hm"),
		chat.NewFile(h, "image/png", "a.png", "attachment:x"),
		chat.NewAgent(h, "explore"),
		chat.NewStepStart(h),
		chat.NewStepFinish(h, "stop", 0.25, chat.Usage{Input: 3, Cache: chat.CacheUsage{Read: 1}}),
		&chat.RetryPart{PartHead: h, Type: "retry", Attempt: 2, Error: *chat.NewError(chat.ErrAPI, "busy")},
		&chat.CompactionPart{PartHead: h, Type: "compaction", Auto: true, TailStartID: "msg_0"},
		tool(chat.Pending(nil, `{"pa`)),
		tool(chat.Running(in, 1)),
		tool(chat.Completed(in, "a", "text", nil, span)),
		tool(chat.Failed(in, "no", map[string]any{"reason": "aborted"}, span)),
	}
	for _, p := range parts {
		data, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		got, err := chat.DecodePart(data)
		if err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if !reflect.DeepEqual(got, p) {
			t.Errorf("%s\n got %#v\nwant %#v", data, got, p)
		}
		if chat.PartType(got) != chat.PartType(p) {
			t.Errorf("type of %s", data)
		}
	}
}

func TestMessagesRoundTrip(t *testing.T) {
	t.Parallel()
	h := chat.MessageHead{ID: "msg_1", SessionID: "ses_1"}
	assistant := chat.NewAssistant(h, 5)
	assistant.Error = chat.NewError(chat.ErrAborted, "stopped")
	for _, m := range []chat.Message{chat.NewUser(h, "build", chat.ModelRef{ProviderID: "p", ModelID: "m"}, 4), assistant} {
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := chat.DecodeMessage(data)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%s: %#v, %v", data, got, err)
		}
	}
}

func TestDecodeRefusesUnknown(t *testing.T) {
	t.Parallel()
	for _, s := range []string{``, `[]`, `{}`, `{"type":"tool"}`, `{"type":"tool","state":{"status":"odd"}}`, `{"type":"nope"}`} {
		if p, err := chat.DecodePart([]byte(s)); err == nil {
			t.Errorf("DecodePart(%q) = %#v", s, p)
		}
	}
	for _, s := range []string{``, `{}`, `{"role":"system"}`} {
		if m, err := chat.DecodeMessage([]byte(s)); err == nil {
			t.Errorf("DecodeMessage(%q) = %#v", s, m)
		}
	}
}
