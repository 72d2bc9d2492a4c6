package llm_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/llm"
)

func TestSC26_Backoff(t *testing.T) {
	t.Parallel()
	for range 200 {
		last := time.Duration(0)
		for attempt := 1; attempt <= 4; attempt++ {
			wait, ok := llm.Backoff(attempt, 0)
			base := 2 * time.Second << (attempt - 1)
			if !ok || wait < last || wait < base || wait > min(base*5/4, 30*time.Second) {
				t.Fatalf("attempt %d: %v, %v after %v", attempt, wait, ok, last)
			}
			last = wait
		}
	}
	tests := []struct {
		attempt int
		after   time.Duration
		want    time.Duration
		ok      bool
	}{
		{1, time.Second, time.Second, true},
		{2, time.Second, time.Second, true},
		{4, 30 * time.Second, 30 * time.Second, true},
		{1, 31 * time.Second, 0, false},
		{1, 24 * time.Hour, 0, false},
		{5, 0, 0, false},
		{5, time.Second, 0, false},
		{0, 0, 0, false},
	}
	for _, tt := range tests {
		if got, ok := llm.Backoff(tt.attempt, tt.after); got != tt.want || ok != tt.ok {
			t.Errorf("Backoff(%d, %v) = %v, %v", tt.attempt, tt.after, got, ok)
		}
	}
}

func TestRetryPolicy(t *testing.T) {
	t.Parallel()
	quick := llm.RetryPolicy{Attempts: 40, Base: time.Millisecond, Max: 10 * time.Millisecond}
	if wait, ok := quick.Wait(39, 0); !ok || wait != 10*time.Millisecond {
		t.Errorf("late wait %v, %v", wait, ok)
	}
	if _, ok := quick.Next(1, &llm.Error{Kind: llm.KindAuth}); ok {
		t.Error("a refused key is tried again")
	}
	if _, ok := quick.Next(1, nil); ok {
		t.Error("success is tried again")
	}
	if wait, ok := quick.Next(1, &llm.Error{Retryable: true, RetryAfter: 5 * time.Millisecond}); !ok || wait != 5*time.Millisecond {
		t.Errorf("%v, %v", wait, ok)
	}
}

func TestSecretNeverPrints(t *testing.T) {
	t.Parallel()
	const word = "hunter22"
	s := llm.NewSecret(word)
	inside := struct {
		A llm.Secret
		b llm.Secret
		C llm.ProviderConfig
	}{s, s, llm.ProviderConfig{APIKey: s}}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "key", s)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "key", s, "all", inside)
	data, err := json.Marshal(map[string]any{"a": s, "b": &s})
	if err != nil {
		t.Fatal(err)
	}
	printed := []string{log.String(), string(data), fmt.Sprint(s, &s, inside.b)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		printed = append(printed, fmt.Sprintf(verb, s), fmt.Sprintf(verb, inside), fmt.Sprintf(verb, &inside))
	}
	for _, p := range printed {
		if strings.Contains(p, word) || strings.Contains(p, fmt.Sprintf("%x", word)) {
			t.Errorf("printed: %s", p)
		}
	}
	if s.String() != "***" || s.Reveal() != word || s.IsZero() {
		t.Errorf("%s", s)
	}
	if none := llm.NewSecret(""); !none.IsZero() || none.String() != "" || none.Reveal() != "" {
		t.Errorf("the empty secret is %q", none)
	}
}

func TestErrorForMessages(t *testing.T) {
	t.Parallel()
	for kind, name := range map[llm.Kind]string{
		llm.KindAuth: chat.ErrProviderAuth, llm.KindOverflow: chat.ErrContextOverflow, llm.KindContentFilter: chat.ErrContentFilter,
		llm.KindCanceled: chat.ErrAborted, llm.KindRateLimit: chat.ErrAPI, llm.KindInvalid: chat.ErrAPI,
	} {
		e := &llm.Error{Kind: kind, ProviderID: "p", StatusCode: 429, Retryable: true, Message: "m"}
		want := chat.ErrorData{Message: "m", ProviderID: "p", StatusCode: 429, IsRetryable: true}
		if got := e.Chat(); got.Name != name || got.Data != want || e.Error() != "p: m" {
			t.Errorf("%s: %+v", kind, got)
		}
	}
}

func TestParseScript(t *testing.T) {
	t.Parallel()
	call := func(name, input string) llm.ScriptCall { return llm.ScriptCall{Name: name, Input: input} }
	tests := []struct {
		text string
		want llm.Script
		ok   bool
	}{
		{"say:hello", llm.Script{Say: "hello"}, true},
		{"say:  a\n\tb  ", llm.Script{Say: "  a\n\tb  "}, true},
		{"say:a\ntool:x:{}", llm.Script{Say: "a\ntool:x:{}"}, true},
		{"\n hang \n", llm.Script{Hang: true}, true},
		{"cut", llm.Script{Cut: true}, true},
		{"http:503", llm.Script{Status: 503}, true},
		{"http:429:86400", llm.Script{Status: 429, RetryAfter: "86400"}, true},
		{`tool:read:{"path":"a:b"}`, llm.Script{Calls: []llm.ScriptCall{call("read", `{"path":"a:b"}`)}}, true},
		{"tool:a:{\n\"x\": 1}\r\ntool:b\nsay: hi\n", llm.Script{Say: " hi\n", Calls: []llm.ScriptCall{call("a", "{\n\"x\": 1}"), call("b", "{}")}}, true},
		{"tool:a:not json", llm.Script{Calls: []llm.ScriptCall{call("a", "not json")}}, true},
		{"tool::{}", llm.Script{}, false},
		{"http:200", llm.Script{}, false},
		{"http:abc", llm.Script{}, false},
		{"http:429:soon", llm.Script{}, false},
		{"hang on", llm.Script{}, false},
		{"please say:x", llm.Script{}, false},
		{"", llm.Script{}, false},
	}
	for _, tt := range tests {
		got, ok := llm.ParseScript(tt.text)
		if ok != tt.ok || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", tt.want) {
			t.Errorf("%q: %+v, %v", tt.text, got, ok)
		}
	}
}

func FuzzParseScript(f *testing.F) {
	for _, s := range []string{"say:x", "tool:a:{}\ntool:b", "http:500:1", "hang", "cut", "tool:", "tool:a\n\n:"} {
		f.Add(s, 5)
	}
	f.Fuzz(func(t *testing.T, text string, size int) {
		s, ok := llm.ParseScript(text)
		if !ok && fmt.Sprintf("%+v", s) != fmt.Sprintf("%+v", llm.Script{}) {
			t.Errorf("no script, but %+v", s)
		}
		for _, c := range s.Calls {
			if c.Name == "" || c.Input == "" || !strings.Contains(text, c.Name) {
				t.Errorf("call %+v", c)
			}
		}
		if s.Status != 0 && (s.Status < 400 || s.Status > 599) {
			t.Errorf("status %d", s.Status)
		}
		checkChunks(t, text, size)
	})
}

func checkChunks(t *testing.T, text string, size int) {
	t.Helper()
	var joined strings.Builder
	for piece := range llm.Chunks(text, size) {
		_, width := utf8.DecodeRuneInString(piece)
		if piece == "" || len(piece) > size && width != len(piece) {
			t.Fatalf("piece %q of at most %d", piece, size)
		}
		if utf8.ValidString(text) && !utf8.ValidString(piece) {
			t.Fatalf("%q splits a rune", piece)
		}
		joined.WriteString(piece)
	}
	if joined.String() != text {
		t.Errorf("pieces make %q of %q", joined.String(), text)
	}
}
