package app_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/switchyard-dev/switchyard/app/apptest"
	"github.com/switchyard-dev/switchyard/session"
)

// atOnce sends a request ten times in parallel and gives all answers, and how many
// of them were replayed.
func atOnce(s *apptest.Server, path string, body any, headers ...string) (answers []apptest.Answer, replayed int) {
	answers = make([]apptest.Answer, 10)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i] = s.Do("POST", path, body, headers...) })
	}
	wg.Wait()
	for _, a := range answers {
		if a.Header.Get("Idempotent-Replayed") == "true" {
			replayed++
		}
	}
	return answers, replayed
}

func messageID(s *apptest.Server, a apptest.Answer) string {
	_, rest, _ := strings.Cut(string(a.Body), `"messageID":"`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

func TestSC14_IdempotentPrompt(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		s := apptest.Start(t, o)
		for name, c := range map[string]struct {
			id      string
			headers []string
		}{
			"messageID": {"msg_p1", nil},
			"key":       {"", []string{"Idempotency-Key", "p1"}},
			"both":      {"msg_p1", []string{"Idempotency-Key", "p1"}},
		} {
			ses := s.Session("")
			path := "/api/session/" + string(ses.ID) + "/prompt"
			body := func(text string) map[string]any {
				in := map[string]any{"prompt": map[string]any{"text": text}}
				if c.id != "" {
					in["messageID"] = c.id
				}
				return in
			}
			answers, replayed := atOnce(s, path, body("say:one"), c.headers...)
			for _, a := range answers {
				if a.Status != 200 || messageID(s, a) == "" || messageID(s, a) != messageID(s, answers[0]) {
					t.Errorf("%s: %d %s", name, a.Status, a.Body)
				}
			}
			if replayed != 9 {
				t.Errorf("%s: %d answers are replayed, want 9", name, replayed)
			}
			if a := s.Do("POST", path, body("say:two"), c.headers...); a.Status != 409 || a.Code() != "idempotency_conflict" {
				t.Errorf("%s: another body: %d %s", name, a.Status, a.Body)
			}
			s.Wait(ses)
			if got := turns(s, ses); len(got) != 1 {
				t.Errorf("%s: turns %q", name, got)
			}
			if got := s.Text(ses); got != "one" {
				t.Errorf("%s: answers %q", name, got)
			}
		}
	})
}

// TestSC14_ARepeatedPromptNeedsNothingAnew: what a prompt named may be gone by the
// time it is sent again.
func TestSC14_ARepeatedPromptNeedsNothingAnew(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	ses := s.Session("")
	path := "/api/session/" + string(ses.ID) + "/prompt"
	file := filepath.Join(s.Directory, "notes.txt")
	write(t, file, []byte("notes"))
	in := map[string]any{"messageID": "msg_f", "prompt": map[string]any{"text": "say:x", "files": []any{map[string]any{"uri": "file:notes.txt"}}}}
	first := s.Do("POST", path, in)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	again := s.Do("POST", path, in)
	if first.Status != 200 || again.Status != 200 || again.Header.Get("Idempotent-Replayed") != "true" || first.Header.Get("Idempotent-Replayed") != "" {
		t.Fatalf("%d %s, then %d %s", first.Status, first.Body, again.Status, again.Body)
	}
	s.Wait(ses)
	answer := s.Messages(ses)[1].Info.ID
	in = map[string]any{"messageID": answer, "prompt": map[string]any{"text": "say:x"}}
	if a := s.Do("POST", path, in); a.Code() != "idempotency_conflict" {
		t.Fatalf("the id of an answer: %d %s", a.Status, a.Body)
	}
}

func TestIdempotencyKeyOfACreation(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		s := apptest.Start(t, o)
		key := []string{"Idempotency-Key", "create-1"}
		answers, replayed := atOnce(s, "/api/session", map[string]any{"title": "T", "metadata": map[string]any{"a": 1, "b": 2}}, key...)
		for _, a := range answers {
			if a.Status != 200 || string(a.Body) != string(answers[0].Body) || a.Header.Get("Content-Type") != "application/json" ||
				a.Header.Get("X-Event-Cursor") != answers[0].Header.Get("X-Event-Cursor") {
				t.Errorf("%d %s %v", a.Status, a.Body, a.Header)
			}
		}
		if n := len(apptest.List[session.Session](s, "/api/session").Data); replayed != 9 || n != 1 {
			t.Fatalf("%d sessions, %d replayed", n, replayed)
		}
		spelled := s.Do("POST", "/api/session", `{ "metadata": {"b":2, "a":1}, "title": "T" }`, key...)
		if spelled.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("another spelling of the body: %d %s", spelled.Status, spelled.Body)
		}
		other := apptest.Query("directory", apptest.Dir(t))
		for what, a := range map[string]apptest.Answer{
			"another body":      s.Do("POST", "/api/session", map[string]any{"title": "U"}, key...),
			"another directory": s.Do("POST", "/api/session"+other, map[string]any{"title": "T", "metadata": map[string]any{"a": 1, "b": 2}}, key...),
			"another operation": s.Do("POST", "/api/fs/search", map[string]any{"query": "x"}, key...),
		} {
			if a.Code() != "idempotency_conflict" {
				t.Errorf("%s: %d %s", what, a.Status, a.Body)
			}
		}
		s = s.Restart(o)
		again := s.Do("POST", "/api/session", map[string]any{"title": "T", "metadata": map[string]any{"b": 2, "a": 1}}, key...)
		if string(again.Body) != string(answers[0].Body) || again.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("after a restart: %d %s", again.Status, again.Body)
		}
	})
}

// TestIdempotencyKeysOfFailures: what a handler refused stays refused; what could
// not begin leaves the key free.
func TestIdempotencyKeysOfFailures(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	post := func(path string, body any, key string) apptest.Answer {
		return s.Do("POST", path, body, "Idempotency-Key", key)
	}
	for range 2 {
		a := post("/api/session", map[string]any{"agent": "none"}, "refused")
		if a.Code() != "agent_unknown" || !strings.Contains(string(a.Body), a.Header.Get("X-Request-ID")) {
			t.Errorf("%d %s, request %s", a.Status, a.Body, a.Header.Get("X-Request-ID"))
		}
	}
	if a := post("/api/session", map[string]any{"agent": "build"}, "refused"); a.Code() != "idempotency_conflict" {
		t.Errorf("a refused key with another body: %d %s", a.Status, a.Body)
	}

	if a := post("/api/session", map[string]any{"title": 1}, "input"); a.Code() != "validation_failed" {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if a := post("/api/session", map[string]any{"title": "one"}, "input"); a.Status != 200 || a.Header.Get("Idempotent-Replayed") != "" {
		t.Errorf("after bad input: %d %s", a.Status, a.Body)
	}
	dir := filepath.Join(apptest.Dir(t), "later")
	if a := post("/api/session"+apptest.Query("directory", dir), map[string]any{}, "context"); a.Code() != "directory_not_found" {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if a := post("/api/session"+apptest.Query("directory", dir), map[string]any{}, "context"); a.Status != 200 {
		t.Errorf("after a missing directory: %d %s", a.Status, a.Body)
	}

	ses := s.Session("")
	for i, want := range []string{"", "true"} {
		a := post("/api/session/"+string(ses.ID)+"/interrupt", nil, "none")
		if a.Status != 204 || a.Header.Get("Idempotent-Replayed") != want || len(a.Body) != 0 {
			t.Errorf("%d: %d %q", i, a.Status, a.Header.Get("Idempotent-Replayed"))
		}
		if a := post("/api/session/"+string(ses.ID)+"/wait", nil, "none"); a.Status != 200 || a.Header.Get("Idempotent-Replayed") != "" {
			t.Errorf("a wait: %d %s", a.Status, a.Body)
		}
	}
}

func TestIdempotencyKeysAreChecked(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	ses := s.Session("")
	for _, key := range []string{"", "a b", "ä", strings.Repeat("k", 256)} {
		for path, body := range map[string]any{
			"/api/session": map[string]any{},
			"/api/session/" + string(ses.ID) + "/prompt": map[string]any{"prompt": map[string]any{"text": "say:x"}},
		} {
			a := s.Do("POST", path, body, "Idempotency-Key", key)
			if a.Code() != "validation_failed" || !strings.Contains(string(a.Body), "header.Idempotency-Key") {
				t.Errorf("%q of %s: %d %s", key, path, a.Status, a.Body)
			}
		}
	}
	long := strings.Repeat("~", 255)
	for _, want := range []string{"", "true"} {
		if a := s.Do("POST", "/api/session", nil, "Idempotency-Key", long); a.Status != 200 || a.Header.Get("Idempotent-Replayed") != want {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
}

// TestALargeAnswerIsNotKept: a search may run again, so that its key gives the
// whole answer each time; one that streams is not kept either.
func TestALargeAnswerIsNotKept(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	write(t, filepath.Join(s.Directory, "f"), []byte(strings.Repeat(fmt.Sprintln(strings.Repeat("needle ", 40)), 2000)))
	in := map[string]any{"pattern": "needle", "limit": 2000}
	for _, accept := range []string{"application/json", "application/x-ndjson"} {
		var first []byte
		for range 2 {
			a := s.Do(http.MethodPost, "/api/fs/grep", in, "Idempotency-Key", "grep", "Accept", accept)
			if a.Status != 200 || len(a.Body) < 256<<10 || a.Header.Get("Idempotent-Replayed") != "" || !strings.HasPrefix(a.Header.Get("Content-Type"), accept) {
				t.Fatalf("%d %s %d bytes", a.Status, a.Header.Get("Content-Type"), len(a.Body))
			}
			if first != nil && string(first) != string(a.Body) {
				t.Error("another answer")
			}
			first = a.Body
		}
	}
}
