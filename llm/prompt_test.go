package llm_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/llm"
)

// send makes a call and gives the body that the server got.
func send(t *testing.T, d dialect, c llm.Call) string {
	t.Helper()
	b := setup(t, d)
	fine(t, b.model, c)
	return string(b.srv.Requests()[0].Body)
}

func TestResultsStayTogetherAndImagesFollow(t *testing.T) {
	t.Parallel()
	png := llm.File{Name: "a.png", Mime: "image/png", Data: []byte("\x89PNG1")} // iVBO… in base64
	call := llm.Call{Messages: []llm.Message{
		llm.UserText("go"),
		{Role: llm.RoleAssistant, Parts: []llm.Part{
			llm.ToolUse{CallID: "c1", Name: "read", Input: json.RawMessage(`{"a":1}`)},
			llm.ToolUse{CallID: "c2", Name: "read", Input: json.RawMessage(`broken`)},
		}},
		{Role: llm.RoleTool, Parts: []llm.Part{llm.ToolResult{CallID: "c1", Output: "one", Files: []llm.File{png, png}}}},
		{Role: llm.RoleTool, Parts: []llm.Part{llm.ToolResult{CallID: "c2", Output: "two failed", IsError: true}}},
		llm.UserText("say:next"),
	}}
	each(t, func(t *testing.T, d dialect) {
		body := send(t, d, call)
		// The order in which a provider must see them.
		last := 0
		for _, want := range []string{`"go"`, `"one"`, `two failed`, `iVBO`, `say:next`} {
			at := strings.LastIndex(body, want)
			if at < last {
				t.Errorf("%q is not after what precedes it in %s", want, body)
			}
			last = at
		}
		if n := strings.Count(body, "iVBO"); n != 2 {
			t.Errorf("%d images in %s", n, body)
		}
		if strings.Contains(body, "broken") {
			t.Errorf("input that is no JSON is sent: %s", body)
		}
	})
}

func TestAssistantTextIsWhole(t *testing.T) {
	t.Parallel()
	call := llm.Call{Messages: []llm.Message{
		llm.UserText("go"),
		{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "first"}, llm.Text{Text: " \n"}, llm.Text{Text: "second"}}},
		{Role: llm.RoleUser, Parts: []llm.Part{
			llm.Text{Text: "say:x"},
			llm.File{Name: "notes.md", Mime: "text/markdown", Data: []byte("# hé")},
			llm.File{Name: "data.bin", Mime: "application/x-thing", Data: []byte{0, 1, 2}},
			llm.File{Name: "doc.pdf", Mime: "application/pdf", Data: []byte("%PDF")},
			llm.File{Name: "scan.tiff", Mime: "image/tiff", Data: []byte{0, 0xff}},
		}},
	}}
	each(t, func(t *testing.T, d dialect) {
		body := send(t, d, call)
		for _, want := range []string{"first", "second", "# hé", "notes.md", "data.bin", "JVBERg==", "scan.tiff"} {
			if !strings.Contains(body, want) {
				t.Errorf("%s is not in %s", want, body)
			}
		}
		if strings.Contains(body, `"text":" \n"`) {
			t.Errorf("blank text is sent: %s", body)
		}
	})
}

func TestForeignCallIDsAreMadeAcceptable(t *testing.T) {
	t.Parallel()
	long := "call_" + strings.Repeat("x", 90)
	call := llm.Call{Messages: []llm.Message{
		llm.UserText("go"),
		{Role: llm.RoleAssistant, Parts: []llm.Part{llm.ToolUse{CallID: "functions.read:0", Name: "read"}, llm.ToolUse{CallID: long, Name: "read"}}},
		{Role: llm.RoleTool, Parts: []llm.Part{llm.ToolResult{CallID: "functions.read:0", Output: "x"}, llm.ToolResult{CallID: long, Output: "y"}}},
	}}
	each(t, func(t *testing.T, d dialect) {
		body := send(t, d, call)
		if strings.Contains(body, long) {
			t.Error("an id of 95 bytes is sent")
		}
		if d.name != "anthropic" {
			return
		}
		ids := regexp.MustCompile(`"(?:tool_use_)?id":"([^"]*)"`).FindAllStringSubmatch(body, -1)
		if len(ids) != 4 || ids[0][1] != "functions_read_0" || ids[0][1] != ids[2][1] || ids[1][1] != ids[3][1] {
			t.Errorf("%q", ids)
		}
	})
}

func TestAnthropicIsAskedToCache(t *testing.T) {
	t.Parallel()
	call := ask("say:x")
	call.System = []string{"a", "b"}
	call.Messages = append([]llm.Message{llm.UserText("1"), {Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "2"}}}}, call.Messages...)
	if body := send(t, dialects[2], call); strings.Count(body, `"ephemeral"`) != 3 {
		t.Error(body)
	}
}

func TestVariants(t *testing.T) {
	t.Parallel()
	tests := []struct {
		d             dialect
		model         string
		variant, want string
	}{
		{dialects[0], "gpt-5.4", "high", `"reasoning_effort":"high"`},
		{dialects[1], "gpt-5.4", "low", `"effort":"low"`},
		{dialects[3], "any", "minimal", `"reasoning_effort":"minimal"`},
		{dialects[2], "claude-opus-5", "xhigh", `"effort":"xhigh"`},
		{dialects[2], "claude-opus-4-6", "minimal", `"effort":"low"`},
		{dialects[2], "claude-sonnet-4-5", "high", `"budget_tokens":16000`},
		{dialects[2], "claude-haiku-4-5", "max", `"budget_tokens":20000`},
	}
	for _, tt := range tests {
		t.Run(tt.model+" "+tt.variant, func(t *testing.T) {
			t.Parallel()
			tt.d.model = tt.model
			call := ask("say:x")
			call.Variant, call.MaxOutputTokens = tt.variant, 40_000
			if body := send(t, tt.d, call); !strings.Contains(body, tt.want) {
				t.Errorf("%s is not in %s", tt.want, body)
			}
			call.Variant = "unheard-of"
			if body := send(t, tt.d, call); strings.Contains(body, tt.want) || strings.Contains(body, "unheard-of") {
				t.Error(body)
			}
		})
	}
}
