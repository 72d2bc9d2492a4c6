// Package transcript turns a stored conversation into what a model is sent. It
// knows no store and no clock: the same conversation gives the same request, so
// that providers can cache its beginning.
package transcript

import (
	"encoding/base64"
	"strings"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/llm"
)

// Messages turns stored messages into what the model is sent. Answers that failed
// are left out but for the calls that ran: the model must see their results.
// Every call has exactly one result; one without any (the turn was cut) is told
// as not run.
func Messages(items []chat.Item) []llm.Message {
	var out []llm.Message
	for _, item := range items {
		switch info := item.Info.(type) {
		case *chat.UserMessage:
			out = append(out, llm.Message{Role: llm.RoleUser, Parts: userParts(item.Parts)})
		case *chat.AssistantMessage:
			said, results := assistantParts(info, item.Parts)
			if len(said) > 0 {
				out = append(out, llm.Message{Role: llm.RoleAssistant, Parts: said})
			}
			if len(results) > 0 {
				out = append(out, llm.Message{Role: llm.RoleTool, Parts: results})
			}
		}
	}
	return out
}

func userParts(parts []chat.Part) []llm.Part {
	var out []llm.Part
	for _, p := range parts {
		switch v := p.(type) {
		case *chat.TextPart:
			if !v.Ignored && v.Text != "" {
				out = append(out, llm.Text{Text: v.Text})
			}
		case *chat.FilePart:
			out = append(out, filePart(v))
		case *chat.AgentPart:
			out = append(out, llm.Text{Text: "The user mentions the agent " + v.Name + "."})
		}
	}
	if len(out) == 0 {
		out = append(out, llm.Text{Text: "(empty message)"})
	}
	return out
}

func filePart(f *chat.FilePart) llm.Part {
	if data, mime, ok := DataURL(f.URL); ok {
		return llm.File{Name: f.Filename, Mime: mime, Data: data}
	}
	return llm.Text{Text: "The user points to the file " + f.URL + "."}
}

// DataURL reads a base64 or plain data: URL.
func DataURL(url string) (data []byte, mime string, ok bool) {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return nil, "", false
	}
	head, body, ok := strings.Cut(rest, ",")
	if !ok {
		return nil, "", false
	}
	mime, encoded := strings.CutSuffix(head, ";base64")
	if mime == "" {
		mime = "text/plain"
	}
	if !encoded {
		return []byte(body), mime, true
	}
	data, err := base64.StdEncoding.DecodeString(body)
	return data, mime, err == nil
}

func assistantParts(info *chat.AssistantMessage, parts []chat.Part) (said, results []llm.Part) {
	failed := info.Error != nil
	aborted := failed && info.Error.Name == chat.ErrAborted
	for _, p := range parts {
		switch v := p.(type) {
		case *chat.TextPart:
			if v.Text != "" && (!failed || aborted) {
				said = append(said, llm.Text{Text: v.Text})
			}
		case *chat.ReasoningPart:
			if !failed {
				said = append(said, llm.Reasoning{Text: v.Text, Metadata: v.Metadata})
			}
		case *chat.ToolPart:
			if failed && !chat.Terminal(v.State) {
				continue
			}
			said = append(said, llm.ToolUse{CallID: v.CallID, Name: v.Tool, Input: chat.ToolInput(v.State)})
			results = append(results, toolResult(v))
		}
	}
	return said, results
}

func toolResult(p *chat.ToolPart) llm.ToolResult {
	r := llm.ToolResult{CallID: p.CallID}
	switch s := p.State.(type) {
	case *chat.ToolCompleted:
		r.Output = s.Output
		if s.Time.Compacted != 0 {
			r.Output = "(the output was removed to save room)"
		}
		for _, f := range s.Attachments {
			if data, mime, ok := DataURL(f.URL); ok {
				r.Files = append(r.Files, llm.File{Name: f.Filename, Mime: mime, Data: data})
			}
		}
	case *chat.ToolError:
		r.Output, r.IsError = s.Error, true
	default:
		r.Output, r.IsError = "The call was not run.", true
	}
	return r
}
