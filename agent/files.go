package agent

import (
	"context"
	"fmt"

	"github.com/switchyard-dev/switchyard/agent/transcript"
	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/llm"
	"github.com/switchyard-dev/switchyard/tool"
)

// Attachments keeps the files that tools make and finds those that parts name.
type Attachments interface {
	transcript.Files
	// Take turns the content in a part's data: URL into a file of the session and
	// lets the part name that; other parts stay as they are.
	Take(ctx context.Context, ses id.Session, part *chat.FilePart) error
}

// messages gives the conversation with the files that the step's model takes.
func (t *turn) messages(ctx context.Context, set *setting, items []chat.Item) []llm.Message {
	return transcript.Reader{Files: t.engine.attachments, Intake: set.Models.Intake(set.ref)}.Messages(ctx, items)
}

// takeFiles keeps the files of a result, so that its part holds no content. What
// cannot be kept is told in the output: the call did happen.
func (t *turn) takeFiles(ctx context.Context, result tool.Result) tool.Result {
	if t.engine.attachments == nil || len(result.Attachments) == 0 {
		return result
	}
	// As the result itself, they are kept also when the turn was told to stop.
	keep, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	kept := make([]*chat.FilePart, 0, len(result.Attachments))
	for _, f := range result.Attachments {
		if err := t.engine.attachments.Take(keep, t.run.SessionID, f); err != nil {
			result.Output += fmt.Sprintf("\n(The file %s could not be kept: %s)", f.Filename, tool.Message(err))
			t.engine.log.Warn("keeping a file of a tool", "session", t.run.SessionID, "error", err)
			continue
		}
		kept = append(kept, f)
	}
	result.Attachments = kept
	return result
}
