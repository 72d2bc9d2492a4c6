package wire

import (
	"strings"
	"testing"
)

const answer = `event: message_start
data: {"type":"message_start","message":{"stop_reason":null,"error":null}}

: comment with "error"

data: {"choices":[{"delta":{"content":"\"finish_reason\":\"no\" \"error\":\"no\""},"finish_reason":null}]}

data: {"type":"response.output_item.done","item":{"type":"reasoning","id":"rs_1","encrypted_content":"sealed"}}

data: {"choices":[{"delta":{},"finish_reason" : "tool_calls"}]}

data: [DONE]

`

func TestTapReadsAnySplit(t *testing.T) {
	t.Parallel()
	for _, ending := range []string{"\n", "\r\n"} {
		text := strings.ReplaceAll(answer, "\n", ending)
		for size := 1; size < len(text); size++ {
			var tap Tap
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				tap.feed([]byte(rest[:n]))
				if rest = rest[n:]; rest != "" && tap.done {
					t.Fatalf("done before the end, %d bytes at a time", size)
				}
			}
			if tap.Finish != "tool_calls" || tap.Trouble != nil || tap.Sealed["rs_1"] != "sealed" || !tap.done {
				t.Fatalf("%d bytes at a time: %+v", size, tap)
			}
		}
	}
}

func TestStreamTrouble(t *testing.T) {
	t.Parallel()
	tests := []struct {
		data string
		want Trouble
		ok   bool
	}{
		{`{"error":{"message":"m","type":"t","code":"c"}}`, Trouble{Label: "t c", Text: "m"}, true},
		{`{"error":{"message":"m","code":429}}`, Trouble{Status: 429, Label: "429", Text: "m"}, true},
		{`{"type":"error","error":{"type":"overloaded_error","message":"m"}}`, Trouble{Label: "overloaded_error", Text: "m"}, true},
		{`{"type":"error","code":"c","message":"m"}`, Trouble{Label: "error c", Text: "m"}, true},
		{`{"type":"response.failed","response":{"error":{"code":"c","message":"m"}}}`, Trouble{Label: "c", Text: "m"}, true},
		{`{"error":"plain"}`, Trouble{Text: "plain"}, true},
		{`{"type":"response.created","response":{"error":null}}`, Trouble{}, false},
		{`{"choices":[]}`, Trouble{}, false},
		{`[]`, Trouble{}, false},
	}
	for _, tt := range tests {
		got, ok := streamTrouble([]byte(tt.data))
		if ok != tt.ok || got.Status != tt.want.Status || got.Label != tt.want.Label || got.Text != tt.want.Text {
			t.Errorf("%s: %+v, %v", tt.data, got, ok)
		}
	}
	if got := parseTrouble([]byte(`{"detail":"not found"}`)); got.Text != "not found" {
		t.Errorf("%+v", got)
	}
}
