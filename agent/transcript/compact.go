package transcript

import (
	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/id"
)

// Keep says what of a conversation stays as it is when the rest is summarised.
type Keep struct {
	// Tokens and Turns bound the newest whole turns that stay.
	Tokens int64
	Turns  int
	// Running names the turn that asks, "" when the session is idle. Of a
	// running turn that is too long its newest whole messages stay.
	Running id.Turn
	// Asked marks a compaction that a person wants: it leaves nothing as it is
	// only because it is short, and of a running turn at least one message stays.
	Asked bool
}

// Selection parts a conversation in two.
type Selection struct {
	// Head is to be summarised, with the summary of an earlier compaction.
	Head []chat.Item
	// Tail stays.
	Tail []chat.Item
}

// Select chooses what to summarise: everything but the newest turns. A message
// stays whole or not at all, so that no call is parted from its result. It
// reports false when there is nothing to summarise.
func Select(items []chat.Item, keep Keep) (Selection, bool) {
	first := afterSummary(items)
	start, used := len(items), int64(0)
	for range keep.Turns {
		from := turnStart(items, first, start)
		size := sizeOf(items[from:start]...)
		if from == start || used+size > keep.Tokens {
			break
		}
		start, used = from, used+size
	}
	if start == len(items) && keep.Running != "" {
		start = newest(items, first, keep)
	}
	if start == first && keep.Asked {
		start = len(items)
		if keep.Running != "" {
			start = turnStart(items, first, start)
		}
	}
	return Selection{Head: items[:start], Tail: items[start:]}, start > first
}

// afterSummary gives the index behind the pair of messages that an earlier
// compaction left, 0 when there is none.
func afterSummary(items []chat.Item) int {
	if len(items) >= 2 && isSummary(items[1]) && isMark(items[0]) {
		return 2
	}
	return 0
}

func isSummary(item chat.Item) bool {
	answer, ok := item.Info.(*chat.AssistantMessage)
	return ok && answer.Summary
}

// isMark tells whether a message only marks a compaction.
func isMark(item chat.Item) bool {
	_, ok := markOf(item)
	return ok
}

func markOf(item chat.Item) (*chat.CompactionPart, bool) {
	for _, p := range item.Parts {
		if mark, ok := p.(*chat.CompactionPart); ok {
			return mark, true
		}
	}
	return nil, false
}

// turnStart gives the first message of the turn that ends before end.
func turnStart(items []chat.Item, first, end int) int {
	for i := end - 1; i >= first; i-- {
		_, asked := items[i].Info.(*chat.UserMessage)
		turn := turnOf(items[i])
		if asked && (i == first || turn == "" || turnOf(items[i-1]) != turn) {
			return i
		}
	}
	return first
}

// newest keeps whole messages of a running turn. Some stay even when they are too
// long: an unanswered prompt must be seen word by word. Failed answers do not
// count, the model never sees them.
func newest(items []chat.Item, first int, keep Keep) int {
	start, used, seen := len(items), int64(0), false
	for i := len(items) - 1; i >= first && turnOf(items[i]) == keep.Running; i-- {
		used += sizeOf(items[i])
		_, asked := items[i].Info.(*chat.UserMessage)
		must := !seen && (asked || keep.Asked)
		if used > keep.Tokens && !must {
			break
		}
		start, seen = i, seen || !failed(items[i])
	}
	return start
}

func failed(item chat.Item) bool {
	answer, ok := item.Info.(*chat.AssistantMessage)
	return ok && answer.Error != nil && !called(item)
}

func turnOf(item chat.Item) id.Turn {
	switch info := item.Info.(type) {
	case *chat.UserMessage:
		return info.TurnID
	case *chat.AssistantMessage:
		return info.TurnID
	}
	return ""
}

// Due tells whether the model owes an answer in a turn: to a prompt, to the
// results of its calls, or because its last answer failed. A turn that only
// compacts owes none.
func Due(items []chat.Item, turn id.Turn) bool {
	for i := len(items) - 1; i >= 0 && turnOf(items[i]) == turn; i-- {
		if isSummary(items[i]) {
			continue
		}
		if mark, ok := markOf(items[i]); ok {
			if mark.Auto {
				return true // it made room for an answer
			}
			continue
		}
		answer, ok := items[i].Info.(*chat.AssistantMessage)
		return !ok || answer.Error != nil || called(items[i])
	}
	return false
}

// called tells whether a model waits for the results of an answer's calls; what a
// person typed is nobody's call.
func called(item chat.Item) bool {
	for _, p := range item.Parts {
		if call, ok := p.(*chat.ToolPart); ok && !call.Typed() {
			return true
		}
	}
	return false
}

// SelectLess is Select for a conversation that was compacted tries times in
// vain: each time less stays. With force it keeps less until there is something
// to summarise.
func SelectLess(items []chat.Item, keep Keep, tries int, force bool) (Selection, bool) {
	for range tries {
		keep.Tokens /= 2
	}
	sel, ok := Select(items, keep)
	for !ok && force && keep.Tokens > 0 {
		keep.Tokens /= 2
		sel, ok = Select(items, keep)
	}
	return sel, ok
}
