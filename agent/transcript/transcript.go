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
// as not run. Files that are kept apart are told in words: a Reader sends them.
func Messages(items []chat.Item) []llm.Message { return view{}.messages(items) }

// view is a conversation being turned into messages. files are the parts to send
// for the files that were looked at.
type view struct{ files map[*chat.FilePart]llm.Part }

func (v view) messages(items []chat.Item) []llm.Message {
	var out []llm.Message
	for i, item := range items {
		switch info := item.Info.(type) {
		case *chat.UserMessage:
			out = append(out, llm.Message{Role: llm.RoleUser, Parts: v.user(item.Parts)})
		case *chat.AssistantMessage:
			said, results := v.assistant(info, item.Parts)
			if len(said) > 0 {
				out = append(out, llm.Message{Role: llm.RoleAssistant, Parts: said})
			}
			if len(results) > 0 {
				out = append(out, llm.Message{Role: llm.RoleTool, Parts: results})
			}
			if info.Summary && !asksNext(items[i+1:]) {
				out = append(out, llm.UserText(continueText))
			}
		}
	}
	return out
}

// What stands for a compaction. A conversation cannot end with the model's own
// words, so where no prompt follows its summary it is told to go on.
const (
	summaryText  = "Sum up the conversation so far."
	continueText = "Go on with the work where you left it, as the summary says."
)

func asksNext(rest []chat.Item) bool {
	if len(rest) == 0 {
		return false
	}
	_, ok := rest[0].Info.(*chat.UserMessage)
	return ok
}

func (v view) user(parts []chat.Part) []llm.Part {
	var out []llm.Part
	for _, p := range parts {
		switch p := p.(type) {
		case *chat.TextPart:
			if !p.Ignored && p.Text != "" {
				out = append(out, llm.Text{Text: p.Text})
			}
		case *chat.FilePart:
			out = append(out, v.file(p))
		case *chat.CompactionPart:
			out = append(out, llm.Text{Text: summaryText})
		case *chat.AgentPart:
			out = append(out, llm.Text{Text: "The user mentions the agent " + p.Name + "."})
		}
	}
	if len(out) == 0 {
		out = append(out, llm.Text{Text: "(empty message)"})
	}
	return out
}

func (v view) file(f *chat.FilePart) llm.Part {
	if part, ok := v.files[f]; ok {
		return part
	}
	if names(f) {
		return leftOut(f, "files are not shown here")
	}
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

func (v view) assistant(info *chat.AssistantMessage, parts []chat.Part) (said, results []llm.Part) {
	failed := info.Error != nil
	aborted := failed && info.Error.Name == chat.ErrAborted
	for _, p := range parts {
		switch p := p.(type) {
		case *chat.TextPart:
			if p.Text != "" && (!failed || aborted) {
				said = append(said, llm.Text{Text: p.Text})
			}
		case *chat.ReasoningPart:
			if !failed {
				said = append(said, llm.Reasoning{Text: p.Text, Metadata: p.Metadata})
			}
		case *chat.ToolPart:
			if failed && !chat.Terminal(p.State) {
				continue
			}
			said = append(said, llm.ToolUse{CallID: p.CallID, Name: p.Tool, Input: chat.ToolInput(p.State)})
			results = append(results, v.result(p))
		}
	}
	return said, results
}

func (v view) result(p *chat.ToolPart) llm.ToolResult {
	r := llm.ToolResult{CallID: p.CallID}
	r.Output, r.IsError = outputOf(p)
	if done, ok := p.State.(*chat.ToolCompleted); ok && done.Time.Compacted == 0 {
		for _, f := range done.Attachments {
			switch part := v.file(f).(type) {
			case llm.File:
				r.Files = append(r.Files, part)
			case llm.Text:
				r.Output += "\n" + part.Text
			}
		}
	}
	return r
}

// outputOf gives what the model is told of a call's result.
func outputOf(p *chat.ToolPart) (output string, failed bool) {
	switch s := p.State.(type) {
	case *chat.ToolCompleted:
		if s.Time.Compacted != 0 {
			return "(the output was removed to save room)", false
		}
		return s.Output, false
	case *chat.ToolError:
		return s.Error, true
	}
	return "The call was not run.", true
}
