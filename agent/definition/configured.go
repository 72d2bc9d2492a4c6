package definition

import (
	"maps"
	"slices"
	"strings"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/config"
	"github.com/switchyard-dev/switchyard/fault"
)

// Configured gives the built-in agents with what the configuration changes, and
// its own ones. An agent's denies hold whatever else is configured: they become
// its guard.
func Configured(c *config.Config) []Agent {
	agents := Builtin()
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		change := c.Agents[name]
		at := slices.IndexFunc(agents, func(a Agent) bool { return a.Name == name })
		if change.Disable {
			if at >= 0 {
				agents = slices.Delete(agents, at, at+1)
			}
			continue
		}
		if at < 0 {
			agents = append(agents, Agent{Name: name, Mode: "all", Permission: with()})
			at = len(agents) - 1
		}
		agents[at] = changed(agents[at], change)
	}
	return agents
}

func changed(a Agent, c config.Agent) Agent {
	set := func(to *string, from string) {
		if from != "" {
			*to = from
		}
	}
	set(&a.Description, c.Description)
	set(&a.Mode, c.Mode)
	set(&a.Prompt, c.Prompt)
	if c.Temperature != nil {
		a.Temperature = c.Temperature
	}
	if c.Hidden != nil {
		a.Hidden = *c.Hidden
	}
	if c.Steps != nil {
		a.Steps = *c.Steps
	}
	if ref, ok := ParseModel(c.Model); ok {
		ref.Variant = c.Variant
		a.Model = &ref
	}
	for _, r := range c.Permission {
		a.Permission = append(a.Permission, r)
		if r.Action == "deny" {
			a.guard = append(a.guard, r)
		}
	}
	a.Options = map[string]any{}
	for key, raw := range c.Options {
		var v any
		if raw.Decode(&v) == nil {
			a.Options[key] = v
		}
	}
	return a
}

// ParseModel reads "provider/model"; the model may hold slashes.
func ParseModel(s string) (chat.ModelRef, bool) {
	provider, model, ok := strings.Cut(s, "/")
	if !ok || provider == "" || model == "" {
		return chat.ModelRef{}, false
	}
	return chat.ModelRef{ProviderID: provider, ModelID: model}, true
}

// DefaultName gives the agent of sessions that name none. A configured one must
// exist, be no subagent and not be hidden.
func DefaultName(c *config.Config, agents []Agent) (string, error) {
	if c.DefaultAgent == "" {
		return DefaultAgent, nil
	}
	for _, a := range agents {
		if a.Name == c.DefaultAgent && a.Mode != "subagent" && !a.Hidden {
			return a.Name, nil
		}
	}
	return "", fault.New(fault.ConfigInvalid, "default_agent %q is not an agent that can be talked to", c.DefaultAgent).
		With("path", "/default_agent")
}
