package config

import (
	"slices"

	"github.com/switchyard-dev/switchyard/rule"
)

// decode reads the object form of permissions, which normalise has made of all
// others: {tool: action | {pattern: action}}, in the order of its keys.
func (r *Rules) decode(d *decoder, n *node) {
	if !d.expect(n, kindObject) {
		return
	}
	out := Rules{}
	for _, m := range n.members {
		switch m.value.kind {
		case kindObject:
			for _, p := range m.value.members {
				out = d.rule(out, m.key, p.key, p.value)
			}
		case kindNull:
		case kindString, kindBool, kindNumber, kindArray:
			out = d.rule(out, m.key, "*", m.value)
		}
	}
	*r = out
}

func (d *decoder) rule(rules Rules, permission, pattern string, n *node) Rules {
	if n.kind == kindNull {
		return rules
	}
	action := rule.Action(n.text)
	if n.kind != kindString || !slices.Contains([]rule.Action{rule.Allow, rule.Ask, rule.Deny}, action) {
		d.report.errorf(n.at, "one of allow, ask, deny is expected here")
		return rules
	}
	if permission == "" || pattern == "" {
		d.report.errorf(n.at, "a permission and its pattern cannot be empty")
		return rules
	}
	return append(rules, rule.Rule{Permission: permission, Pattern: expandHome(pattern, d.home), Action: action})
}

// star makes an action string the object {"*": action}.
func star(n *node) *node {
	if n.kind != kindString {
		return n
	}
	return &node{
		kind: kindObject, at: n.at, project: n.project,
		members: []member{{key: "*", at: n.at, value: n}},
	}
}

// mergeRules merges permissions so that the order of src decides before that of
// dst: whatever src names moves to the end, where it wins. A plain action in src
// replaces all patterns of that tool; patterns in src add to those of dst.
func mergeRules(dst, src *node) {
	for _, m := range src.members {
		old := dst.get(m.key)
		dst.remove(m.key)
		switch {
		case m.value.kind == kindNull:
			continue
		case m.value.kind == kindObject && old != nil:
			merged := star(old)
			mergeRules(merged, m.value)
			m.value = merged
		default:
			m.value.dropNulls()
		}
		dst.members = append(dst.members, m)
	}
}
