package app_test

import (
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/app/apptest"
	"github.com/switchyard-dev/switchyard/llm/llmtest"
)

// used is an answer whose usage fills a context.
func used(tokens int64, steps ...llmtest.Step) llmtest.Turn {
	return llmtest.Turn{Steps: steps, Usage: llmtest.Usage{Input: tokens, Output: 10}}
}

func TestCompactAutomatically(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{Config: compacting, Context: 20_000})
	ses := s.Session("")
	s.Model.Enqueue(llmtest.Say("one"), used(17_000, llmtest.Text("two")), used(18_000, llmtest.Text("three")))
	converse(t, s, ses, "1", "2", "3")
	if len(summaryRequests(s)) != 0 {
		t.Fatal("compacted below the threshold")
	}
	converse(t, s, ses, "say:four")
	messages := s.Messages(ses)
	if got := shape(messages); got != "u:compaction a:Scripted summary u:say:four a:four" || !messages[0].Parts[0].Auto {
		t.Fatal(got)
	}
	converse(t, s, ses, "say:five")
	if len(summaryRequests(s)) != 1 {
		t.Fatal("what was counted before the compaction made another one")
	}
	// Also between the steps of one turn, whose newest steps stay.
	s.Model.Enqueue(used(19_500, llmtest.Call("list", `{"path":"."}`)))
	converse(t, s, ses, "work")
	if got := shape(s.Messages(ses)); !strings.HasPrefix(got, "u:compaction a:Scripted summary u:work a:list a:done:") {
		t.Fatal(got)
	}
}

func TestCompactionOff(t *testing.T) {
	t.Parallel()
	config := `{"permission": {"*": "allow"}, "compaction": {"auto": false}}`
	s := apptest.Start(t, apptest.Options{Config: config, Context: 20_000})
	ses := s.Session("")
	s.Model.Enqueue(used(25_000, llmtest.Text("one")))
	converse(t, s, ses, "1", "say:two")
	s.Model.Enqueue(llmtest.Overflow())
	s.Prompt(ses, "3")
	if w := s.Wait(ses); w.Outcome != "failed" || w.Error.Name != "ContextOverflowError" {
		t.Fatalf("%+v", w)
	}
	if len(summaryRequests(s)) != 0 {
		t.Fatal("compacted although it is off")
	}
	if compact(s, ses); s.Wait(ses).Outcome != "completed" || len(summaryRequests(s)) != 1 {
		t.Fatal("a person may still compact")
	}
}

func TestCompactAfterAnOverflow(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{Config: compacting}) // the limit is not known
	ses := s.Session("")
	converse(t, s, ses, "say:"+strings.Repeat("long ", 2000), "say:two")
	s.Model.Enqueue(llmtest.Overflow())
	converse(t, s, ses, "say:three")
	if got := shape(s.Messages(ses)); got != "u:compaction a:Scripted summary u:say:three a! a:three" {
		t.Fatal(got)
	}
	if got := conversationOf(last(s)); got != "u:Sum up the conversation so far. a:Scripted summary u:say:three" {
		t.Fatalf("sent %s", got)
	}
	// What is summed up may itself be too long: then older messages are left out.
	converse(t, s, ses, "say:"+strings.Repeat("again ", 2000))
	s.Model.Enqueue(llmtest.Overflow(), llmtest.Turn{Summary: true, Status: 400, ErrorCode: "context_length_exceeded"})
	converse(t, s, ses, "say:four")
	if n := len(summaryRequests(s)); n < 3 || len(summaryRequests(s)[n-1].Body) >= len(summaryRequests(s)[n-2].Body) {
		t.Fatalf("%d summaries", n)
	}
}

func TestCompactThreeTimesInVain(t *testing.T) {
	t.Parallel()
	config := `{"permission": {"*": "allow"}, "compaction": {"preserve_recent_tokens": 8000}}`
	s := apptest.Start(t, apptest.Options{Config: config, Context: 200_000})
	ses := s.Session("")
	converse(t, s, ses, "say:one", "say:two")
	for range 3 {
		s.Model.Enqueue(llmtest.Turn{Steps: []llmtest.Step{llmtest.Call("list", `{"path":"."}`)}}, llmtest.Turn{Steps: []llmtest.Step{llmtest.Call("read", `{"path":"x"}`)}})
	}
	for n := range 5 {
		// Each summary is longer than what it takes the place of.
		text := strings.Repeat("no shorter ", 100*(n+1))
		s.Model.Enqueue(llmtest.Overflow(), llmtest.Turn{Summary: true, Steps: []llmtest.Step{llmtest.Text(text)}})
	}
	s.Prompt(ses, "go on")
	w := s.Wait(ses)
	if w.Outcome != "failed" || w.Error.Name != "ContextOverflowError" || !strings.Contains(w.Error.Data.Message, "200000 tokens") {
		t.Fatalf("%+v", w)
	}
	if n := len(summaryRequests(s)); n != 3 || !strings.Contains(w.Error.Data.Message, "after 3 compactions") {
		t.Fatalf("compacted %d times: %s", n, w.Error.Data.Message)
	}
}

func TestCompactNothing(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	ses := s.Session("")
	s.Model.Enqueue(llmtest.Overflow())
	s.Prompt(ses, "too long by itself")
	w := s.Wait(ses)
	if w.Outcome != "failed" || w.Error.Name != "ContextOverflowError" || !strings.Contains(w.Error.Data.Message, "nothing to compact") {
		t.Fatalf("%+v", w)
	}
	if len(summaryRequests(s)) != 0 {
		t.Fatal("a prompt was summed up instead of seen")
	}
}
