package tool_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/tool"
)

func TestBuiltinToolsDescribeThemselves(t *testing.T) {
	t.Parallel()
	classes := map[string]tool.Class{
		"read": tool.Read, "write": tool.Write, "edit": tool.Write, "list": tool.Read, "glob": tool.Read, "grep": tool.Read,
		"bash": tool.Effect, "todowrite": tool.Keyed, "todoread": tool.Read, "question": tool.Keyed, "task": tool.Keyed,
	}
	all := tool.Builtin()
	if len(all) != len(classes) {
		t.Errorf("%d tools", len(all))
	}
	for _, tl := range all {
		info := tl.Info()
		if info.Class != classes[info.Name] || len(info.Description) < 40 || info.Permission == "" {
			t.Errorf("%+v", info)
		}
		var schema struct {
			Type       string
			Properties map[string]struct{ Type, Description string }
			Required   []string
		}
		if err := json.Unmarshal(info.Schema, &schema); err != nil || schema.Type != "object" || schema.Required == nil {
			t.Errorf("%s: %s: %v", info.Name, info.Schema, err)
		}
		for _, name := range schema.Required {
			if schema.Properties[name].Type == "" {
				t.Errorf("%s: required %s has no schema", info.Name, name)
			}
		}
	}
}

func TestLookupRepairsCase(t *testing.T) {
	t.Parallel()
	r := tool.NewRegistry(tool.Builtin()...)
	for _, name := range []string{"read", "Read", "READ", " TodoWrite "} {
		if tl, ok := r.Lookup(name); !ok || !strings.EqualFold(tl.Info().Name, strings.TrimSpace(name)) {
			t.Errorf("Lookup(%q)", name)
		}
	}
	if _, ok := r.Lookup("reader"); ok {
		t.Error("found what is not there")
	}
}

func TestRegistryRefusesTwoOfOneName(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	tool.NewRegistry(append(tool.Builtin(), tool.Builtin()[0])...)
}

func TestVisibleHidesWhatIsDeniedAsAWhole(t *testing.T) {
	t.Parallel()
	r := tool.NewRegistry(tool.Builtin()...)
	names := func(sets rule.Sets) string {
		var all []string
		for _, tl := range r.Visible(sets) {
			all = append(all, tl.Info().Name)
		}
		return strings.Join(all, " ")
	}
	explore := rule.Sets{Configured: rules("deny * *", "allow grep *", "allow read *")}
	if got := names(explore); got != "read grep" {
		t.Errorf("explore sees %q", got)
	}
	plan := rule.Sets{Configured: rules("allow * *"), Guard: rules("deny edit *")}
	if got := names(plan); got != "read list glob grep bash todowrite todoread question task" {
		t.Errorf("plan sees %q", got)
	}
	exception := rule.Sets{Guard: rules("deny edit *", "allow edit plans/*")}
	if got := names(exception); !strings.Contains(got, "edit") {
		t.Errorf("an exception hides: %q", got)
	}
}

func TestMessageNeverTellsCauses(t *testing.T) {
	t.Parallel()
	cause := errors.New("secret")
	for _, err := range []error{cause, fault.Wrap(cause, fault.Internal, "It broke.")} {
		if got := tool.Message(err); got == "" || strings.Contains(got, "secret") {
			t.Errorf("%q", got)
		}
	}
	if got := tool.Message(t.Context().Err()); got == "" {
		t.Error("empty")
	}
}

func TestBadInputIsToldFieldByField(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tests := []struct {
		tool  string
		input string
		want  []string
	}{
		{"read", `{}`, []string{"path is required"}},
		{"read", `{"path":null}`, []string{"path is required"}},
		{"read", `{"path":7}`, []string{"path must be a string"}},
		{"read", `{"path":"a","offset":"3","limit":0}`, []string{"offset must be an integer, not a string", "limit must be at least 1"}},
		{"read", `{"path":"a","limit":5000}`, []string{"limit must be at most 2000"}},
		{"read", `{"path":"a","limit":1.5}`, []string{"limit must be an integer"}},
		{"read", `[]`, []string{"must be an object, not an array"}},
		{"read", `null`, []string{"must be an object, not null"}},
		{"read", `{"path":"a"`, []string{"broken JSON"}},
		{"read", ``, []string{"broken JSON"}},
		{"read", "{\"path\":\"a\\u0000b\"}", []string{"NUL"}},
		{"write", `{"path":"a"}`, []string{"content is required"}},
		{"write", `{"path":"","content":""}`, []string{"path must name a file"}},
		{"write", `{"path":"a/","content":""}`, []string{"path must name a file"}},
		{"write", `{"path":"..","content":""}`, []string{"path must name a file"}},
		{"edit", `{"path":"a","oldString":"","newString":"b"}`, []string{"oldString must not be empty"}},
		{"edit", `{"path":"a","oldString":"b","newString":"b"}`, []string{"equal"}},
		{"edit", `{"path":"a","oldString":"b","newString":"c","replaceAll":"yes"}`, []string{"replaceAll must be true or false"}},
		{"bash", `{"command":" "}`, []string{"command must not be empty"}},
		{"bash", `{"command":"a\u0000b"}`, []string{"NUL"}},
		{"bash", `{"command":"a","timeout":600001}`, []string{"timeout must be at most 600000"}},
		{"bash", `{"command":"` + strings.Repeat("a", 70000) + `"}`, []string{"longer than 64 KiB"}},
		{"list", `{"ignore":"a"}`, []string{"ignore must be an array"}},
		{"list", `{"ignore":["["]}`, []string{"ignore is not a valid glob"}},
		{"glob", `{"pattern":"{a"}`, []string{"pattern is not a valid glob"}},
		{"grep", `{"pattern":"a","include":"["}`, []string{"include is not a valid glob"}},
		{"todowrite", `{"todos":[{"content":"a","status":"done"}]}`, []string{"todos[0].status must be one of pending"}},
		{"todowrite", `{"todos":[1]}`, []string{"todos[0] must be an object"}},
		{"question", `{"questions":[]}`, []string{"1 to 10"}},
		{"question", `{"questions":[{"question":"a","header":"b"}]}`, []string{"questions[0].options is required"}},
		{"question", `{"questions":[{"question":" ","header":"b","options":[]}]}`, []string{"questions[0].question must not be empty"}},
		{"question", `{"questions":[{"question":"a","header":"b","options":[],"custom":false}]}`, []string{"no own answer"}},
	}
	for _, tt := range tests {
		c := b.call
		c.Input = json.RawMessage(tt.input)
		for range 2 {
			_, err := b.tool(tt.tool).Plan(t.Context(), &c)
			if err == nil {
				t.Errorf("%s %s: no error", tt.tool, tt.input)
				break
			}
			contains(t, tool.Message(err), tt.want...)
		}
		if _, err := b.tool(tt.tool).Run(t.Context(), &c); err == nil {
			t.Errorf("%s %s runs", tt.tool, tt.input)
		}
	}
}
