package tool

import (
	"slices"
	"strings"

	"github.com/switchyard-dev/switchyard/rule"
)

// The names of permissions that more than one tool asks.
const (
	permEdit     = "edit"
	permRead     = "read"
	permBash     = "bash"
	permExternal = "external_directory"
)

// Decision is what the rules say about one Ask of a Plan.
type Decision struct {
	Ask Ask
	// Rule is the one that decided; its action is the decision.
	Rule rule.Rule
}

// Decisions are the decisions about a whole Plan, in the order of its Asks.
type Decisions []Decision

// Decide weighs a plan against the rules. An opaque request that the rules
// would allow is asked; one that they deny stays denied.
func Decide(sets rule.Sets, p Plan) Decisions {
	all := make(Decisions, 0, len(p.Asks))
	for _, a := range p.Asks {
		all = append(all, Decision{Ask: a, Rule: weigh(sets, a)})
	}
	return all
}

// Action gives the strictest of the decisions. No decision at all is an allow:
// such a plan needs nothing.
func (d Decisions) Action() rule.Action {
	action := rule.Allow
	for _, one := range d {
		switch one.Rule.Action {
		case rule.Deny:
			return rule.Deny
		case rule.Ask:
			action = rule.Ask
		case rule.Allow:
		}
	}
	return action
}

// Pending gives the requests that the user must answer.
func (d Decisions) Pending() []Decision {
	return slices.DeleteFunc(slices.Clone(d), func(one Decision) bool { return one.Rule.Action != rule.Ask })
}

// Denied gives the rule that denies, if one does.
func (d Decisions) Denied() (rule.Rule, bool) {
	for _, one := range d {
		if one.Rule.Action == rule.Deny {
			return one.Rule, true
		}
	}
	return rule.Rule{}, false
}

func weigh(sets rule.Sets, a Ask) rule.Rule {
	expanded := sets
	if a.Permission == permBash {
		expanded.Configured = BashRules(sets.Configured)
		expanded.Guard = BashRules(sets.Guard)
	}
	decided := expanded.EvaluateAll(a.Permission, a.Patterns)
	for _, v := range a.Veto {
		if r := expanded.Evaluate(a.Permission, v); r.Action == rule.Deny {
			decided = r
			break
		}
	}
	if decided.Action == rule.Allow && len(a.Opaque) > 0 {
		return rule.Rule{Permission: a.Permission, Pattern: "*", Action: rule.Ask}
	}
	return asWritten(sets, decided)
}

// BashRules gives the rules as they hold for commands: a pattern without
// wildcards covers the command with any arguments, so that "yarn" matches "yarn
// test". Saved approvals are exact and must not be passed through it.
func BashRules(rules []rule.Rule) []rule.Rule {
	out := slices.Clone(rules)
	for i, r := range out {
		if rule.Match(r.Permission, permBash) && !strings.ContainsAny(r.Pattern, "*?") {
			out[i].Pattern += " *"
		}
	}
	return out
}

// asWritten undoes BashRules, so that an answer names a rule as the user wrote
// it.
func asWritten(sets rule.Sets, r rule.Rule) rule.Rule {
	short, ok := strings.CutSuffix(r.Pattern, " *")
	if !ok || slices.Contains(sets.Guard, r) || slices.Contains(sets.Configured, r) || slices.Contains(sets.Saved, r) {
		return r
	}
	r.Pattern = short
	return r
}

// exact gives the patterns that match nothing but themselves: only these can be
// saved without allowing more than was shown.
func exact(patterns []string) []string {
	return slices.DeleteFunc(slices.Clone(patterns), func(p string) bool { return strings.ContainsAny(p, `*?\`) })
}
