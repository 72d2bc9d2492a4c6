package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/switchyard-dev/switchyard/config"
	"github.com/switchyard-dev/switchyard/fault"
)

var update = flag.Bool("update", false, "rewrite the expectations in testdata")

// TestResolveTranscripts resolves the files of each archive for the directory
// that its comment names ("directory: a/b"; "env: NAME=value" sets variables) and
// compares document, sources, rules, warnings and error.
func TestResolveTranscripts(t *testing.T) {
	t.Parallel()
	archives, err := filepath.Glob("testdata/resolve/*.txtar")
	if err != nil || len(archives) < 10 {
		t.Fatalf("%d archives, %v", len(archives), err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			b := setup(t, archiveFiles(a))
			directory := ""
			for line := range strings.Lines(string(a.Comment)) {
				if d, ok := strings.CutPrefix(strings.TrimSpace(line), "directory: "); ok {
					directory = d
				}
				if v, ok := strings.CutPrefix(strings.TrimSpace(line), "env: "); ok {
					key, value, _ := strings.Cut(b.expand(v), "=")
					b.env[key] = value
				}
			}
			got := b.transcript(directory)
			if *update {
				rewrite(t, name, a, got)
			}
			compare(t, a, got)
		})
	}
}

// transcript gives the parts that an archive holds under want/.
func (b *bundle) transcript(directory string) map[string]string {
	got := map[string]string{}
	r, err := b.loader.Resolve(b.t.Context(), b.at(directory))
	if err != nil {
		got["want/error"] = b.anonymous(describe(err))
		return got
	}
	var doc bytes.Buffer
	if err := json.Indent(&doc, r.Public, "", "  "); err != nil {
		b.t.Fatal(err)
	}
	got["want/config"] = b.anonymous(doc.String()) + "\n"
	var sources, warnings, rules strings.Builder
	for _, p := range slices.Sorted(maps.Keys(r.Sources)) {
		fmt.Fprintf(&sources, "%s %s:%d\n", p, r.Sources[p].File, r.Sources[p].Line)
	}
	for _, w := range r.Warnings {
		fmt.Fprintln(&warnings, w)
	}
	for _, x := range r.Config.Permission {
		fmt.Fprintln(&rules, x.Permission, x.Pattern, x.Action)
	}
	got["want/sources"] = b.anonymous(sources.String())
	got["want/warnings"] = b.anonymous(warnings.String())
	got["want/permission"] = b.anonymous(rules.String())
	return got
}

// describe writes a fault with its fields and items.
func describe(err error) string {
	var e *fault.Error
	if !errors.As(err, &e) {
		return err.Error() + "\n"
	}
	s := fmt.Sprintf("%s %s:%v:%v %s\n", e.Code, e.Fields["path"], e.Fields["line"], e.Fields["column"], e.Detail)
	for _, item := range e.Items {
		s += "- " + item.Location + " " + item.Message + "\n"
	}
	return s
}

// compare wants every part; one that the archive does not hold is empty.
func compare(t *testing.T, a *txtar.Archive, got map[string]string) {
	t.Helper()
	want := map[string]string{}
	for _, f := range a.Files {
		if strings.HasPrefix(f.Name, "want/") {
			want[f.Name] = string(f.Data)
		}
	}
	if len(want) == 0 {
		t.Error("the archive wants nothing")
	}
	for _, part := range []string{"want/config", "want/sources", "want/warnings", "want/permission", "want/error"} {
		if got[part] != want[part] {
			t.Errorf("%s:\n%s\nwant:\n%s", part, got[part], want[part])
		}
	}
}

func rewrite(t *testing.T, name string, a *txtar.Archive, got map[string]string) {
	t.Helper()
	a.Files = slices.DeleteFunc(a.Files, func(f txtar.File) bool { return strings.HasPrefix(f.Name, "want/") })
	for _, part := range slices.Sorted(maps.Keys(got)) {
		if got[part] != "" {
			a.Files = append(a.Files, txtar.File{Name: part, Data: []byte(got[part])})
		}
	}
	if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestBrokenProjectLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	b := setup(t, map[string]string{
		"project/opencode.json":        `{"model": "a/b"}`,
		"project/broken/opencode.json": "{\n  \"model\": 5\n}",
		"project/fine/opencode.json":   `{"username": "me"}`,
	})
	_, err := b.loader.Resolve(t.Context(), b.at("broken"))
	e, ok := fault.As(err)
	if !ok || e.Code != fault.ConfigInvalid || fault.HTTPStatus(e.Code) != 409 {
		t.Fatalf("%v", err)
	}
	if e.Fields["path"] != b.path("project/broken/opencode.json") || e.Fields["line"] != 2 || e.Fields["column"] != 12 {
		t.Errorf("fields %v", e.Fields)
	}
	if r := b.resolve("fine"); r.Config.Username != "me" || r.Config.Model != "a/b" {
		t.Errorf("another directory: %+v", r.Config)
	}
	if r := b.resolve(""); r.Config.Model != "a/b" {
		t.Errorf("the root: %+v", r.Config)
	}
	// The error is kept like a result and ends with its cause.
	if _, again := b.loader.Resolve(t.Context(), b.at("broken")); !errors.Is(again, err) {
		t.Errorf("again: %v", again)
	}
	b.write("project/broken/opencode.json", `{"model": "c/d"}`)
	if r := b.resolve("broken"); r.Config.Model != "c/d" {
		t.Errorf("after the repair: %+v", r.Config)
	}
}

func TestGlobalSeesNoProject(t *testing.T) {
	t.Parallel()
	b := setup(t, map[string]string{
		"home/.config/switchyard/switchyard.jsonc": `{
			"server": {"port": 4701, "cors": ["https://a.example"], "hosts": ["b.example"]},
			"allowedRoots": ["~/work"], "durability": "process", "recover": "resume",
			"limits": {"bodyBytes": 1024},
		}`,
		"project/opencode.json": `{"model": "a/b"}`,
	})
	r, err := b.loader.Global(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := r.Config
	if c.Model != "" || *c.Server.Port != 4701 || c.Server.Hosts[0] != "b.example" || c.Durability != "process" ||
		c.Recover != "resume" || c.Limits.BodyBytes != 1024 || c.AllowedRoots[0] != b.home+"/work" {
		t.Errorf("%+v", c)
	}
}

func TestNothingAtAll(t *testing.T) {
	t.Parallel()
	r := setup(t, nil).resolve("")
	encoded, err := json.Marshal(r)
	if err != nil || string(encoded) != `{"config":{},"sources":{},"warnings":[]}` {
		t.Errorf("%s, %v", encoded, err)
	}
}

func TestLocationMustMakeSense(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	for _, loc := range []config.Location{
		{Root: b.root, Directory: b.home, Files: b.files},
		{Root: b.root, Directory: filepath.Dir(b.root), Files: b.files},
		{Root: b.root, Directory: b.root},
	} {
		if _, err := b.loader.Resolve(t.Context(), loc); err == nil || fault.Is(err, fault.ConfigInvalid) {
			t.Errorf("%+v: %v", loc, err)
		}
	}
}

func TestStrangeFiles(t *testing.T) {
	t.Parallel()
	b := setup(t, map[string]string{
		"home/secret.json":            `{"username": "outside"}`,
		"project/real/shared.json":    `{"username": "inside"}`,
		"project/file/.opencode":      "a file, not a directory",
		"project/big/opencode.json":   `{"username": "` + strings.Repeat("x", 2<<20) + `"}`,
		"project/dir/opencode.json/x": "",
	})
	link := func(target, name string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(b.path(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, b.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	link(b.path("home/secret.json"), "project/out/opencode.json")
	link("../real/shared.json", "project/in/opencode.json")
	b.mkfifo("project/fifo/opencode.json")

	if r := b.resolve("in"); r.Config.Username != "inside" {
		t.Errorf("link inside: %+v", r.Config)
	}
	if r := b.resolve("out"); r.Config.Username != "" || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0].Message, "out of the project") {
		t.Errorf("link outside: %q %v", r.Config.Username, r.Warnings)
	}
	if r := b.resolve("file"); len(r.Warnings) != 0 {
		t.Errorf("a file named .opencode: %v", r.Warnings)
	}
	for directory, want := range map[string]string{"big": "larger than", "dir": "regular file", "fifo": "regular file"} {
		_, err := b.loader.Resolve(t.Context(), b.at(directory))
		if !fault.Is(err, fault.ConfigInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", directory, err)
		}
	}
}
