package tool

import (
	"slices"
	"strings"

	"github.com/switchyard-dev/switchyard/rule"
)

// Registry is an ordered set of tools. It does not change.
type Registry struct {
	tools []Tool
	infos []Info
}

// NewRegistry makes a Registry. Two tools of one name are a programmer's error.
func NewRegistry(tools ...Tool) *Registry {
	r := &Registry{tools: slices.Clone(tools)}
	for _, t := range r.tools {
		info := t.Info()
		if slices.ContainsFunc(r.infos, func(o Info) bool { return strings.EqualFold(o.Name, info.Name) }) {
			panic("tool: two tools are named " + info.Name)
		}
		r.infos = append(r.infos, info)
	}
	return r
}

// Builtin gives the tools of this package in the order in which they are
// offered.
func Builtin() []Tool {
	return []Tool{
		newRead(), newWrite(), newEdit(), newList(), newGlob(), newGrep(), newBash(),
		newTodoWrite(), newTodoRead(), newQuestion(), newTask(),
	}
}

// Tools gives all tools in order.
func (r *Registry) Tools() []Tool { return slices.Clone(r.tools) }

// Lookup finds a tool by the name that a model gave, whatever its case: models
// write Read for read.
func (r *Registry) Lookup(name string) (Tool, bool) {
	name = strings.TrimSpace(name)
	for i, info := range r.infos {
		if strings.EqualFold(info.Name, name) {
			return r.tools[i], true
		}
	}
	return nil, false
}

// Visible gives the tools that are not denied as a whole.
func (r *Registry) Visible(sets rule.Sets) []Tool {
	visible := []Tool{}
	for i, t := range r.tools {
		if !sets.Hidden(r.infos[i].Permission) {
			visible = append(visible, t)
		}
	}
	return visible
}
