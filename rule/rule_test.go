package rule_test

import (
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/rule"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pattern, s string
		want       bool
	}{
		{"*", "", true},
		{"*", "a/b\nc", true},
		{"a?c", "abc", true},
		{"a?c", "aéc", true},
		{"a?c", "ac", false},
		{"git *", "git", true},
		{"git *", "git status", true},
		{"git *", "gitk", false},
		{"yarn test", "yarn test --all", false},
		{"src/*.go", "src/a/b.go", true},
		{"src/*.go", "src/a.go.bak", false},
		{"[a]", "[a]", true},
		{"[a]", "a", false},
		{"a*b*c", "a1b2b3c", true},
		{"", "", true},
		{"", "x", false},
		{`dir\*`, "dir/x", true},
	}
	for _, tt := range tests {
		if got := rule.Match(tt.pattern, tt.s); got != tt.want {
			t.Errorf("Match(%q, %q) = %v", tt.pattern, tt.s, got)
		}
	}
}

func TestMatchIsNotExponential(t *testing.T) {
	t.Parallel()
	if rule.Match(strings.Repeat("*a", 60)+"b", strings.Repeat("a", 4000)) {
		t.Fatal("matched")
	}
}

func TestEvaluate(t *testing.T) {
	t.Parallel()
	r := func(perm, pattern string, a rule.Action) rule.Rule {
		return rule.Rule{Permission: perm, Pattern: pattern, Action: a}
	}
	tests := []struct {
		name          string
		sets          rule.Sets
		perm, pattern string
		want          rule.Action
	}{
		{"nothing matches", rule.Sets{}, "edit", "a", rule.Ask},
		{"last wins", rule.Sets{Configured: []rule.Rule{r("*", "*", rule.Deny), r("edit", "*", rule.Allow)}}, "edit", "a", rule.Allow},
		{"order counts", rule.Sets{Configured: []rule.Rule{r("edit", "*", rule.Allow), r("*", "*", rule.Deny)}}, "edit", "a", rule.Deny},
		{"saved lifts ask", rule.Sets{Configured: []rule.Rule{r("edit", "*", rule.Ask)}, Saved: []rule.Rule{r("edit", "a", rule.Allow)}}, "edit", "a", rule.Allow},
		{"saved is exact", rule.Sets{Configured: []rule.Rule{r("edit", "*", rule.Ask)}, Saved: []rule.Rule{r("edit", "a", rule.Allow)}}, "edit", "ab", rule.Ask},
		{"saved cannot lift deny", rule.Sets{Configured: []rule.Rule{r("edit", "*", rule.Deny)}, Saved: []rule.Rule{r("edit", "a", rule.Allow)}}, "edit", "a", rule.Deny},
		{"guard stands above", rule.Sets{Configured: []rule.Rule{r("edit", "*", rule.Allow)}, Guard: []rule.Rule{r("edit", "*", rule.Deny)}}, "edit", "a", rule.Deny},
		{"guard opens its own exception", rule.Sets{Configured: []rule.Rule{r("edit", "*", rule.Allow)}, Guard: []rule.Rule{r("edit", "*", rule.Deny), r("edit", "plans/*", rule.Allow)}}, "edit", "plans/a.md", rule.Allow},
	}
	for _, tt := range tests {
		if got := tt.sets.Evaluate(tt.perm, tt.pattern); got.Action != tt.want {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

func TestEvaluateAllTakesTheStrictest(t *testing.T) {
	t.Parallel()
	s := rule.Sets{Configured: []rule.Rule{
		{Permission: "bash", Pattern: "*", Action: rule.Allow},
		{Permission: "bash", Pattern: "git *", Action: rule.Ask},
		{Permission: "bash", Pattern: "rm *", Action: rule.Deny},
	}}
	for _, tt := range []struct {
		patterns []string
		want     rule.Action
	}{
		{[]string{"ls"}, rule.Allow},
		{[]string{"ls", "git log"}, rule.Ask},
		{[]string{"git log", "rm -r x", "ls"}, rule.Deny},
		{nil, rule.Ask},
	} {
		if got := s.EvaluateAll("bash", tt.patterns); got.Action != tt.want {
			t.Errorf("%v: %+v", tt.patterns, got)
		}
	}
}

func TestHidden(t *testing.T) {
	t.Parallel()
	deny := rule.Rule{Permission: "edit", Pattern: "*", Action: rule.Deny}
	if !(rule.Sets{Guard: []rule.Rule{deny}}).Hidden("edit") {
		t.Error("guard's deny does not hide")
	}
	open := rule.Sets{Configured: []rule.Rule{deny, {Permission: "edit", Pattern: "a", Action: rule.Allow}}}
	if open.Hidden("edit") {
		t.Error("hidden though one pattern is allowed")
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("a*b?", "axxb1")
	f.Fuzz(func(t *testing.T, pattern, s string) {
		rule.Match(pattern, s)
		if !rule.Match("*", s) {
			t.Fatalf("* does not match %q", s)
		}
	})
}
