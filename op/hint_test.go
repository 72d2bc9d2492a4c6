package op_test

import (
	"context"
	"net/url"
	"slices"
	"testing"

	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/runtime"
)

func TestHintsOfARequest(t *testing.T) {
	t.Parallel()
	dir, ws := "X-Opencode-Directory", "X-Opencode-Workspace"
	for _, c := range []struct {
		query   string
		headers []string
		want    runtime.Hint
	}{
		{"", nil, runtime.Hint{}},
		{"directory=/a%20b", nil, runtime.Hint{Directory: "/a b", HasDirectory: true}},
		{"directory=/a&workspace=ws_1", nil, runtime.Hint{Directory: "/a", HasDirectory: true, Workspace: "ws_1", HasWorkspace: true}},
		{"workspace=ws_1", nil, runtime.Hint{Workspace: "ws_1", HasWorkspace: true}},
		{"location[directory]=/a&location%5Bworkspace%5D=ws_1", nil, runtime.Hint{Directory: "/a", HasDirectory: true, Workspace: "ws_1", HasWorkspace: true}},
		{"directory=/%FF", nil, runtime.Hint{Directory: "/\xff", HasDirectory: true}},
		{"workspace=", nil, runtime.Hint{HasWorkspace: true}},
		{"", []string{dir, "%2Fa%20b%2Bc+d"}, runtime.Hint{Directory: "/a b+c+d", HasDirectory: true}},
		{"", []string{dir, "/a", ws, "ws_1"}, runtime.Hint{Directory: "/a", HasDirectory: true, Workspace: "ws_1", HasWorkspace: true}},
		{"directory=/q", []string{dir, "/h", ws, "ws_1"}, runtime.Hint{Directory: "/q", HasDirectory: true}},
		{"workspace=ws_q", []string{dir, "/h"}, runtime.Hint{Workspace: "ws_q", HasWorkspace: true}},
	} {
		t.Run(c.query, func(t *testing.T) {
			t.Parallel()
			b := setup(t, echo[struct{}](op.Spec{Method: "GET", Path: "/api/thing"}))
			b.send("GET", "/api/thing?"+c.query, "", c.headers...)
			if !slices.Equal(b.host.hints, []runtime.Hint{c.want}) {
				t.Errorf("got %+v, want %+v", b.host.hints, c.want)
			}
		})
	}
}

func TestHintsThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	b := setup(t, echo[struct{}](op.Spec{Method: "GET", Path: "/api/thing"}))
	for query, code := range map[string]fault.Code{
		"directory=":                              fault.DirectoryInvalid,
		"location[directory]=":                    fault.DirectoryInvalid,
		"directory=/missing":                      fault.DirectoryNotFound,
		"directory=/a&directory=/b":               fault.ContextAmbiguous,
		"workspace=a&workspace=b":                 fault.ContextAmbiguous,
		"directory=/a&workspace=a&workspace=b":    fault.ContextAmbiguous,
		"directory=/a&directory=/b&workspace=one": fault.ContextAmbiguous,
	} {
		b.send("GET", "/api/thing?"+query, "").wantProblem(t, code)
	}
	b.send("GET", "/api/thing?directory=/a&location[directory]=/a", "").
		wantProblem(t, fault.ValidationFailed, "query.location[directory]")
	b.send("GET", "/api/thing", "", "X-Opencode-Directory", "/100%").
		wantProblem(t, fault.DirectoryInvalid, "header.X-Opencode-Directory")
	b.send("GET", "/api/thing", "", "X-Opencode-Directory", "/a", "X-Opencode-Directory", "/b").
		wantProblem(t, fault.ContextAmbiguous)
}

func TestOtherKindsTakeNoHint(t *testing.T) {
	t.Parallel()
	b := setup(t,
		op.New(op.Spec{Name: "server.thing", Method: "GET", Path: "/api/server", Summary: "A thing."},
			func(context.Context, *runtime.Server, struct{}) (string, error) { return "server", nil }),
		op.New(op.Spec{Name: "session.thing", Method: "POST", Path: "/api/session/{sessionID}/thing", Summary: "A thing."},
			func(_ context.Context, s *runtime.Session, _ struct{}) (string, error) { return string(s.ID), nil }),
	)
	for _, name := range []string{"directory", "workspace", "location[directory]", "location[workspace]"} {
		for _, value := range []string{"", "/a"} {
			query := "?" + url.Values{name: {value}}.Encode()
			b.send("GET", "/api/server"+query, "").wantProblem(t, fault.ContextNotAccepted, "query."+name)
			b.send("POST", "/api/session/"+string(session)+"/thing"+query, "").wantProblem(t, fault.ContextNotAccepted, "query."+name)
		}
	}
	headers := []string{"X-Opencode-Directory", "/100%", "X-Opencode-Workspace", ""}
	b.send("GET", "/api/server", "", headers...).wantData(t, `"server"`)
	got := b.send("POST", "/api/session/"+string(session)+"/thing", "", headers...)
	got.wantData(t, `"`+string(session)+`"`)
	if _, there := got.json["context"]; there {
		t.Error("a session answer has a context:", got.text)
	}
	got = b.send("POST", "/api/session/ses_nope/thing", "")
	got.wantProblem(t, fault.SessionNotFound)
	if got.json["sessionID"] != "ses_nope" {
		t.Error(got.text)
	}
}

func TestItemOperationsHaveTheContextOfTheirObject(t *testing.T) {
	t.Parallel()
	b := setup(t, op.New(op.Spec{Name: "pty.get", Method: "GET", Path: "/api/pty/{ptyID}", Summary: "A terminal.", Item: true},
		func(_ context.Context, rt *runtime.Request, in struct {
			PtyID string `json:"ptyID"`
		},
		) (string, error) {
			rt.Bind(event.Context{Directory: "/of/" + in.PtyID, WorkspaceID: "ws_9"})
			return in.PtyID, nil
		}))
	for _, query := range []string{"", "?directory=/missing", "?directory=", "?workspace=a&workspace=b"} {
		got := b.send("GET", "/api/pty/pty_1"+query, "", "X-Opencode-Directory", "/100%")
		got.wantData(t, `"pty_1"`)
		where := got.json["context"].(map[string]any)
		if where["directory"] != "/of/pty_1" || where["workspaceID"] != "ws_9" {
			t.Error(got.text)
		}
	}
	if len(b.host.hints) != 0 {
		t.Errorf("hints were resolved: %v", b.host.hints)
	}
	b.send("GET", "/api/pty/pty_1?dir=/a", "").wantProblem(t, fault.UnknownParameter, "query.dir")
}

func TestManyContexts(t *testing.T) {
	t.Parallel()
	b := setup(t, op.New(op.Spec{Name: "event.subscribe", Method: "GET", Path: "/api/event", Summary: "Events.", Many: true},
		func(ctx context.Context, _ *runtime.Request, _ struct{}) ([]runtime.Hint, error) {
			return op.Hints(ctx), nil
		}))
	one := func(directory, workspace string, hasD, hasW string) string {
		return `{"Directory":"` + directory + `","HasDirectory":` + hasD + `,"HasWorkspace":` + hasW + `,"Workspace":"` + workspace + `"}`
	}
	for query, want := range map[string]string{
		"":                            `[]`,
		"directory=/a&directory=/b":   "[" + one("/a", "", "true", "false") + "," + one("/b", "", "true", "false") + "]",
		"directory=/a&workspace=ws_1": "[" + one("/a", "ws_1", "true", "true") + "]",
		"workspace=a&workspace=b":     "[" + one("", "a", "false", "true") + "," + one("", "b", "false", "true") + "]",
	} {
		b.send("GET", "/api/event?"+query, "").wantData(t, want)
	}
	b.send("GET", "/api/event?directory=/a&directory=/b&workspace=ws_1", "").wantProblem(t, fault.ContextAmbiguous)
	if len(b.host.hints) != 0 {
		t.Errorf("hints were resolved: %v", b.host.hints)
	}
}
