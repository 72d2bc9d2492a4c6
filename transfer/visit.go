package transfer

import (
	"fmt"
	"strings"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/id"
)

// urlPrefix begins every URL that is served under a session.
const urlPrefix = "/api/session/"

// eachHead calls fn with every head in a part, that of the part first, and the
// pointer of what it is the head of.
func eachHead(at string, p chat.Part, fn func(at string, h *chat.PartHead) error) error {
	if err := fn(at, p.Head()); err != nil {
		return err
	}
	for i, f := range toolFiles(p) {
		if err := fn(toolFileAt(at, i), f.Head()); err != nil {
			return err
		}
	}
	return nil
}

// eachFile calls fn with every file in a part: the part itself, or those that a
// tool made.
func eachFile(at string, p chat.Part, fn func(at string, f *chat.FilePart) error) error {
	if f, ok := p.(*chat.FilePart); ok {
		return fn(at, f)
	}
	for i, f := range toolFiles(p) {
		if err := fn(toolFileAt(at, i), f); err != nil {
			return err
		}
	}
	return nil
}

func toolFiles(p chat.Part) []*chat.FilePart {
	tool, ok := p.(*chat.ToolPart)
	if !ok {
		return nil
	}
	done, ok := tool.State.(*chat.ToolCompleted)
	if !ok {
		return nil
	}
	return done.Attachments
}

func toolFileAt(at string, i int) string { return fmt.Sprintf("%s/state/attachments/%d", at, i) }

// ownURL tells whether a URL is served under some session of a server.
func ownURL(url string) bool { return strings.HasPrefix(url, urlPrefix) }

// marks tells whether a message stands where an older conversation was replaced
// by the summary that follows.
func marks(item chat.Item) bool {
	for _, p := range item.Parts {
		if _, ok := p.(*chat.CompactionPart); ok {
			return true
		}
	}
	return false
}

// turnOf gives the turn that a message names.
func turnOf(m chat.Message) *id.Turn {
	switch v := m.(type) {
	case *chat.UserMessage:
		return &v.TurnID
	case *chat.AssistantMessage:
		return &v.TurnID
	}
	return new(id.Turn)
}
