package cli

import (
	"io"
	"strings"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/session"
)

// view shows a turn on two outputs: the answer's text on one, everything else as
// notes on the other. It is for one goroutine.
type view struct {
	out, notes io.Writer
	// terminal tells that out is one: texts must not steer it, and notes need a
	// fresh line, as they likely appear on the same screen.
	terminal bool
	// open tells that the last line of out has no end yet.
	open bool

	answers map[id.Message]bool
	printed map[id.Part]int    // bytes of a text that are out
	told    map[id.Part]string // last state of a call that was told
}

func newView(out, notes io.Writer) *view {
	return &view{
		out: out, notes: notes, terminal: isTerminal(out),
		answers: map[id.Message]bool{}, printed: map[id.Part]int{}, told: map[id.Part]string{},
	}
}

// print writes to the answer's output.
func (v *view) emit(text string) error {
	if v.terminal {
		text = printable(text)
	}
	if text == "" {
		return nil
	}
	v.open = !strings.HasSuffix(text, "\n")
	_, err := io.WriteString(v.out, text)
	return err
}

// note writes a line of its own beside the answer.
func (v *view) note(text string) {
	if v.terminal {
		v.end()
	}
	_, _ = io.WriteString(v.notes, printable(text)+"\n") // What cannot be told is no reason to end a turn.
}

// end ends the last line of the answer.
func (v *view) end() {
	if v.open {
		v.open = false
		_, _ = io.WriteString(v.out, "\n") // The text is out already.
	}
}

// answer lets the parts of a message be shown.
func (v *view) answer(msg id.Message) { v.answers[msg] = true }

// part shows what is new in a part.
func (v *view) part(p chat.Part) error {
	head := p.Head()
	if !v.answers[head.MessageID] {
		return nil
	}
	switch p := p.(type) {
	case *chat.TextPart:
		return v.text(p)
	case *chat.ToolPart:
		v.tool(p)
	}
	return nil
}

func (v *view) text(p *chat.TextPart) error {
	at, known := v.printed[p.ID]
	if !known {
		v.printed[p.ID] = 0
	}
	if len(p.Text) > at {
		if err := v.emit(p.Text[at:]); err != nil {
			return err
		}
		v.printed[p.ID] = len(p.Text)
	}
	if p.Time != nil && p.Time.End != 0 {
		v.end()
	}
	return nil
}

// delta shows the bytes of a delta that are new. One that does not follow what
// is out waits for the whole text.
func (v *view) delta(d session.PartDelta) error {
	at, isText := v.printed[d.PartID]
	from := at - int(d.Offset)
	if !isText || d.Field != "text" || from < 0 || from >= len(d.Delta) {
		return nil
	}
	v.printed[d.PartID] = int(d.Offset) + len(d.Delta)
	return v.emit(d.Delta[from:])
}

// tool tells of a call when it starts and when it is over.
func (v *view) tool(p *chat.ToolPart) {
	state := p.State.Status()
	if state == "pending" || v.told[p.ID] == state {
		return
	}
	v.told[p.ID] = state
	what := clip(oneLine(string(chat.ToolInput(p.State))), 80)
	switch s := p.State.(type) {
	case *chat.ToolRunning:
		if s.Title != "" {
			what = s.Title
		}
	case *chat.ToolCompleted:
		what = s.Title
	case *chat.ToolError:
		state += ": " + clip(oneLine(s.Error), 200)
	}
	v.note("• " + strings.TrimSpace(p.Tool+" "+what) + ": " + state)
}
