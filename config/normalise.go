package config

// normalise brings the older and shorter forms of a file into the one form that
// is merged: "mode" into "agent", "tools" into "permission", an action string
// into {"*": action}, "maxSteps" into "steps".
func normalise(root *node, r *report) {
	if p := root.get("permission"); p != nil {
		root.set(member{key: "permission", at: p.at, value: star(p)})
	}
	toolsToPermission(root, r)
	modesToAgents(root, r)
	agents := root.get("agent")
	if agents == nil {
		return
	}
	for _, m := range agents.members {
		normaliseAgent(m.value, r)
	}
}

func normaliseAgent(a *node, r *report) {
	if p := a.get("permission"); p != nil {
		a.set(member{key: "permission", at: p.at, value: star(p)})
	}
	toolsToPermission(a, r)
	rename(a, "maxSteps", "steps")
}

func rename(n *node, from, to string) {
	v := n.get(from)
	if v == nil {
		return
	}
	n.remove(from)
	if n.get(to) == nil {
		n.set(member{key: to, at: v.at, value: v})
	}
}

// toolsToPermission puts {name: bool} before the permissions that stand in the
// same place, so that those win.
func toolsToPermission(n *node, r *report) {
	tools := n.get("tools")
	if tools == nil {
		return
	}
	n.remove("tools")
	if tools.kind == kindNull {
		return
	}
	if tools.kind != kindObject {
		r.errorf(tools.at, "%v is expected here, not %v", kindObject, tools.kind)
		return
	}
	rules := &node{kind: kindObject, at: tools.at, project: tools.project}
	for _, m := range tools.members {
		if m.value.kind != kindBool {
			r.errorf(m.value.at, "%v is expected here, not %v", kindBool, m.value.kind)
			continue
		}
		action := "deny"
		if m.value.text == "true" {
			action = "allow"
		}
		key := toolPermission(m.key)
		rules.remove(key)
		rules.members = append(rules.members, member{key: key, at: m.at, value: &node{
			kind: kindString, text: action, at: m.value.at, project: m.value.project,
		}})
	}
	own := n.get("permission")
	if own != nil && own.kind != kindObject && own.kind != kindNull {
		return // decoding tells that it is wrong
	}
	if own != nil {
		mergeRules(rules, own)
	}
	n.set(member{key: "permission", at: rules.at, value: rules})
}

// toolPermission names the permission behind a tool: all that change files
// share one.
func toolPermission(tool string) string {
	switch tool {
	case "write", "edit", "multiedit", "patch", "apply_patch":
		return "edit"
	}
	return tool
}

// modesToAgents turns {"mode": {name: agent}} into agents that are primary;
// entries of "agent" win.
func modesToAgents(root *node, r *report) {
	modes := root.get("mode")
	if modes == nil || modes.kind != kindObject {
		return // decoding tells that it is unknown
	}
	root.remove("mode")
	agents := root.get("agent")
	if agents == nil {
		agents = &node{kind: kindObject, at: modes.at, project: modes.project}
		root.set(member{key: "agent", at: modes.at, value: agents})
	}
	for _, m := range modes.members {
		if m.value.kind != kindObject {
			r.errorf(m.value.at, "%v is expected here, not %v", kindObject, m.value.kind)
			continue
		}
		if agents.get(m.key) != nil {
			continue
		}
		m.value.set(member{key: "mode", at: m.at, value: &node{kind: kindString, text: "primary", at: m.at, project: modes.project}})
		agents.set(m)
	}
}
