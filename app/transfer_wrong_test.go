package app_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/app/apptest"
	"github.com/switchyard-dev/switchyard/session"
)

// mistake is a change of a document, and the place that an import must name.
type mistake struct {
	pointer string
	change  func(d map[string]any)
}

func wrong() []mistake {
	info := func(d map[string]any, i int) map[string]any { return at(d, "sessions", i, "info") }
	message := func(d map[string]any, i, j int) map[string]any { return at(d, "sessions", i, "messages", j) }
	return []mistake{
		{"/nonsense", func(d map[string]any) { d["nonsense"] = 1 }},
		{"/format", func(d map[string]any) { d["format"] = "other" }},
		{"/version", func(d map[string]any) { d["version"] = 2 }},
		{"/sessions", func(d map[string]any) { d["sessions"] = []any{} }},
		{"/sessions/0/a~1b", func(d map[string]any) { at(d, "sessions", 0)["a/b"] = nil }},
		{"/sessions/1/info/slug", func(d map[string]any) { info(d, 1)["slug"] = "x" }},
		{"/sessions/0/info/tokens/odd", func(d map[string]any) { at(d, "sessions", 0, "info", "tokens")["odd"] = 1 }},
		{"/sessions/0/info/title", func(d map[string]any) { delete(info(d, 0), "title") }},
		{"/sessions/0/info/time/created", func(d map[string]any) { at(d, "sessions", 0, "info", "time")["created"] = "now" }},
		{"/sessions/0/messages/1/info/role", func(d map[string]any) { at(d, "sessions", 0, "messages", 1, "info")["role"] = "system" }},
		{"/sessions/0/messages/1/parts/0/extra", func(d map[string]any) { at(d, "sessions", 0, "messages", 1, "parts", 0)["extra"] = true }},
		{"/sessions/0/messages/1/info/id", func(d map[string]any) {
			at(message(d, 0, 1), "info")["id"] = at(message(d, 0, 0), "info")["id"]
		}},
		{"/sessions/0/messages/1/info/sessionID", func(d map[string]any) { at(message(d, 0, 1), "info")["sessionID"] = info(d, 1)["id"] }},
		{"/sessions/0/messages/1/info/parentID", func(d map[string]any) {
			at(message(d, 0, 1), "info")["parentID"] = at(message(d, 0, 2), "info")["id"]
		}},
		{"/sessions/0/messages/1/parts/1/messageID", func(d map[string]any) { at(message(d, 0, 1), "parts", 1)["messageID"] = "msg_other" }},
		{"/sessions/0/messages/2/info/turnID", func(d map[string]any) { at(message(d, 0, 2), "info")["turnID"] = "trn_x" }},
		{"/sessions/1/info/id", func(d map[string]any) { info(d, 1)["id"] = info(d, 0)["id"] }},
		{"/sessions/0/info/parentID", func(d map[string]any) { info(d, 0)["parentID"] = info(d, 1)["id"] }},
		{"/sessions/2/info/parentID", func(d map[string]any) { info(d, 2)["parentID"] = unknownSession }},
		{"/sessions/2/info/rootSessionID", func(d map[string]any) { info(d, 2)["rootSessionID"] = info(d, 2)["id"] }},
		{"/attachments/0/data", func(d map[string]any) { at(d, "attachments", 0)["data"] = "!" }},
		{"/attachments/0/id", func(d map[string]any) { at(d, "attachments", 0)["id"] = "att_1" }},
		{"/sessions/1/info/metadata", func(d map[string]any) { info(d, 1)["metadata"] = 5 }},
	}
}

func TestSC17_AnImportNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	doc := tree(t, apptest.Options{})
	s := apptest.Start(t, apptest.Options{})
	dir := apptest.Dir(t)
	for _, c := range wrong() {
		broken := decoded(t, doc)
		c.change(broken)
		a := importInto(s, dir, broken)
		var p struct{ Errors []struct{ Location string } }
		if err := json.Unmarshal(a.Body, &p); err != nil {
			t.Fatal(err)
		}
		if a.Status != 422 || a.Code() != "validation_failed" || len(p.Errors) != 1 || p.Errors[0].Location != c.pointer {
			t.Errorf("%s: %d %s", c.pointer, a.Status, a.Body)
		}
	}
	whole := encoded(doc)
	if a := importInto(s, dir, strings.Repeat(" ", 64<<20+1)); a.Code() != "body_too_large" {
		t.Errorf("a document over the limit: %d %s", a.Status, a.Body)
	}
	if a := s.Do("POST", "/api/session/import", whole, "Content-Type", "text/plain"); a.Code() != "unsupported_media_type" {
		t.Errorf("a document as text: %d %s", a.Status, a.Body)
	}
	for _, text := range [][]byte{nil, whole[:len(whole)/2], append(slices.Clone(whole), "{}"...), []byte("[")} {
		if a := s.Do("POST", "/api/session/import", text); a.Code() != "malformed_json" && a.Code() != "validation_failed" {
			t.Errorf("%.20q…: %d %s", text, a.Status, a.Body)
		}
	}
	if page := apptest.List[session.Session](s, "/api/session?scope=server"); len(page.Data) != 0 || stored(t, s) != 0 {
		t.Errorf("refused documents left %d sessions and %d files", len(page.Data), stored(t, s))
	}
	// A rule that allows is no part of what comes in.
	open := decoded(t, doc)
	at(open, "sessions", 0, "info")["permission"] = []any{map[string]any{"permission": "*", "pattern": "*", "action": "allow"}}
	if got := mustImport(t, s, dir, open); len(got.Sessions[0].Permission) != 0 {
		t.Errorf("the document granted %+v", got.Sessions[0].Permission)
	}
}

// at goes down into a JSON value.
func at(v any, path ...any) map[string]any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			v = v.(map[string]any)[step]
		case int:
			if list, ok := v.([]any); ok {
				v = list[step]
			}
		}
	}
	return v.(map[string]any)
}
