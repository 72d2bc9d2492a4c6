package transcript_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/agent/transcript"
	"github.com/switchyard-dev/switchyard/catalog"
	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/llm"
)

// The items of conversations: their ids say what they are.

func asks(turn, text string) chat.Item {
	u := chat.NewUser(chat.MessageHead{ID: id.Message("u:" + text[:min(len(text), 8)])}, "build", chat.ModelRef{}, 1)
	u.TurnID = id.Turn(turn)
	return chat.Item{Info: u, Parts: []chat.Part{chat.NewText(chat.PartHead{}, text)}}
}

func says(turn, text string) chat.Item {
	a := chat.NewAssistant(chat.MessageHead{ID: id.Message("a:" + text[:min(len(text), 8)])}, 1)
	a.TurnID, a.Finish = id.Turn(turn), "stop"
	return chat.Item{Info: a, Parts: []chat.Part{chat.NewText(chat.PartHead{}, text)}}
}

func calls(turn, tool, input, output string) chat.Item {
	item := says(turn, "calling")
	item.Info.Head().ID = id.Message("c:" + tool)
	part := chat.NewTool(chat.PartHead{}, "call_"+tool, tool)
	part.State = chat.Completed(json.RawMessage(input), tool, output, nil, chat.PartTime{})
	item.Parts = append(item.Parts, part)
	return item
}

// pair is what a compaction leaves.
func pair(turn, summary string, auto bool) []chat.Item {
	mark := asks(turn, "mark")
	mark.Parts = []chat.Part{&chat.CompactionPart{Type: "compaction", Auto: auto}}
	sum := says(turn, summary)
	sum.Info.(*chat.AssistantMessage).Summary = true
	return []chat.Item{mark, sum}
}

func ids(items []chat.Item) string {
	out := make([]string, 0, len(items))
	for _, item := range items {
		out = append(out, string(item.Info.Head().ID))
	}
	return strings.Join(out, " ")
}

func TestSelect(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 400) // 100 tokens
	three := []chat.Item{asks("1", "one"), says("1", "1"), asks("2", "two"), says("2", "2"), asks("3", "three"), says("3", "3")}
	running := []chat.Item{asks("1", "one"), says("1", "1"), asks("2", "two"), calls("2", "a", "{}", long), calls("2", "b", "{}", long), calls("2", "c", "{}", long)}
	prompt := []chat.Item{asks("1", "one"), says("1", "1"), asks("2", long)}
	failed := says("2", "no")
	failed.Info.(*chat.AssistantMessage).Error = chat.NewError(chat.ErrContextOverflow, "no")
	refused := append(prompt[:3:3], failed)
	joined := []chat.Item{asks("1", "one"), says("1", "1"), asks("2", "two"), says("2", "2"), asks("2", "more"), says("2", "3")}
	for name, tt := range map[string]struct {
		items []chat.Item
		keep  transcript.Keep
		tail  string // of ids; "-" for nothing to summarise
	}{
		"two turns stay":                         {three, transcript.Keep{Tokens: 1000, Turns: 2}, "u:two a:2 u:three a:3"},
		"as many as fit":                         {three, transcript.Keep{Tokens: 4, Turns: 2}, "u:three a:3"},
		"none fits":                              {three, transcript.Keep{Tokens: 1, Turns: 2}, ""},
		"none is wanted":                         {three, transcript.Keep{Tokens: 1000}, ""},
		"a turn with a joined prompt is one":     {joined, transcript.Keep{Tokens: 1000, Turns: 1}, "u:two a:2 u:more a:3"},
		"nothing but the tail":                   {three, transcript.Keep{Tokens: 1000, Turns: 3}, "-"},
		"a person wants it all the same":         {three, transcript.Keep{Tokens: 1000, Turns: 3, Asked: true}, ""},
		"empty":                                  {nil, transcript.Keep{Asked: true}, "-"},
		"the newest steps of a running turn":     {running, transcript.Keep{Tokens: 230, Turns: 2, Running: "2"}, "c:b c:c"},
		"no step of a running turn fits":         {running, transcript.Keep{Tokens: 10, Turns: 2, Running: "2"}, ""},
		"one stays when a person asks":           {running, transcript.Keep{Tokens: 10, Turns: 2, Running: "2", Asked: true}, "c:c"},
		"a whole running turn fits":              {running, transcript.Keep{Tokens: 1000, Turns: 1, Running: "2"}, "u:two c:a c:b c:c"},
		"an unanswered prompt stays":             {prompt, transcript.Keep{Tokens: 10, Turns: 2, Running: "2"}, "u:xxxxxxxx"},
		"an answer that failed is none":          {refused, transcript.Keep{Tokens: 10, Turns: 2, Running: "2"}, "u:xxxxxxxx a:no"},
		"only an unanswered prompt":              {prompt[2:], transcript.Keep{Tokens: 10, Turns: 2, Running: "2"}, "-"},
		"a summary is summed up again":           {append(pair("1", "sum", true), three...), transcript.Keep{Tokens: 4, Turns: 2}, "u:three a:3"},
		"a summary alone is nothing new":         {pair("1", "sum", false), transcript.Keep{Asked: true}, "-"},
		"a summary with a tail that stays":       {append(pair("1", "sum", true), three[2:]...), transcript.Keep{Tokens: 1000, Turns: 2}, "-"},
		"a summary never becomes part of a tail": {append(pair("1", "sum", true), three[4:]...), transcript.Keep{Tokens: 1000, Turns: 2, Asked: true}, ""},
	} {
		sel, ok := transcript.Select(tt.items, tt.keep)
		if !ok {
			if tt.tail != "-" {
				t.Errorf("%s: nothing to summarise", name)
			}
			continue
		}
		if got := ids(sel.Tail); got != tt.tail || len(sel.Head)+len(sel.Tail) != len(tt.items) {
			t.Errorf("%s: %q stays beside %q, want %q", name, got, ids(sel.Head), tt.tail)
		}
	}
	if _, ok := transcript.SelectLess(three, transcript.Keep{Tokens: 1000, Turns: 3}, 0, true); !ok {
		t.Error("an overflow does not shorten the tail")
	}
	if _, ok := transcript.SelectLess(prompt[2:], transcript.Keep{Tokens: 1000, Turns: 3, Running: "2"}, 0, true); ok {
		t.Error("an unanswered prompt alone was summarised")
	}
	if sel, _ := transcript.SelectLess(running, transcript.Keep{Tokens: 230, Turns: 2, Running: "2"}, 1, false); ids(sel.Tail) != "c:c" {
		t.Errorf("the second try keeps %q", ids(sel.Tail))
	}
}

func TestDue(t *testing.T) {
	t.Parallel()
	failed := says("2", "no")
	failed.Info.(*chat.AssistantMessage).Error = chat.NewError(chat.ErrAPI, "no")
	before := []chat.Item{asks("1", "one"), says("1", "1")}
	for name, tt := range map[string]struct {
		rest []chat.Item
		want bool
	}{
		"a prompt":                          {[]chat.Item{asks("2", "two")}, true},
		"results":                           {[]chat.Item{asks("2", "two"), calls("2", "a", "{}", "x")}, true},
		"a failed answer":                   {[]chat.Item{asks("2", "two"), failed}, true},
		"an answer":                         {[]chat.Item{asks("2", "two"), says("2", "2")}, false},
		"nothing of the turn":               {nil, false},
		"only a compaction":                 {pair("2", "sum", false), false},
		"a compaction made room":            {pair("2", "sum", true), true},
		"a prompt that the compaction left": {append(pair("2", "sum", false), asks("2", "two")), true},
	} {
		if got := transcript.Due(append(before[:2:2], tt.rest...), "2"); got != tt.want {
			t.Errorf("%s: due %v", name, got)
		}
	}
}

func TestUsed(t *testing.T) {
	t.Parallel()
	counted := func(item chat.Item, created, n int64) chat.Item {
		a := item.Info.(*chat.AssistantMessage)
		a.Time.Created, a.Tokens = created, chat.Usage{Input: n - 20, Output: 10, Cache: chat.CacheUsage{Read: 10}}
		return item
	}
	if _, ok := transcript.Used([]chat.Item{asks("1", "one")}); ok {
		t.Error("a prompt alone was counted")
	}
	items := []chat.Item{asks("1", "one"), counted(calls("1", "a", "{}", strings.Repeat("y", 400)), 5, 1000), asks("1", strings.Repeat("z", 40))}
	if n, ok := transcript.Used(items); !ok || n != 1110 {
		t.Errorf("%d %v: want the count, the result and the prompt", n, ok)
	}
	compacted := pair("2", "sum", true)
	compacted[1].Info.(*chat.AssistantMessage).Time.Completed = 10
	if _, ok := transcript.Used(append(compacted[:2:2], items...)); ok {
		t.Error("what was counted before the compaction still counts")
	}
	later := append(append(compacted[:2:2], items...), counted(says("3", "3"), 10, 300))
	if n, ok := transcript.Used(later); !ok || n != 300 {
		t.Errorf("%d %v after a compaction", n, ok)
	}
}

func TestUsableAndTail(t *testing.T) {
	t.Parallel()
	reserved := 500
	for _, tt := range []struct {
		limit    catalog.Limit
		reserved *int
		want     int64
	}{
		{catalog.Limit{}, nil, 0},
		{catalog.Limit{Context: 10_000, Output: 2000}, nil, 7200},
		{catalog.Limit{Context: 10_000, Output: 2000}, &reserved, 7500},
		{catalog.Limit{Context: 10_000, Output: 10_000}, nil, 4500},
		{catalog.Limit{Context: 400_000, Input: 272_000, Output: 128_000}, nil, 252_000},
		{catalog.Limit{Context: 400, Output: 100}, &reserved, 0},
	} {
		if got := transcript.Usable(tt.limit, tt.reserved); got != tt.want {
			t.Errorf("%+v: %d, want %d", tt.limit, got, tt.want)
		}
	}
	for usable, want := range map[int64]int64{0: 15_000, 1000: 500, 10_000: 2500, 100_000: 15_000} {
		if got := transcript.TailTokens(usable, nil); got != want {
			t.Errorf("tail of %d: %d, want %d", usable, got, want)
		}
	}
	if got := transcript.TailTokens(1000, &reserved); got != 500 {
		t.Errorf("configured tail: %d", got)
	}
}

func TestRenderDropsFilesAndTheOldest(t *testing.T) {
	t.Parallel()
	picture := asks("1", "look")
	picture.Parts = append(picture.Parts, chat.NewFile(chat.PartHead{}, "image/png", "a.png", "data:image/png;base64,AAAA"))
	items := append(pair("0", "what was before", true), picture, calls("1", "read", `{"path":"x"}`, strings.Repeat("é", 3000)), says("1", "done"))
	whole := transcript.Render(items, 0)
	for _, want := range []string{"what was before", "look", "a.png (image/png)", `Assistant calls read {"path":"x"}`, "… (cut)", "done"} {
		if !strings.Contains(whole, want) {
			t.Errorf("%q is not in the text", want)
		}
	}
	if strings.Contains(whole, "AAAA") || len(whole) > 3000 || strings.ContainsRune(whole, '\uFFFD') {
		t.Errorf("%d bytes: %s", len(whole), whole)
	}
	short := transcript.Render(items, 40)
	if !strings.Contains(short, "what was before") || !strings.Contains(short, "done") || !strings.Contains(short, "2 older messages are left out") || strings.Contains(short, "look") {
		t.Errorf("short: %s", short)
	}
	huge := transcript.Render([]chat.Item{asks("1", strings.Repeat("w", 100_000))}, 1000)
	if len(huge) > 4100 || !strings.HasPrefix(huge, "User: www") {
		t.Errorf("one long message became %d bytes", len(huge))
	}
}

func TestMessagesAfterACompaction(t *testing.T) {
	t.Parallel()
	roles := func(items []chat.Item) string {
		var out []string
		for _, m := range transcript.Messages(items) {
			text, _ := m.Parts[0].(llm.Text)
			out = append(out, fmt.Sprintf("%s:%.12s", m.Role, text.Text))
		}
		return strings.Join(out, " ")
	}
	if got := roles(append(pair("1", "sum", true), asks("2", "two"))); got != "user:Sum up the c assistant:sum user:two" {
		t.Errorf("before a prompt: %s", got)
	}
	if got := roles(pair("1", "sum", true)); got != "user:Sum up the c assistant:sum user:Go on with t" {
		t.Errorf("at the end: %s", got)
	}
	if got := roles(append(pair("1", "sum", true), calls("1", "a", "{}", "x"))); got != "user:Sum up the c assistant:sum user:Go on with t assistant:calling tool:" {
		t.Errorf("before steps of the same turn: %s", got)
	}
}

func TestLoops(t *testing.T) {
	t.Parallel()
	a, b := transcript.NewCall("read", json.RawMessage(`{"x":1,"y":2}`)), transcript.NewCall("read", json.RawMessage(`{"x":2}`))
	same := transcript.NewCall("read", json.RawMessage("{ \"y\": 2,\n\"x\": 1 }"))
	big, bigger := transcript.NewCall("n", json.RawMessage(`{"n":9007199254740993}`)), transcript.NewCall("n", json.RawMessage(`{"n":9007199254740992}`))
	for name, tt := range map[string]struct {
		calls []transcript.Call
		want  bool
	}{
		"two":               {[]transcript.Call{a, a}, false},
		"three":             {[]transcript.Call{b, a, same, a}, true},
		"with one between":  {[]transcript.Call{a, a, b, a}, false},
		"another tool":      {[]transcript.Call{a, a, transcript.NewCall("list", json.RawMessage(`{"x":1,"y":2}`))}, false},
		"large numbers":     {[]transcript.Call{big, big, bigger}, false},
		"what is not JSON":  {[]transcript.Call{{Name: "x"}, transcript.NewCall("x", nil), transcript.NewCall("x", nil)}, true},
		"three, then other": {[]transcript.Call{a, a, a, b}, false},
	} {
		if got := transcript.Loops(tt.calls); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	items := []chat.Item{calls("1", "read", `{}`, ""), asks("2", "go"), calls("2", "read", `{}`, ""), calls("2", "list", `{}`, "")}
	if got := transcript.Calls(items, "2"); len(got) != 2 || got[0].Name != "read" || got[1].Name != "list" {
		t.Errorf("calls of the turn: %v", got)
	}
}

func TestTitle(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"Mend the parser":                                  "Mend the parser",
		"\n\n  \"Mend   the parser\" \nmore":               "Mend the parser",
		"<think>What is\nit?</think>\n# Mend the parser\n": "Mend the parser",
		"<think>never ends":                                "",
		"":                                                 "",
		strings.Repeat("é", 200):                           strings.Repeat("é", 97) + "...",
	} {
		if got := transcript.Title(answer); got != want {
			t.Errorf("%q: %q, want %q", answer, got, want)
		}
	}
	items := append(pair("0", "sum", true), asks("1", "  "), asks("1", "first"), asks("1", "second"))
	if got := transcript.Opening(items); got != "first" {
		t.Errorf("opening %q", got)
	}
}
