package env_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/fault"
)

// bundle is an environment in a fresh directory.
type bundle struct {
	env   *env.LocalEnv
	files env.Files
	root  string
}

func setup(t testing.TB, opts ...env.Option) bundle {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	root = filepath.Join(root, "w")
	must(t, os.Mkdir(root, 0o755))
	e, err := env.Local(root, opts...)
	must(t, err)
	t.Cleanup(func() { must(t, e.Close()) })
	return bundle{env: e, files: e.Files(), root: root}
}

// at gives the absolute path of something in the root.
func (b bundle) at(parts ...string) string {
	return filepath.Join(append([]string{b.root}, parts...)...)
}

// put makes files with their own path as contents.
func (b bundle) put(t testing.TB, paths ...string) {
	t.Helper()
	for _, p := range paths {
		must(t, os.MkdirAll(filepath.Dir(b.at(p)), 0o755))
		must(t, os.WriteFile(b.at(p), []byte(p), 0o644))
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t testing.TB, what string, err error, code fault.Code) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Errorf("%s: got %v, want %s", what, err, code)
	}
}

func TestLocalRefusesWhatIsNoDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	must(t, os.WriteFile(file, nil, 0o600))
	mkfifo(t, filepath.Join(dir, "fifo"))
	for _, tt := range []struct {
		root string
		code fault.Code
	}{
		{"relative", fault.DirectoryInvalid},
		{"", fault.DirectoryInvalid},
		{file, fault.DirectoryInvalid},
		{filepath.Join(dir, "fifo"), fault.DirectoryInvalid},
		{filepath.Join(dir, "none"), fault.DirectoryNotFound},
		{filepath.Join(file, "below"), fault.DirectoryInvalid},
	} {
		_, err := env.Local(tt.root)
		wantCode(t, tt.root, err, tt.code)
		if e, ok := fault.As(err); !ok || e.Fields["directory"] != tt.root {
			t.Errorf("%q: the fault does not name the directory: %v", tt.root, err)
		}
	}
}

func TestRootIsCanonicalAndBothSpellingsAreInside(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.put(t, "f")
	alias := b.root + "-alias"
	must(t, os.Symlink(b.root, alias))
	e, err := env.Local(alias)
	must(t, err)
	defer e.Close()
	if e.Root() != b.root {
		t.Fatalf("root %s, want %s", e.Root(), b.root)
	}
	for _, p := range []string{"f", alias + "/f", b.root + "/f", b.root + "/./x/../f"} {
		if rel, err := e.Files().Rel(p); err != nil || rel != "f" {
			t.Errorf("%s: %q, %v", p, rel, err)
		}
	}
}

func TestOpenReachesAnotherDirectory(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := t.TempDir()
	must(t, os.WriteFile(filepath.Join(other, "f"), []byte("other"), 0o600))
	files, err := b.env.Open(other)
	must(t, err)
	defer files.Close()
	if got := read(t, files, "f"); got != "other" {
		t.Fatalf("read %q", got)
	}
	_, err = b.env.Open(filepath.Join(other, "none"))
	wantCode(t, "missing", err, fault.DirectoryNotFound)
}

func TestRootMadeAnewIsUsedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.put(t, "old")
	must(t, os.Rename(b.root, b.root+"-moved"))
	_, err := b.files.Stat("old")
	wantCode(t, "root is gone", err, fault.DirectoryMissing)

	must(t, os.Symlink(b.root+"-moved", b.root))
	_, err = b.files.Stat("old")
	wantCode(t, "root became a link", err, fault.DirectoryMissing)

	must(t, os.Remove(b.root))
	b.put(t, "new")
	if got := read(t, b.files, "new"); got != "new" {
		t.Fatalf("read %q", got)
	}
	_, err = b.files.Stat("old")
	wantCode(t, "file of the moved directory", err, fault.FileNotFound)
}
