package llm

import (
	"charm.land/fantasy"
	"charm.land/fantasy/providers/anthropic"
	"charm.land/fantasy/providers/openai"

	"github.com/switchyard-dev/switchyard/llm/internal/wire"
)

// Members of Reasoning.Metadata. The first level names the dialect, so that
// what one provider sealed is never sent to another.
const (
	metaAnthropic  = "anthropic"
	metaResponses  = "openai"
	metaCompatible = "openai-compatible"

	metaSignature = "signature"
	metaRedacted  = "redactedData"
	metaItem      = "itemID"
	metaSealed    = "encryptedContent"
	metaSummary   = "summary"
)

// reasoningMeta gives what the provider wants back as plain JSON values; nil
// when it is nothing. sealed holds final encrypted contents by item.
func reasoningMeta(meta fantasy.ProviderMetadata, sealed map[string]string) map[string]any {
	if v, ok := meta[anthropic.Name].(*anthropic.ReasoningOptionMetadata); ok {
		switch {
		case v.Signature != "":
			return map[string]any{metaAnthropic: map[string]any{metaSignature: v.Signature}}
		case v.RedactedData != "":
			return map[string]any{metaAnthropic: map[string]any{metaRedacted: v.RedactedData}}
		}
	}
	v, ok := meta[openai.Name].(*openai.ResponsesReasoningMetadata)
	if !ok {
		return nil
	}
	content := sealed[v.ItemID]
	if content == "" && v.EncryptedContent != nil {
		content = *v.EncryptedContent
	}
	if content == "" {
		return nil
	}
	summary := make([]any, len(v.Summary))
	for i, s := range v.Summary {
		summary[i] = s
	}
	return map[string]any{metaResponses: map[string]any{metaItem: v.ItemID, metaSealed: content, metaSummary: summary}}
}

// signed gives reasoning for the history of the Anthropic dialect.
func (r Reasoning) signed() (fantasy.ReasoningPart, bool) {
	m, _ := r.Metadata[metaAnthropic].(map[string]any)
	signature, _ := m[metaSignature].(string)
	redacted, _ := m[metaRedacted].(string)
	return fantasy.ReasoningPart{Text: r.Text, ProviderOptions: fantasy.ProviderOptions{
		anthropic.Name: &anthropic.ReasoningOptionMetadata{Signature: signature, RedactedData: redacted},
	}}, signature != "" || redacted != ""
}

// item gives reasoning for the history of the responses dialect.
func (r Reasoning) item() (wire.ReasoningItem, bool) {
	m, _ := r.Metadata[metaResponses].(map[string]any)
	item := wire.ReasoningItem{Type: "reasoning", Summary: []wire.SummaryText{}}
	item.ID, _ = m[metaItem].(string)
	item.Sealed, _ = m[metaSealed].(string)
	summary, _ := m[metaSummary].([]any)
	for _, s := range summary {
		if text, ok := s.(string); ok {
			item.Summary = append(item.Summary, wire.SummaryText{Type: "summary_text", Text: text})
		}
	}
	return item, item.Sealed != ""
}
