package tool

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/switchyard-dev/switchyard/tool/input"
)

//go:embed question.md
var questionDoc string

const maxQuestions = 10

// Question is one question to the user, in the shape of opencode contract §10.
type Question struct {
	Question string   `json:"question" doc:"The whole question."`
	Header   string   `json:"header" doc:"A very short label, at most 30 characters."`
	Options  []Option `json:"options" doc:"Answers to choose from."`
	Multiple bool     `json:"multiple,omitempty" doc:"More than one answer may be chosen."`
	// Custom is true when it is nil.
	Custom *bool `json:"custom,omitempty" doc:"The user may answer in their own words; true without it."`
}

// Option is an answer to choose.
type Option struct {
	Label       string `json:"label" doc:"The answer, in 1 to 5 words."`
	Description string `json:"description,omitempty" doc:"What choosing it means."`
}

type questionInput struct {
	Questions []Question `json:"questions"`
}

type questionTool struct{ info Info }

func newQuestion() Tool {
	return questionTool{Info{
		Name: "question", Description: questionDoc, Schema: input.Schema[questionInput](), Class: Keyed, Permission: "question",
	}}
}

func (t questionTool) Info() Info { return t.info }

func (t questionTool) input(c *Call) ([]Question, error) {
	in, err := input.Decode[questionInput](c.Input)
	if err != nil {
		return nil, err
	}
	if n := len(in.Questions); n == 0 || n > maxQuestions {
		return nil, invalid("The input is not valid: questions must have 1 to %d entries.", maxQuestions)
	}
	for i, q := range in.Questions {
		if strings.TrimSpace(q.Question) == "" {
			return nil, invalid("The input is not valid: questions[%d].question must not be empty.", i)
		}
		if len(q.Options) == 0 && q.Custom != nil && !*q.Custom {
			return nil, invalid("The input is not valid: questions[%d] has no options and allows no own answer.", i)
		}
	}
	return in.Questions, nil
}

func (t questionTool) Plan(_ context.Context, c *Call) (Plan, error) {
	if _, err := t.input(c); err != nil {
		return Plan{}, err
	}
	return wholePlan("question"), nil
}

func (t questionTool) Run(ctx context.Context, c *Call) (Result, error) {
	questions, err := t.input(c)
	if err != nil {
		return Result{}, err
	}
	if c.Asker == nil {
		return Result{}, unavailable("question")
	}
	answers, err := c.Asker.Ask(ctx, c, questions)
	if err != nil {
		return Result{}, err
	}
	var b strings.Builder
	b.WriteString("The user answered:\n")
	for i, q := range questions {
		answer := "Unanswered"
		if i < len(answers) && len(answers[i]) > 0 {
			answer = strings.Join(answers[i], ", ")
		}
		fmt.Fprintf(&b, "%q=%q\n", q.Question, answer)
	}
	title := fmt.Sprintf("Asked %d questions", len(questions))
	if len(questions) == 1 {
		title = "Asked 1 question"
	}
	return Result{Title: title, Output: b.String(), Metadata: map[string]any{"answers": answers}}, nil
}
