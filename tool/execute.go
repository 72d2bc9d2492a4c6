package tool

import (
	"context"

	"github.com/switchyard-dev/switchyard/tool/output"
)

// Limits bound what the model sees of one output; see output.Limits.
type Limits = output.Limits

// Execute runs a tool and bounds its output: what is too long is kept whole in
// the call's OutputStore, and the model gets the first and the last half with a
// line between them that names the file. Metadata then has truncated and
// outputPath.
func Execute(ctx context.Context, t Tool, c *Call) (Result, error) {
	res, err := t.Run(ctx, c)
	if res.Metadata == nil {
		res.Metadata = map[string]any{}
	}
	l := c.Limits.OrDefault()
	if res.Bounded || !l.Exceeded(res.Output) {
		return res, err
	}
	place := ""
	if c.Outputs != nil {
		// The call may have been interrupted: its output is kept all the same.
		// Where it cannot be kept the model still gets the two halves.
		saved, saveErr := c.Outputs.Save(context.WithoutCancel(ctx), c.ID, res.Output)
		if saveErr == nil {
			place = saved
			res.Metadata["outputPath"] = saved
		}
	}
	whole := res.Output
	res.Output = l.Halves(whole, place)
	res.Metadata["truncated"] = true
	if shown, ok := res.Metadata["output"].(string); ok && shown == whole {
		res.Metadata["output"] = res.Output
	}
	return res, err
}
