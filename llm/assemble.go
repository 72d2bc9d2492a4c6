package llm

import (
	"crypto/rand"
	"encoding/json"
	"regexp"
	"strings"

	"charm.land/fantasy"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/llm/internal/wire"
)

// assembler turns the library's parts into events: it numbers the blocks, keeps
// text and reasoning from overlapping, leaves out empty ones, and holds tool
// calls back until the answer is whole.
type assembler struct {
	dialect dialect
	tap     *wire.Tap
	emit    func(Event) bool
	left    bool // the consumer has gone

	next  int
	open  *block // the open text or reasoning
	meta  map[string]map[string]any
	calls []*toolBlock
	used  map[string]bool // call ids that are taken
}

// block is an open run of text or reasoning; id is the library's, which is not
// unique.
type block struct {
	index     int
	id        string
	reasoning bool
}

type toolBlock struct {
	index  int
	id     string // the library's
	callID string // ours
	name   string
	text   strings.Builder // the input as it came
	whole  string          // the input as the library gives it at the end
	ended  bool
	called bool
}

func newAssembler(d dialect, history []Message, t *wire.Tap, emit func(Event) bool) *assembler {
	a := &assembler{dialect: d, tap: t, emit: emit, used: map[string]bool{}, meta: map[string]map[string]any{}}
	for _, m := range history {
		for _, p := range m.Parts {
			if use, ok := p.(ToolUse); ok {
				a.used[use.CallID] = true
			}
		}
	}
	return a
}

func (a *assembler) send(e Event) {
	if !a.left && !a.emit(e) {
		a.left = true
	}
}

// take handles one part.
func (a *assembler) take(p fantasy.StreamPart) {
	if p.ProviderExecuted {
		return
	}
	switch p.Type {
	case fantasy.StreamPartTypeTextDelta:
		a.text(p.ID, p.Delta)
	case fantasy.StreamPartTypeTextEnd:
		a.endIf(p.ID, false)
	case fantasy.StreamPartTypeReasoningStart, fantasy.StreamPartTypeReasoningDelta:
		a.note(p)
		a.reason(p.ID, p.Delta)
	case fantasy.StreamPartTypeReasoningEnd:
		a.note(p)
		if a.meta[p.ID] != nil && (a.open == nil || !a.open.reasoning || a.open.id != p.ID) {
			a.begin(p.ID, true) // hidden reasoning
		}
		a.endIf(p.ID, true)
	default:
		a.takeTool(p)
	}
}

func (a *assembler) takeTool(p fantasy.StreamPart) {
	switch p.Type {
	case fantasy.StreamPartTypeToolInputStart:
		a.startTool(p.ID, p.ToolCallName)
	case fantasy.StreamPartTypeToolInputDelta:
		// One dialect has the text in the one field, the others in the other.
		text := p.Delta + p.ToolCallInput
		if t := a.tool(p.ID); t != nil && !t.ended && text != "" {
			t.text.WriteString(text)
			a.send(ToolInputDelta{Index: t.index, Text: text})
		}
	case fantasy.StreamPartTypeToolInputEnd:
		if t := a.tool(p.ID); t != nil {
			a.endTool(t)
		}
	case fantasy.StreamPartTypeToolCall:
		t := a.tool(p.ID)
		if t == nil {
			t = a.startTool(p.ID, p.ToolCallName)
		}
		t.whole, t.called = p.ToolCallInput, true
	}
}

func (a *assembler) text(id, delta string) {
	if delta == "" {
		return
	}
	if a.open == nil || a.open.reasoning || a.open.id != id {
		a.begin(id, false)
	}
	a.send(TextDelta{Index: a.open.index, Text: delta})
}

func (a *assembler) reason(id, delta string) {
	isOpen := a.open != nil && a.open.reasoning && a.open.id == id
	if !isOpen && a.dialect == dialectResponses {
		// The library begins each summary with a line break of its own.
		delta = strings.TrimLeft(delta, "\n")
	}
	if delta == "" {
		return
	}
	if !isOpen {
		a.begin(id, true)
	}
	a.send(ReasoningDelta{Index: a.open.index, Text: delta})
}

// begin opens a block and closes the one before.
func (a *assembler) begin(id string, reasoning bool) {
	a.end()
	a.open = &block{index: a.next, id: id, reasoning: reasoning}
	a.next++
	if reasoning {
		a.send(ReasoningStart{Index: a.open.index})
	} else {
		a.send(TextStart{Index: a.open.index})
	}
}

func (a *assembler) endIf(id string, reasoning bool) {
	if a.open != nil && a.open.id == id && a.open.reasoning == reasoning {
		a.end()
	}
}

func (a *assembler) end() {
	b := a.open
	if b == nil {
		return
	}
	a.open = nil
	if !b.reasoning {
		a.send(TextEnd{Index: b.index})
		return
	}
	meta := a.meta[b.id]
	delete(a.meta, b.id)
	if meta == nil && a.dialect == dialectCompatible {
		meta = map[string]any{metaCompatible: true}
	}
	a.send(ReasoningEnd{Index: b.index, Metadata: meta})
}

// note keeps what the provider wants back with a block of reasoning.
func (a *assembler) note(p fantasy.StreamPart) {
	if meta := reasoningMeta(p.ProviderMetadata, a.tap.Sealed); meta != nil {
		a.meta[p.ID] = meta
	}
}

func (a *assembler) tool(id string) *toolBlock {
	for i := len(a.calls) - 1; i >= 0; i-- {
		if a.calls[i].id == id {
			return a.calls[i]
		}
	}
	return nil
}

func (a *assembler) startTool(id, name string) *toolBlock {
	a.end()
	t := &toolBlock{index: a.next, id: id, callID: a.callID(id), name: name}
	a.next++
	a.calls = append(a.calls, t)
	a.send(ToolInputStart{Index: t.index, CallID: t.callID, Name: name})
	return t
}

func (a *assembler) endTool(t *toolBlock) {
	if !t.ended {
		t.ended = true
		a.send(ToolInputEnd{Index: t.index})
	}
}

// madeUp are the ids that the library gives to calls that came without one: the
// same ones in every answer.
var madeUp = regexp.MustCompile(`^tool-call-\d+$`)

// callID gives an id that no other call of the conversation has.
func (a *assembler) callID(id string) string {
	if id == "" || a.used[id] || madeUp.MatchString(id) {
		id = "call_" + rand.Text()
	}
	a.used[id] = true
	return id
}

// finish closes what is open and gives the calls.
func (a *assembler) finish(reason Reason, usage chat.Usage) {
	a.end()
	given := 0
	for _, t := range a.calls {
		a.endTool(t)
	}
	for _, t := range a.calls {
		call := t.call(a.dialect)
		// The last call of an answer that hit a limit is most likely cut.
		cutOff := !t.called || reason == ReasonContentFilter || reason == ReasonLength && call.Malformed
		if cutOff {
			continue
		}
		given++
		a.send(call)
	}
	if given > 0 && reason != ReasonLength {
		reason = ReasonToolCalls // some servers say "stop"
	} else if given == 0 && reason == ReasonToolCalls {
		reason = ReasonOther
	}
	a.send(Finish{Reason: reason, Usage: usage})
}

// call reads the input. What was streamed counts: of bad input the library may
// make an empty object. Only in the responses dialect is what it gives at the
// end the provider's own, and serves when the streamed text has a gap.
func (t *toolBlock) call(d dialect) ToolCall {
	c := ToolCall{Index: t.index, CallID: t.callID, Name: t.name, Input: json.RawMessage("{}")}
	raw := t.text.String()
	if blank(raw) || d == dialectResponses && !isObject(raw) && isObject(t.whole) {
		raw = t.whole
	}
	switch {
	case isObject(raw):
		c.Input = json.RawMessage(raw)
	case !blank(raw):
		c.Malformed, c.Raw = true, raw
	}
	return c
}

func isObject(text string) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal([]byte(text), &members) == nil && members != nil
}

// usageOf counts each token once.
func usageOf(u fantasy.Usage) chat.Usage {
	out := chat.Usage{
		Input: u.InputTokens, Output: u.OutputTokens, Reasoning: u.ReasoningTokens,
		Cache: chat.CacheUsage{Read: u.CacheReadTokens, Write: u.CacheCreationTokens},
	}
	prompt := u.InputTokens + u.CacheReadTokens
	// Most providers count reasoning within the output; for those that do not,
	// the total tells.
	apart := u.TotalTokens > 0 && u.TotalTokens >= prompt+u.OutputTokens+u.ReasoningTokens
	if !apart && u.ReasoningTokens <= u.OutputTokens {
		out.Output -= u.ReasoningTokens
	}
	out.Total = out.Input + out.Output + out.Reasoning + out.Cache.Read + out.Cache.Write
	return out
}
