package agent

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/switchyard-dev/switchyard/env"
)

//go:embed prompts/base.md
var basePrompt string //nolint:gochecknoglobals // the embed directive needs a variable

//go:embed prompts/plan.md
var planPrompt string //nolint:gochecknoglobals // the embed directive needs a variable

//go:embed prompts/explore.md
var explorePrompt string //nolint:gochecknoglobals // the embed directive needs a variable

// systemPrompt tells the model who it is, where it works and what the project
// wants (opencode contract §17). It names no time of day, so that the provider's
// prompt cache holds from step to step.
func systemPrompt(set *setting, e env.Environment, directory string, instructions []string) []string {
	head := basePrompt
	switch {
	case set.agent.Prompt != "":
		head = set.agent.Prompt
	case set.agent.Name == "plan":
		head += "\n" + planPrompt
	case set.agent.Name == "explore":
		head += "\n" + explorePrompt
	}
	var b strings.Builder
	fmt.Fprintf(&b, "You are %s, model %s of %s.\n", set.agent.Name, set.ref.ModelID, set.ref.ProviderID)
	fmt.Fprintf(&b, "Working directory: %s\nRoot of the work tree: %s\n", directory, e.Root())
	out := []string{strings.TrimSpace(head), strings.TrimSpace(b.String())}
	return append(out, instructions...)
}
