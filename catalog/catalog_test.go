package catalog_test

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/catalog"
	"github.com/switchyard-dev/switchyard/chat"
)

func TestSnapshotHoldsUp(t *testing.T) {
	t.Parallel()
	c := catalog.Snapshot()
	models := c.Models()
	if len(models) < 500 || len(c.Providers()) < 20 {
		t.Fatalf("%d models of %d providers", len(models), len(c.Providers()))
	}
	priced, dated := 0, 0
	for i, m := range models {
		if i > 0 {
			before := models[i-1]
			if before.ProviderID > m.ProviderID || before.ProviderID == m.ProviderID && before.ID >= m.ID {
				t.Errorf("%s/%s is out of order", m.ProviderID, m.ID)
			}
		}
		checkModel(t, c, m)
		if m.Cost.Input > 0 {
			priced++
		}
		if m.Time.Released > 0 {
			dated++
		}
	}
	if priced < len(models)/2 || dated == 0 {
		t.Errorf("%d of %d priced, %d dated", priced, len(models), dated)
	}
}

func checkModel(t *testing.T, c *catalog.Catalog, m catalog.Model) {
	t.Helper()
	day, err := time.Parse(time.DateOnly, catalog.SnapshotDate)
	if err != nil {
		t.Fatal(err)
	}
	p, ok := c.Provider(m.ProviderID)
	switch {
	case !ok, m.ID == "", m.Name == "", m.APIID != m.ID, m.Status != "active":
		t.Errorf("%+v of %+v", m, p)
	case m.Cost.Input < 0, m.Cost.Output < 0, m.Cost.Cache.Read > m.Cost.Input, m.Cost.Cache.Write > 2*m.Cost.Input:
		t.Errorf("%s/%s: prices %+v", m.ProviderID, m.ID, m.Cost)
	case m.Limit.Context < 0, m.Limit.Output < 0, !slices.Contains(m.Capabilities.Input, "text"), len(m.Capabilities.Output) == 0:
		t.Errorf("%+v", m)
	case m.Time.Released < 0 || m.Time.Released > day.AddDate(1, 0, 0).UnixMilli():
		t.Errorf("%s: released %d", m.ID, m.Time.Released)
	}
	if got, ok := c.Get(m.ProviderID, m.ID); !ok || got.Name != m.Name {
		t.Errorf("%s/%s is not found", m.ProviderID, m.ID)
	}
}

func TestProvidersCanBeCalled(t *testing.T) {
	t.Parallel()
	c := catalog.Snapshot()
	for _, p := range c.Providers() {
		if p.Name == "" || !strings.HasPrefix(p.BaseURL, "https://") || len(p.Env) != 1 || strings.Contains(p.Env[0], "$") {
			t.Errorf("%+v", p)
		}
		for _, id := range []string{p.DefaultModel, p.SmallModel} {
			if _, ok := c.Get(p.ID, id); !ok {
				t.Errorf("%s: default %q is no model", p.ID, id)
			}
		}
	}
	for id, want := range map[string]catalog.Kind{
		"openai": catalog.KindOpenAI, "anthropic": catalog.KindAnthropic, "openrouter": catalog.KindOpenAICompatible,
	} {
		if p, ok := c.Provider(id); !ok || p.Kind != want {
			t.Errorf("%s: %+v", id, p)
		}
	}
	if _, ok := c.Provider("bedrock"); ok {
		t.Error("a provider that cannot be called is in the catalog")
	}
}

func TestModelShape(t *testing.T) {
	t.Parallel()
	m, ok := catalog.Snapshot().Get("anthropic", "claude-sonnet-4-5-20250929")
	if !ok {
		t.Fatal("not in the snapshot")
	}
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"id":"claude-sonnet-4-5-20250929","providerID":"anthropic","name":"Claude Sonnet 4.5",` +
		`"capabilities":{"tools":true,"reasoning":true,"attachment":true,"input":["text","image","pdf"],"output":["text"]},` +
		`"cost":{"input":3,"output":15,"cache":{"read":0.3,"write":3.75}},"limit":{"context":200000,"output":64000},` +
		`"status":"active","time":{"released":1759104000000}}`
	if string(data) != want {
		t.Errorf("got  %s\nwant %s", data, want)
	}
}

func TestCost(t *testing.T) {
	t.Parallel()
	m := catalog.Model{Cost: catalog.Price{Input: 3, Output: 15, Cache: catalog.CachePrice{Read: 0.3, Write: 3.75}}}
	u := chat.Usage{Input: 1_000_000, Output: 100_000, Reasoning: 100_000, Cache: chat.CacheUsage{Read: 1_000_000, Write: 200_000}}
	if got := catalog.Cost(m, u); math.Abs(got-(3+1.5+1.5+0.3+0.75)) > 1e-9 {
		t.Errorf("cost %v", got)
	}
	m.Cost.Cache = catalog.CachePrice{}
	if got := catalog.Cost(m, u); math.Abs(got-(3+3+3+0.6)) > 1e-9 {
		t.Errorf("without cache prices %v", got)
	}
	if got := catalog.Cost(catalog.Model{}, u); got != 0 {
		t.Errorf("free %v", got)
	}
}

func TestDemoOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	c := catalog.Snapshot()
	if _, ok := c.WithDemo(false).Get(catalog.DemoProviderID, catalog.DemoModelID); ok {
		t.Error("the demo model is always there")
	}
	with := c.WithDemo(true)
	m, ok := with.Get(catalog.DemoProviderID, catalog.DemoModelID)
	if p, found := with.Provider("demo"); !ok || !found || p.Kind != catalog.KindDemo || p.DefaultModel != m.ID || !strings.Contains(m.Name, "Demo") || !m.Capabilities.Tools {
		t.Errorf("%+v", m)
	}
	if len(with.Models()) != len(c.Models())+1 || with.ETag() == c.ETag() || with != c.WithDemo(true) || with.WithDemo(true) != with {
		t.Errorf("%d and %d models", len(c.Models()), len(with.Models()))
	}
}

func TestETag(t *testing.T) {
	t.Parallel()
	c := catalog.Snapshot()
	price := 9.0
	other := c.With(catalog.Override{ProviderID: "openai", Models: map[string]catalog.ModelOverride{"gpt-5.5": {CostInput: &price}}})
	same := c.With(catalog.Override{ProviderID: "openai", Name: "Mine"})
	if !strings.HasPrefix(c.ETag(), `"`) || c.ETag() == other.ETag() || c.ETag() != same.ETag() || c.With() != c {
		t.Errorf("%s, %s, %s", c.ETag(), other.ETag(), same.ETag())
	}
}

func TestOverrideNarrowsAndCopies(t *testing.T) {
	t.Parallel()
	base := catalog.Snapshot()
	c := base.With(
		catalog.Override{
			ProviderID: "openai", BaseURL: "https://proxy/v1", Only: []string{"gpt-5.5", "gpt-5.4"}, Hide: []string{"gpt-5.4"},
			Models: map[string]catalog.ModelOverride{"mine": {APIID: "gpt-5.5", Name: "Mine"}},
		},
		catalog.Override{ProviderID: "anthropic", Disabled: true},
	)
	var ids []string
	for _, m := range c.Models() {
		if m.ProviderID == "openai" || m.ProviderID == "anthropic" {
			ids = append(ids, m.ProviderID+"/"+m.ID)
		}
	}
	if got := strings.Join(ids, " "); got != "openai/gpt-5.5 openai/mine" {
		t.Errorf("models %s", got)
	}
	original, _ := base.Get("openai", "gpt-5.5")
	if m, _ := c.Get("openai", "mine"); m.APIID != "gpt-5.5" || m.Name != "Mine" || m.Cost != original.Cost || m.Limit != original.Limit {
		t.Errorf("%+v", m)
	}
	if p, ok := c.Provider("openai"); !ok || p.BaseURL != "https://proxy/v1" || p.DefaultModel != "gpt-5.5" || p.Env[0] != "OPENAI_API_KEY" {
		t.Errorf("%+v", p)
	}
	if _, ok := c.Provider("anthropic"); ok {
		t.Error("a disabled provider is there")
	}
	if _, ok := base.Provider("anthropic"); !ok || len(base.Models()) == len(c.Models()) {
		t.Error("the snapshot has changed")
	}
}

func TestOverrideAddsAProvider(t *testing.T) {
	t.Parallel()
	size, price, off := int64(1000), 0.5, false
	c := catalog.Snapshot().With(catalog.Override{
		ProviderID: "local", Name: "Local", BaseURL: "http://127.0.0.1:11434/v1",
		Models: map[string]catalog.ModelOverride{
			"qwen": {Context: &size, CostInput: &price, Tools: &off, Input: []string{"text", "image"}, Variants: []string{"low"}},
		},
	})
	m, _ := c.Get("local", "qwen")
	want := catalog.Model{
		ID: "qwen", ProviderID: "local", Name: "qwen", APIID: "qwen", Status: "active",
		Capabilities: catalog.Capabilities{Input: []string{"text", "image"}, Output: []string{"text"}},
		Cost:         catalog.Price{Input: 0.5}, Limit: catalog.Limit{Context: 1000}, Variants: []string{"low"},
	}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("%+v", m)
	}
	p, ok := c.Provider("local")
	if !ok || p.Kind != catalog.KindOpenAICompatible || p.DefaultModel != "qwen" || p.SmallModel != "qwen" || p.Env == nil {
		t.Errorf("%+v", p)
	}
}
