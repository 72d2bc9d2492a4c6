package config_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/switchyard-dev/switchyard/config"
)

// instructions gives the names of the texts, "home/…" or "project/…", and the
// messages of the warnings.
func (b *bundle) instructions(directory string) ([]config.Text, []string, []string) {
	b.t.Helper()
	texts, problems, err := b.loader.Instructions(b.t.Context(), b.at(directory), b.resolve(directory).Config)
	if err != nil {
		b.t.Fatal(err)
	}
	names, warnings := []string{}, []string{}
	for _, x := range texts {
		names = append(names, strings.TrimPrefix(x.Path, b.path("")+"/"))
	}
	for _, p := range problems {
		if p.Severity != config.SeverityWarning || p.File == "" {
			b.t.Errorf("problem %+v", p)
		}
		warnings = append(warnings, p.Message)
	}
	return texts, names, warnings
}

func TestInstructionFiles(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		files     []string
		directory string
		want      []string
	}{
		{"none", nil, "", []string{}},
		{"global, ours first", []string{"home/.config/switchyard/AGENTS.md", "home/.config/opencode/AGENTS.md", "home/.claude/CLAUDE.md"}, "", []string{"home/.config/switchyard/AGENTS.md"}},
		{"global of opencode", []string{"home/.config/opencode/AGENTS.md", "home/.claude/CLAUDE.md"}, "", []string{"home/.config/opencode/AGENTS.md"}},
		{"global of claude", []string{"home/.claude/CLAUDE.md"}, "", []string{"home/.claude/CLAUDE.md"}},
		{"all of the first kind, root first", []string{"project/AGENTS.md", "project/a/CLAUDE.md", "project/a/b/AGENTS.md", "project/a/c/AGENTS.md"}, "a/b", []string{"project/AGENTS.md", "project/a/b/AGENTS.md"}},
		{"second kind", []string{"project/CLAUDE.md", "project/a/CONTEXT.md"}, "a", []string{"project/CLAUDE.md"}},
		{"third kind", []string{"project/a/CONTEXT.md"}, "a", []string{"project/a/CONTEXT.md"}},
		{"not below", []string{"project/a/AGENTS.md"}, "", []string{}},
		{"global and project", []string{"home/.claude/CLAUDE.md", "project/CLAUDE.md"}, "", []string{"home/.claude/CLAUDE.md", "project/CLAUDE.md"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, nil)
			for _, f := range tt.files {
				b.write(f, "text of "+f)
			}
			texts, got, warnings := b.instructions(tt.directory)
			if !slices.Equal(got, tt.want) || len(warnings) != 0 {
				t.Errorf("%v, warnings %v, want %v", got, warnings, tt.want)
			}
			for i, x := range texts {
				if x.Content != "text of "+got[i] || x.Truncated {
					t.Errorf("%+v", x)
				}
			}
		})
	}
}

func TestInstructionEntries(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"home/mine.md": "m", "home/more/a.md": "a", "home/more/b.md": "b",
		"project/AGENTS.md": "g", "project/docs/one.md": "1", "project/docs/two.md": "2", "project/docs/deep/three.md": "3",
		"project/sub/docs/four.md": "4", "project/sub/[x]/docs/five.md": "5", "project/docs/image.md": "\x00\x01",
	}
	tests := []struct {
		name          string
		global        bool
		entry         string
		want          []string
		wantedWarning string
	}{
		{"path", false, "docs/one.md", []string{"project/docs/one.md"}, ""},
		{"dotted path", false, "./docs/../docs/one.md", []string{"project/docs/one.md"}, ""},
		{"known file once", false, "AGENTS.md", nil, ""},
		{"glob at each level", false, "docs/o*.md", []string{"project/docs/one.md"}, ""},
		{"double star", false, "docs/**/t*.md", []string{"project/docs/deep/three.md", "project/docs/two.md"}, ""},
		{"nearer level", false, "docs/f*.md", []string{"project/sub/docs/four.md", "project/sub/[x]/docs/five.md"}, ""},
		{"absolute inside", false, "$ROOT/docs/t*.md", []string{"project/docs/two.md"}, ""},
		{"owner's home", true, "~/mine.md", []string{"home/mine.md"}, ""},
		{"owner's absolute glob", true, "$HOME/more/*.md", []string{"home/more/a.md", "home/more/b.md"}, ""},
		{"owner's relative path", true, "docs/one.md", []string{"project/docs/one.md"}, ""},
		{"project names home", false, "~/mine.md", nil, "only name instructions in the project"},
		{"project climbs out", false, "../home/mine.md", nil, "names no file"},
		{"project climbs out through a glob", false, "docs/*/../../../home/mine.md", nil, "names no file"},
		{"link out", false, "link.md", nil, "names no file"},
		{"link out in a glob", false, "l*.md", nil, "leads out"},
		{"missing", false, "none.md", nil, "names no file"},
		{"directory", false, "docs", nil, "names no file"},
		{"address", true, "https://a.example/x.md", nil, "not fetched"},
		{"bad pattern", false, "docs/[", nil, "not a path or pattern"},
		{"empty", false, "", nil, "not a path or pattern"},
		{"binary", false, "docs/i*.md", nil, "not text"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, files)
			if err := os.Symlink(b.path("home/mine.md"), b.path("project/link.md")); err != nil {
				t.Fatal(err)
			}
			file := "project/opencode.json"
			if tt.global {
				file = "home/.config/switchyard/switchyard.json"
			}
			b.write(file, fmt.Sprintf(`{"instructions": [%q]}`, tt.entry))
			_, got, warnings := b.instructions("sub/[x]")
			if want := append([]string{"project/AGENTS.md"}, tt.want...); !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
			all := strings.Join(warnings, "\n")
			if (tt.wantedWarning == "") != (all == "") || !strings.Contains(all, tt.wantedWarning) {
				t.Errorf("warnings %q, want %q", all, tt.wantedWarning)
			}
		})
	}
}

func TestInstructionsAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t, map[string]string{
		"project/AGENTS.md":     strings.Repeat("é", 40<<10), // 80 KiB
		"project/opencode.json": `{"instructions": ["more/*.md", "many/**"]}`,
	})
	for i := range 6 {
		b.write(fmt.Sprintf("project/more/%d.md", i), strings.Repeat("x", 60<<10))
	}
	for i := range 120 {
		b.write(fmt.Sprintf("project/many/%d.md", i), "")
	}
	texts, _, warnings := b.instructions("")
	total := 0
	for _, x := range texts {
		total += len(x.Content)
	}
	if total > 256<<10 || !texts[0].Truncated || len(texts[0].Content) > 64<<10 || !utf8.ValidString(texts[0].Content) || strings.Contains(texts[0].Content, "\ufffd") {
		t.Errorf("%d bytes, first %d, truncated %v", total, len(texts[0].Content), texts[0].Truncated)
	}
	all := strings.Join(warnings, "\n")
	for _, want := range []string{"are cut at", "more than 262144 bytes", `"many/**" matches too much`} {
		if strings.Count(all, want) != 1 {
			t.Errorf("%q is told %d times", want, strings.Count(all, want))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := b.loader.Instructions(ctx, b.at(""), b.resolve("").Config); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestInstructionFileOfAnotherKindIsAWarning(t *testing.T) {
	t.Parallel()
	b := setup(t, map[string]string{"project/CLAUDE.md": "c"})
	b.mkfifo("project/AGENTS.md")
	_, got, warnings := b.instructions("")
	if !slices.Equal(got, []string{"project/CLAUDE.md"}) || len(warnings) != 1 || !strings.Contains(warnings[0], "regular file") {
		t.Errorf("%v, %v", got, warnings)
	}
}
