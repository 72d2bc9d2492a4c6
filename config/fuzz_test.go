package config_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/switchyard-dev/switchyard/config"
	"github.com/switchyard-dev/switchyard/fault"
)

// FuzzResolve loads any text as the configuration of a user and of a project: it
// ends in a document that is JSON, or in a fault with a place.
func FuzzResolve(f *testing.F) {
	f.Add(everything)
	f.Add("\ufeff{}//")
	f.Add(strings.Repeat(`{"agent":`, 100))
	f.Add("{\"a\":\"\xff\"}")
	f.Add(`{"provider":{"headers":"x"},"mcp":{"a":1},"permission":{"a":{"b":null}},"tools":null,"mode":{"a":{}}}`)
	archives, err := filepath.Glob("testdata/resolve/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, text := range archiveFiles(a) {
			f.Add(text)
		}
	}
	home := f.TempDir()
	project := filepath.Join(home, "opencode")
	if err := os.Mkdir(project, 0o755); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(filepath.Join(project, "opencode.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		env := map[string]string{"SWITCHYARD_CONFIG_CONTENT": text}
		loader := config.NewLoader(config.Options{Home: home, ConfigHome: home, LookupEnv: func(name string) (string, bool) {
			v, ok := env[name]
			return v, ok
		}})
		if _, err := loader.Check(filepath.Join(project, "opencode.json")); err != nil {
			t.Fatal(err)
		}
		r, err := loader.Global(t.Context())
		if err != nil {
			if e, ok := fault.As(err); !ok || e.Code != fault.ConfigInvalid || e.Fields["path"] == nil {
				t.Fatalf("%v", err)
			}
			return
		}
		if r.Config == nil || r.Sources == nil || r.Warnings == nil || !json.Valid(r.Public) {
			t.Fatalf("%s", r.Public)
		}
	})
}
