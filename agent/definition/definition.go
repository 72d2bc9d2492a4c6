// Package definition has the agents: ways of working that a prompt may choose, the
// built-in ones and those of the configuration.
package definition

import (
	"slices"
	"strings"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/rule"
)

// Agent is a way of working: a prompt, a model and what it may do (opencode
// contract §4.2, §12).
type Agent struct {
	Name        string         `json:"name" doc:"Also the agent's id."`
	Description string         `json:"description,omitempty"`
	Mode        string         `json:"mode" enum:"primary,subagent,all"`
	Native      bool           `json:"native,omitempty" doc:"Built in."`
	Hidden      bool           `json:"hidden,omitempty" doc:"Used by the server itself; not offered to people."`
	Default     bool           `json:"default,omitempty"`
	Temperature *float64       `json:"temperature,omitempty"`
	Permission  []rule.Rule    `json:"permission"`
	Model       *chat.ModelRef `json:"model,omitempty"`
	Prompt      string         `json:"prompt,omitempty"`
	Options     map[string]any `json:"options"`
	Steps       int            `json:"steps,omitempty" doc:"Most steps of one turn; absent means no limit."`

	// guard are denies that no user rule may lift, such as plan mode's.
	guard []rule.Rule
}

// Guard gives the denies that stand above every configured rule.
func (a Agent) Guard() []rule.Rule { return a.guard }

// DefaultAgent is the agent of a session that names none.
const DefaultAgent = "build"

func allow(permission, pattern string) rule.Rule {
	return rule.Rule{Permission: permission, Pattern: pattern, Action: rule.Allow}
}

func ask(permission, pattern string) rule.Rule {
	return rule.Rule{Permission: permission, Pattern: pattern, Action: rule.Ask}
}

func deny(permission, pattern string) rule.Rule {
	return rule.Rule{Permission: permission, Pattern: pattern, Action: rule.Deny}
}

// baseRules are closed by default: looking is allowed, changing asks. Upstream
// allows everything; a server that others reach must not (design §11).
func baseRules() []rule.Rule {
	return []rule.Rule{
		ask("*", "*"),
		allow("read", "*"),
		ask("read", "*.env"),
		ask("read", "*.env.*"),
		allow("read", "*.env.example"),
		allow("list", "*"),
		allow("glob", "*"),
		allow("grep", "*"),
		allow("todowrite", "*"),
		allow("todoread", "*"),
		allow("task", "*"),
		deny("question", "*"),
	}
}

func with(more ...rule.Rule) []rule.Rule { return append(baseRules(), more...) }

// Builtin gives the built-in agents: build, plan, general and explore, and the
// hidden ones that the server itself uses.
func Builtin() []Agent {
	nothing := []rule.Rule{deny("*", "*")}
	explore := []rule.Rule{
		deny("*", "*"), allow("grep", "*"), allow("glob", "*"), allow("list", "*"), allow("read", "*"),
		ask("read", "*.env"), ask("read", "*.env.*"), ask("external_directory", "*"), ask("doom_loop", "*"),
	}
	planGuard := []rule.Rule{
		deny("edit", "*"), allow("edit", ".switchyard/plans/*.md"), allow("edit", ".opencode/plans/*.md"),
	}
	return []Agent{
		{
			Name: "build", Mode: "primary", Native: true, Description: "Works on the directory: reads, edits and runs commands.",
			Permission: with(allow("question", "*")),
		},
		{
			Name: "plan", Mode: "primary", Native: true, Description: "Looks and plans; edits nothing but plans.",
			Permission: with(allow("question", "*"), deny("edit", "*"), allow("edit", ".switchyard/plans/*.md"), allow("edit", ".opencode/plans/*.md")),
			guard:      planGuard,
		},
		{
			Name: "general", Mode: "subagent", Native: true, Description: "Does a task of several steps on its own.",
			Permission: with(deny("todowrite", "*")),
		},
		{
			Name: "explore", Mode: "subagent", Native: true, Description: "Finds things in the directory; changes nothing.",
			Permission: explore, guard: []rule.Rule{deny("edit", "*"), deny("bash", "*")},
		},
		{Name: "title", Mode: "primary", Native: true, Hidden: true, Permission: nothing, guard: nothing},
		{Name: "compaction", Mode: "primary", Native: true, Hidden: true, Permission: nothing, guard: nothing},
	}
}

// Subagents gives the agents that may be given tasks, by name.
func Subagents(agents []Agent) []Agent {
	var out []Agent
	for _, a := range agents {
		if a.Mode != "primary" && !a.Hidden {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b Agent) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Offer tells the model which agents may be given tasks.
func Offer(agents []Agent) string {
	var b strings.Builder
	b.WriteString("\nThe agents:\n")
	for _, a := range Subagents(agents) {
		b.WriteString("- " + a.Name + ": " + a.Description + "\n")
	}
	return b.String()
}

// List sorts agents as clients show them: the default one first, hidden ones
// last, the others by name.
func List(agents []Agent, defaultName string) []Agent {
	out := slices.Clone(agents)
	for i := range out {
		out[i].Default = out[i].Name == defaultName
		if out[i].Options == nil {
			out[i].Options = map[string]any{}
		}
	}
	rank := func(a Agent) int {
		switch {
		case a.Default:
			return 0
		case a.Hidden:
			return 2
		}
		return 1
	}
	slices.SortStableFunc(out, func(a, b Agent) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out
}
