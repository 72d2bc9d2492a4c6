package session_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/session"
)

func TestForEventCutsLongTexts(t *testing.T) {
	t.Parallel()
	h := chat.PartHead{ID: "part_1"}
	long := strings.Repeat("é", 40_000) // 80,000 bytes
	done := func(output string) *chat.ToolPart {
		p := chat.NewTool(h, "c", "bash")
		p.State = chat.Completed(nil, "", output, map[string]any{"exit": 0}, chat.PartTime{})
		return p
	}
	text, ok := session.ForEvent(chat.NewText(h, long)).(*chat.TextPart)
	if !ok || !text.Truncated || len(text.Text) > 64<<10 || !utf8.ValidString(text.Text) {
		t.Errorf("text: %d bytes, truncated %v", len(text.Text), text.Truncated)
	}
	thought, ok := session.ForEvent(chat.NewReasoning(h, long)).(*chat.ReasoningPart)
	if !ok || !thought.Truncated {
		t.Error("reasoning is not cut")
	}
	whole := done(long)
	tool, ok := session.ForEvent(whole).(*chat.ToolPart)
	if !ok {
		t.Fatal("not a tool part")
	}
	state, ok := tool.State.(*chat.ToolCompleted)
	if !ok || len(state.Output) > 64<<10 || state.Metadata["truncated"] != true || state.Metadata["exit"] != 0 {
		t.Errorf("tool: %d bytes, %v", len(state.Output), state.Metadata)
	}
	if kept, ok := whole.State.(*chat.ToolCompleted); !ok || len(kept.Output) != len(long) || kept.Metadata["truncated"] != nil {
		t.Error("the part itself was changed")
	}
	short := chat.NewText(h, "short")
	if session.ForEvent(short) != chat.Part(short) {
		t.Error("a short part is copied")
	}
}

func TestItemsRefusesWhatIsNoMessage(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{``, `{}`, `{"info":{"role":"user"},"parts":[{"type":"nope"}]}`, `[]`} {
		if items, err := session.Items([]jsonText{jsonText(raw)}); err == nil {
			t.Errorf("%s: %v", raw, items)
		}
	}
}
