package agent

import (
	"context"

	"github.com/switchyard-dev/switchyard/agent/definition"

	"github.com/switchyard-dev/switchyard/catalog"
	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/config"
	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/llm"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/snapshot"
	"github.com/switchyard-dev/switchyard/tool"
)

// Workplaces gives turns the place where they work. The runtime implements it.
type Workplaces interface {
	// Acquire takes a lease on a runtime context. A directory that is gone is a
	// directory_missing fault.
	Acquire(ctx context.Context, c event.Context) (Workplace, error)
}

// Workplace is what a turn needs of its runtime context. It is leased: Release
// gives it back.
type Workplace interface {
	Environment() env.Environment
	// Settings reads the configuration as it is now; each step does.
	Settings(ctx context.Context) (Settings, error)
	// Outputs keeps tool output that is too long for the model.
	Outputs() tool.OutputStore
	// Git tells what differs from commits, for snapshots; nil for no snapshots of
	// what commands change with the help of git.
	Git() snapshot.Git
	Release()
}

// Settings is the resolved configuration of a runtime context.
type Settings struct {
	Agents       []definition.Agent
	DefaultAgent string
	// Depth is how many levels of sessions may be below a root; 0 is DefaultDepth.
	Depth int
	// Rules are the permission rules of the configuration.
	Rules []rule.Rule
	// Instructions reads the texts of AGENTS.md and its like; only a step needs
	// them.
	Instructions func(context.Context) ([]string, error)
	// DefaultModel is used where neither prompt, session nor agent names one.
	DefaultModel chat.ModelRef
	// SmallModel is for titles; zero for none.
	SmallModel chat.ModelRef
	// Compaction says when a long conversation is shortened.
	Compaction config.Compaction
	// NoSnapshots lets nothing be kept of what calls change in files.
	NoSnapshots bool
	// ToolOutput bounds what a call may tell the model.
	ToolOutput tool.Limits
	Models     Models
}

// Models finds models.
type Models interface {
	// Model gives a model that can be called; one that is unknown or whose
	// provider has no key is a model_unavailable fault.
	Model(ctx context.Context, ref chat.ModelRef) (llm.Model, error)
	// Cost prices a usage in US dollars.
	Cost(ref chat.ModelRef, usage chat.Usage) float64
	// Intake says which files the model takes, and how large.
	Intake(ref chat.ModelRef) catalog.Intake
	// Limits counts the tokens that the model can take and give; 0 is unknown.
	Limits(ref chat.ModelRef) catalog.Limit
}

// Agent finds an agent by name; "" is the default one.
func (s Settings) Agent(name string) (definition.Agent, bool) {
	if name == "" {
		name = s.DefaultAgent
	}
	for _, a := range s.Agents {
		if a.Name == name {
			return a, true
		}
	}
	return definition.Agent{}, false
}

// ModelFor chooses the model of a prompt: its own, the agent's, the session's
// last, the default (opencode contract §13).
func (s Settings) ModelFor(prompt *chat.ModelRef, a definition.Agent, last *chat.ModelRef) chat.ModelRef {
	for _, ref := range []*chat.ModelRef{prompt, a.Model, last} {
		if ref != nil && !ref.IsZero() {
			return *ref
		}
	}
	return s.DefaultModel
}
