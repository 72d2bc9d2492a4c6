package llm

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"iter"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/llm/internal/wire"
)

// The id of the built-in provider and of its one model.
const (
	DemoProviderID = "demo"
	DemoModelID    = "demo"
)

// demoFile is what the demo model offers to write.
const demoFile = "switchyard-demo.md"

// demoChunk is the size of its deltas, in bytes.
const demoChunk = 5

// Demo gives the built-in provider: a model without network, key or
// intelligence. It obeys the words of Script; to anything else it answers with a
// short turn that proposes to write one file.
func Demo() Provider { return demoProvider{} }

type demoProvider struct{}

// ID is the provider's id in the catalog.
func (demoProvider) ID() string { return DemoProviderID }

// Model gives the demo model, whatever its name.
func (demoProvider) Model(_ context.Context, modelID string) (Model, error) {
	return demoModel{id: modelID}, nil
}

type demoModel struct{ id string }

// Info names the model.
func (m demoModel) Info() Info { return Info{ProviderID: DemoProviderID, ModelID: m.id} }

// Stream plays the answer.
func (m demoModel) Stream(ctx context.Context, c Call) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		d := demoAnswer{ctx: ctx, call: c, emit: func(e Event) bool { return yield(e, nil) }}
		if err := d.play(); err != nil && !d.left {
			yield(nil, err)
		}
	}
}

// demoAnswer is one answer being played.
type demoAnswer struct {
	ctx  context.Context
	call Call
	emit func(Event) bool
	left bool
	next int // block
	out  int // bytes said
}

func (d *demoAnswer) play() *Error {
	if d.ctx.Err() != nil {
		return d.cancelled()
	}
	if d.asksFor(TitleMarker) {
		d.say("Demo: " + cut(strings.Join(strings.Fields(d.prompt()), " "), 40))
		return d.finish()
	}
	if d.asksFor(SummaryMarker) {
		d.say("The demo model sums up what was before.")
		return d.finish()
	}
	if result, ok := lastResult(d.call.Messages); ok {
		return d.after(result)
	}
	if s, ok := d.script(); ok {
		return d.obey(s)
	}
	return d.propose()
}

func (d *demoAnswer) obey(s Script) *Error {
	switch {
	case s.Hang:
		<-d.ctx.Done()
		return d.cancelled()
	case s.Status != 0:
		t := wire.Trouble{Status: s.Status, Text: "as the script says", Header: http.Header{}}
		t.Header.Set("Retry-After", s.RetryAfter)
		return told(t, DemoProviderID, redactor{})
	case s.Cut:
		d.input("read", `{"path": "REA`)
		return &Error{Kind: KindTruncated, ProviderID: DemoProviderID, Retryable: true, Message: "the answer broke off"}
	}
	d.say(s.Say)
	return d.finish(s.Calls...)
}

// propose is the answer to a prompt that is no script.
func (d *demoAnswer) propose() *Error {
	d.say("This is Switchyard's built-in demo model: no real one is configured yet. ")
	call, ok := d.edit()
	if !ok {
		d.more("Set a provider's API key and ask again.")
		return d.finish()
	}
	d.more("To show a whole turn, I propose to write your prompt into " + demoFile + ".")
	return d.finish(call)
}

// edit gives the call that writes the demo file, if there is a tool for it.
func (d *demoAnswer) edit() (ScriptCall, bool) {
	if d.call.ToolChoice == ToolNone {
		return ScriptCall{}, false
	}
	for _, t := range d.call.Tools {
		if t.Name != "write" {
			continue
		}
		path := "path"
		var schema struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if json.Unmarshal(t.Schema, &schema) == nil && schema.Properties["filePath"] != nil {
			path = "filePath"
		}
		quote := cut(strings.Join(strings.Fields(d.prompt()), " "), 500)
		input, err := json.Marshal(map[string]string{
			path:      demoFile,
			"content": "# Switchyard demo\n\nThe prompt was:\n\n> " + quote + "\n",
		})
		return ScriptCall{Name: t.Name, Input: string(input)}, err == nil
	}
	return ScriptCall{}, false
}

// after answers a tool's result.
func (d *demoAnswer) after(r ToolResult) *Error {
	_, scripted := d.script()
	switch {
	case scripted:
		d.say(DoneText(r.Output))
	case r.IsError:
		d.say("The file was not written: " + cut(r.Output, maxDone))
	default:
		d.say("Done: see " + demoFile + ". Set a provider's API key to work with a real model.")
	}
	return d.finish()
}

// say streams a block of text.
func (d *demoAnswer) say(text string) {
	if text == "" {
		return
	}
	d.send(TextStart{Index: d.next})
	d.next++
	d.more(text)
}

// more continues the block of say.
func (d *demoAnswer) more(text string) {
	for piece := range Chunks(text, demoChunk) {
		d.send(TextDelta{Index: d.next - 1, Text: piece})
	}
}

// input streams the input of a call and gives its call id.
func (d *demoAnswer) input(name, text string) (index int, callID string) {
	index, callID = d.next, "call_"+rand.Text()
	d.next++
	d.send(ToolInputStart{Index: index, CallID: callID, Name: name})
	for piece := range Chunks(text, demoChunk) {
		d.send(ToolInputDelta{Index: index, Text: piece})
	}
	return index, callID
}

// finish plays the calls and ends the answer.
func (d *demoAnswer) finish(calls ...ScriptCall) *Error {
	if d.next > 0 {
		d.send(TextEnd{Index: d.next - 1})
	}
	ready := make([]ToolCall, 0, len(calls))
	for _, c := range calls {
		index, callID := d.input(c.Name, c.Input)
		d.send(ToolInputEnd{Index: index})
		object, ok := c.object()
		call := ToolCall{Index: index, CallID: callID, Name: c.Name, Input: object, Malformed: !ok}
		if !ok {
			call.Raw = c.Input
		}
		ready = append(ready, call)
	}
	reason := ReasonStop
	if len(ready) > 0 {
		reason = ReasonToolCalls
	}
	for _, call := range ready {
		d.send(call)
	}
	if d.ctx.Err() != nil {
		return d.cancelled()
	}
	d.send(Finish{Reason: reason, Usage: d.usage()})
	return nil
}

// usage estimates: four bytes make a token.
func (d *demoAnswer) usage() chat.Usage {
	in := 0
	for _, m := range d.call.Messages {
		for _, p := range m.Parts {
			if t, ok := p.(Text); ok {
				in += len(t.Text)
			}
		}
	}
	u := chat.Usage{Input: int64(in/4) + 1, Output: int64(d.out/4) + 1}
	u.Total = u.Input + u.Output
	return u
}

func (d *demoAnswer) send(e Event) {
	if d.left || d.ctx.Err() != nil {
		return
	}
	if t, ok := e.(TextDelta); ok {
		d.out += len(t.Text)
	}
	d.left = !d.emit(e)
}

func (d *demoAnswer) cancelled() *Error {
	return &Error{Kind: KindCanceled, ProviderID: DemoProviderID, Message: "the request was cancelled", cause: context.Cause(d.ctx)}
}

// asksFor reports whether the call is of the kind that a marker tells.
func (d *demoAnswer) asksFor(marker string) bool {
	for _, s := range d.call.System {
		if strings.Contains(s, marker) {
			return true
		}
	}
	return false
}

// The markers are in the system prompts of calls that ask for a session's title
// and for a summary of its conversation; scripted models know those by them.
const (
	TitleMarker   = "title generator"
	SummaryMarker = "conversation summarizer"
)

// script finds the script in the last user message.
func (d *demoAnswer) script() (Script, bool) {
	for _, text := range lastUserTexts(d.call.Messages) {
		if s, ok := ParseScript(text); ok {
			return s, true
		}
	}
	return Script{}, false
}

func (d *demoAnswer) prompt() string {
	texts := lastUserTexts(d.call.Messages)
	if len(texts) == 0 || !utf8.ValidString(texts[0]) {
		return ""
	}
	return texts[0]
}

// lastUserTexts gives the texts of the last user message.
func lastUserTexts(messages []Message) []string {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role != RoleUser {
			continue
		}
		var texts []string
		for _, p := range messages[i].Parts {
			if t, ok := p.(Text); ok {
				texts = append(texts, t.Text)
			}
		}
		return texts
	}
	return nil
}

// lastResult gives the last tool result when the conversation ends with it.
func lastResult(messages []Message) (ToolResult, bool) {
	if len(messages) == 0 {
		return ToolResult{}, false
	}
	last := messages[len(messages)-1]
	for i := len(last.Parts) - 1; i >= 0; i-- {
		if r, ok := last.Parts[i].(ToolResult); ok {
			return r, true
		}
	}
	return ToolResult{}, false
}
