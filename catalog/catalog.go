package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync"
)

// Catalog is a list of models and providers. It never changes, and is safe for
// concurrent use; the slices that it gives are shared and must not be changed.
type Catalog struct {
	models    []Model    // by provider, then id
	providers []Provider // by id

	etag func() string
	demo func() *Catalog
}

// build makes a catalog of models and providers in any order. Of models with the
// same name the first counts.
func build(providers []Provider, models []Model) *Catalog {
	c := &Catalog{models: models, providers: providers}
	slices.SortStableFunc(c.providers, func(a, b Provider) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortStableFunc(c.models, byName)
	c.models = slices.CompactFunc(c.models, func(a, b Model) bool { return byName(a, b) == 0 })
	for i := range c.providers {
		c.settle(&c.providers[i])
	}
	c.etag = sync.OnceValue(c.hash)
	c.demo = sync.OnceValue(c.addDemo)
	return c
}

func byName(a, b Model) int {
	return cmp.Or(cmp.Compare(a.ProviderID, b.ProviderID), cmp.Compare(a.ID, b.ID))
}

// settle makes the default models ones that exist.
func (c *Catalog) settle(p *Provider) {
	if _, ok := c.Get(p.ID, p.DefaultModel); !ok {
		p.DefaultModel = ""
		i, _ := slices.BinarySearchFunc(c.models, Model{ProviderID: p.ID}, byName)
		if i < len(c.models) && c.models[i].ProviderID == p.ID {
			p.DefaultModel = c.models[i].ID
		}
	}
	if _, ok := c.Get(p.ID, p.SmallModel); !ok {
		p.SmallModel = p.DefaultModel
	}
}

// Models gives all models, sorted by provider and id.
func (c *Catalog) Models() []Model { return c.models }

// Providers gives all providers, sorted by id.
func (c *Catalog) Providers() []Provider { return c.providers }

// Get finds a model.
func (c *Catalog) Get(providerID, modelID string) (Model, bool) {
	i, ok := slices.BinarySearchFunc(c.models, Model{ProviderID: providerID, ID: modelID}, byName)
	if !ok {
		return Model{}, false
	}
	return c.models[i], true
}

// Provider finds a provider.
func (c *Catalog) Provider(providerID string) (Provider, bool) {
	i, ok := slices.BinarySearchFunc(c.providers, providerID, func(p Provider, id string) int { return cmp.Compare(p.ID, id) })
	if !ok {
		return Provider{}, false
	}
	return c.providers[i], true
}

// ETag identifies the content of Models; it is a quoted HTTP entity tag.
func (c *Catalog) ETag() string { return c.etag() }

func (c *Catalog) hash() string {
	h := sha256.New()
	_ = json.NewEncoder(h).Encode(c.models) // strings and numbers, into memory
	return `"` + hex.EncodeToString(h.Sum(nil)[:16]) + `"`
}

// The built-in provider and its model, spelled as the model layer does.
const (
	DemoProviderID = "demo"
	DemoModelID    = "demo"
)

// WithDemo gives the catalog with the built-in demo provider when on, else as it
// is.
func (c *Catalog) WithDemo(on bool) *Catalog {
	if !on {
		return c
	}
	return c.demo()
}

func (c *Catalog) addDemo() *Catalog {
	if _, ok := c.Provider(DemoProviderID); ok {
		return c
	}
	return build(
		append(slices.Clone(c.providers), Provider{
			ID: DemoProviderID, Name: "Demo (built in, no model behind it)", Kind: KindDemo, Env: []string{}, DefaultModel: DemoModelID,
		}),
		append(slices.Clone(c.models), Model{
			ID: DemoModelID, ProviderID: DemoProviderID, Name: "Demo (scripted)", APIID: DemoModelID,
			Capabilities: Capabilities{Tools: true, Input: []string{"text"}, Output: []string{"text"}},
			Limit:        Limit{Context: 200_000, Output: 8192}, Status: "active",
		}),
	)
}
