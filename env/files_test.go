package env_test

import (
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/fault"
)

func mkfifo(t testing.TB, p string) {
	t.Helper()
	must(t, syscall.Mkfifo(p, 0o644))
}

func mksocket(t testing.TB, p string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: p, Net: "unix"})
	must(t, err)
	l.SetUnlinkOnClose(false)
	must(t, l.Close())
}

func read(t testing.TB, files env.Reader, p string) string {
	t.Helper()
	f, err := files.Open(p)
	must(t, err)
	defer f.Close()
	data, err := io.ReadAll(f)
	must(t, err)
	return string(data)
}

// pathCases are paths and what Rel makes of them; "" is path_outside. %R stands
// for the root.
var pathCases = []struct{ path, want string }{
	{"", "."},
	{".", "."},
	{"a", "a"},
	{"./a//b/", "a/b"},
	{"a/../b", "b"},
	{"a/..", "."},
	{"...", "..."},
	{"..a/b", "..a/b"},
	{`a\b`, `a\b`},
	{"100%", "100%"},
	{"a%2fb", "a%2fb"},
	{"caf\xe9", "caf\xe9"},
	{"%R", "."},
	{"%R/", "."},
	{"%R/a/b", "a/b"},
	{"%R/../w/a", "a"},

	{"..", ""},
	{"../x", ""},
	{"../w/x", ""},
	{"d/../../x", ""},
	{"/", ""},
	{"/etc/passwd", ""},
	{"//etc/passwd", ""},
	{"%R/../x", ""},
	{"%Rx", ""},
	{"a\x00b", ""},
	{`..\x`, ""},
	{`a\..\..\x`, ""},
	{`..%5cx`, ""},
	{"%2e%2e/x", ""},
	{"%2E%2e%2Fx", ""},
	{".%2e/x", ""},
	{"a%2f..%2f..", ""},
}

func TestRelCleansPaths(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, tt := range pathCases {
		p := strings.ReplaceAll(tt.path, "%R", b.root)
		got, err := b.files.Rel(p)
		if tt.want == "" {
			wantCode(t, p, err, fault.PathOutside)
			if e, ok := fault.As(err); ok && e.Fields["path"] != p {
				t.Errorf("%q: the fault names %v", p, e.Fields["path"])
			}
		} else if err != nil || got != tt.want {
			t.Errorf("%q: got %q, %v; want %q", p, got, err, tt.want)
		}
	}
}

func FuzzRel(f *testing.F) {
	b := setup(f)
	must(f, os.WriteFile(filepath.Dir(b.root)+"/secret", []byte("secret"), 0o600))
	must(f, os.Symlink("..", b.at("up")))
	for _, tt := range pathCases {
		f.Add(strings.ReplaceAll(tt.path, "%R", b.root))
	}
	f.Add("up/secret")
	f.Fuzz(func(t *testing.T, p string) {
		rel, err := b.files.Rel(p)
		if err != nil {
			wantCode(t, p, err, fault.PathOutside)
			return
		}
		if rel != path.Clean(rel) || path.IsAbs(rel) || rel == ".." || strings.HasPrefix(rel, "../") || strings.Contains(rel, "\x00") {
			t.Fatalf("%q became %q", p, rel)
		}
		if again, err := b.files.Rel(rel); err != nil || again != rel {
			t.Fatalf("%q became %q, then %q, %v", p, rel, again, err)
		}
		if file, err := b.files.Open(p); err == nil {
			_ = file.Close()
			t.Fatalf("%q opened a file of an empty directory", p)
		}
	})
}

// linked makes the directory of the containment matrix.
func linked(t testing.TB) bundle {
	b := setup(t)
	b.put(t, "d/f", "real/deep/f")
	must(t, os.WriteFile(filepath.Join(filepath.Dir(b.root), "secret"), []byte("secret"), 0o600))
	for link, target := range map[string]string{
		"in":         "d",
		"abs":        b.at("d"),
		"absfile":    b.at("d/f"),
		"absdeep":    b.at("in/../real/deep"),
		"out":        "/etc",
		"outfile":    "/etc/passwd",
		"parent":     "../secret",
		"loop":       "loop",
		"ping":       "pong",
		"pong":       "ping",
		"d/up":       "..",
		"real/viaup": "../abs/f",
		"dangling":   "nowhere",
		"absgone":    b.at("nowhere"),
	} {
		must(t, os.Symlink(target, b.at(link)))
	}
	last := "d/f"
	for i := range 30 { // longer than os.Root itself follows
		name := "chain" + string(rune('A'+i))
		must(t, os.Symlink(last, b.at(name)))
		last = name
	}
	for i := range 45 {
		name := "toolong" + string(rune('A'+i))
		must(t, os.Symlink(last, b.at(name)))
		last = name
	}
	mkfifo(t, b.at("fifo"))
	mksocket(t, b.at("sock"))
	return b
}

func TestOpenFollowsLinksInsideOnly(t *testing.T) {
	t.Parallel()
	b := linked(t)
	for p, want := range map[string]string{
		"in/f": "d/f", "abs/f": "d/f", "absfile": "d/f", "absdeep/f": "real/deep/f",
		"d/up/d/f": "d/f", "d/up/abs/f": "d/f", "real/viaup": "d/f", "chain" + string(rune('A'+29)): "d/f",
	} {
		if got := read(t, b.files, p); got != want {
			t.Errorf("%s: read %q", p, got)
		}
	}
	for p, code := range map[string]fault.Code{
		"out/passwd": fault.PathOutside, "outfile": fault.PathOutside, "parent": fault.PathOutside,
		"d/up/../../../secret": fault.PathOutside, "d/up/parent": fault.PathOutside,
		"loop": fault.FileNotFound, "ping/x": fault.FileNotFound, "dangling": fault.FileNotFound,
		"absgone": fault.FileNotFound, "none": fault.FileNotFound, "d/f/x": fault.FileNotFound,
		"toolong" + string(rune('A'+44)): fault.FileNotFound, strings.Repeat("n", 300): fault.FileNotFound,
		"d": fault.NotAFile, ".": fault.NotAFile, "abs": fault.NotAFile, "fifo": fault.NotAFile, "sock": fault.NotAFile,
	} {
		f, err := b.files.Open(p)
		wantCode(t, p, err, code)
		if f != nil {
			t.Errorf("%s: a file came with the error", p)
		}
		if code == fault.FileNotFound && !errors.Is(err, iofs.ErrNotExist) {
			t.Errorf("%s: %v does not match ErrNotExist", p, err)
		}
	}
}

func TestStatFollowsAndLstatDoesNot(t *testing.T) {
	t.Parallel()
	b := linked(t)
	for p, want := range map[string]iofs.FileMode{"in": iofs.ModeDir, "abs": iofs.ModeDir, "absfile": 0, "fifo": iofs.ModeNamedPipe} {
		info, err := b.files.Stat(p)
		must(t, err)
		if info.Mode().Type() != want {
			t.Errorf("Stat(%s) = %v", p, info.Mode())
		}
	}
	for p, want := range map[string]iofs.FileMode{
		"abs": iofs.ModeSymlink, "out": iofs.ModeSymlink, "loop": iofs.ModeSymlink, "abs/up": iofs.ModeSymlink, "abs/f": 0,
	} {
		info, err := b.files.Lstat(p)
		must(t, err)
		if info.Mode().Type() != want {
			t.Errorf("Lstat(%s) = %v", p, info.Mode())
		}
	}
	_, err := b.files.Stat("out")
	wantCode(t, "Stat(out)", err, fault.PathOutside)
	_, err = b.files.Lstat("out/passwd")
	wantCode(t, "Lstat(out/passwd)", err, fault.PathOutside)
}

func TestReadDirListsWithoutOpening(t *testing.T) {
	t.Parallel()
	b := linked(t)
	entries, err := b.files.ReadDir("abs", 0)
	must(t, err)
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"f", "up"}) {
		t.Errorf("abs holds %v", names)
	}
	if all, err := b.files.ReadDir("", 0); err != nil || len(all) < 20 {
		t.Errorf("the root holds %d entries, %v", len(all), err)
	}
	if some, err := b.files.ReadDir(".", 3); err != nil || len(some) != 3 {
		t.Errorf("asked for 3, got %d, %v", len(some), err)
	}
	for p, code := range map[string]fault.Code{
		"out": fault.PathOutside, "none": fault.FileNotFound, "d/f": fault.NotADirectory,
		"fifo": fault.NotADirectory, "d/f/x": fault.FileNotFound, "loop": fault.FileNotFound,
	} {
		_, err := b.files.ReadDir(p, 0)
		wantCode(t, p, err, code)
	}
}

func TestUnreadableFileIsForbidden(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.put(t, "f")
	must(t, os.Chmod(b.at("f"), 0))
	f, err := b.files.Open("f")
	if os.Geteuid() == 0 { // root may read everything
		must(t, err)
		must(t, f.Close())
		return
	}
	wantCode(t, "f", err, fault.Forbidden)
}

// TestSC38_SwappedDirectoryNeverLeadsOutside reads while a directory turns into
// a link and back. Whatever is read must be the inside file.
func TestSC38_SwappedDirectoryNeverLeadsOutside(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.put(t, "d/f")
	outside := filepath.Join(filepath.Dir(b.root), "outside")
	must(t, os.Mkdir(outside, 0o755))
	must(t, os.WriteFile(filepath.Join(outside, "f"), []byte("secret"), 0o644))
	must(t, os.Symlink(outside, b.at("link")))

	ctx, cancel := context.WithCancel(t.Context())
	var swapping sync.WaitGroup
	swapping.Go(func() {
		defer cancel()
		end := time.Now().Add(2 * time.Second)
		for i := 0; i < 10_000 && time.Now().Before(end); i++ {
			_ = os.Rename(b.at("d"), b.at("kept"))
			_ = os.Rename(b.at("link"), b.at("d"))
			_ = os.Rename(b.at("d"), b.at("link"))
			_ = os.Rename(b.at("kept"), b.at("d"))
		}
	})
	good := 0
	for ctx.Err() == nil {
		if f, err := b.files.Open("d/f"); err == nil {
			data, err := io.ReadAll(f)
			must(t, errors.Join(err, f.Close()))
			if string(data) != "d/f" {
				t.Fatalf("read %q from outside", data)
			}
			good++
		} else if code := fault.CodeOf(err); code != fault.PathOutside && code != fault.FileNotFound {
			t.Fatalf("unexpected fault: %v", err)
		}
		walked := b.files.Walk(ctx, env.WalkOptions{Path: ".", Depth: 2}, func(e *env.Entry) error {
			if info, err := e.Info(); err == nil && e.Path == "d/f" && info.Size() != 3 {
				t.Error("the walk went outside")
			}
			return nil
		})
		if walked != nil && ctx.Err() == nil {
			t.Fatal(walked)
		}
	}
	swapping.Wait()
	if good == 0 {
		t.Error("the inside file was never read")
	}
	if data, err := os.ReadFile(filepath.Join(outside, "f")); err != nil || string(data) != "secret" {
		t.Errorf("the outside file changed: %q, %v", data, err)
	}
}
