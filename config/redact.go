package config

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// secretKey matches keys whose strings are secrets.
var secretKey = regexp.MustCompile(`(?i)(key|secret|token|password|passphrase|credentials?|authorization|cookie)$`)

// pointer appends a key to a JSON pointer (RFC 6901).
func pointer(base, key string) string {
	return base + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// redacted gives a copy of the merged tree in which secrets read ***, or "" when
// they are empty.
func redacted(n *node, path []string) *node {
	out := *n
	out.members, out.items = nil, nil
	for _, m := range n.members {
		out.members = append(out.members, member{
			key: m.key, at: m.at, value: redacted(m.value, append(path[:len(path):len(path)], m.key)),
		})
	}
	for _, item := range n.items {
		out.items = append(out.items, redacted(item, path))
	}
	plain := n.kind == kindString || n.kind == kindNumber
	if plain && n.text != "" && isSecret(n, path) {
		out.kind, out.text = kindString, hidden
	}
	return &out
}

func isSecret(n *node, path []string) bool {
	if len(path) == 0 {
		return false
	}
	key := path[len(path)-1]
	switch path[0] {
	case "provider":
		return n.filled || slices.Contains(path[1:], "headers") || (n.kind == kindString && secretKey.MatchString(key))
	case "mcp", "lsp", "formatter":
		under := func(k string) bool { return slices.Contains([]string{"headers", "environment", "env"}, k) }
		return n.filled || slices.ContainsFunc(path[1:], under) || (n.kind == kindString && secretKey.MatchString(key))
	case "server", "keybinds":
		return false
	}
	if slices.Contains(path, "permission") { // its keys are names of tools
		return false
	}
	return n.kind == kindString && secretKey.MatchString(key)
}

// sourcesOf maps the JSON pointer of every value to where it comes from: of
// strings, numbers and bools outside of lists, of whole lists, and of the
// entries of "instructions", which may come from several files.
func sourcesOf(n *node, at string, out map[string]Source) {
	if n.kind == kindObject && len(n.members) > 0 {
		for _, m := range n.members {
			sourcesOf(m.value, pointer(at, m.key), out)
		}
		return
	}
	if at == "" {
		return
	}
	out[at] = Source{File: n.at.File, Line: n.at.Line}
	if at == "/instructions" {
		for i, item := range n.items {
			out[at+"/"+strconv.Itoa(i)] = Source{File: item.at.File, Line: item.at.Line}
		}
	}
}
