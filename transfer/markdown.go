package transfer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/session"
)

// What is shown of long things in a transcript, in bytes. What people and the
// model said is shown whole.
const (
	shownInput  = 2_000
	shownOutput = 4_000
	shownAside  = 2_000
)

// transcript writes an export for people to read. As with document, the first
// error of the writer comes out of its Flush.
type transcript struct{ *bufio.Writer }

func (s *Service) exportMarkdown(ctx context.Context, top session.Session, w *bufio.Writer) error {
	t := transcript{w}
	return s.eachSession(ctx, top, func(ses session.Session, depth int) error {
		t.heading(ses, depth)
		err := s.eachMessage(ctx, ses.ID, func(raw json.RawMessage) error {
			items, err := session.Items([]json.RawMessage{raw})
			if err != nil {
				return err
			}
			t.message(items[0])
			return nil
		})
		if err != nil {
			return err
		}
		todos, err := s.sessions.Todos(ctx, ses.ID)
		t.todos(todos)
		return err
	})
}

func (t transcript) say(format string, args ...any) { fmt.Fprintf(t, format+"\n\n", args...) }

func (t transcript) heading(ses session.Session, depth int) {
	title := oneLine(ses.Title)
	if depth > 0 {
		title = "Child session: " + title
	}
	t.say("# %s", title)
	fmt.Fprintf(t, "- Session `%s`, created %s\n- Directory `%s`\n", ses.ID, moment(ses.Time.Created), oneLine(ses.Directory))
	if ses.Agent != "" {
		fmt.Fprintf(t, "- Agent %s\n", oneLine(ses.Agent))
	}
	if ses.Model != nil {
		fmt.Fprintf(t, "- Model %s/%s\n", oneLine(ses.Model.ProviderID), oneLine(ses.Model.ModelID))
	}
	t.say("- %d tokens in, %d out, $%.4f", ses.Tokens.Input, ses.Tokens.Output, ses.Cost)
}

func (t transcript) message(item chat.Item) {
	switch info := item.Info.(type) {
	case *chat.UserMessage:
		t.say("## User · %s", moment(info.Time.Created))
	case *chat.AssistantMessage:
		what := "Assistant"
		if info.Summary {
			what = "Summary"
		}
		t.say("## %s · %s · %s", what, oneLine(info.ModelID), moment(info.Time.Created))
	}
	for _, p := range item.Parts {
		t.part(p)
	}
	if answer, ok := item.Info.(*chat.AssistantMessage); ok && answer.Error != nil {
		t.say("> **%s:** %s", answer.Error.Name, oneLine(answer.Error.Data.Message))
	}
}

func (t transcript) part(p chat.Part) {
	switch v := p.(type) {
	case *chat.TextPart:
		if v.Synthetic {
			t.folded("added by the server", block{"text", v.Text, shownAside})
		} else if v.Text != "" {
			t.say("%s", v.Text)
		}
	case *chat.ReasoningPart:
		if v.Text != "" {
			t.folded("reasoning", block{"text", v.Text, shownAside})
		}
	case *chat.FilePart:
		t.file(v)
	case *chat.AgentPart:
		t.say("*Agent: %s*", oneLine(v.Name))
	case *chat.CompactionPart:
		t.say("*The older conversation was replaced by a summary here.*")
	case *chat.RetryPart:
		t.say("*Attempt %d failed: %s*", v.Attempt, oneLine(v.Error.Data.Message))
	case *chat.ToolPart:
		t.tool(v)
	}
}

func (t transcript) file(f *chat.FilePart) {
	name := f.Filename
	if name == "" && !strings.HasPrefix(f.URL, "data:") {
		name = f.URL
	}
	t.say("*File: %s (%s)*", oneLine(name), oneLine(f.Mime))
}

func (t transcript) tool(p *chat.ToolPart) {
	title := p.Tool
	blocks := []block{{"json", indented(chat.ToolInput(p.State)), shownInput}}
	switch s := p.State.(type) {
	case *chat.ToolCompleted:
		if s.Title != "" {
			title += " – " + s.Title
		}
		blocks = append(blocks, block{"text", s.Output, shownOutput})
	case *chat.ToolError:
		title += " – error"
		blocks = append(blocks, block{"text", s.Error, shownOutput})
	default:
		title += " – " + s.Status()
	}
	t.folded(title, blocks...)
	for _, f := range toolFiles(p) {
		t.file(f)
	}
}

func (t transcript) todos(todos []chat.Todo) {
	if len(todos) == 0 {
		return
	}
	t.say("## Plan")
	for _, todo := range todos {
		mark := " "
		if todo.Status == "completed" {
			mark = "x"
		}
		fmt.Fprintf(t, "- [%s] %s (%s, %s)\n", mark, oneLine(todo.Content), todo.Status, todo.Priority)
	}
	t.say("")
}

// block is a piece of text shown as it is, cut at a number of bytes.
type block struct {
	language, text string
	limit          int
}

// folded shows blocks behind a line that opens them.
func (t transcript) folded(summary string, blocks ...block) {
	t.say("<details><summary>%s</summary>", html.EscapeString(oneLine(summary)))
	for _, b := range blocks {
		text, more := b.text, ""
		if len(text) > b.limit {
			n := b.limit
			for n > 0 && !utf8.RuneStart(text[n]) {
				n--
			}
			more = fmt.Sprintf("\n… (%d bytes more)", len(text)-n)
			text = text[:n]
		}
		f := fence(text)
		t.say("%s%s\n%s%s\n%s", f, b.language, strings.TrimRight(text, "\n"), more, f)
	}
	t.say("</details>")
}

// fence is longer than any run of backticks in the text, so that the text cannot
// end its block.
func fence(text string) string {
	longest, run := 2, 0
	for _, c := range text {
		if c != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return strings.Repeat("`", longest+1)
}

func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func moment(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }
