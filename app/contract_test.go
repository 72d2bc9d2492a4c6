package app_test

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/app/apptest"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/operations"
)

// route fills the path parameters of an operation.
func route(d op.Description, ses, other string) string {
	return strings.NewReplacer(
		"{sessionID}", ses, "{permissionID}", other, "{questionID}", other, "{messageID}", other, "{providerID}", other, "{modelID}", other, "{attachmentID}", other,
	).Replace(d.Path)
}

// unknown are well-formed ids of things that are not there.
const (
	unknownSession = "ses_01K3ZZZZZZ7ZZZ8ZZZZZZZZZZZ"
	unknownID      = "per_01K3ZZZZZZZZZZZZZZZZZZZZZZ"
)

func body(method string) any {
	if method == http.MethodGet || method == http.MethodDelete {
		return nil
	}
	return map[string]any{}
}

func TestSC56_EveryRouteWithoutTokenIs401(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	public := 0
	for _, o := range operations.All() {
		d := o.Describe()
		a := s.DoWith(s.Plain, d.Method, route(d, unknownSession, unknownID), body(d.Method))
		if d.Public {
			public++
			if a.Status != 200 || strings.Contains(string(a.Body), "version") {
				t.Errorf("%s is public: %d %s", d.Name, a.Status, a.Body)
			}
			continue
		}
		if a.Status != 401 || a.Code() != "unauthorized" || a.Header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s without a token: %d %s %q", d.Name, a.Status, a.Code(), a.Header.Get("WWW-Authenticate"))
		}
	}
	if public != 1 {
		t.Errorf("%d operations are public, want health.get alone", public)
	}
	for path, want := range map[string]int{"/livez": 200, "/readyz": 200, "/api/openapi.json": 401, "/api/openapi.yaml": 401, "/api/docs": 401, "/nowhere": 401} {
		if a := s.DoWith(s.Plain, "GET", path, nil); a.Status != want {
			t.Errorf("%s: %d, want %d", path, a.Status, want)
		}
	}
	for _, wrong := range []string{"Bearer x", "Bearer ", "Basic eDp5", "Bearer " + apptest.Token + "x"} {
		if a := s.DoWith(s.Plain, "GET", "/api/session", nil, "Authorization", wrong); a.Status != 401 && a.Status != 429 {
			t.Errorf("%q: %d", wrong, a.Status)
		}
	}
	if a := s.DoWith(s.Plain, "GET", "/api/session", nil, "Authorization", "Bearer "+apptest.Token); a.Status != 200 {
		t.Errorf("the right token after wrong ones: %d", a.Status)
	}
}

func TestSC56_BadInputOfEveryOperation(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	ses := string(s.Session("").ID)
	for _, o := range operations.All() {
		d := o.Describe()
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			path := route(d, ses, unknownID)
			if a := s.Do(d.Method, path+"?nonsense=1", body(d.Method)); a.Code() != "unknown_parameter" {
				t.Errorf("an unknown parameter: %d %s", a.Status, a.Code())
			}
			raw := slices.ContainsFunc(d.Inputs, func(f op.Input) bool { return f.In == op.InRaw })
			if body(d.Method) != nil && !raw {
				bodies(t, s, d.Method, path)
			}
			if d.Kind != op.KindRequest {
				if a := s.Do(d.Method, path+"?directory=", body(d.Method)); a.Code() != "context_not_accepted" {
					t.Errorf("a context: %d %s", a.Status, a.Code())
				}
			}
			if d.Kind == op.KindSession {
				for _, bad := range []string{unknownSession, "nope", "ses_x", "ses_" + strings.Repeat("9", 300)} {
					if a := s.Do(d.Method, route(d, bad, unknownID), body(d.Method)); a.Code() != "session_not_found" && a.Code() != "validation_failed" {
						t.Errorf("session %.20q: %d %s", bad, a.Status, a.Code())
					}
				}
			}
			for _, in := range d.Fields() {
				if in.In == "query" && in.Type == "integer" {
					if a := s.Do(d.Method, path+"?"+in.Name+"=many", body(d.Method)); a.Code() != "validation_failed" || !strings.Contains(string(a.Body), "query."+in.Name) {
						t.Errorf("%s=many: %d %s", in.Name, a.Status, a.Body)
					}
				}
				if in.In == "query" && len(in.Enum) > 0 {
					if a := s.Do(d.Method, path+"?"+in.Name+"=odd", body(d.Method)); a.Code() != "validation_failed" {
						t.Errorf("%s=odd: %d %s", in.Name, a.Status, a.Code())
					}
				}
			}
		})
	}
}

func bodies(t *testing.T, s *apptest.Server, method, path string) {
	t.Helper()
	for _, c := range []struct {
		what, body, code string
		headers          []string
	}{
		{"broken JSON", `{"a":`, "malformed_json", nil},
		{"two values", `{} {}`, "malformed_json", nil},
		{"no object", `[]`, "validation_failed", nil},
		{"an extra key", `{"nonsense":1}`, "validation_failed", nil},
		{"a form", `a=b`, "unsupported_media_type", []string{"Content-Type", "application/x-www-form-urlencoded"}},
	} {
		if a := s.Do(method, path, c.body, c.headers...); a.Code() != c.code {
			t.Errorf("%s: %d %s, want %s", c.what, a.Status, a.Code(), c.code)
		}
	}
}

func TestSC56_UnknownIDsAndRoutes(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	ses := string(s.Session("").ID)
	for _, c := range []struct{ method, path, code string }{
		{"POST", "/api/permission/" + unknownID + "/reply", "permission_not_found"},
		{"POST", "/api/permission/x/reply", "permission_not_found"},
		{"POST", "/api/question/que_01K3ZZZZZZZZZZZZZZZZZZZZZZ/reject", "question_not_found"},
		{"GET", "/api/session/" + ses + "/message/msg_none", "message_not_found"},
		{"GET", "/api/session/" + ses + "/message/none", "message_not_found"},
		{"GET", "/api/catalog/model/none/none", "model_not_found"},
		{"GET", "/api/catalog/model/openrouter/no/such%2Fmodel", "model_not_found"},
		{"GET", "/api/event?session=ses_x", "session_not_found"},
		{"GET", "/api/session?workspace=ws_01K3ZZZZZZZZZZZZZZZZZZZZZZ", "workspace_not_found"},
		{"GET", "/api/nothing", "route_not_found"},
		{"GET", "/api/session/" + ses + "/nothing", "route_not_found"},
		{"PUT", "/api/session", "method_not_allowed"},
		{"DELETE", "/api/health", "method_not_allowed"},
	} {
		var in any
		if c.method == "POST" {
			in = map[string]any{}
			if strings.HasSuffix(c.path, "reply") {
				in = map[string]any{"response": "once"}
			}
		}
		client := s.Client
		if strings.HasSuffix(c.code, "route_not_found") || c.code == "method_not_allowed" {
			client = s.Plain // not in the document, so there is nothing to hold it against
		}
		a := s.DoWith(client, c.method, c.path, in, "Authorization", "Bearer "+apptest.Token)
		if a.Code() != c.code || !strings.HasPrefix(a.Header.Get("Content-Type"), "application/problem+json") || a.Header.Get("X-Request-ID") == "" {
			t.Errorf("%s %s: %d %s, want %s", c.method, c.path, a.Status, a.Body, c.code)
		}
	}
	if a := s.DoWith(s.Plain, "HEAD", "/api/session", nil, "Authorization", "Bearer "+apptest.Token); a.Status != 200 || len(a.Body) != 0 {
		t.Errorf("HEAD: %d %q", a.Status, a.Body)
	}
}

func TestBadDirectories(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	file := s.Directory + "/file"
	write(t, file, nil)
	for directory, code := range map[string]string{
		"":            "directory_invalid",
		"relative/x":  "directory_invalid",
		file:          "directory_invalid",
		file + "/x":   "directory_invalid",
		"/none/such":  "directory_not_found",
		"/a\xffb":     "directory_invalid",
		"/tmp/\x00":   "directory_invalid",
		s.State + "x": "directory_not_found",
	} {
		for _, path := range []string{"/api/session", "/api/location", "/api/fs/tree"} {
			if a := s.Do("GET", path+apptest.Query("directory", directory), nil); a.Code() != code {
				t.Errorf("%s of %q: %d %s, want %s", path, directory, a.Status, a.Code(), code)
			}
		}
	}
	if n := s.App.Host().Instances(); n != 0 {
		t.Errorf("%d instances were made for directories that are none", n)
	}
	if got := apptest.Data[operations.Location](s, "GET", "/api/location", nil, "x-opencode-directory", strings.ReplaceAll(s.Directory, "/", "%2F")); got.Directory != s.Directory {
		t.Errorf("by header: %s", got.Directory)
	}
}

func TestOversizedBodiesAreRefusedAndStoreNothing(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	ses := s.Session("")
	big := `{"title":"` + strings.Repeat("x", 5<<20) + `"}`
	if a := s.Do("POST", "/api/session", big); a.Code() != "body_too_large" {
		t.Errorf("session.create: %d %s", a.Status, a.Code())
	}
	huge := `{"prompt":{"text":"` + strings.Repeat("x", 33<<20) + `"}}`
	if a := s.Do("POST", "/api/session/"+string(ses.ID)+"/prompt", huge); a.Code() != "body_too_large" {
		t.Errorf("session.prompt: %d %s", a.Status, a.Code())
	}
	if n := len(s.Messages(ses)); n != 0 {
		t.Errorf("%d messages were stored", n)
	}
}

func TestPromptRefusals(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	dir := apptest.Dir(t)
	ses := s.Session(dir)
	path := "/api/session/" + string(ses.ID) + "/prompt"
	prompt := map[string]any{"text": "x"}
	for code, more := range map[string]map[string]any{
		"agent_unknown":     {"agent": "none"},
		"model_unavailable": {"model": map[string]any{"providerID": "fake", "modelID": "none"}},
		"validation_failed": {"delivery": "someday"},
	} {
		in := map[string]any{"prompt": prompt}
		for k, v := range more {
			in[k] = v
		}
		if a := s.Do("POST", path, in); a.Code() != code {
			t.Errorf("%v: %d %s, want %s", more, a.Status, a.Code(), code)
		}
	}
	for uri, code := range map[string]string{"file:none.txt": "file_not_found", "file:///etc/passwd": "path_outside", "ftp://x": "validation_failed"} {
		in := map[string]any{"prompt": map[string]any{"text": "x", "files": []any{map[string]any{"uri": uri}}}}
		if a := s.Do("POST", path, in); a.Code() != code {
			t.Errorf("%s: %d %s, want %s", uri, a.Status, a.Code(), code)
		}
	}
	if n := len(s.Messages(ses)); n != 0 {
		t.Errorf("%d messages were stored by refused prompts", n)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if a := s.Do("POST", path, map[string]any{"prompt": prompt}); a.Code() != "directory_missing" {
		t.Errorf("directory gone: %d %s", a.Status, a.Code())
	}
	if a := s.Do("GET", "/api/session/"+string(ses.ID), nil); a.Status != 200 {
		t.Errorf("reading a session whose directory is gone: %d", a.Status)
	}
	s.Do("DELETE", "/api/session/"+string(ses.ID), nil)
	if a := s.Do("POST", path, map[string]any{"prompt": prompt}); a.Code() != "session_not_found" {
		t.Errorf("deleted: %d %s", a.Status, a.Code())
	}
}

func TestDocumentIsServedAndCommitted(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	auth := []string{"Authorization", "Bearer " + apptest.Token}
	for path, typ := range map[string]string{"/api/openapi.json": "application/json", "/api/openapi.yaml": "application/yaml", "/api/docs": "text/html"} {
		a := s.DoWith(s.Plain, "GET", path, nil, auth...)
		if a.Status != 200 || !strings.Contains(a.Header.Get("Content-Type"), typ) || len(a.Body) < 500 {
			t.Errorf("%s: %d %s, %d bytes", path, a.Status, a.Header.Get("Content-Type"), len(a.Body))
		}
	}
}
