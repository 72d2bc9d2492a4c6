package runtime_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/switchyard-dev/switchyard/access"
	"github.com/switchyard-dev/switchyard/config"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/provider"
	"github.com/switchyard-dev/switchyard/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// setup makes a host over a fresh default directory.
func setup(t *testing.T, change func(*runtime.Config)) (*runtime.Host, string) {
	t.Helper()
	dir := directory(t)
	outputs, err := runtime.NewOutputs(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	build := runtime.Build{
		Loader: config.NewLoader(config.Options{Home: t.TempDir(), LookupEnv: func(string) (string, bool) { return "", false }}),
		Models: provider.NewService(provider.Options{}), Outputs: outputs,
	}
	c := runtime.Config{Directory: dir, Build: build.Parts}
	if change != nil {
		change(&c)
	}
	h, err := runtime.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h, dir
}

func directory(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func hint(dir string) runtime.Hint { return runtime.Hint{Directory: dir, HasDirectory: true} }

func TestResolve(t *testing.T) {
	t.Parallel()
	root := directory(t)
	h, dir := setup(t, func(c *runtime.Config) { c.Roots = []string{root} })
	inside := filepath.Join(root, "in")
	if err := os.Mkdir(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(root, "link")
	if err := os.Symlink(inside, link); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(root, "out")
	if err := os.Symlink("/", out); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		hint runtime.Hint
		want string
		code fault.Code
	}{
		"no hint":           {runtime.Hint{}, dir, ""},
		"default by name":   {hint(dir), dir, ""},
		"root":              {hint(root), root, ""},
		"inside":            {hint(inside + "/../in/"), inside, ""},
		"through a link":    {hint(link), inside, ""},
		"outside the roots": {hint("/"), "", fault.DirectoryNotFound},
		"a link out":        {hint(out), "", fault.DirectoryNotFound},
		"beside a root":     {hint(root + "x"), "", fault.DirectoryNotFound},
		"empty":             {hint(""), "", fault.DirectoryInvalid},
		"relative":          {hint("in"), "", fault.DirectoryInvalid},
	} {
		got, err := h.Resolve(t.Context(), c.hint)
		if got.Directory != c.want || fault.CodeOf(err) != c.code {
			t.Errorf("%s: %q, %v", name, got.Directory, err)
		}
	}
	if n := h.Instances(); n != 0 {
		t.Errorf("resolving made %d instances", n)
	}
}

func TestEvictionSparesLeases(t *testing.T) {
	t.Parallel()
	h, _ := setup(t, func(c *runtime.Config) { c.Idle = 200 * time.Millisecond })
	held, err := h.Request(t.Context(), access.Principal{}, hint(directory(t)))
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		rt, err := h.Request(t.Context(), access.Principal{}, hint(directory(t)))
		if err != nil {
			t.Fatal(err)
		}
		rt.Release()
		rt.Release() // again is nothing
	}
	testkit.Eventually(t, 5*time.Second, "one instance left", func() bool { return h.Instances() == 1 })
	if _, err := held.Parts().Config(t.Context()); err != nil {
		t.Errorf("the leased instance does not work: %v", err)
	}
	held.Release()
	testkit.Eventually(t, 5*time.Second, "no instance left", func() bool { return h.Instances() == 0 })
}

func TestCapEvictsTheLeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	h, _ := setup(t, func(c *runtime.Config) { c.Cap = 3 })
	for range 10 {
		rt, err := h.Request(t.Context(), access.Principal{}, hint(directory(t)))
		if err != nil {
			t.Fatal(err)
		}
		rt.Release()
		if n := h.Instances(); n > 3 {
			t.Fatalf("%d instances", n)
		}
	}
}

func TestAcquireOfAMissingDirectory(t *testing.T) {
	t.Parallel()
	h, _ := setup(t, nil)
	gone := filepath.Join(directory(t), "gone")
	if _, err := h.Acquire(context.WithoutCancel(t.Context()), event.Context{Directory: gone}); !fault.Is(err, fault.DirectoryMissing) {
		t.Fatalf("err %v", err)
	}
}

func TestOutputsKeepAndSweep(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "out")
	o, err := runtime.NewOutputs(dir)
	if err != nil {
		t.Fatal(err)
	}
	path, err := o.Save(t.Context(), "call/../x", "text")
	if err != nil || filepath.Dir(path) != o.Dir() {
		t.Fatalf("%s, %v", path, err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "text" {
		t.Fatalf("%q, %v", data, err)
	}
	old := time.Now().Add(-8 * 24 * time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	if _, err := runtime.NewOutputs(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Fatalf("an old output is still there: %v", err)
	}
}
