package config_test

import (
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/config"
	"github.com/switchyard-dev/switchyard/env"
)

// countingFiles counts what is asked of a project's files.
type countingFiles struct {
	config.Files
	opens, stats atomic.Int64
}

func (c *countingFiles) Open(path string) (env.File, error) {
	c.opens.Add(1)
	return c.Files.Open(path)
}

func (c *countingFiles) Stat(path string) (iofs.FileInfo, error) {
	c.stats.Add(1)
	return c.Files.Stat(path)
}

func TestUnchangedConfigurationCostsStatsOnly(t *testing.T) {
	t.Parallel()
	b := setup(t, map[string]string{"project/opencode.json": `{"model": "a/b"}`, "project/a/switchyard.json": `{"username": "{file:./name}"}`, "project/a/name": "x"})
	files := &countingFiles{Files: b.files}
	b.files = files
	first := b.resolve("a")
	opens := files.opens.Load()
	for range 5 {
		if b.resolve("a") != first {
			t.Fatal("the result is not kept")
		}
	}
	if files.opens.Load() != opens || files.stats.Load() == 0 {
		t.Errorf("%d opens, %d stats", files.opens.Load()-opens, files.stats.Load())
	}
}

func TestChangesAreSeen(t *testing.T) {
	t.Parallel()
	start := map[string]string{
		"project/opencode.json":                   `{"model": "a/b", "agent": {"x": {"prompt": "{file:p.md}"}}}`,
		"project/p.md":                            "prompt",
		"home/.config/opencode/opencode.json":     `{"username": "{env:WHO}"}`,
		"project/sub/.opencode/opencode.jsonc":    `{"small_model": "a/s"}`,
		"home/.config/switchyard/switchyard.json": `{}`,
	}
	show := func(c *config.Config) string {
		return fmt.Sprint(c.Model, " ", c.SmallModel, " ", c.Username, " ", c.Agents["x"].Prompt)
	}
	tests := []struct {
		name   string
		change func(b *bundle)
		want   string
	}{
		{"nothing", func(*bundle) {}, "a/b a/s me prompt"},
		{"size", func(b *bundle) { b.write("project/opencode.json", `{"model": "aa/bb"}`) }, "aa/bb a/s me "},
		{"time only", func(b *bundle) {
			b.write("project/p.md", "PROMPT")
			later := time.Now().Add(-time.Minute)
			if err := os.Chtimes(b.path("project/p.md"), later, later); err != nil {
				b.t.Fatal(err)
			}
		}, "a/b a/s me PROMPT"},
		{"replaced with equal size and time", (*bundle).swapPrompt, "a/b a/s me PrOmPt"},
		{"new file", func(b *bundle) { b.write("project/sub/switchyard.json", `{"model": "n/n"}`) }, "n/n a/s me prompt"},
		{"removed file", func(b *bundle) {
			if err := os.RemoveAll(b.path("project/sub/.opencode")); err != nil {
				b.t.Fatal(err)
			}
		}, "a/b  me prompt"},
		{"global file", func(b *bundle) { b.write("home/.config/switchyard/switchyard.json", `{"username": "global"}`) }, "a/b a/s global prompt"},
		{"variable", func(b *bundle) { b.env["WHO"] = "you" }, "a/b a/s you prompt"},
		{"content variable", func(b *bundle) { b.env["SWITCHYARD_CONFIG_CONTENT"] = `{"model": "c/c"}` }, "c/c a/s me prompt"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, start)
			b.env["WHO"] = "me"
			if got := show(b.resolve("sub").Config); got != "a/b a/s me prompt" {
				t.Fatalf("at first %q", got)
			}
			tt.change(b)
			if got := show(b.resolve("sub").Config); got != tt.want {
				t.Errorf("then %q, want %q", got, tt.want)
			}
		})
	}
}

// swapPrompt puts another file of equal size and time in the place of one.
func (b *bundle) swapPrompt() {
	b.t.Helper()
	info, err := os.Stat(b.path("project/p.md"))
	if err != nil {
		b.t.Fatal(err)
	}
	b.write("project/other.md", "PrOmPt")
	if err := os.Chtimes(b.path("project/other.md"), info.ModTime(), info.ModTime()); err != nil {
		b.t.Fatal(err)
	}
	if err := os.Rename(b.path("project/other.md"), b.path("project/p.md")); err != nil {
		b.t.Fatal(err)
	}
}

// TestJustWrittenFileIsReadAgain rewrites a file in place with equal size and
// time, as two writes within one step of the file system's clock do.
func TestJustWrittenFileIsReadAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	path := b.path("project/opencode.json")
	now := time.Now()
	for _, name := range []string{"aa", "bb"} {
		if err := os.WriteFile(path, []byte(`{"username": "`+name+`"}`), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now, now); err != nil {
			t.Fatal(err)
		}
		if got := b.resolve("").Config.Username; got != name {
			t.Fatalf("%q, want %q", got, name)
		}
	}
}

func TestNamedFileMustExist(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.env["SWITCHYARD_CONFIG"] = b.path("home/none.json")
	_, err := b.loader.Resolve(t.Context(), b.at(""))
	if err == nil || !strings.Contains(err.Error(), "SWITCHYARD_CONFIG") {
		t.Fatalf("%v", err)
	}
	b.write("home/none.json", `{"durability": "process"}`)
	if r := b.resolve(""); r.Config.Durability != "process" {
		t.Errorf("the owner's file is not trusted: %v", r.Warnings)
	}
}

func TestConfigDirectoryAsProjectIsStillTheOwners(t *testing.T) {
	t.Parallel()
	b := setup(t, map[string]string{"home/.config/opencode/opencode.json": `{"durability": "process"}`})
	place, err := env.Local(b.path("home/.config/opencode"))
	if err != nil {
		t.Fatal(err)
	}
	defer place.Close()
	r, err := b.loader.Resolve(t.Context(), config.Location{Root: place.Root(), Directory: place.Root(), Files: place.Files()})
	if err != nil || len(r.Warnings) != 0 || r.Config.Durability != "process" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestConcurrentResolving(t *testing.T) {
	t.Parallel()
	b := setup(t, map[string]string{"project/opencode.json": `{"model": "a/b"}`})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 100 {
				directory := fmt.Sprintf("d%d", (i*100+j)%600)
				r, err := b.loader.Resolve(t.Context(), b.at(directory))
				if err != nil || r.Config.Model != "a/b" {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestCheckListsAllProblemsOfAFile(t *testing.T) {
	t.Parallel()
	b := setup(t, map[string]string{
		"project/.git/HEAD":                       "",
		"project/prompts/p.md":                    "x",
		"project/.opencode/opencode.json":         "{\n\"server\": {},\n\"model\": 1,\n\"agent\": {\"a\": {\"prompt\": \"{file:../prompts/p.md}\", \"mode\": \"no\"}}\n}",
		"home/.config/switchyard/switchyard.json": `{"server": {"port": 1}}`,
		"project/syntax.json":                     "{\n",
	})
	tests := []struct {
		file string
		want []string
	}{
		{"project/.opencode/opencode.json", []string{":3:10: error: a string", ":4:61: error: one of primary", `:2:11: warning: "server" is ignored`}},
		{"home/.config/switchyard/switchyard.json", nil},
		{"project/syntax.json", []string{"error: not valid JSON"}},
	}
	for _, tt := range tests {
		got, err := b.loader.Check(b.path(tt.file))
		if err != nil || len(got) != len(tt.want) {
			t.Errorf("%s: %v, %v", tt.file, got, err)
			continue
		}
		for i, p := range got {
			if !strings.Contains(p.String(), tt.want[i]) || p.File != b.path(tt.file) {
				t.Errorf("%s: %s, want %s", tt.file, p, tt.want[i])
			}
		}
	}
	for _, file := range []string{"project/none.json", "project"} {
		if _, err := b.loader.Check(b.path(file)); err == nil || !strings.Contains(err.Error(), "file") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestProblemsOfALocation(t *testing.T) {
	t.Parallel()
	b := setup(t, map[string]string{
		"project/opencode.json":     `{"modell": 1}`,
		"project/sub/opencode.json": `{"model": 1}`,
	})
	for directory, want := range map[string]string{"": "warning", "sub": "error warning"} {
		got, err := b.loader.Problems(t.Context(), b.at(directory))
		var severities []string
		for _, p := range got {
			severities = append(severities, string(p.Severity))
		}
		if err != nil || strings.Join(severities, " ") != want {
			t.Errorf("%q: %v, %v", directory, got, err)
		}
	}
}

func TestDefaultOptionsAreComplete(t *testing.T) {
	t.Parallel()
	o := config.DefaultOptions()
	if o.LookupEnv == nil || (o.Home != "" && !filepath.IsAbs(o.ConfigHome)) {
		t.Errorf("home %q, config %q", o.Home, o.ConfigHome)
	}
}
