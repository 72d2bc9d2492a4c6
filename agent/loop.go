package agent

import (
	"github.com/switchyard-dev/switchyard/agent/transcript"
	"github.com/switchyard-dev/switchyard/tool"
)

// permLoop is asked before a call that a model makes for the third time in a row
// (opencode contract §8.6).
const permLoop = "doom_loop"

// loopAsks gives what a call must ask beyond its plan because the turn seems to
// go round in circles.
func (r *callRun) loopAsks() []tool.Ask {
	made := transcript.Calls(r.of.set.items, r.of.turn.run.TurnID)
	for _, c := range r.of.step.calls {
		made = append(made, transcript.NewCall(c.Name, c.Input))
		if c.Index == r.call.Index {
			break
		}
	}
	if !transcript.Loops(made) {
		return nil
	}
	return []tool.Ask{{
		Permission: permLoop, Patterns: []string{r.call.Name}, Always: []string{r.call.Name},
		Metadata: map[string]any{"tool": r.call.Name, "input": r.call.Input},
	}}
}
