package provider

import (
	"maps"
	"slices"
	"strings"

	"github.com/switchyard-dev/switchyard/catalog"
	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/config"
)

// Provider is one provider as clients see it. No key in any form.
type Provider struct {
	ID        string                   `json:"id"`
	Name      string                   `json:"name"`
	Kind      string                   `json:"kind" enum:"openai,anthropic,openai-compatible,demo" doc:"Family of the provider's API."`
	Env       []string                 `json:"env" doc:"Environment variables that may hold the key."`
	Connected bool                     `json:"connected"`
	Models    map[string]catalog.Model `json:"models" doc:"Empty unless connected."`
}

// Method is a way of giving a provider its key.
type Method struct {
	ID    string `json:"id"`
	Type  string `json:"type" enum:"oauth,api"`
	Label string `json:"label"`
}

// List is the inventory as clients see it.
type List struct {
	All       []Provider          `json:"all"`
	Connected []string            `json:"connected"`
	Default   map[string]string   `json:"default" doc:"Default model by provider."`
	Model     *chat.ModelRef      `json:"model,omitempty" doc:"The model of sessions that name none."`
	Auth      map[string][]Method `json:"auth" doc:"Ways of giving a key, by provider."`
}

// List gives the inventory as clients see it, by provider id.
func (i *Inventory) List() List {
	out := List{All: []Provider{}, Connected: []string{}, Default: map[string]string{}, Auth: map[string][]Method{}}
	for _, p := range i.catalog.Providers() {
		next := Provider{ID: p.ID, Name: p.Name, Kind: string(p.Kind), Env: append([]string{}, p.Env...), Models: map[string]catalog.Model{}}
		if next.Connected = i.connected(p.ID); next.Connected {
			out.Connected = append(out.Connected, p.ID)
			next.Models = i.modelsOf(p.ID)
		}
		if p.DefaultModel != "" {
			out.Default[p.ID] = p.DefaultModel
		}
		if p.Kind != catalog.KindDemo {
			out.Auth[p.ID] = []Method{{ID: "api", Type: "api", Label: "API key"}}
		}
		out.All = append(out.All, next)
	}
	if ref := i.DefaultModel(); !ref.IsZero() {
		out.Model = &ref
	}
	return out
}

func (i *Inventory) modelsOf(provider string) map[string]catalog.Model {
	out := map[string]catalog.Model{}
	for _, m := range i.catalog.Models() {
		if m.ProviderID == provider {
			out[m.ID] = m
		}
	}
	return out
}

// overrides turns the configuration into changes of the catalog.
func overrides(c *config.Config) []catalog.Override {
	var out []catalog.Override
	for _, id := range slices.Sorted(maps.Keys(c.Providers)) {
		out = append(out, override(id, c.Providers[id]))
	}
	for _, p := range catalog.Snapshot().Providers() {
		if c.EnabledProviders != nil && !slices.Contains(c.EnabledProviders, p.ID) {
			out = append(out, catalog.Override{ProviderID: p.ID, Disabled: true})
		}
	}
	for _, id := range c.DisabledProviders {
		out = append(out, catalog.Override{ProviderID: id, Disabled: true})
	}
	return out
}

func override(id string, p config.Provider) catalog.Override {
	o := catalog.Override{
		ProviderID: id, Name: p.Name, Kind: kindOf(p.NPM), BaseURL: p.Options.BaseURL, Env: p.Env, Only: p.Whitelist, Hide: p.Blacklist,
		Models: map[string]catalog.ModelOverride{},
	}
	if o.BaseURL == "" {
		o.BaseURL = p.API
	}
	for model, m := range p.Models {
		o.Models[model] = modelOverride(m)
	}
	return o
}

func modelOverride(m config.Model) catalog.ModelOverride {
	count := func(n int) *int64 {
		if n == 0 {
			return nil
		}
		v := int64(n)
		return &v
	}
	return catalog.ModelOverride{
		Name: m.Name, Family: m.Family, APIID: m.ID, Status: m.Status, Tools: m.ToolCall, Reasoning: m.Reasoning, Attachment: m.Attachment,
		Input: m.Modalities.Input, Output: m.Modalities.Output,
		Context: count(m.Limit.Context), MaxInput: count(m.Limit.Input), MaxOutput: count(m.Limit.Output),
		CostInput: m.Cost.Input, CostOutput: m.Cost.Output, CacheRead: m.Cost.CacheRead, CacheWrite: m.Cost.CacheWrite,
		Variants: slices.Sorted(maps.Keys(m.Variants)),
	}
}

// kindOf reads the family from the name of the library that other servers would
// load for it; "" leaves it as it is.
func kindOf(library string) catalog.Kind {
	switch library {
	case "@ai-sdk/anthropic":
		return catalog.KindAnthropic
	case "@ai-sdk/openai":
		return catalog.KindOpenAI
	case "":
		return ""
	}
	return catalog.KindOpenAICompatible
}

// parse reads "provider/model"; the model may hold slashes.
func parse(s string) (chat.ModelRef, bool) {
	provider, model, ok := strings.Cut(s, "/")
	return chat.ModelRef{ProviderID: provider, ModelID: model}, ok && provider != "" && model != ""
}
