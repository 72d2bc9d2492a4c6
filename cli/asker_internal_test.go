package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/switchyard-dev/switchyard/cli/internal/remote"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/operations"
	"github.com/switchyard-dev/switchyard/question"
	"github.com/switchyard-dev/switchyard/rule"
)

// desk is an asker with a server that notes the answers.
type desk struct {
	*asker
	screen *os.File // what the asker writes, to be read

	mu   sync.Mutex // protects sent
	sent []string
}

func setupDesk(t *testing.T, status int) *desk {
	t.Helper()
	d := &desk{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		d.mu.Lock()
		d.sent = append(d.sent, strings.TrimPrefix(r.URL.Path, "/api/")+" "+string(body))
		d.mu.Unlock()
		if status != http.StatusNoContent {
			w.Header().Set("Content-Type", op.ProblemType)
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(op.Problem{Code: fault.AlreadyReplied, Detail: "done"})
	}))
	t.Cleanup(s.Close)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() })
	d.screen = reader
	d.asker = &asker{
		server: remote.NewClient(remote.Program{Operations: operations.All}, s.URL, ""), say: func(string) {},
		open: func() (*terminal, error) {
			return &terminal{file: writer, lines: make(chan string)}, nil
		},
	}
	return d
}

func permissionOf(key string, always ...string) *permissionDialog {
	return &permissionDialog{request: rule.Request{ID: id.Permission("per_" + key), Permission: "edit", Patterns: []string{"a.txt"}, Always: always}}
}

func TestPermissionDialog(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		always []string
		lines  []string
		want   string // body, "" when it goes on asking
	}{
		{"once", nil, []string{"o"}, `{"response":"once"}`},
		{"in words", nil, []string{" Yes "}, `{"response":"once"}`},
		{"always", []string{"*.txt"}, []string{"a"}, `{"response":"always"}`},
		{"always where that is not offered", nil, []string{"a"}, ``},
		{"nonsense first", nil, []string{"x", "", "once"}, `{"response":"once"}`},
		{"reject", nil, []string{"r", ""}, `{"response":"reject"}`},
		{"reject with a reason", nil, []string{"no", " not now "}, `{"message":"not now","response":"reject"}`},
		{"no reason yet", nil, []string{"r"}, ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := setupDesk(t, http.StatusNoContent)
			if err := d.add(t.Context(), permissionOf("1", tt.always...)); err != nil {
				t.Fatal(err)
			}
			for _, line := range tt.lines {
				if err := d.answer(t.Context(), line, true); err != nil {
					t.Fatal(err)
				}
			}
			var want []string
			if tt.want != "" {
				want = []string{"permission/per_1/reply " + tt.want}
			}
			if !slices.Equal(d.sent, want) {
				t.Errorf("sent %q", d.sent)
			}
		})
	}
}

func TestQuestionDialog(t *testing.T) {
	t.Parallel()
	no := false
	options := []question.Option{{Label: "A"}, {Label: "B"}, {Label: "2nd"}}
	one := question.Question{Question: "Which?", Options: options}
	strict := question.Question{Question: "Which?", Options: options, Custom: &no}
	many := question.Question{Question: "Which?", Options: options, Multiple: true}
	tests := []struct {
		name      string
		questions []question.Question
		lines     []string
		want      string
	}{
		{"a number", []question.Question{one}, []string{"2"}, `reply {"response":{"answers":[["B"]]}}`},
		{"a label", []question.Question{one}, []string{"2ND"}, `reply {"response":{"answers":[["2nd"]]}}`},
		{"own words", []question.Question{one}, []string{"7 of them"}, `reply {"response":{"answers":[["7 of them"]]}}`},
		{"several", []question.Question{many}, []string{"1, 3"}, `reply {"response":{"answers":[["A","2nd"]]}}`},
		{"several where one is wanted", []question.Question{strict}, []string{"1,2", "1"}, `reply {"response":{"answers":[["A"]]}}`},
		{"only options", []question.Question{strict}, []string{"C", "0", "4", "", "1"}, `reply {"response":{"answers":[["A"]]}}`},
		{"two questions", []question.Question{one, many}, []string{"1", "2"}, `reply {"response":{"answers":[["A"],["B"]]}}`},
		{"rejected", []question.Question{one, many}, []string{"1", "r"}, `reject {}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := setupDesk(t, http.StatusNoContent)
			if err := d.add(t.Context(), &questionDialog{request: question.Request{ID: "que_1", Questions: tt.questions}}); err != nil {
				t.Fatal(err)
			}
			for _, line := range tt.lines {
				if err := d.answer(t.Context(), line, true); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(d.sent, []string{"question/que_1/" + tt.want}) {
				t.Errorf("sent %q", d.sent)
			}
		})
	}
}

func TestRequestsAreAskedOneAfterTheOther(t *testing.T) {
	t.Parallel()
	d := setupDesk(t, http.StatusConflict) // somebody else is always first, which is no error
	if d.lines() != nil {
		t.Error("lines are read before anything is asked")
	}
	for _, key := range []string{"1", "2", "1", "3"} {
		if err := d.add(t.Context(), permissionOf(key)); err != nil {
			t.Fatal(err)
		}
	}
	d.drop("per_2")
	d.drop("per_9")
	for range 2 {
		if d.lines() == nil {
			t.Fatal("no lines are read")
		}
		if err := d.answer(t.Context(), "o", true); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{`permission/per_1/reply {"response":"once"}`, `permission/per_3/reply {"response":"once"}`}; !slices.Equal(d.sent, want) {
		t.Errorf("sent %q", d.sent)
	}
	if d.lines() != nil {
		t.Error("lines are read when nothing is asked")
	}
}

func TestTheEndOfTheTerminalRejects(t *testing.T) {
	t.Parallel()
	d := setupDesk(t, http.StatusNoContent)
	for _, key := range []string{"1", "2"} {
		if err := d.add(t.Context(), permissionOf(key)); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.answer(t.Context(), "", false); err != nil {
		t.Fatal(err)
	}
	if err := d.add(t.Context(), permissionOf("3")); err != nil {
		t.Fatal(err)
	}
	if len(d.sent) != 3 || !strings.Contains(d.sent[1], `per_2/reply {"response":"reject"}`) || !strings.Contains(d.sent[2], "nobody can answer") {
		t.Errorf("sent %q", d.sent)
	}
}

func TestYesAllowsOnceAndAnswersNoQuestion(t *testing.T) {
	t.Parallel()
	d := setupDesk(t, http.StatusNoContent)
	d.yes = true
	if err := d.add(t.Context(), permissionOf("1")); err != nil {
		t.Fatal(err)
	}
	if err := d.add(t.Context(), &questionDialog{request: question.Request{ID: "que_1"}}); err != nil {
		t.Fatal(err)
	}
	if len(d.sent) != 2 || d.sent[0] != `permission/per_1/reply {"response":"once"}` || !strings.Contains(d.sent[1], "que_1/reject") {
		t.Errorf("sent %q", d.sent)
	}
}

func TestALongDiffIsCut(t *testing.T) {
	t.Parallel()
	p := permissionOf("1")
	p.request.Metadata = map[string]any{"diff": strings.Repeat("+line\x1b[2J\n", 50)}
	text := p.ask()
	if strings.Count(text, "+line") != diffLines || !strings.Contains(text, "… 10 more lines") || strings.Contains(text, "\x1b") {
		t.Errorf("showed\n%q", text)
	}
}

func TestATerminalGivesLinesUntilItIsClosed(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	term := newTerminal(reader)
	if _, err := writer.WriteString("one\ntwo\n"); err != nil {
		t.Fatal(err)
	}
	if line := <-term.lines; line != "one" {
		t.Errorf("read %q", line)
	}
	if err := term.Close(); err != nil { // with a line waiting, and a read that would block
		t.Fatal(err)
	}
}
