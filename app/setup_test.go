package app_test

import "github.com/switchyard-dev/switchyard/llm/llmtest"

// turnWith is an answer of text and one tool call.
func turnWith(text, tool, input string) llmtest.Turn {
	return llmtest.Turn{Steps: []llmtest.Step{llmtest.Text(text), llmtest.Call(tool, input)}}
}
