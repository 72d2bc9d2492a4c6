package transcript

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/switchyard-dev/switchyard/chat"
)

const (
	// renderedOutput bounds what a summary is told of one tool's output, in bytes.
	renderedOutput = 2000
	// titleRunes bounds a title.
	titleRunes = 100
)

// Render writes a conversation as text for a model that summarises it. Files are
// named only, outputs of tools are cut. When it has more than limit tokens (0 is
// no limit), the oldest messages are left out, but never an earlier summary.
func Render(items []chat.Item, limit int64) string {
	first := afterSummary(items)
	head := ""
	if first > 0 {
		head = "Summary of what was before:\n" + textOf(items[first-1]) + "\n\n"
	}
	room := int(limit)*bytesPerToken - len(head)
	var told []string
	left := len(items)
	for left > first {
		text := render(items[left-1])
		if limit > 0 && len(text) > room {
			break
		}
		room -= len(text)
		told = append(told, text)
		left--
	}
	if left > first && len(told) == 0 {
		told, left = append(told, cut(render(items[left-1]), max(room, renderedOutput))), left-1
	}
	var b strings.Builder
	b.WriteString(head)
	if left > first {
		fmt.Fprintf(&b, "(%d older messages are left out)\n\n", left-first)
	}
	for i := len(told) - 1; i >= 0; i-- {
		b.WriteString(told[i])
	}
	return strings.TrimSpace(b.String())
}

func render(item chat.Item) string {
	who := "User"
	if _, ok := item.Info.(*chat.AssistantMessage); ok {
		who = "Assistant"
	}
	var b strings.Builder
	for _, p := range item.Parts {
		switch v := p.(type) {
		case *chat.TextPart:
			if v.Text != "" && !v.Ignored {
				fmt.Fprintf(&b, "%s: %s\n\n", who, v.Text)
			}
		case *chat.FilePart:
			fmt.Fprintf(&b, "%s gives the file %s (%s).\n\n", who, nameOf(v), v.Mime)
		case *chat.ToolPart:
			output, _ := outputOf(v)
			fmt.Fprintf(&b, "Assistant calls %s %s\nResult: %s\n\n", v.Tool, cut(string(chat.ToolInput(v.State)), renderedOutput), cut(output, renderedOutput))
		}
	}
	return b.String()
}

func nameOf(f *chat.FilePart) string {
	if f.Filename != "" || strings.HasPrefix(f.URL, "data:") {
		return f.Filename
	}
	return f.URL
}

func textOf(item chat.Item) string {
	var texts []string
	for _, p := range item.Parts {
		if text, ok := p.(*chat.TextPart); ok && !text.Ignored {
			texts = append(texts, text.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// cut shortens a text to at most n bytes and says so.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "… (cut)"
}

// Opening gives the text of the first prompt that the model still sees, for a
// title; "" when there is none.
func Opening(items []chat.Item) string {
	for _, item := range items[afterSummary(items):] {
		if _, ok := item.Info.(*chat.UserMessage); !ok || isMark(item) {
			continue
		}
		for _, p := range item.Parts {
			if text, ok := p.(*chat.TextPart); ok && !text.Synthetic && strings.TrimSpace(text.Text) != "" {
				return cut(text.Text, renderedOutput)
			}
		}
	}
	return ""
}

// Title makes a title of what a model answered: its first line that says
// something, without thoughts and quotation marks.
func Title(answer string) string {
	for {
		before, rest, open := strings.Cut(answer, "<think>")
		if !open {
			break
		}
		_, after, closed := strings.Cut(rest, "</think>")
		if !closed {
			after = ""
		}
		answer = before + after
	}
	for line := range strings.Lines(answer) {
		line = strings.Trim(strings.Join(strings.Fields(line), " "), "\"'`*# ")
		if line == "" {
			continue
		}
		if r := []rune(line); len(r) > titleRunes {
			line = string(r[:titleRunes-3]) + "..."
		}
		return line
	}
	return ""
}
