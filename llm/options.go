package llm

import (
	"encoding/json"
	"maps"
	"regexp"
	"strings"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/anthropic"
	"charm.land/fantasy/providers/openai"
	"charm.land/fantasy/providers/openaicompat"

	"github.com/switchyard-dev/switchyard/llm/internal/wire"
)

// prepare writes a call in the library's form; what the library cannot say goes
// into the exchange.
func (m *remoteModel) prepare(c Call, x *wire.Exchange) fantasy.Call {
	w := prompter{dialect: m.dialect, edits: &x.Edits}
	call := fantasy.Call{Prompt: w.write(c.System, c.Messages), Temperature: c.Temperature}
	if c.MaxOutputTokens > 0 {
		call.MaxOutputTokens = &c.MaxOutputTokens
	}
	x.Edits.Members = map[string]any{}
	if len(c.Tools) > 0 {
		m.offer(c, &call, x)
	}
	switch m.dialect {
	case dialectAnthropic:
		call.ProviderOptions = anthropicOptions(m.id, c)
	case dialectResponses:
		call.ProviderOptions = responsesOptions(m.id, c)
	case dialectCompatible:
		if e := effort(c.Variant); e != nil {
			call.ProviderOptions = openaicompat.NewProviderOptions(&openaicompat.ProviderOptions{ReasoningEffort: e})
		}
	default:
		call.ProviderOptions = openai.NewProviderOptions(&openai.ProviderOptions{
			ReasoningEffort: effort(c.Variant), PromptCacheKey: optional(c.SessionKey),
		})
	}
	x.Headers = map[string]string{}
	if c.SessionKey != "" {
		x.Headers["X-Session-Affinity"] = c.SessionKey
	}
	maps.Copy(x.Headers, c.Headers)
	maps.Copy(x.Edits.Members, c.Options)
	return call
}

// offer tells the tools.
func (m *remoteModel) offer(c Call, call *fantasy.Call, x *wire.Exchange) {
	choice := fantasy.ToolChoiceAuto
	if c.ToolChoice == ToolNone {
		choice = fantasy.ToolChoiceNone
	}
	call.ToolChoice = &choice
	raw := make([]map[string]any, len(c.Tools))
	for i, t := range c.Tools {
		schema := map[string]any{}
		if json.Unmarshal(t.Schema, &schema) != nil || schema == nil {
			schema = map[string]any{}
		}
		if schema["type"] == nil {
			schema["type"] = "object"
		}
		if schema["properties"] == nil {
			schema["properties"] = map[string]any{}
		}
		call.Tools = append(call.Tools, fantasy.FunctionTool{Name: t.Name, Description: t.Description, InputSchema: schema})
		raw[i] = map[string]any{"name": t.Name, "description": t.Description, "input_schema": schema}
	}
	if m.dialect == dialectAnthropic {
		// The library keeps "properties" alone: no "required", no "$defs".
		x.Edits.Members["tools"] = raw
	}
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// effort gives the OpenAI word for a variant, nil for unknown ones.
func effort(variant string) *openai.ReasoningEffort {
	switch e := openai.ReasoningEffort(variant); e {
	case openai.ReasoningEffortNone, openai.ReasoningEffortMinimal, openai.ReasoningEffortLow, openai.ReasoningEffortMedium,
		openai.ReasoningEffortHigh, openai.ReasoningEffortXHigh, openai.ReasoningEffortMax:
		return &e
	}
	return nil
}

// reasoningModel finds the OpenAI models that reason: others refuse the options
// for it.
var reasoningModel = regexp.MustCompile(`(^|[-/])(o[134](-|$)|gpt-5|gpt-oss|codex)`)

func responsesOptions(model string, c Call) fantasy.ProviderOptions {
	o := &openai.ResponsesProviderOptions{PromptCacheKey: optional(c.SessionKey)}
	if reasoningModel.MatchString(model) && !strings.Contains(model, "gpt-5-chat") {
		summary := "auto"
		o.Include = []openai.IncludeType{openai.IncludeReasoningEncryptedContent}
		o.ReasoningEffort = effort(c.Variant)
		o.ReasoningSummary = &summary
	}
	return openai.NewResponsesProviderOptions(o)
}

// effortModel finds the Anthropic models that are told an effort; the older ones
// are told a budget.
var effortModel = regexp.MustCompile(`claude-(opus-4-[5-9]|sonnet-4-[6-9]|[a-z]+-[5-9])`)

// budgets are thinking tokens by variant.
var budgets = map[string]int64{
	"minimal": 1024, "low": 4096, "medium": 10_000, "high": 16_000, "xhigh": 31_999, "max": 31_999,
}

// defaultAnthropicMax is the library's output limit when the call has none.
const defaultAnthropicMax = 4096

func anthropicOptions(model string, c Call) fantasy.ProviderOptions {
	o := &anthropic.ProviderOptions{}
	budget, known := budgets[c.Variant]
	switch {
	case !known:
	case effortModel.MatchString(model):
		level := anthropic.Effort(c.Variant)
		if c.Variant == "minimal" {
			level = anthropic.EffortLow
		}
		o.Effort = &level
	default:
		limit := c.MaxOutputTokens
		if limit == 0 {
			limit = defaultAnthropicMax
		}
		// Thinking is part of the output; at least half is left for the answer.
		if budget = min(budget, limit/2); budget >= budgets["minimal"] {
			o.Thinking = &anthropic.ThinkingProviderOption{BudgetTokens: budget}
		}
	}
	return anthropic.NewProviderOptions(o)
}
