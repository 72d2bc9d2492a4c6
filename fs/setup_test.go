package fs_test

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/fs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bundle is a Service over a fresh directory.
type bundle struct {
	*fs.Service
	root string
}

func setup(t testing.TB) bundle {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	root := filepath.Join(top, "w")
	must(t, os.Mkdir(root, 0o755))
	return at(t, root)
}

// at makes a Service over a directory that is there.
func at(t testing.TB, root string) bundle {
	t.Helper()
	e, err := env.Local(root)
	must(t, err)
	t.Cleanup(func() { must(t, e.Close()) })
	files, err := e.Open(root)
	must(t, err)
	s := fs.New(fs.Config{Files: files, Root: root})
	t.Cleanup(func() { must(t, s.Close()) })
	return bundle{Service: s, root: root}
}

func (b bundle) path(p string) string { return filepath.Join(b.root, p) }

func (b bundle) write(t testing.TB, p, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(b.path(p)), 0o755))
	must(t, os.WriteFile(b.path(p), []byte(content), 0o644))
}

func (b bundle) link(t testing.TB, p, target string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(b.path(p)), 0o755))
	must(t, os.Symlink(target, b.path(p)))
}

func (b bundle) fifo(t testing.TB, p string) {
	t.Helper()
	must(t, syscall.Mkfifo(b.path(p), 0o644))
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

func wantList(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}
