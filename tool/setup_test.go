package tool_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/tool"
)

// bundle is a real directory with everything that a call needs.
type bundle struct {
	t        *testing.T
	root     string
	env      *env.LocalEnv
	registry *tool.Registry
	call     tool.Call

	mu     sync.Mutex // protects the rest
	todos  []chat.Todo
	asked  []tool.Question
	seen   map[string]string
	edited []string
	outDir string
}

func setup(t *testing.T) *bundle {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bundle{
		t: t, root: filepath.Join(base, "w"), outDir: filepath.Join(base, "out"),
		registry: tool.NewRegistry(tool.Builtin()...), seen: map[string]string{},
	}
	for _, dir := range []string{b.root, b.outDir} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.env, err = env.Local(b.root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.env.Close() })
	b.call = tool.Call{
		ID: "c1", Env: b.env, Directory: b.root, Todos: b, Asker: b, Outputs: b, Tracker: b, Mark: "1:c1",
		Edited: func(_ context.Context, path string) { b.edited = append(b.edited, path) },
	}
	return b
}

func (b *bundle) file(name, content string) string {
	b.t.Helper()
	path := filepath.Join(b.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
	return path
}

func (b *bundle) content(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.root, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

func (b *bundle) link(target, name string) {
	b.t.Helper()
	if err := os.Symlink(target, filepath.Join(b.root, name)); err != nil {
		b.t.Fatal(err)
	}
}

type in map[string]any

func (b *bundle) with(input in) *tool.Call {
	b.t.Helper()
	data, err := json.Marshal(input)
	if err != nil {
		b.t.Fatal(err)
	}
	c := b.call
	c.Input = data
	return &c
}

func (b *bundle) tool(name string) tool.Tool {
	b.t.Helper()
	tl, ok := b.registry.Lookup(name)
	if !ok {
		b.t.Fatalf("no tool %s", name)
	}
	return tl
}

func (b *bundle) plan(name string, input in) (tool.Plan, error) {
	return b.tool(name).Plan(b.t.Context(), b.with(input))
}

// run plans and runs, as the agent does for an allowed call.
func (b *bundle) run(name string, input in) (tool.Result, error) {
	b.t.Helper()
	tl, c := b.tool(name), b.with(input)
	p, err := tl.Plan(b.t.Context(), c)
	if err != nil {
		return tool.Result{}, err
	}
	c.Before = p.Before
	return tool.Execute(b.t.Context(), tl, c)
}

func (b *bundle) must(name string, input in) tool.Result {
	b.t.Helper()
	res, err := b.run(name, input)
	if err != nil {
		b.t.Fatalf("%s %v: %v", name, input, err)
	}
	return res
}

// refused runs a call that must fail with a code and gives what the model sees.
func (b *bundle) refused(code fault.Code, name string, input in) string {
	b.t.Helper()
	res, err := b.run(name, input)
	if !fault.Is(err, code) {
		b.t.Fatalf("%s %v: %v with %q, want %s", name, input, err, res.Output, code)
	}
	return tool.Message(err)
}

func (b *bundle) Todos(context.Context) ([]chat.Todo, error) { return b.todos, nil }

func (b *bundle) SetTodos(_ context.Context, todos []chat.Todo) error {
	b.todos = todos
	return nil
}

func (b *bundle) Ask(_ context.Context, _ *tool.Call, questions []tool.Question) ([][]string, error) {
	b.asked = questions
	return [][]string{{"yes", "no"}}, nil
}

func (b *bundle) Dir() string { return b.outDir }

func (b *bundle) Save(_ context.Context, callID, text string) (string, error) {
	path := filepath.Join(b.outDir, "tool_"+callID)
	return path, os.WriteFile(path, []byte(text), 0o600)
}

func (b *bundle) Saw(path, hash string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen[path] = hash
}

func (b *bundle) Seen(path string) (string, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	hash, ok := b.seen[path]
	return hash, ok
}

func rules(lines ...string) []rule.Rule {
	var all []rule.Rule
	for _, line := range lines {
		f := strings.SplitN(line, " ", 3)
		all = append(all, rule.Rule{Action: rule.Action(f[0]), Permission: f[1], Pattern: f[2]})
	}
	return all
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("no %q in %q", p, text)
		}
	}
}
