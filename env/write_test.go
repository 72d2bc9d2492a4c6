package env_test

import (
	"bytes"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/switchyard-dev/switchyard/fault"
)

func TestWriteFileMakesDirectoriesAndKeepsModes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	must(t, b.files.WriteFile("a/b/new", []byte("one"), 0o640))
	info, err := os.Stat(b.at("a/b/new"))
	must(t, err)
	if info.Mode()&^0o640 != 0 || info.Mode()&0o600 != 0o600 {
		t.Errorf("mode of a new file: %v", info.Mode())
	}

	must(t, os.Chmod(b.at("a/b/new"), 0o755))
	must(t, b.files.WriteFile(b.at("a/b/new"), []byte("two"), 0o600))
	info, err = os.Stat(b.at("a/b/new"))
	must(t, err)
	if got := read(t, b.files, "a/b/new"); got != "two" || info.Mode() != 0o755 {
		t.Errorf("%q with %v", got, info.Mode())
	}
	left, err := os.ReadDir(b.at("a/b"))
	must(t, err)
	if len(left) != 1 {
		t.Errorf("temporary files are left: %v", left)
	}
}

func TestWriteFileGoesThroughLinksInside(t *testing.T) {
	t.Parallel()
	b := linked(t)
	for link, file := range map[string]string{
		"in/f": "d/f", "absfile": "d/f", "dangling": "nowhere", "abs/new": "d/new", "d/up/top": "top",
	} {
		must(t, b.files.WriteFile(link, []byte("via "+link), 0o644))
		if data, err := os.ReadFile(b.at(file)); err != nil || string(data) != "via "+link {
			t.Errorf("%s: %s holds %q, %v", link, file, data, err)
		}
	}
	if info, err := os.Lstat(b.at("absfile")); err != nil || info.Mode().Type() != iofs.ModeSymlink {
		t.Errorf("the link was replaced: %v", err)
	}
}

func TestChangesStayInside(t *testing.T) {
	t.Parallel()
	b := linked(t)
	for p, code := range map[string]fault.Code{
		"../x": fault.PathOutside, "/etc/passwd": fault.PathOutside, "out/x": fault.PathOutside, "outfile": fault.PathOutside,
		"parent": fault.PathOutside, "loop": fault.FileNotFound, "d": fault.NotAFile, ".": fault.PathOutside,
		"fifo": fault.NotAFile, "sock": fault.NotAFile, "d/f/x": fault.NotADirectory, "a\x00b": fault.PathOutside,
	} {
		wantCode(t, "write "+p, b.files.WriteFile(p, []byte("x"), 0o644), code)
	}
	for _, p := range []string{"..", "/", "out/sub", "d/up/out/sub"} {
		wantCode(t, "mkdir "+p, b.files.Mkdir(p, 0o755), fault.PathOutside)
		wantCode(t, "remove "+p, b.files.Remove(p), fault.PathOutside)
		wantCode(t, "rename from "+p, b.files.Rename(p, "x"), fault.PathOutside)
		wantCode(t, "rename to "+p, b.files.Rename("d/f", p+"/x"), fault.PathOutside)
	}
	wantCode(t, "remove the root", b.files.Remove("."), fault.PathOutside)
	if data, err := os.ReadFile(filepath.Join(filepath.Dir(b.root), "secret")); err != nil || string(data) != "secret" {
		t.Errorf("the outside file changed: %q, %v", data, err)
	}
}

func TestMkdirRemoveRename(t *testing.T) {
	t.Parallel()
	b := linked(t)
	must(t, b.files.Mkdir("x/y/z", 0o755))
	must(t, b.files.Mkdir("x/y/z", 0o755))
	must(t, b.files.Mkdir("abs/made", 0o755))
	if info, err := os.Stat(b.at("d/made")); err != nil || !info.IsDir() {
		t.Errorf("through an absolute link: %v", err)
	}
	wantCode(t, "mkdir over a file", b.files.Mkdir("d/f", 0o755), fault.NotADirectory)

	must(t, b.files.Rename("d/f", "x/moved/f"))
	if got := read(t, b.files, "x/moved/f"); got != "d/f" {
		t.Errorf("moved file holds %q", got)
	}
	wantCode(t, "rename of nothing", b.files.Rename("d/f", "y"), fault.FileNotFound)

	must(t, b.files.Remove("abs")) // the link, not what it leads to
	if _, err := os.Stat(b.at("d/made")); err != nil {
		t.Errorf("removing a link removed its target: %v", err)
	}
	must(t, b.files.Remove("x"))
	wantCode(t, "remove again", b.files.Remove("x"), fault.FileNotFound)
}

// TestWriteFileIsAtomic reads while others write: every reading is one whole
// version.
func TestWriteFileIsAtomic(t *testing.T) {
	t.Parallel()
	b := setup(t)
	version := func(c byte) []byte { return bytes.Repeat([]byte{c}, 64<<10) }
	must(t, b.files.WriteFile("f", version('a'), 0o644))
	var writers sync.WaitGroup
	for i := range byte(2) {
		writers.Go(func() {
			for range 15 {
				if err := b.files.WriteFile("f", version('a'+i), 0o644); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 200 {
		got := read(t, b.files, "f")
		if len(got) != 64<<10 || strings.Count(got, got[:1]) != len(got) {
			t.Fatal("a half written file was read")
		}
	}
	writers.Wait()
}

func TestWriteFileRespectsAWriteProtectedFile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.put(t, "f")
	must(t, os.Chmod(b.at("f"), 0o444))
	err := b.files.WriteFile("f", []byte("x"), 0o644)
	if os.Geteuid() == 0 { // root may write everything
		must(t, err)
		return
	}
	wantCode(t, "f", err, fault.Forbidden)
}

func TestWriteFileLeavesNothingBehindOnFailure(t *testing.T) {
	t.Parallel()
	b := setup(t)
	name := strings.Repeat("n", 256) // too long for a name
	err := b.files.WriteFile("d/"+name, []byte("x"), 0o644)
	if !errors.Is(err, syscall.ENAMETOOLONG) {
		t.Errorf("got %v", err)
	}
	left, err := os.ReadDir(b.at("d"))
	must(t, err)
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
