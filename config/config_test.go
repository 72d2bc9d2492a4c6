package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/config"
)

const everything = `{
	"model": "p/m", "small_model": "p/s", "default_agent": "plan", "shell": "/bin/zsh", "username": "me", "snapshot": false,
	"enabled_providers": [],
	"instructions": ["a.md"],
	"tool_output": {"max_lines": 1, "max_bytes": 2},
	"compaction": {"auto": false, "prune": true, "tail_turns": 3, "preserve_recent_tokens": 4, "reserved": 0},
	"agent": {"a": {
		"model": "p/m", "variant": "high", "temperature": 0.25, "top_p": 1, "prompt": "P", "description": "D", "mode": "all",
		"disable": true, "hidden": false, "color": "red", "steps": 9, "permission": "deny",
		"options": {"x": 1}, "effort": "low"
	}},
	"provider": {"p": {
		"id": "pp", "name": "N", "npm": "n", "api": "https://api.example", "env": ["K"], "whitelist": ["w"], "blacklist": ["b"],
		"options": {
			"apiKey": "sk-literal", "baseURL": "http://localhost:1/v1", "enterpriseUrl": "https://e.example",
			"headers": {"H": "sk-literal"}, "timeout": 1500, "headerTimeout": false, "region": "r"
		},
		"models": {"m": {
			"id": "mm", "name": "M", "family": "f", "status": "beta", "release_date": "2026-01-01",
			"attachment": true, "reasoning": false, "temperature": true, "tool_call": true,
			"modalities": {"input": ["text"], "output": ["text"]},
			"limit": {"context": 100, "input": 90, "output": 10},
			"cost": {"input": 1.5, "output": 2, "cache_read": 0, "cache_write": 0.1, "context_over_200k": {"input": 3}},
			"headers": {"H": "sk-literal"}, "options": {"o": true}, "variants": {"high": {"effort": "high"}},
			"provider": {"npm": "n2", "api": "https://m.example"}, "knowledge": "2025"
		}}
	}},
	"mcp": {"s": {"type": "local", "command": ["c"], "environment": {"T": "sk-literal"}}},
	"command": {"c": {"template": "t"}}, "lsp": false, "formatter": {"f": {}}, "skills": {"paths": ["x"]}
}`

func TestEveryKeyArrives(t *testing.T) {
	t.Parallel()
	b := setup(t, map[string]string{"home/.config/switchyard/switchyard.json": everything})
	r := b.resolve("")
	if len(r.Warnings) != 0 {
		t.Errorf("warnings %v", r.Warnings)
	}
	c := r.Config
	if c.Model != "p/m" || c.SmallModel != "p/s" || c.DefaultAgent != "plan" || c.Shell != "/bin/zsh" || c.Username != "me" || *c.Snapshot {
		t.Errorf("%+v", c)
	}
	if c.DisabledProviders != nil || c.EnabledProviders == nil || len(c.EnabledProviders) != 0 {
		t.Errorf("providers %v, %v", c.DisabledProviders, c.EnabledProviders)
	}
	if i := c.Instructions; len(i) != 1 || i[0].Pattern != "a.md" || i[0].Project || i[0].At.Line != 4 {
		t.Errorf("instructions %+v", i)
	}
	if c.ToolOutput != (config.ToolOutput{MaxLines: 1, MaxBytes: 2}) {
		t.Errorf("tool output %+v", c.ToolOutput)
	}
	k := c.Compaction
	if *k.Auto || !*k.Prune || *k.TailTurns != 3 || *k.PreserveRecentTokens != 4 || *k.Reserved != 0 {
		t.Errorf("compaction %+v", k)
	}
	for name, raw := range map[string]config.Raw{"lsp": c.LSP, "formatter": c.Formatter, "skills": c.Skills, "command": c.Commands["c"], "mcp": c.MCP["s"]} {
		if raw.IsZero() || raw.Project() {
			t.Errorf("%s: zero %v, project %v", name, raw.IsZero(), raw.Project())
		}
	}
	if !c.Access.IsZero() || c.Access.Decode(&struct{}{}) != nil {
		t.Error("an absent part is not zero")
	}
}

func TestAgentAndProviderArrive(t *testing.T) {
	t.Parallel()
	b := setup(t, map[string]string{"home/.config/switchyard/switchyard.json": everything})
	c := b.resolve("").Config
	a := c.Agents["a"]
	if a.Model != "p/m" || a.Variant != "high" || *a.Temperature != 0.25 || *a.TopP != 1 || a.Prompt != "P" || a.Description != "D" ||
		a.Mode != "all" || !a.Disable || *a.Hidden || a.Color != "red" || *a.Steps != 9 || len(a.Permission) != 1 || len(a.Options) != 2 {
		t.Errorf("agent %+v", a)
	}
	var effort string
	if err := a.Options["effort"].Decode(&effort); err != nil || effort != "low" {
		t.Errorf("unknown key of an agent: %q, %v", effort, err)
	}
	p := c.Providers["p"]
	if p.ID != "pp" || p.Name != "N" || p.NPM != "n" || p.API != "https://api.example" || p.Env[0] != "K" || p.Whitelist[0] != "w" || p.Blacklist[0] != "b" {
		t.Errorf("provider %+v", p)
	}
	o := p.Options
	if o.APIKey.Reveal() != "sk-literal" || o.BaseURL != "http://localhost:1/v1" || o.EnterpriseURL == "" || o.Headers["H"].Reveal() != "sk-literal" ||
		o.Timeout != (config.Timeout{Set: true, After: 1500 * time.Millisecond}) || o.HeaderTimeout != (config.Timeout{Set: true, Off: true}) ||
		o.ChunkTimeout.Set || len(o.Extra) != 1 {
		t.Errorf("options %+v", o)
	}
	m := p.Models["m"]
	if m.ID != "mm" || m.Name != "M" || m.Family != "f" || m.Status != "beta" || m.ReleaseDate == "" || !*m.Attachment || *m.Reasoning ||
		!*m.Temperature || !*m.ToolCall || m.Modalities.Input[0] != "text" || m.Limit != (config.ModelLimit{Context: 100, Input: 90, Output: 10}) ||
		*m.Cost.Input != 1.5 || *m.Cost.CacheRead != 0 || len(m.Cost.Extra) != 1 || m.Headers["H"].Reveal() == "" || len(m.Options) != 1 ||
		len(m.Variants) != 1 || m.Provider.NPM != "n2" || len(m.Extra) != 1 {
		t.Errorf("model %+v", m)
	}
}

func TestRawTellsProjectFiles(t *testing.T) {
	t.Parallel()
	b := setup(t, map[string]string{
		"home/.config/switchyard/switchyard.json": `{"mcp": {"mine": {"url": "https://a.example"}, "both": {"url": "https://a.example"}}}`,
		"project/opencode.json":                   `{"mcp": {"both": {"enabled": false}, "theirs": {"url": "https://b.example"}}}`,
	})
	mcp := b.resolve("").Config.MCP
	if mcp["mine"].Project() || !mcp["both"].Project() || !mcp["theirs"].Project() {
		t.Error("the origin of servers is wrong")
	}
	var both struct {
		URL     string
		Enabled *bool
	}
	if err := mcp["both"].Decode(&both); err != nil || both.URL == "" || *both.Enabled {
		t.Errorf("%+v, %v", both, err)
	}
	var wrong struct{ URL int }
	if err := mcp["mine"].Decode(&wrong); err == nil || strings.Contains(err.Error(), "a.example") {
		t.Errorf("%v", err)
	}
}

// TestSC71_SecretsNeverPrint reads a configuration full of secrets in every way
// that output is made.
func TestSC71_SecretsNeverPrint(t *testing.T) {
	t.Parallel()
	b := setup(t, map[string]string{"home/.config/switchyard/switchyard.json": everything})
	r := b.resolve("")
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewJSONHandler(&log, nil), slog.NewTextHandler(&log, nil)} {
		slog.New(h).Info("config", "resolved", r, "config", r.Config, "providers", r.Config.Providers, "raw", r.Config.MCP["s"],
			"secret", r.Config.Providers["p"].Options.APIKey)
	}
	encoded, err := json.Marshal(r.Config)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	options, mcp := r.Config.Providers["p"].Options, r.Config.MCP
	var verbs strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&verbs, verb+" "+verb+" "+verb+" "+verb+"\n", options.APIKey, options, mcp, *r.Config)
	}
	for name, out := range map[string]string{"log": log.String(), "config": string(encoded), "answer": string(answer), "fmt": verbs.String()} {
		if strings.Contains(out, "sk-literal") || strings.Contains(out, fmt.Sprintf("%x", "sk-literal")) {
			t.Errorf("%s shows a secret: %s", name, out)
		}
		if !strings.Contains(out, "***") {
			t.Errorf("%s: nothing is hidden: %s", name, out)
		}
	}
	if s := fmt.Sprint(config.Secret(""), config.Raw{}); s != "" {
		t.Errorf("unset prints %q", s)
	}
}
