// Package rule is the vocabulary of permissions: rules, requests, replies, and
// the matching of one against the other (design §10, opencode contract §9). It
// holds types and pure functions only.
package rule

import (
	"strings"

	"github.com/switchyard-dev/switchyard/id"
)

// Action is what a rule decides.
type Action string

// The actions of a rule.
const (
	Allow Action = "allow"
	Ask   Action = "ask"
	Deny  Action = "deny"
)

// Rule decides about one permission where its pattern matches. Both Permission
// and Pattern are wildcards: * is any run of characters, ? is any one, and a
// trailing " *" makes the arguments optional.
type Rule struct {
	Permission string `json:"permission" minLength:"1" maxLength:"200"`
	Pattern    string `json:"pattern" minLength:"1" maxLength:"4096"`
	Action     Action `json:"action" enum:"allow,ask,deny"`
}

// Request is a question to the user whether a tool may act.
type Request struct {
	ID            id.Permission  `json:"id"`
	SessionID     id.Session     `json:"sessionID"`
	RootSessionID id.Session     `json:"rootSessionID"`
	Permission    string         `json:"permission"`
	Patterns      []string       `json:"patterns" doc:"What the tool wants to act on."`
	Always        []string       `json:"always" doc:"What an answer of always would allow from now on."`
	Metadata      map[string]any `json:"metadata"`
	Tool          *ToolRef       `json:"tool,omitempty"`
	Rule          Rule           `json:"rule" doc:"The rule that made the server ask."`
	Time          RequestTime    `json:"time"`
}

// ToolRef names the call that asks.
type ToolRef struct {
	MessageID id.Message `json:"messageID"`
	CallID    string     `json:"callID"`
}

// RequestTime holds milliseconds since the epoch.
type RequestTime struct {
	Created int64 `json:"created"`
	Replied int64 `json:"replied,omitempty"`
}

// Reply is an answer to a Request.
type Reply string

// The replies to a request.
const (
	Once   Reply = "once"
	Always Reply = "always"
	Reject Reply = "reject"
)

// Sets are the rules that apply to one call, weakest first. Configured rules
// decide in order, the last match wins. Saved approvals can lift an "ask" but
// never a configured deny, and the denies of Guard (an agent's own, such as
// plan mode's) stand above everything.
type Sets struct {
	Configured []Rule
	Saved      []Rule
	Guard      []Rule
}

// Evaluate decides about one permission and pattern and names the rule that
// decided. Where nothing matches the answer is Ask.
func (s Sets) Evaluate(permission, pattern string) Rule {
	if r, ok := last(s.Guard, permission, pattern); ok && r.Action == Deny {
		return r
	}
	configured, ok := last(s.Configured, permission, pattern)
	if !ok {
		configured = Rule{Permission: permission, Pattern: "*", Action: Ask}
	}
	if configured.Action != Ask {
		return configured
	}
	if r, ok := last(s.Saved, permission, pattern); ok && r.Action == Allow {
		return r
	}
	return configured
}

// EvaluateAll decides about several patterns at once: any deny denies, else any
// ask asks. No pattern at all asks.
func (s Sets) EvaluateAll(permission string, patterns []string) Rule {
	decided := Rule{Permission: permission, Pattern: "*", Action: Ask}
	for i, p := range patterns {
		r := s.Evaluate(permission, p)
		if i == 0 || stricter(r.Action, decided.Action) {
			decided = r
		}
	}
	return decided
}

// Hidden reports whether every use of a permission is denied, so that the tools
// behind it need not be offered to the model.
func (s Sets) Hidden(permission string) bool {
	for _, set := range [][]Rule{s.Guard, s.Configured} {
		for i := len(set) - 1; i >= 0; i-- {
			if !Match(set[i].Permission, permission) {
				continue
			}
			if set[i].Pattern == "*" && set[i].Action == Deny {
				return true
			}
			break
		}
	}
	return false
}

func stricter(a, b Action) bool {
	rank := func(x Action) int {
		switch x {
		case Deny:
			return 2
		case Ask:
			return 1
		case Allow:
		}
		return 0
	}
	return rank(a) > rank(b)
}

func last(rules []Rule, permission, pattern string) (Rule, bool) {
	for i := len(rules) - 1; i >= 0; i-- {
		if Match(rules[i].Permission, permission) && Match(rules[i].Pattern, pattern) {
			return rules[i], true
		}
	}
	return Rule{}, false
}

// Match reports whether the wildcard pattern covers the whole of s.
func Match(pattern, s string) bool {
	pattern = strings.ReplaceAll(pattern, `\`, "/")
	s = strings.ReplaceAll(s, `\`, "/")
	if head, ok := strings.CutSuffix(pattern, " *"); ok && wild(head, s) {
		return true
	}
	return wild(pattern, s)
}

// wild is greedy matching with one remembered star: linear in practice and
// quadratic at worst, never exponential.
func wild(pattern, s string) bool {
	p, r := []rune(pattern), []rune(s)
	pi, ri, star, mark := 0, 0, -1, 0
	for ri < len(r) {
		switch {
		case pi < len(p) && p[pi] == '*':
			star, mark = pi, ri
			pi++
		case pi < len(p) && (p[pi] == '?' || p[pi] == r[ri]):
			pi++
			ri++
		case star >= 0:
			mark++
			pi, ri = star+1, mark
		default:
			return false
		}
	}
	for pi < len(p) && p[pi] == '*' {
		pi++
	}
	return pi == len(p)
}
