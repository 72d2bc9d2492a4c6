package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/switchyard-dev/switchyard/cli/internal/remote"
	"github.com/switchyard-dev/switchyard/question"
	"github.com/switchyard-dev/switchyard/rule"
)

// diffLines is how many lines of a diff are shown before a question.
const diffLines = 40

// permissionDialog asks whether a tool may act.
type permissionDialog struct {
	request  rule.Request
	shown    bool
	response rule.Reply
	message  string
}

func (d *permissionDialog) key() string { return string(d.request.ID) }

func (d *permissionDialog) ask() string {
	if d.response == rule.Reject {
		return "Reason for the agent (empty ends the turn): "
	}
	text := "(o)nce, (a)lways " + strings.Join(d.request.Always, ", ") + ", or (r)eject? "
	if len(d.request.Always) == 0 {
		text = "(o)nce or (r)eject? "
	}
	if d.shown {
		return printable(text)
	}
	d.shown = true
	return printable("\nThe agent asks: " + d.request.Permission + " " + strings.Join(d.request.Patterns, ", ") + "\n" + d.diff() + text)
}

// diff shows what an edit would change.
func (d *permissionDialog) diff() string {
	text, ok := d.request.Metadata["diff"].(string)
	if !ok || text == "" {
		return ""
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if more := len(lines) - diffLines; more > 0 {
		lines = append(lines[:diffLines], fmt.Sprintf("… %d more lines", more))
	}
	return "  " + strings.Join(lines, "\n  ") + "\n"
}

func (d *permissionDialog) take(line string) bool {
	line = strings.TrimSpace(line)
	if d.response == rule.Reject {
		d.message = line
		return true
	}
	switch strings.ToLower(line) {
	case "o", "once", "y", "yes":
		d.response = rule.Once
	case "a", "always":
		if len(d.request.Always) > 0 {
			d.response = rule.Always
		}
	case "r", "reject", "n", "no":
		d.response = rule.Reject
		return false
	}
	return d.response != ""
}

func (d *permissionDialog) settle(yes bool, message string) {
	d.response, d.message = rule.Reject, message
	if yes {
		d.response, d.message = rule.Once, ""
	}
}

func (d *permissionDialog) send(ctx context.Context, server *remote.Client) error {
	values := map[string]any{"permissionID": d.request.ID, "response": d.response}
	if d.message != "" {
		values["message"] = d.message
	}
	return server.Call(ctx, "permission.reply", remote.Arguments{Values: values}, nil)
}

// questionDialog asks the questions of the agent in their order.
type questionDialog struct {
	request  question.Request
	answers  [][]string
	rejected bool
	message  string
}

func (d *questionDialog) key() string { return string(d.request.ID) }

func (d *questionDialog) current() question.Question { return d.request.Questions[len(d.answers)] }

func (d *questionDialog) ask() string {
	q := d.current()
	var b strings.Builder
	b.WriteString("\n")
	if q.Header != "" {
		b.WriteString(q.Header + ": ")
	}
	b.WriteString(q.Question + "\n")
	for i, o := range q.Options {
		fmt.Fprintf(&b, "  %d. %s", i+1, o.Label)
		if o.Description != "" {
			b.WriteString(" – " + o.Description)
		}
		b.WriteString("\n")
	}
	how := "a number"
	if q.Multiple {
		how = "numbers with commas between"
	}
	if len(q.Options) == 0 {
		how = "your answer"
	} else if custom(q) {
		how += ", or your own words"
	}
	return printable(b.String() + how + " (r rejects): ")
}

func custom(q question.Question) bool { return q.Custom == nil || *q.Custom }

func (d *questionDialog) take(line string) bool {
	q, line := d.current(), strings.TrimSpace(line)
	labels, ok := choices(q, line)
	switch {
	case ok:
	case line == "r" || line == "reject":
		d.rejected = true
		return true
	case line == "" || !custom(q):
		return false
	default:
		labels = []string{line}
	}
	d.answers = append(d.answers, labels)
	return len(d.answers) == len(d.request.Questions)
}

// choices reads a line as one of the options, or as their numbers.
func choices(q question.Question, line string) ([]string, bool) {
	for _, o := range q.Options {
		if strings.EqualFold(o.Label, line) {
			return []string{o.Label}, true
		}
	}
	var labels []string
	for word := range strings.SplitSeq(line, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 || n > len(q.Options) {
			return nil, false
		}
		labels = append(labels, q.Options[n-1].Label)
	}
	return labels, q.Multiple || len(labels) == 1
}

// settle rejects: a question cannot be answered by yes.
func (d *questionDialog) settle(_ bool, message string) { d.rejected, d.message = true, message }

func (d *questionDialog) send(ctx context.Context, server *remote.Client) error {
	values := map[string]any{"questionID": d.request.ID}
	if !d.rejected {
		values["response"] = question.Response{Answers: d.answers}
		return server.Call(ctx, "question.reply", remote.Arguments{Values: values}, nil)
	}
	if d.message != "" {
		values["message"] = d.message
	}
	return server.Call(ctx, "question.reject", remote.Arguments{Values: values}, nil)
}
