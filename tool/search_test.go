package tool_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/tool"
)

// tree makes files with rules that ignore some of them.
func tree(t *testing.T) *bundle {
	b := setup(t)
	for name, content := range map[string]string{
		".gitignore":        "build/\n*.log\n",
		".git/config":       "needle\n",
		".github/ci.yml":    "needle: hidden\n",
		"a.go":              "package a\n\nvar Needle = \"needle\"\n",
		"sub/b.go":          "package b\r\n// needle\r\n",
		"sub/deep/c.ts":     "needle needle\n",
		"sub/deep/d.tsx":    "nothing\n",
		"build/out.go":      "needle\n",
		"trace.log":         "needle\n",
		"sub/binary.dat":    "needle\x00\n",
		"sub/deep/e f(1).x": "needle at the end",
	} {
		b.file(name, content)
	}
	b.link("../..", "sub/deep/up")
	return b
}

func TestListShowsATree(t *testing.T) {
	t.Parallel()
	b := tree(t)
	res := b.must("list", in{})
	want := b.root + `/
  .github/
    ci.yml
  .gitignore
  a.go
  sub/
    b.go
    binary.dat
    deep/
      c.ts
      d.tsx
      e f(1).x
      up@
`
	if res.Output != want || res.Metadata["truncated"] != false {
		t.Errorf("%s\n%v", res.Output, res.Metadata)
	}
	res = b.must("list", in{"path": "sub", "ignore": []string{"deep/", "*.dat"}})
	if want := filepath.Join(b.root, "sub") + "/\n  b.go\n"; res.Output != want {
		t.Errorf("%q", res.Output)
	}
	res = b.must("list", in{"limit": 8})
	contains(t, res.Output, "    deep/\n", "Only 2 levels are shown")
	if strings.Contains(res.Output, "c.ts") || res.Metadata["count"] != 8 {
		t.Errorf("%s", res.Output)
	}
	contains(t, b.must("list", in{"limit": 2}).Output, "more than these 2 entries")
	b.refused(fault.NotADirectory, "list", in{"path": "a.go"})
	b.refused(fault.FileNotFound, "list", in{"path": "none"})
	if err := os.Mkdir(filepath.Join(b.root, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	contains(t, b.must("list", in{"path": "empty"}).Output, "The directory is empty")
}

func TestGlobFindsNewestFirst(t *testing.T) {
	t.Parallel()
	b := tree(t)
	for i, name := range []string{"a.go", "sub/b.go"} {
		at := time.Now().Add(time.Duration(i) * time.Hour)
		if err := os.Chtimes(filepath.Join(b.root, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		in   in
		want string
	}{
		{in{"pattern": "**/*.go"}, "sub/b.go\na.go\n"},
		{in{"pattern": "*.go"}, "sub/b.go\na.go\n"},
		{in{"pattern": "sub/*.go"}, "sub/b.go\n"},
		{in{"pattern": "*.go", "path": "sub"}, "sub/b.go\n"},
		{in{"pattern": filepath.Join(b.root, "sub/*.go")}, "sub/b.go\n"},
		{in{"pattern": "*.ya?ml"}, "No files match.\n"},
		{in{"pattern": ".github/*"}, ".github/ci.yml\n"},
		{in{"pattern": "e f(1).x"}, "sub/deep/e f(1).x\n"},
		{in{"pattern": "*", "path": "build"}, "build/out.go\n"},
		{in{"pattern": "*.log"}, "No files match.\n"},
		{in{"pattern": "*.go", "limit": 1}, "sub/b.go\n(These are the 1 newest; there are more. Use a narrower pattern or a path.)\n"},
	}
	for _, tt := range tests {
		if res := b.must("glob", tt.in); res.Output != tt.want {
			t.Errorf("%v: %q", tt.in, res.Output)
		}
	}
	res := b.must("glob", in{"pattern": "*.{ts,tsx}"})
	contains(t, res.Output, "sub/deep/c.ts\n", "sub/deep/d.tsx\n")
}

func TestGrepFindsLines(t *testing.T) {
	t.Parallel()
	b := tree(t)
	all := "a.go:\n  3: var Needle = \"needle\"\nsub/b.go:\n  2: // needle\nsub/deep/c.ts:\n  1: needle needle\nsub/deep/e f(1).x:\n  1: needle at the end\n"
	tests := []struct {
		in   in
		want string
	}{
		{in{"pattern": "needle"}, all},
		{in{"pattern": "(?i)NEEDLE$"}, "sub/b.go:\n  2: // needle\nsub/deep/c.ts:\n  1: needle needle\n"},
		{in{"pattern": `^\w+ = |^package a$`}, "a.go:\n  1: package a\n"},
		{in{"pattern": "needle", "include": "*.go"}, "a.go:\n  3: var Needle = \"needle\"\nsub/b.go:\n  2: // needle\n"},
		{in{"pattern": "needle", "include": "deep/*.{ts,tsx}", "path": "sub"}, "sub/deep/c.ts:\n  1: needle needle\n"},
		{in{"pattern": "needle", "path": "sub/b.go"}, "sub/b.go:\n  2: // needle\n"},
		{in{"pattern": "needle", "path": ".github/ci.yml"}, ".github/ci.yml:\n  1: needle: hidden\n"},
		{in{"pattern": "needle", "path": "build"}, "build/out.go:\n  1: needle\n"},
		{in{"pattern": "absent"}, "No lines match.\n"},
	}
	for _, tt := range tests {
		if res := b.must("grep", tt.in); res.Output != tt.want {
			t.Errorf("%v:\n%s", tt.in, res.Output)
		}
	}
	contains(t, b.refused(fault.PatternInvalid, "grep", in{"pattern": "a(b"}), "regular expression", "missing closing")
	contains(t, b.refused(fault.PatternInvalid, "grep", in{"pattern": "ab[z-a]"}), "at byte 3")
	b.refused(fault.FileNotFound, "grep", in{"pattern": "a", "path": "none"})
}

func TestGrepIsBoundedAndAlwaysTheSame(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 60 {
		b.file(fmt.Sprintf("d%02d/f", i), strings.Repeat("x needle\n", 3))
	}
	first := b.must("grep", in{"pattern": "needle", "limit": 10})
	contains(t, first.Output, "d03/f:\n  1: x needle\n(These are the first 10 matches; there are more.")
	if first.Metadata["matches"] != 10 || first.Metadata["truncated"] != true || strings.Contains(first.Output, "d04") {
		t.Errorf("%s", first.Output)
	}
	for range 20 {
		if again := b.must("grep", in{"pattern": "needle", "limit": 10}); again.Output != first.Output {
			t.Fatalf("%s", again.Output)
		}
	}
	exact := b.must("grep", in{"pattern": "needle", "limit": 180})
	if exact.Metadata["truncated"] != false || exact.Metadata["matches"] != 180 {
		t.Errorf("%v", exact.Metadata)
	}
	b.file("z", strings.Repeat("a", 5000)+"needle"+strings.Repeat("b", 5000))
	res := b.must("grep", in{"pattern": "needle", "path": "z"})
	if len(res.Output) > 500 || !strings.Contains(res.Output, "…") || !strings.Contains(res.Output, "aneedleb") {
		t.Errorf("%q", res.Output)
	}
	big, err := os.Create(filepath.Join(b.root, "zz"))
	if err != nil {
		t.Fatal(err)
	}
	defer big.Close()
	if err := big.Truncate(9 << 20); err != nil {
		t.Fatal(err)
	}
	contains(t, b.must("grep", in{"pattern": "b", "path": "zz"}).Output, "1 files over 8 MiB were not searched")
}

func TestSearchesEndWithTheirContext(t *testing.T) {
	t.Parallel()
	b := tree(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, input := range map[string]in{"grep": {"pattern": "a"}, "glob": {"pattern": "*"}, "list": {}} {
		if _, err := tool.Execute(ctx, b.tool(name), b.with(input)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKeptOutputsMayBeReadWithoutAsking(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var text strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&text, "line %d\n", i+1)
	}
	b.file("x", text.String())
	res := b.must("bash", in{"command": "cat x"})
	path := filepath.Join(b.outDir, "tool_c1")
	contains(t, res.Output, "line 1\n", "line 1000\n[", "The whole output has 3000 lines and is in "+path, "]\nline 2001\n", "line 3000\n")
	if res.Metadata["outputPath"] != path || res.Metadata["truncated"] != true || res.Metadata["output"] != res.Output {
		t.Errorf("%v", res.Metadata["outputPath"])
	}
	for name, input := range map[string]in{
		"read": {"path": path, "offset": 1500, "limit": 1}, "grep": {"pattern": "^line 1500$", "path": path},
		"glob": {"pattern": "*", "path": b.outDir}, "list": {"path": b.outDir},
	} {
		plan, err := b.plan(name, input)
		if err != nil || len(plan.Asks) != 1 || plan.Asks[0].Permission != name {
			t.Errorf("%s: %+v %v", name, plan, err)
		}
		contains(t, b.must(name, input).Output, map[string]string{"read": "line 1500", "grep": "1500: line 1500"}[name])
	}
	plan, err := b.plan("write", in{"path": path, "content": "x"})
	if err != nil || plan.Asks[0].Permission != "external_directory" {
		t.Errorf("written without asking: %+v %v", plan, err)
	}
}

func TestSearchOutsideAsksForThatDirectory(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := filepath.Join(filepath.Dir(b.root), "other")
	if err := os.MkdirAll(filepath.Join(other, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(other, "sub/f.txt")
	if err := os.WriteFile(file, []byte("needle\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		tool    string
		in      in
		pattern string
		output  string
	}{
		{"list", in{"path": other}, other + "/*", "f.txt"},
		{"glob", in{"path": "../other", "pattern": "*.txt"}, other + "/*", file},
		{"grep", in{"path": other, "pattern": "needle"}, other + "/*", file + ":\n  1: needle"},
		{"grep", in{"path": file, "pattern": "needle"}, filepath.Dir(file) + "/*", file + ":\n  1: needle"},
		{"read", in{"path": other}, other + "/*", "sub/"},
		{"read", in{"path": file}, filepath.Dir(file) + "/*", "1\tneedle"},
		{"bash", in{"workdir": other, "command": "ls"}, other + "/*", "sub"},
	}
	for _, tt := range tests {
		plan, err := b.plan(tt.tool, tt.in)
		if err != nil || plan.Asks[0].Permission != "external_directory" || plan.Asks[0].Patterns[0] != tt.pattern {
			t.Errorf("%s: %+v %v", tt.tool, plan, err)
		}
		contains(t, b.must(tt.tool, tt.in).Output, tt.output)
	}
	link := filepath.Join(filepath.Dir(b.root), "link")
	if err := os.Symlink(other, link); err != nil {
		t.Fatal(err)
	}
	contains(t, b.refused(fault.PathOutside, "read", in{"path": link + "/sub/f.txt"}), "symbolic link "+link)
}
