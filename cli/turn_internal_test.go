package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/cli/internal/remote"
	"github.com/switchyard-dev/switchyard/id"
)

// followed is a turn of session ses_1 whose prompt msg_1 was sent.
type followed struct {
	*turn
	out, notes *bytes.Buffer
}

func setupTurn(t *testing.T) *followed {
	t.Helper()
	f := &followed{out: &bytes.Buffer{}, notes: &bytes.Buffer{}}
	f.turn = &turn{
		session: "ses_1", prompt: map[string]any{"messageID": id.Message("msg_1")}, sent: true,
		view: newView(f.out, f.notes), asks: &asker{},
	}
	return f
}

// feed takes events given as "type payload" until one ends the turn.
func (f *followed) feed(t *testing.T, events ...string) (done bool, err error) {
	t.Helper()
	for _, e := range events {
		kind, payload, _ := strings.Cut(e, " ")
		done, err = f.take(t.Context(), remote.Frame{Data: fmt.Sprintf(`{"type":%q,"payload":%s}`, kind, payload)})
		if done || err != nil {
			return done, err
		}
	}
	return false, nil
}

const (
	delivered = `message.updated {"sessionID":"ses_1","info":{"id":"msg_1","role":"user","turnID":"trn_1"}}`
	answered  = `message.updated {"sessionID":"ses_1","info":{"id":"msg_2","role":"assistant","turnID":"trn_1"}}`
)

func text(part, msg, text string, end int) string {
	return fmt.Sprintf(`message.part.updated {"part":{"id":%q,"messageID":%q,"type":"text","text":%q,"time":{"start":1,"end":%d}}}`, part, msg, text, end)
}

func delta(part string, offset int, text string) string {
	return fmt.Sprintf(`message.part.delta {"partID":%q,"field":"text","offset":%d,"delta":%q}`, part, offset, text)
}

func toolCall(state string) string {
	return `message.part.updated {"part":{"id":"p2","messageID":"msg_2","type":"tool","tool":"bash","state":` + state + `}}`
}

func TestATurnShowsEachByteOnce(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		events []string
		want   string
	}{
		{"deltas in order", []string{text("p", "msg_2", "", 0), delta("p", 0, "one "), delta("p", 4, "två"), text("p", "msg_2", "one två", 9)}, "one två\n"},
		{"a delta again", []string{text("p", "msg_2", "", 0), delta("p", 0, "one "), delta("p", 0, "one "), delta("p", 2, "e two")}, "one two"},
		{"a whole text first", []string{text("p", "msg_2", "one ", 0), delta("p", 0, "on"), delta("p", 4, "two")}, "one two"},
		{"a hole", []string{text("p", "msg_2", "", 0), delta("p", 9, "late"), text("p", "msg_2", "in time, late", 9)}, "in time, late\n"},
		{"two texts", []string{text("p", "msg_2", "a", 9), text("q", "msg_2", "b\n", 9)}, "a\nb\n"},
		{"what is not the answer", []string{text("p", "msg_1", "the prompt", 9), text("q", "msg_3", "another", 9), delta("q", 0, "x")}, ""},
		{"thoughts", []string{`message.part.updated {"part":{"id":"p","messageID":"msg_2","type":"reasoning","text":"hm"}}`, delta("p", 2, "m")}, ""},
		{"parts of the future", []string{`message.part.updated {"part":{"id":"p","messageID":"msg_2","type":"hologram"}}`}, ""},
		{"the input of a call", []string{toolCall(`{"status":"pending","input":{},"raw":""}`), `message.part.delta {"partID":"p2","field":"state.raw","offset":0,"delta":"{}"}`}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := setupTurn(t)
			if _, err := f.feed(t, append([]string{delivered, answered}, tt.events...)...); err != nil {
				t.Fatal(err)
			}
			if got := f.out.String(); got != tt.want {
				t.Errorf("printed %q, not %q", got, tt.want)
			}
		})
	}
}

func TestATurnNotesCallsOncePerState(t *testing.T) {
	t.Parallel()
	f := setupTurn(t)
	_, err := f.feed(t, delivered, answered,
		toolCall(`{"status":"pending","input":{},"raw":""}`),
		toolCall(`{"status":"running","input":{"command":"ls"},"time":{"start":1}}`),
		toolCall(`{"status":"running","input":{"command":"ls"},"title":"List","time":{"start":1}}`),
		toolCall(`{"status":"completed","input":{},"output":"a","title":"List \u001b[31mfiles","metadata":{},"time":{"start":1}}`),
		`session.status {"sessionID":"ses_1","status":{"type":"retry","attempt":2,"message":"too busy"}}`,
		`session.status {"sessionID":"ses_2","status":{"type":"retry","attempt":1,"message":"not ours"}}`,
	)
	if err != nil {
		t.Fatal(err)
	}
	want := "• bash {\"command\":\"ls\"}: running\n• bash List [31mfiles: completed\nattempt 2 failed, trying again: too busy\n"
	if got := f.notes.String(); got != want {
		t.Errorf("noted\n%s", got)
	}
}

func TestATurnEndsWithItsOwnEnd(t *testing.T) {
	t.Parallel()
	idle := func(ses, turn, outcome string) string {
		return fmt.Sprintf(`session.idle {"sessionID":%q,"turnID":%q,"outcome":%q,"error":{"name":"APIError","data":{"message":"no key"}}}`, ses, turn, outcome)
	}
	tests := []struct {
		name   string
		events []string
		done   bool
		code   int // 0: no error
	}{
		{"completed", []string{delivered, idle("ses_1", "trn_1", "completed")}, true, 0},
		{"failed", []string{delivered, idle("ses_1", "trn_1", "failed")}, true, 1},
		{"interrupted by the server", []string{delivered, idle("ses_1", "trn_1", "interrupted")}, true, 1},
		{"cancelled", []string{delivered, idle("ses_1", "trn_1", "cancelled")}, true, 130},
		{"the turn before", []string{idle("ses_1", "trn_0", "completed"), delivered, idle("ses_1", "trn_0", "completed")}, false, 0},
		{"a session below", []string{delivered, idle("ses_2", "trn_1", "completed")}, false, 0},
		{"deleted", []string{delivered, `session.deleted {"sessionID":"ses_1","info":{}}`}, false, 1},
		{"another deleted", []string{delivered, `session.deleted {"sessionID":"ses_2","info":{}}`}, false, 0},
		{"connected again", []string{delivered, `server.connected {}`}, false, 0},
		{"a gap", []string{delivered, `server.resync {"reason":"expired"}`}, false, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			done, err := setupTurn(t).feed(t, tt.events...)
			code := 0
			if err != nil {
				code = ExitCode(err)
			}
			if done != tt.done || code != tt.code {
				t.Errorf("done %t, %v", done, err)
			}
		})
	}
}
