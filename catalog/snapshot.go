package catalog

import (
	"regexp"
	"strings"
	"sync"
	"time"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"

	"github.com/switchyard-dev/switchyard/clock"
)

// SnapshotDate is the day of the embedded snapshot, as YYYY-MM-DD.
const SnapshotDate = "2026-08-19"

// snapshot is read once, when first asked for: a server that nobody asks for
// models does not pay for it.
var snapshot = sync.OnceValue(load)

// Snapshot gives the embedded catalog. It holds the providers that can be called
// with a key; those of cloud accounts (Bedrock, Vertex, Azure) and of sign-ins
// are not in it.
func Snapshot() *Catalog { return snapshot() }

func load() *Catalog {
	var providers []Provider
	var models []Model
	for _, p := range embedded.GetAll() {
		provider, ok := providerOf(p)
		if !ok {
			continue
		}
		providers = append(providers, provider)
		for _, m := range p.Models {
			models = append(models, modelOf(provider, m))
		}
	}
	return build(providers, models)
}

// addresses are the base URLs that the source leaves to the environment.
var addresses = map[catwalk.InferenceProvider]string{
	catwalk.InferenceProviderOpenAI:    "https://api.openai.com/v1",
	catwalk.InferenceProviderAnthropic: "https://api.anthropic.com/v1",
	// Google's own endpoint for clients of the OpenAI family.
	catwalk.InferenceProviderGemini: "https://generativelanguage.googleapis.com/v1beta/openai",
}

func providerOf(p catwalk.Provider) (Provider, bool) {
	env, hasKey := strings.CutPrefix(p.APIKey, "$")
	address, known := addresses[p.ID]
	if !known {
		address = p.APIEndpoint
	}
	if !hasKey || !strings.HasPrefix(address, "https://") {
		return Provider{}, false
	}
	out := Provider{
		ID: string(p.ID), Name: p.Name, Kind: KindOpenAICompatible, BaseURL: address, Env: []string{env},
		DefaultModel: p.DefaultLargeModelID, SmallModel: p.DefaultSmallModelID,
	}
	switch {
	case p.Type == catwalk.TypeAnthropic:
		out.Kind = KindAnthropic
	case p.ID == catwalk.InferenceProviderOpenAI:
		out.Kind = KindOpenAI // others of the type are compatible only
	case p.Type == catwalk.TypeAzure:
		return Provider{}, false
	}
	return out, true
}

func modelOf(p Provider, m catwalk.Model) Model {
	out := Model{
		ID: m.ID, ProviderID: p.ID, Name: m.Name, APIID: m.ID,
		Capabilities: Capabilities{
			// The source lists models for coding agents; all of them call tools.
			Tools: true, Reasoning: m.CanReason, Attachment: m.SupportsImages,
			Input: []string{"text"}, Output: []string{"text"},
		},
		Cost:     priceOf(m),
		Limit:    Limit{Context: max(m.ContextWindow, 0), Output: max(m.DefaultMaxTokens, 0)},
		Status:   "active",
		Time:     Time{Released: released(m.ID)},
		Variants: m.ReasoningLevels, DefaultVariant: m.DefaultReasoningEffort,
	}
	if out.Name == "" {
		out.Name = m.ID
	}
	if m.SupportsImages {
		out.Capabilities.Input = append(out.Capabilities.Input, "image")
		// The source does not tell of PDF. These two read it with every model that
		// sees images.
		if p.Kind == KindAnthropic || p.Kind == KindOpenAI {
			out.Capabilities.Input = append(out.Capabilities.Input, "pdf")
		}
	}
	return out
}

// priceOf reads the prices. The source has two for cached tokens and fills them
// in either order, or repeats those of plain tokens: reading from a cache costs
// at most what input costs, writing to it at most twice that.
func priceOf(m catwalk.Model) Price {
	p := Price{Input: max(m.CostPer1MIn, 0), Output: max(m.CostPer1MOut, 0)}
	low, high := m.CostPer1MInCached, m.CostPer1MOutCached
	if low > high {
		low, high = high, low
	}
	if low <= 0 {
		// One price: a surcharge is for writing, a discount for reading.
		low, high = high, 0
		if low > p.Input {
			low, high = 0, low
		}
	}
	if low > 0 && low <= p.Input {
		p.Cache.Read = low
	}
	if high > low && high <= 2*p.Input {
		p.Cache.Write = high
	}
	return p
}

var dated = regexp.MustCompile(`\b(20\d{2})-?(\d{2})-?(\d{2})\b`)

// released finds the date that many ids hold, in milliseconds since the epoch.
func released(id string) int64 {
	parts := dated.FindStringSubmatch(id)
	if parts == nil {
		return 0
	}
	day, err := time.Parse(time.DateOnly, strings.Join(parts[1:], "-"))
	if err != nil {
		return 0
	}
	return clock.Millis(day)
}
