package llm

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/anthropic"

	"github.com/switchyard-dev/switchyard/llm/internal/wire"
)

// prompter writes a conversation in the library's form, without what the
// library or a provider would drop, overwrite or refuse.
type prompter struct {
	dialect dialect
	edits   *wire.Edits
	out     fantasy.Prompt
	// images of tool results, until the run of tool messages is over
	images []fantasy.MessagePart
}

func (w *prompter) write(system []string, messages []Message) fantasy.Prompt {
	w.system(system)
	for _, m := range messages {
		if m.Role != RoleTool {
			w.flush()
		}
		switch m.Role {
		case RoleAssistant:
			w.add(fantasy.MessageRoleAssistant, w.assistant(m.Parts))
		case RoleTool:
			w.add(fantasy.MessageRoleTool, w.results(m.Parts))
		default:
			w.add(fantasy.MessageRoleUser, w.user(m.Parts))
		}
	}
	w.flush()
	if w.dialect == dialectAnthropic {
		w.markCache()
	}
	return w.out
}

func (w *prompter) add(role fantasy.MessageRole, parts []fantasy.MessagePart) {
	if len(parts) > 0 {
		w.out = append(w.out, fantasy.Message{Role: role, Content: parts})
	}
}

// flush adds the images of the tool results. Between two results they would
// break the pairing of calls and results.
func (w *prompter) flush() {
	w.add(fantasy.MessageRoleUser, w.images)
	w.images = nil
}

func (w *prompter) system(texts []string) {
	var parts []fantasy.MessagePart
	for _, s := range texts {
		if blank(s) {
			continue
		}
		parts = append(parts, fantasy.TextPart{Text: s})
	}
	if len(parts) > 1 && w.dialect != dialectAnthropic {
		parts = []fantasy.MessagePart{joined(parts)}
	}
	w.add(fantasy.MessageRoleSystem, parts)
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

func joined(parts []fantasy.MessagePart) fantasy.TextPart {
	var texts []string
	for _, p := range parts {
		if t, ok := p.(fantasy.TextPart); ok {
			texts = append(texts, t.Text)
		}
	}
	return fantasy.TextPart{Text: strings.Join(texts, "\n\n")}
}

func (w *prompter) user(parts []Part) []fantasy.MessagePart {
	var out []fantasy.MessagePart
	for _, p := range parts {
		switch p := p.(type) {
		case Text:
			if !blank(p.Text) {
				out = append(out, fantasy.TextPart{Text: p.Text})
			}
		case File:
			out = append(out, filePart(p))
		}
	}
	return out
}

// assistant keeps the order of the parts. The chat dialects have one text and
// one reasoning per message, of which the library would send the last.
func (w *prompter) assistant(parts []Part) []fantasy.MessagePart {
	var out, texts []fantasy.MessagePart
	var thoughts []string
	for i, p := range parts {
		switch p := p.(type) {
		case Text:
			switch {
			case blank(p.Text):
			case w.single():
				texts = append(texts, fantasy.TextPart{Text: p.Text})
			default:
				out = append(out, fantasy.TextPart{Text: p.Text})
			}
		case ToolUse:
			out = append(out, w.use(p))
		case Reasoning:
			if part := w.reasoning(p, parts[i+1:]); part != nil {
				out = append(out, part)
			} else if w.dialect == dialectCompatible && p.Metadata[metaCompatible] != nil {
				thoughts = append(thoughts, p.Text)
			}
		}
	}
	if len(texts) > 0 {
		out = append([]fantasy.MessagePart{joined(texts)}, out...)
	}
	if len(thoughts) > 0 {
		out = append([]fantasy.MessagePart{fantasy.ReasoningPart{Text: strings.Join(thoughts, "\n\n")}}, out...)
	}
	return out
}

// single reports whether a message of the dialect has one text only.
func (w *prompter) single() bool {
	return w.dialect == dialectChat || w.dialect == dialectCompatible
}

// reasoning gives sealed reasoning, nil when there is none for this dialect.
func (w *prompter) reasoning(r Reasoning, rest []Part) fantasy.MessagePart {
	switch w.dialect {
	case dialectAnthropic:
		if part, ok := r.signed(); ok {
			return part
		}
	case dialectResponses:
		// Reasoning that nothing follows (the answer was cut) is refused.
		if item, ok := r.item(); ok && speaks(rest) {
			return fantasy.TextPart{Text: w.edits.Place(item)}
		}
	}
	return nil
}

func speaks(parts []Part) bool {
	for _, p := range parts {
		switch p := p.(type) {
		case ToolUse:
			return true
		case Text:
			if !blank(p.Text) {
				return true
			}
		}
	}
	return false
}

func (w *prompter) use(p ToolUse) fantasy.ToolCallPart {
	input := string(p.Input)
	if !isObject(input) {
		input = "{}"
	}
	return fantasy.ToolCallPart{ToolCallID: w.callID(p.CallID), ToolName: p.Name, Input: input}
}

var foreignID = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// maxCallID is the longest call id that all dialects take.
const maxCallID = 64

// callID makes the id of another provider's call acceptable; calls and results
// change alike.
func (w *prompter) callID(id string) string {
	if w.dialect == dialectAnthropic {
		id = foreignID.ReplaceAllString(id, "_")
	}
	if len(id) > maxCallID {
		sum := sha256.Sum256([]byte(id))
		id = "call_" + hex.EncodeToString(sum[:16])
	}
	return id
}

func (w *prompter) results(parts []Part) []fantasy.MessagePart {
	var out []fantasy.MessagePart
	for _, p := range parts {
		r, ok := p.(ToolResult)
		if !ok {
			continue
		}
		out = append(out, fantasy.ToolResultPart{ToolCallID: w.callID(r.CallID), Output: w.output(r)})
	}
	return out
}

func (w *prompter) output(r ToolResult) fantasy.ToolResultOutputContent {
	text := r.Output
	if blank(text) {
		text = "(no output)" // empty blocks are refused
	}
	var media *fantasy.ToolResultOutputContentMedia
	for _, f := range r.Files {
		part := filePart(f)
		file, ok := part.(fantasy.FilePart)
		if ok && w.dialect == dialectAnthropic && media == nil && !r.IsError && isImage(f.Mime) {
			media = &fantasy.ToolResultOutputContentMedia{
				Data: base64.StdEncoding.EncodeToString(file.Data), MediaType: f.Mime, Text: text,
			}
			continue
		}
		w.images = append(w.images, part)
	}
	switch {
	case media != nil:
		return *media
	case r.IsError:
		return fantasy.ToolResultOutputContentError{Error: errors.New(text)}
	}
	return fantasy.ToolResultOutputContentText{Text: text}
}

// filePart gives a file in the form that every provider takes: images and PDFs
// as such, text inline, of others the name.
func filePart(f File) fantasy.MessagePart {
	name := f.Name
	if name == "" {
		name = "attachment"
	}
	switch {
	case isImage(f.Mime), f.Mime == "application/pdf":
		return fantasy.FilePart{Filename: name, Data: f.Data, MediaType: f.Mime}
	case utf8.Valid(f.Data) && !strings.Contains(string(f.Data), "\x00"):
		return fantasy.TextPart{Text: fmt.Sprintf("<file name=%q>\n%s\n</file>", name, f.Data)}
	}
	return fantasy.TextPart{Text: fmt.Sprintf("[The file %q (%s) is attached, but the model cannot read this type.]", name, f.Mime)}
}

// isImage reports whether all dialects take images of the type.
func isImage(mime string) bool {
	switch mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}

// markCache asks Anthropic to keep what the next request will repeat: the
// system prompt (with the tools before it) and the conversation so far.
func (w *prompter) markCache() {
	mark := anthropic.NewProviderCacheControlOptions(&anthropic.ProviderCacheControlOptions{
		CacheControl: anthropic.CacheControl{Type: "ephemeral"},
	})
	talk := 0
	for i := len(w.out) - 1; i >= 0; i-- {
		m := &w.out[i]
		switch {
		case m.Role == fantasy.MessageRoleSystem:
			m.ProviderOptions = mark
		case m.Role != fantasy.MessageRoleAssistant && talk < 2:
			m.ProviderOptions = mark
			talk++
		}
	}
}
