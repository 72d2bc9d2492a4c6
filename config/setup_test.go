package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/switchyard-dev/switchyard/config"
	"github.com/switchyard-dev/switchyard/env"
)

// bundle is a user with a home directory and one project.
type bundle struct {
	t      *testing.T
	home   string
	root   string
	env    map[string]string
	loader *config.Loader
	files  config.Files
}

// setup writes files: those below home/ to the home directory, those below
// project/ to the work tree, with $HOME and $ROOT replaced in their text.
func setup(t *testing.T, files map[string]string) *bundle {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bundle{t: t, home: filepath.Join(base, "home"), root: filepath.Join(base, "project"), env: map[string]string{}}
	for _, dir := range []string{b.home, b.root} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		b.write(name, text)
	}
	place, err := env.Local(b.root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = place.Close() })
	b.files = place.Files()
	b.loader = b.newLoader()
	return b
}

func (b *bundle) newLoader() *config.Loader {
	return config.NewLoader(config.Options{
		Home:       b.home,
		ConfigHome: filepath.Join(b.home, ".config"),
		LookupEnv: func(name string) (string, bool) {
			v, ok := b.env[name]
			return v, ok
		},
	})
}

// path gives the absolute path of a fixture's name.
func (b *bundle) path(name string) string { return filepath.Join(filepath.Dir(b.root), name) }

// write puts a file in place, old enough to be cached.
func (b *bundle) write(name, text string) {
	b.t.Helper()
	full := b.path(name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(b.expand(text)), 0o644); err != nil {
		b.t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(full, old, old); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) expand(text string) string {
	return strings.NewReplacer("$ROOT", b.root, "$HOME/", b.home+"/").Replace(text)
}

// anonymous makes a text that is the same on every machine.
func (b *bundle) anonymous(text string) string {
	return strings.NewReplacer(b.root, "$ROOT", b.home, "$HOME").Replace(text)
}

// at is the location of a directory of the project; "" is its root.
func (b *bundle) at(directory string) config.Location {
	return config.Location{Root: b.root, Directory: filepath.Join(b.root, directory), Files: b.files}
}

func (b *bundle) resolve(directory string) *config.Resolved {
	b.t.Helper()
	r, err := b.loader.Resolve(b.t.Context(), b.at(directory))
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func archiveFiles(a *txtar.Archive) map[string]string {
	out := map[string]string{}
	for _, f := range a.Files {
		if strings.HasPrefix(f.Name, "home/") || strings.HasPrefix(f.Name, "project/") {
			out[f.Name] = string(f.Data)
		}
	}
	return out
}

func (b *bundle) mkfifo(name string) {
	b.t.Helper()
	full := b.path(name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := syscall.Mkfifo(full, 0o600); err != nil {
		b.t.Fatal(err)
	}
}
