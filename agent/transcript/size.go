package transcript

import (
	"strings"

	"github.com/switchyard-dev/switchyard/catalog"
	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/llm"
)

const (
	// bytesPerToken turns bytes into tokens where no provider has counted.
	bytesPerToken = 4
	// binaryTokens is what an image or a document is taken for: what it costs
	// has nothing to do with its bytes.
	binaryTokens = 2000
	// maxReserve bounds the room that is kept free for what a step adds.
	maxReserve = 20_000
)

// The bounds of what stays of the recent conversation, in tokens, where the
// configuration does not say (opencode contract §8.8).
const (
	minTail = 2000
	maxTail = 15_000
)

// Usable is how many tokens a request may have before the conversation is
// compacted: the model's context without the longest answer and a reserve. 0
// means that the limit is not known. reserved is the configured reserve or nil.
func Usable(l catalog.Limit, reserved *int) int64 {
	room := l.Input
	if room == 0 {
		// Some models could fill their whole context with one answer.
		room = max(l.Context-l.Output, l.Context/2)
	}
	reserve := min(maxReserve, room/10)
	if reserved != nil {
		reserve = int64(*reserved)
	}
	return max(0, room-reserve)
}

// TailTokens is how many tokens of the recent conversation stay beside a
// summary. configured is the configuration's wish or nil.
func TailTokens(usable int64, configured *int) int64 {
	if configured != nil {
		return int64(*configured)
	}
	if usable == 0 {
		return maxTail
	}
	return min(max(usable/4, minTail), maxTail, usable/2)
}

// Used tells how many tokens the model's view of a conversation takes: what the
// provider counted for the last answer and an estimate of what came since. It
// reports false when nothing was counted since the last compaction.
func Used(items []chat.Item) (int64, bool) {
	var compacted int64
	if start := afterSummary(items); start > 0 {
		compacted = items[start-1].Info.(*chat.AssistantMessage).Time.Completed
	}
	var since int64
	for i := len(items) - 1; i >= 0; i-- {
		answer, ok := items[i].Info.(*chat.AssistantMessage)
		if ok && answer.Summary {
			break
		}
		if ok && counted(answer.Tokens) > 0 {
			// An answer of the tail counted a conversation that is no more.
			return counted(answer.Tokens) + results(items[i]) + since, answer.Time.Created >= compacted
		}
		since += sizeOf(items[i])
	}
	return 0, false
}

func counted(u chat.Usage) int64 {
	return u.Input + u.Output + u.Reasoning + u.Cache.Read + u.Cache.Write
}

// results estimates what the calls of an answer gave, which its usage does not
// hold.
func results(item chat.Item) int64 {
	var n int64
	for _, p := range item.Parts {
		if call, ok := p.(*chat.ToolPart); ok {
			n += partSize(call) - tokens(len(chat.ToolInput(call.State)))
		}
	}
	return n
}

// Size estimates the tokens of a request.
func Size(c llm.Call) int64 {
	var n int64
	for _, s := range c.System {
		n += tokens(len(s))
	}
	for _, t := range c.Tools {
		n += tokens(len(t.Name) + len(t.Description) + len(t.Schema))
	}
	for _, m := range c.Messages {
		for _, p := range m.Parts {
			n += sentSize(p)
		}
	}
	return n
}

func sentSize(p llm.Part) int64 {
	switch v := p.(type) {
	case llm.Text:
		return tokens(len(v.Text))
	case llm.Reasoning:
		return tokens(len(v.Text))
	case llm.File:
		return fileSize(v.Mime, len(v.Data))
	case llm.ToolUse:
		return tokens(len(v.Name) + len(v.Input))
	case llm.ToolResult:
		n := tokens(len(v.Output))
		for _, f := range v.Files {
			n += fileSize(f.Mime, len(f.Data))
		}
		return n
	}
	return 0
}

func sizeOf(items ...chat.Item) int64 {
	var n int64
	for _, item := range items {
		for _, p := range item.Parts {
			n += partSize(p)
		}
	}
	return n
}

func partSize(p chat.Part) int64 {
	switch v := p.(type) {
	case *chat.TextPart:
		return tokens(len(v.Text))
	case *chat.ReasoningPart:
		return tokens(len(v.Text))
	case *chat.FilePart:
		return fileSize(v.Mime, len(v.URL))
	case *chat.ToolPart:
		output, _ := outputOf(v)
		n := tokens(len(chat.ToolInput(v.State)) + len(output))
		if done, ok := v.State.(*chat.ToolCompleted); ok {
			for _, f := range done.Attachments {
				n += fileSize(f.Mime, len(f.URL))
			}
		}
		return n
	}
	return 0
}

func fileSize(mime string, bytes int) int64 {
	if strings.HasPrefix(mime, "text/") {
		return tokens(bytes)
	}
	return binaryTokens
}

func tokens(bytes int) int64 { return int64(bytes+bytesPerToken-1) / bytesPerToken }
