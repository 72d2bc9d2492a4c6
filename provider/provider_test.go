package provider_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/config"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/provider"
)

const canary = "sk-canary-0123456789"

// service reads its environment from pairs.
func service(demo bool, pairs ...string) *provider.Service {
	vars := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		vars[pairs[i]] = pairs[i+1]
	}
	return provider.NewService(provider.Options{Demo: demo, LookupEnv: func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}})
}

func ref(p, m string) chat.ModelRef { return chat.ModelRef{ProviderID: p, ModelID: m} }

func TestDemoIsThereOnlyWithoutARealProvider(t *testing.T) {
	t.Parallel()
	none := &config.Config{}
	for name, c := range map[string]struct {
		s    *provider.Service
		demo bool
		def  string
	}{
		"nothing":           {service(false), true, "demo"},
		"a key":             {service(false, "OPENAI_API_KEY", canary), false, "openai"},
		"a key and --demo":  {service(true, "OPENAI_API_KEY", canary), true, "openai"},
		"an empty variable": {service(false, "OPENAI_API_KEY", ""), true, "demo"},
	} {
		i := c.s.Inventory(none)
		_, err := i.Model(t.Context(), ref("demo", "demo"))
		if (err == nil) != c.demo {
			t.Errorf("%s: demo model: %v", name, err)
		}
		if got := i.DefaultModel(); got.ProviderID != c.def {
			t.Errorf("%s: default %+v", name, got)
		}
	}
}

func TestModelsThatCannotBeCalled(t *testing.T) {
	t.Parallel()
	i := service(false, "OPENAI_API_KEY", canary).Inventory(&config.Config{DisabledProviders: []string{"anthropic"}})
	for want, r := range map[string]chat.ModelRef{
		"no such provider": ref("none", "x"),
		"no such model":    ref("openai", "x"),
		"no key":           ref("openrouter", "openai/gpt-4o"),
	} {
		_, err := i.Model(t.Context(), r)
		f, ok := fault.As(err)
		if !ok || f.Code != fault.ModelUnavailable || !strings.Contains(f.Detail, want) || f.Fields["providerID"] != r.ProviderID {
			t.Errorf("%+v: %v", r, err)
		}
	}
	if _, err := i.Model(t.Context(), ref("anthropic", "claude-sonnet-4-5")); !fault.Is(err, fault.ModelUnavailable) {
		t.Errorf("disabled: %v", err)
	}
}

func TestConfiguredProviderAndItsKey(t *testing.T) {
	t.Parallel()
	c := &config.Config{Model: "local/tiny", Providers: map[string]config.Provider{"local": {
		Name: "Local", NPM: "@ai-sdk/openai-compatible", Options: config.ProviderOptions{BaseURL: "http://127.0.0.1:1/v1", APIKey: canary},
		Models: map[string]config.Model{"tiny": {Name: "Tiny", Limit: config.ModelLimit{Context: 1000, Output: 100}}},
	}}}
	i := service(false).Inventory(c)
	if got := i.DefaultModel(); got != ref("local", "tiny") {
		t.Errorf("default %+v", got)
	}
	if _, err := i.Model(t.Context(), ref("local", "tiny")); err != nil {
		t.Errorf("model: %v", err)
	}
	if got := i.Limits(ref("local", "tiny")).Output; got != 100 {
		t.Errorf("output limit %d", got)
	}
	list := i.List()
	data, err := json.Marshal(list)
	if err != nil || strings.Contains(string(data), canary) || strings.Contains(fmt.Sprintf("%+v", i), canary) {
		t.Errorf("the key shows: %v", err)
	}
	if len(list.Connected) != 1 || list.Connected[0] != "local" || list.Default["local"] != "tiny" || list.Model.ModelID != "tiny" {
		t.Errorf("%v %v %v", list.Connected, list.Default, list.Model)
	}
	for _, p := range list.All {
		if p.Connected != (p.ID == "local") || p.Models == nil || !p.Connected && len(p.Models) != 0 {
			t.Errorf("%s: connected %v with %d models", p.ID, p.Connected, len(p.Models))
		}
	}
	if service(false).Inventory(c) == i {
		t.Error("two services share an inventory")
	}
}
