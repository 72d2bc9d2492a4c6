// Package catalog knows the models that can be called: their limits, prices and
// abilities, and how their providers are reached. It comes with the program as a
// dated snapshot, needs no network, and can be changed by configuration.
package catalog

import "github.com/switchyard-dev/switchyard/chat"

// Model is one model of one provider.
type Model struct {
	ID           string       `json:"id"`
	ProviderID   string       `json:"providerID"`
	Name         string       `json:"name"`
	Family       string       `json:"family,omitempty"`
	Capabilities Capabilities `json:"capabilities"`
	Cost         Price        `json:"cost" doc:"US dollars per million tokens."`
	Limit        Limit        `json:"limit" doc:"Tokens; 0 when unknown."`
	Status       string       `json:"status" enum:"active,alpha,beta,deprecated"`
	Time         Time         `json:"time"`

	// APIID is the provider's own name for the model.
	APIID string `json:"-"`
	// Variants are the levels of thinking that the model knows, weakest first;
	// DefaultVariant is what it does when none is named.
	Variants       []string `json:"-"`
	DefaultVariant string   `json:"-"`
}

// Capabilities say what a model can do. Input and Output name the kinds of
// content: text, image, audio, video, pdf.
type Capabilities struct {
	Tools      bool     `json:"tools"`
	Reasoning  bool     `json:"reasoning"`
	Attachment bool     `json:"attachment"`
	Input      []string `json:"input"`
	Output     []string `json:"output"`
}

// Price is in US dollars per million tokens.
type Price struct {
	Input  float64    `json:"input"`
	Output float64    `json:"output"`
	Cache  CachePrice `json:"cache"`
}

// CachePrice is the price of tokens read from and written to the provider's
// prompt cache; 0 means that they cost what input costs.
type CachePrice struct {
	Read  float64 `json:"read"`
	Write float64 `json:"write"`
}

// Limit counts tokens. Context bounds input and output together.
type Limit struct {
	Context int64 `json:"context"`
	Input   int64 `json:"input,omitempty"`
	Output  int64 `json:"output,omitempty"`
}

// Time holds milliseconds since the epoch.
type Time struct {
	Released int64 `json:"released" doc:"0 when unknown."`
}

// Kind names the family of a provider's API.
type Kind string

// The kinds, spelled as the model layer does.
const (
	KindOpenAI           Kind = "openai"
	KindAnthropic        Kind = "anthropic"
	KindOpenAICompatible Kind = "openai-compatible"
	KindDemo             Kind = "demo"
)

// Provider says how the models of a provider are reached.
type Provider struct {
	ID   string
	Name string
	Kind Kind
	// BaseURL includes the version where the API has one.
	BaseURL string
	// Env are the environment variables that may hold the key, best first.
	Env []string
	// DefaultModel is the model to take when none is chosen, SmallModel the one
	// for titles and summaries. "" when the provider has no models.
	DefaultModel string
	SmallModel   string
}

// Cost gives what a usage costs, in US dollars.
func Cost(m Model, u chat.Usage) float64 {
	const million = 1e6
	read, write := m.Cost.Cache.Read, m.Cost.Cache.Write
	if read == 0 {
		read = m.Cost.Input
	}
	if write == 0 {
		write = m.Cost.Input
	}
	return (float64(u.Input)*m.Cost.Input +
		float64(u.Output+u.Reasoning)*m.Cost.Output +
		float64(u.Cache.Read)*read +
		float64(u.Cache.Write)*write) / million
}
