package llm

import (
	"encoding/json"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Script is what the words in a prompt make a scripted model do: the demo model
// and the servers of llmtest obey them. The words:
//
//	say:TEXT             stream TEXT, which is all that follows, line breaks included
//	tool:NAME:JSON       call a tool; one line each for several calls, say: may follow
//	hang                 never answer
//	http:CODE[:SECONDS]  fail with the status, with Retry-After when given
//	cut                  break off in the middle of a tool call
type Script struct {
	Say    string
	Calls  []ScriptCall
	Hang   bool
	Cut    bool
	Status int // 0: none
	// RetryAfter is in whole seconds as written, "" when not given.
	RetryAfter string
}

// ScriptCall is one tool: line.
type ScriptCall struct {
	Name string
	// Input is the text after the name, not checked: it may be no JSON.
	Input string
}

// ParseScript reads the words. It reports false for text that is no script.
func ParseScript(text string) (Script, bool) {
	text = strings.TrimLeft(text, " \t\r\n")
	if say, ok := strings.CutPrefix(text, "say:"); ok {
		return Script{Say: say}, true
	}
	if strings.HasPrefix(text, "tool:") {
		return parseCalls(text)
	}
	switch word := strings.TrimSpace(text); {
	case word == "hang":
		return Script{Hang: true}, true
	case word == "cut":
		return Script{Cut: true}, true
	case strings.HasPrefix(word, "http:"):
		return parseStatus(strings.TrimPrefix(word, "http:"))
	}
	return Script{}, false
}

// parseCalls reads tool: lines. A line that begins with no word continues the
// input before it.
func parseCalls(text string) (Script, bool) {
	var s Script
	for text != "" {
		if say, ok := strings.CutPrefix(text, "say:"); ok {
			s.Say = say
			break
		}
		line, rest, _ := strings.Cut(text, "\n")
		text = rest
		if call, ok := strings.CutPrefix(line, "tool:"); ok {
			name, input, _ := strings.Cut(call, ":")
			s.Calls = append(s.Calls, ScriptCall{Name: strings.TrimSpace(name), Input: strings.TrimSpace(input)})
			continue
		}
		last := &s.Calls[len(s.Calls)-1]
		last.Input = strings.TrimSpace(last.Input + "\n" + line)
	}
	for i, c := range s.Calls {
		if c.Name == "" {
			return Script{}, false
		}
		if c.Input == "" {
			s.Calls[i].Input = "{}"
		}
	}
	return s, true
}

func parseStatus(word string) (Script, bool) {
	code, after, _ := strings.Cut(word, ":")
	status, err := strconv.Atoi(code)
	if err != nil || status < 400 || status > 599 {
		return Script{}, false
	}
	if after != "" {
		if n, err := strconv.Atoi(after); err != nil || n < 0 {
			return Script{}, false
		}
	}
	return Script{Status: status, RetryAfter: after}, true
}

// Chunks cuts text into pieces of at most size bytes that split no rune; a rune
// that is longer stands alone.
func Chunks(text string, size int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text != "" {
			n := len(cut(text, size))
			if n == 0 {
				_, n = utf8.DecodeRuneInString(text)
			}
			if !yield(text[:n]) {
				return
			}
			text = text[n:]
		}
	}
}

// maxDone is how much of a result a scripted model repeats, in bytes.
const maxDone = 200

// DoneText is what a scripted model says after a tool's result.
func DoneText(result string) string { return "done: " + cut(result, maxDone) }

// object reports whether the call's input is a JSON object.
func (c ScriptCall) object() (json.RawMessage, bool) {
	if !isObject(c.Input) {
		return json.RawMessage("{}"), false
	}
	return json.RawMessage(c.Input), true
}
