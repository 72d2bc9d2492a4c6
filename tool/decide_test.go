package tool_test

import (
	"testing"

	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/tool"
)

var (
	openRules  = rule.Sets{Configured: rules("allow * *", "ask external_directory *")}
	someRules  = rule.Sets{Configured: rules("allow bash git log", "allow bash yarn", "allow bash ls *", "deny bash rm *", "ask bash git push")}
	savedRules = rule.Sets{Saved: rules("allow bash git log", "allow bash go vet ./...")}
	planRules  = rule.Sets{Configured: rules("allow * *"), Guard: rules("deny bash git commit")}
)

var bashDecisions = []struct {
	name    string
	sets    rule.Sets
	command string
	want    rule.Action
	pattern string // of the rule that decides
}{
	{"open", openRules, "make all && ls | wc -l", rule.Allow, "*"},
	{"open but opaque", openRules, "echo $(make)", rule.Ask, "*"},
	{"open but a redirection", openRules, "ls > x", rule.Ask, "*"},
	{"open but outside", openRules, "rm /etc/passwd", rule.Ask, "*"},
	{"prefix", someRules, "yarn test --all", rule.Allow, "yarn"},
	{"prefix alone", someRules, "yarn", rule.Allow, "yarn"},
	{"prefix by word", someRules, "yarnx", rule.Ask, "*"},
	{"two words", someRules, "git log --oneline", rule.Allow, "git log"},
	{"other command", someRules, "git status", rule.Ask, "*"},
	{"own wildcard", someRules, "ls -la", rule.Allow, "ls *"},
	{"each must pass", someRules, "git log && git status", rule.Ask, "*"},
	{"one denies", someRules, "git log; rm -rf x", rule.Deny, "rm *"},
	{"one denies behind", someRules, "ls | (yarn && rm x)", rule.Deny, "rm *"},
	{"named rule asks", someRules, "git push origin", rule.Ask, "git push"},
	{"quoted", someRules, `'git' "log"`, rule.Allow, "git log"},
	{"escaped", someRules, `\rm x`, rule.Deny, "rm *"},
	{"by path", someRules, "/bin/rm x", rule.Deny, "rm *"},
	{"behind sudo", someRules, "sudo -u root rm x", rule.Deny, "rm *"},
	{"behind sh", someRules, "sh -c 'ls; rm x'", rule.Deny, "rm *"},
	{"behind xargs", someRules, "ls | xargs rm", rule.Deny, "rm *"},
	{"behind find", someRules, "find . -exec rm {} +", rule.Deny, "rm *"},
	{"behind eval", someRules, "eval 'rm x'", rule.Deny, "rm *"},
	{"behind env", someRules, "env A=b rm x", rule.Deny, "rm *"},
	{"in a substitution", someRules, "git log $(rm x)", rule.Deny, "rm *"},
	{"in backticks", someRules, "git log `rm x`", rule.Deny, "rm *"},
	{"in a function", someRules, "ls() { rm x; }; ls", rule.Deny, "rm *"},
	{"in a text that does not parse", someRules, "ls; rm x; )", rule.Deny, "rm *"},
	{"allowed by a substitution only", someRules, "git log $(ls)", rule.Ask, "*"},
	{"allowed with a variable", someRules, "git log $x", rule.Ask, "*"},
	{"allowed with another path", someRules, "PATH=/evil ls", rule.Ask, "*"},
	{"saved", savedRules, "git log", rule.Allow, "git log"},
	{"saved is exact", savedRules, "git log -p", rule.Ask, "*"},
	{"saved chain", savedRules, "git log && go vet ./...", rule.Allow, "git log"},
	{"guard", planRules, "git commit -m x", rule.Deny, "git commit"},
	{"guard leaves the rest", planRules, "git log", rule.Allow, "*"},
}

func TestDecideBash(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, tt := range bashDecisions {
		p, err := b.plan("bash", in{"command": tt.command})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		d := tool.Decide(tt.sets, p)
		decided := d[len(d)-1].Rule
		if tt.name == "open but outside" {
			decided = d[0].Rule
		}
		if d.Action() != tt.want || decided.Pattern != tt.pattern || decided.Action != tt.want {
			t.Errorf("%s: %s by %+v", tt.name, d.Action(), d)
		}
		if _, denied := d.Denied(); denied != (tt.want == rule.Deny) || (len(d.Pending()) > 0) != (tt.want == rule.Ask) {
			t.Errorf("%s: pending %v", tt.name, d.Pending())
		}
	}
}

func TestDecideFiles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.file(".env", "SECRET=1")
	b.file("a.go", "x")
	b.file("sub/b.go", "x")
	b.link(".env", "harmless")
	b.call.Directory = b.root + "/sub"
	sets := rule.Sets{Configured: rules(
		"allow * *", "ask external_directory *", "ask read *.env", "deny edit vendor/*", "ask edit sub/*")}
	tests := []struct {
		tool  string
		in    in
		want  rule.Action
		asked string // first pattern of the first pending request
	}{
		{"read", in{"path": "../a.go"}, rule.Allow, ""},
		{"read", in{"path": "b.go"}, rule.Allow, ""},
		{"read", in{"path": "../.env"}, rule.Ask, ".env"},
		{"read", in{"path": "../harmless"}, rule.Ask, "harmless"},
		{"grep", in{"pattern": "x", "path": "../.env"}, rule.Ask, ".env"},
		{"grep", in{"pattern": "x"}, rule.Allow, ""},
		{"read", in{"path": "/etc/hosts"}, rule.Ask, "/etc/*"},
		{"write", in{"path": "c.go", "content": ""}, rule.Ask, "sub/c.go"},
		{"edit", in{"path": "b.go", "oldString": "x", "newString": "y"}, rule.Ask, "sub/b.go"},
		{"write", in{"path": "../c.go", "content": ""}, rule.Allow, ""},
		{"write", in{"path": "../vendor/c.go", "content": ""}, rule.Deny, ""},
		{"todowrite", in{"todos": []any{}}, rule.Allow, ""},
		{"list", in{}, rule.Allow, ""},
	}
	for _, tt := range tests {
		p, err := b.plan(tt.tool, tt.in)
		if err != nil {
			t.Errorf("%s %v: %v", tt.tool, tt.in, err)
			continue
		}
		d := tool.Decide(sets, p)
		if d.Action() != tt.want {
			t.Errorf("%s %v: %+v", tt.tool, tt.in, d)
		}
		if pending := d.Pending(); tt.asked != "" && (len(pending) == 0 || pending[0].Ask.Patterns[0] != tt.asked) {
			t.Errorf("%s %v: %+v", tt.tool, tt.in, pending)
		}
	}
	p, err := b.plan("edit", in{"path": "b.go", "oldString": "x", "newString": "y"})
	if err != nil || p.Asks[0].Always[0] != "sub/b.go" || len(p.Asks[0].Always) != 1 {
		t.Errorf("always saves %+v, %v", p.Asks, err)
	}
	contains(t, p.Asks[0].Metadata["diff"].(string), "-x", "+y")
	if (tool.Decisions{}).Action() != rule.Allow {
		t.Error("a plan that needs nothing is not allowed")
	}
}

func TestSessionTools(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if res := b.must("todoread", in{}); res.Output != "[]" {
		t.Errorf("%q", res.Output)
	}
	res := b.must("todowrite", in{"todos": []any{
		in{"content": "a", "status": "completed"}, in{"content": "b", "status": "in_progress", "priority": "high"},
	}})
	if res.Title != "1 todos" || len(b.todos) != 2 || b.todos[0].Priority != "medium" || b.todos[1].Priority != "high" {
		t.Errorf("%+v %+v", res, b.todos)
	}
	contains(t, b.must("todoread", in{}).Output, `"content": "b"`)
	res = b.must("question", in{"questions": []any{
		in{"question": "Go on?", "header": "On", "options": []any{in{"label": "yes"}, in{"label": "no", "description": "stop"}}, "custom": false},
		in{"question": "Why?", "header": "Why", "options": []any{}},
	}})
	contains(t, res.Output, `"Go on?"="yes, no"`, `"Why?"="Unanswered"`)
	if len(b.asked) != 2 || *b.asked[0].Custom || b.asked[1].Custom != nil || b.asked[0].Options[1].Description != "stop" {
		t.Errorf("%+v", b.asked)
	}
	c := b.with(in{"todos": []any{}})
	c.Todos, c.Asker = nil, nil
	if _, err := tool.Execute(t.Context(), b.tool("todowrite"), c); err == nil {
		t.Error("kept todos nowhere")
	}
}
