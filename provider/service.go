// Package provider brings the model catalog, the configuration and the
// environment together: which providers there are in a directory, which of them
// can be called, and how.
package provider

import (
	"context"
	"net/http"
	"os"
	"sync"

	"github.com/switchyard-dev/switchyard/catalog"
	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/config"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/llm"
)

// Options say where a Service looks.
type Options struct {
	// Demo keeps the built-in demo provider beside real ones; without it the
	// demo is there only while no real one is connected.
	Demo bool
	// LookupEnv reads the environment; nil means os.LookupEnv.
	LookupEnv func(string) (string, bool)
	// Client makes the requests to providers; nil is a client with Go's defaults.
	Client *http.Client
}

// Service makes inventories. It is safe for concurrent use.
type Service struct {
	options Options

	mu   sync.Mutex // protects last
	last map[*config.Config]*Inventory
}

// maxInventories bounds the cache; configurations that changed fall out with it.
const maxInventories = 64

// NewService makes a Service.
func NewService(o Options) *Service {
	if o.LookupEnv == nil {
		o.LookupEnv = os.LookupEnv
	}
	return &Service{options: o, last: map[*config.Config]*Inventory{}}
}

// Catalog is what the program knows without configuration.
func (s *Service) Catalog() *catalog.Catalog {
	return catalog.Snapshot().WithDemo(s.options.Demo || !s.anyKey())
}

// anyKey reports whether the environment holds a key for any known provider.
func (s *Service) anyKey() bool {
	for _, p := range catalog.Snapshot().Providers() {
		if s.keyOf(p) != "" {
			return true
		}
	}
	return false
}

func (s *Service) keyOf(p catalog.Provider) string {
	for _, name := range p.Env {
		if v, ok := s.options.LookupEnv(name); ok && v != "" {
			return v
		}
	}
	return ""
}

// Inventory gives the providers of a configuration. Configurations are shared
// and do not change, so the same one gives the same inventory.
func (s *Service) Inventory(c *config.Config) *Inventory {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.last[c]; ok {
		return known
	}
	if len(s.last) >= maxInventories {
		clear(s.last)
	}
	inventory := s.build(c)
	s.last[c] = inventory
	return inventory
}

func (s *Service) build(c *config.Config) *Inventory {
	known := catalog.Snapshot().With(overrides(c)...)
	i := &Inventory{service: s, config: c, reach: map[string]llm.ProviderConfig{}}
	for _, p := range known.Providers() {
		if reach, ok := s.reach(p, c.Providers[p.ID]); ok {
			i.reach[p.ID] = reach
		}
	}
	i.catalog = known.WithDemo(s.options.Demo || len(i.reach) == 0)
	return i
}

// reach says how a provider is called; false when it cannot be.
func (s *Service) reach(p catalog.Provider, c config.Provider) (llm.ProviderConfig, bool) {
	key := c.Options.APIKey.Reveal()
	own := key != ""
	if !own {
		key = s.keyOf(p)
	}
	headers := map[string]string{}
	for name, value := range c.Options.Headers {
		headers[name] = value.Reveal()
	}
	reach := llm.ProviderConfig{
		ID: p.ID, Kind: llm.ProviderKind(p.Kind), BaseURL: p.BaseURL, APIKey: llm.NewSecret(key), Headers: headers, HTTPClient: s.options.Client,
	}
	if c.Options.BaseURL != "" {
		reach.BaseURL = c.Options.BaseURL
	}
	if p.Kind == catalog.KindDemo {
		return reach, false
	}
	// A local server may want no key: then the configuration names its address.
	keyless := p.Kind == catalog.KindOpenAICompatible && c.Options.BaseURL != ""
	return reach, key != "" || keyless
}

// Inventory is the providers of one configuration. It implements the models that
// turns need. It does not change.
type Inventory struct {
	service *Service
	config  *config.Config
	catalog *catalog.Catalog
	reach   map[string]llm.ProviderConfig
}

// Model gives a model that can be called. An unknown one, and one whose provider
// has no key, is a model_unavailable fault that names both.
func (i *Inventory) Model(ctx context.Context, ref chat.ModelRef) (llm.Model, error) {
	unavailable := func(why string) error {
		return fault.New(fault.ModelUnavailable, "the model %s/%s is not available: %s", ref.ProviderID, ref.ModelID, why).
			With("providerID", ref.ProviderID).With("modelID", ref.ModelID)
	}
	known, ok := i.catalog.Get(ref.ProviderID, ref.ModelID)
	if !ok {
		if _, there := i.catalog.Provider(ref.ProviderID); !there {
			return nil, unavailable("there is no such provider")
		}
		return nil, unavailable("the provider has no such model")
	}
	if ref.ProviderID == llm.DemoProviderID {
		return llm.Demo().Model(ctx, ref.ModelID)
	}
	reach, ok := i.reach[ref.ProviderID]
	if !ok {
		return nil, unavailable("the provider has no key")
	}
	p, err := llm.New(reach)
	if err != nil {
		return nil, unavailable("the provider's address is wrong")
	}
	name := known.APIID
	if name == "" {
		name = known.ID
	}
	return p.Model(ctx, name)
}

// Cost prices a usage in US dollars.
func (i *Inventory) Cost(ref chat.ModelRef, usage chat.Usage) float64 {
	m, _ := i.catalog.Get(ref.ProviderID, ref.ModelID)
	return catalog.Cost(m, usage)
}

// Limits counts the tokens that a model can take and give; 0 is unknown.
func (i *Inventory) Limits(ref chat.ModelRef) catalog.Limit {
	m, _ := i.catalog.Get(ref.ProviderID, ref.ModelID)
	return m.Limit
}

// SmallModel is the model that the configuration names for titles; zero for none.
func (i *Inventory) SmallModel() chat.ModelRef {
	ref, _ := parse(i.config.SmallModel)
	return ref
}

// Intake says which files the model takes, and how large; an unknown one takes
// none.
func (i *Inventory) Intake(ref chat.ModelRef) catalog.Intake {
	m, _ := i.catalog.Get(ref.ProviderID, ref.ModelID)
	p, _ := i.catalog.Provider(ref.ProviderID)
	return catalog.IntakeOf(m, p.Kind)
}

// connected tells whether a provider can be called.
func (i *Inventory) connected(id string) bool {
	_, ok := i.reach[id]
	return ok || id == llm.DemoProviderID
}

// DefaultModel is the model where nobody chose one: that of the configuration,
// else the default one of the first connected provider.
func (i *Inventory) DefaultModel() chat.ModelRef {
	if ref, ok := parse(i.config.Model); ok {
		return ref
	}
	order := append([]string{"anthropic", "openai"}, i.providerIDs()...)
	for _, id := range order {
		p, ok := i.catalog.Provider(id)
		if ok && p.DefaultModel != "" && i.connected(id) && (id != llm.DemoProviderID || len(i.reach) == 0) {
			return chat.ModelRef{ProviderID: id, ModelID: p.DefaultModel}
		}
	}
	return chat.ModelRef{}
}

func (i *Inventory) providerIDs() []string {
	all := i.catalog.Providers()
	ids := make([]string, 0, len(all))
	for _, p := range all {
		ids = append(ids, p.ID)
	}
	return ids
}
