package catalog

import (
	"cmp"
	"slices"
)

// Override changes a provider of the catalog, or adds one. Zero fields leave
// what is there.
type Override struct {
	ProviderID string
	// Disabled takes the provider and its models out.
	Disabled bool

	Name string
	// Kind of a new provider defaults to openai-compatible.
	Kind    Kind
	BaseURL string
	Env     []string

	// Only, when not empty, takes out all models but these; Hide takes these out.
	Only, Hide []string
	// Models changes or adds models, by id. Those are never taken out by Only.
	Models map[string]ModelOverride
}

// ModelOverride changes a model, or adds one: then a model that calls tools and
// reads text, with unknown limits and free of charge. Zero fields leave what is
// there.
type ModelOverride struct {
	Name   string
	Family string
	// APIID is the provider's own name for the model. When the catalog knows the
	// provider's model of that name, a new model begins as its copy.
	APIID  string
	Status string

	Tools, Reasoning, Attachment *bool
	Input, Output                []string

	Context, MaxInput, MaxOutput                 *int64
	CostInput, CostOutput, CacheRead, CacheWrite *float64
	// Released is in milliseconds since the epoch.
	Released *int64

	Variants       []string
	DefaultVariant string
}

// With gives the catalog with the overrides applied in order. The receiver stays
// as it is.
func (c *Catalog) With(overrides ...Override) *Catalog {
	if len(overrides) == 0 {
		return c
	}
	providers, models := slices.Clone(c.providers), slices.Clone(c.models)
	for _, o := range overrides {
		providers = o.provider(providers)
		models = o.models(models)
	}
	return build(providers, models)
}

func (o Override) provider(list []Provider) []Provider {
	if o.Disabled {
		return slices.DeleteFunc(list, func(p Provider) bool { return p.ID == o.ProviderID })
	}
	i := slices.IndexFunc(list, func(p Provider) bool { return p.ID == o.ProviderID })
	if i < 0 {
		i = len(list)
		list = append(list, Provider{ID: o.ProviderID, Name: o.ProviderID, Kind: KindOpenAICompatible, Env: []string{}})
	}
	p := &list[i]
	p.Name = cmp.Or(o.Name, p.Name)
	p.Kind = cmp.Or(o.Kind, p.Kind)
	p.BaseURL = cmp.Or(o.BaseURL, p.BaseURL)
	if o.Env != nil {
		p.Env = o.Env
	}
	return list
}

func (o Override) models(list []Model) []Model {
	known := map[string]Model{}
	for _, m := range list {
		if m.ProviderID == o.ProviderID {
			known[m.ID] = m
		}
	}
	list = slices.DeleteFunc(list, func(m Model) bool {
		_, changed := o.Models[m.ID]
		return m.ProviderID == o.ProviderID && (changed || o.takesOut(m.ID))
	})
	if o.Disabled {
		return list
	}
	for id, change := range o.Models {
		if !slices.Contains(o.Hide, id) {
			list = append(list, change.apply(o.begin(id, change, known)))
		}
	}
	return list
}

func (o Override) takesOut(id string) bool {
	return o.Disabled || slices.Contains(o.Hide, id) || len(o.Only) > 0 && !slices.Contains(o.Only, id)
}

// begin gives what a change starts from.
func (o Override) begin(id string, change ModelOverride, known map[string]Model) Model {
	if m, ok := known[id]; ok {
		return m
	}
	if m, ok := known[change.APIID]; ok {
		m.ID = id
		return m
	}
	return Model{
		ID: id, ProviderID: o.ProviderID, Name: id, APIID: id, Status: "active",
		Capabilities: Capabilities{Tools: true, Input: []string{"text"}, Output: []string{"text"}},
	}
}

func (o ModelOverride) apply(m Model) Model {
	m.Name = cmp.Or(o.Name, m.Name)
	m.Family = cmp.Or(o.Family, m.Family)
	m.APIID = cmp.Or(o.APIID, m.APIID)
	m.Status = cmp.Or(o.Status, m.Status)
	set(&m.Capabilities.Tools, o.Tools)
	set(&m.Capabilities.Reasoning, o.Reasoning)
	set(&m.Capabilities.Attachment, o.Attachment)
	if o.Input != nil {
		m.Capabilities.Input = o.Input
	}
	if o.Output != nil {
		m.Capabilities.Output = o.Output
	}
	set(&m.Limit.Context, o.Context)
	set(&m.Limit.Input, o.MaxInput)
	set(&m.Limit.Output, o.MaxOutput)
	set(&m.Cost.Input, o.CostInput)
	set(&m.Cost.Output, o.CostOutput)
	set(&m.Cost.Cache.Read, o.CacheRead)
	set(&m.Cost.Cache.Write, o.CacheWrite)
	set(&m.Time.Released, o.Released)
	if o.Variants != nil {
		m.Variants = o.Variants
	}
	m.DefaultVariant = cmp.Or(o.DefaultVariant, m.DefaultVariant)
	return m
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}
