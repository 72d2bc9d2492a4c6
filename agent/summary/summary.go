// Package summary asks a model about a conversation: for what takes its place
// when it becomes too long, and for its title. It stores nothing.
package summary

import (
	"context"
	_ "embed"
	"strings"

	"github.com/switchyard-dev/switchyard/agent/transcript"
	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/llm"
)

//go:embed compaction.md
var compactionPrompt string //nolint:gochecknoglobals // the embed directive needs a variable

//go:embed title.md
var titlePrompt string //nolint:gochecknoglobals // the embed directive needs a variable

const (
	// maxTokens bounds a summary.
	maxTokens = 8192
	// titleTokens bounds a title with what the model thinks before it.
	titleTokens = 2000
	// tries is how often a summary is asked for with less of the conversation.
	tries = 3
)

// Ask makes one call and gives the text and the usage of its whole answer.
type Ask func(ctx context.Context, c llm.Call) (string, chat.Usage, error)

// Asking makes an Ask of a model: one request, an answer without text is an
// error that may pass.
func Asking(model llm.Model) Ask {
	return func(ctx context.Context, c llm.Call) (string, chat.Usage, error) {
		var text strings.Builder
		var usage chat.Usage
		for ev, err := range model.Stream(ctx, c) {
			if err != nil {
				return "", usage, err
			}
			switch v := ev.(type) {
			case llm.TextDelta:
				text.WriteString(v.Text)
			case llm.Finish:
				usage = v.Usage
			}
		}
		out := strings.TrimSpace(text.String())
		if out == "" {
			return "", usage, &llm.Error{Kind: llm.KindTruncated, Message: "the answer holds no text", Retryable: true}
		}
		return out, usage, nil
	}
}

// Request says how a model is asked for a summary.
type Request struct {
	// Prompt replaces the built-in instructions when it is not empty.
	Prompt string
	// Room is how many tokens the conversation may take, 0 when not known.
	// Output is the most that the model may answer with, 0 when not known.
	Room, Output int64
	SessionKey   string
	Variant      string
}

// Summarise asks for a summary of messages. When they are too long for the model
// the oldest are left out.
func Summarise(ctx context.Context, ask Ask, items []chat.Item, r Request) (string, chat.Usage, error) {
	call := llm.Call{System: system(r.Prompt, compactionPrompt), MaxOutputTokens: atMost(maxTokens, r.Output), SessionKey: r.SessionKey, Variant: r.Variant}
	for try := 1; ; try++ {
		call.Messages = []llm.Message{llm.UserText("The record:\n\n" + transcript.Render(items, r.Room))}
		text, usage, err := ask(ctx, call)
		if !llm.IsOverflow(err) || try == tries {
			return text, usage, err
		}
		r.Room = transcript.Size(call) / 2
	}
}

// Title asks for a title of a session that begins with a text; "" means that the
// model gave none.
func Title(ctx context.Context, ask Ask, opening string, r Request) (string, error) {
	text, _, err := ask(ctx, llm.Call{
		System: system(r.Prompt, titlePrompt), Messages: []llm.Message{llm.UserText("The message:\n\n" + opening)},
		MaxOutputTokens: atMost(titleTokens, r.Output), SessionKey: r.SessionKey, Variant: r.Variant,
	})
	return transcript.Title(text), err
}

func system(own, builtin string) []string {
	if own == "" {
		own = builtin
	}
	return []string{strings.TrimSpace(own)}
}

func atMost(n, limit int64) int64 {
	if limit > 0 {
		return min(n, limit)
	}
	return n
}

// Pair is what a compaction leaves in a conversation: the message that marks it
// and the summary.
type Pair struct {
	Mark     *chat.UserMessage
	MarkPart *chat.CompactionPart
	Summary  *chat.AssistantMessage
	Text     *chat.TextPart
}

// NewPair makes the messages of a compaction that began and ended at the given
// times (ms). Mark has its id already; tail is what stays.
func NewPair(ids *id.Source, mark *chat.UserMessage, ref chat.ModelRef, tail []chat.Item, text string, begun, ended int64) Pair {
	head := func(msg id.Message) chat.PartHead {
		return chat.PartHead{ID: id.New[id.Part](ids), SessionID: mark.SessionID, MessageID: msg}
	}
	p := Pair{Mark: mark, MarkPart: &chat.CompactionPart{PartHead: head(mark.ID), Type: "compaction"}}
	if len(tail) > 0 {
		p.MarkPart.TailStartID = tail[0].Info.Head().ID
	}
	s := chat.NewAssistant(chat.MessageHead{ID: id.New[id.Message](ids), SessionID: mark.SessionID}, begun)
	s.ParentID, s.TurnID, s.Summary = mark.ID, mark.TurnID, true
	s.ModelID, s.ProviderID, s.Variant = ref.ModelID, ref.ProviderID, ref.Variant
	s.Agent, s.Mode, s.Finish, s.Time.Completed = "compaction", "compaction", string(llm.ReasonStop), ended
	p.Summary, p.Text = s, chat.NewText(head(s.ID), text)
	p.Text.Time = &chat.PartTime{Start: begun, End: ended}
	return p
}
