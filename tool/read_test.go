package tool_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/switchyard-dev/switchyard/fault"
)

func TestReadNumbersLines(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.file("a.txt", "\uFEFFone\r\ntwo\n\nfour")
	for _, key := range []string{"path", "filePath", "file_path"} {
		res := b.must("read", in{key: "a.txt"})
		if want := "1\tone\n2\ttwo\n3\t\n4\tfour\n"; res.Output != want {
			t.Errorf("%q", res.Output)
		}
	}
	b.file("empty", "")
	contains(t, b.must("read", in{"path": "empty"}).Output, "The file is empty")
	abs := filepath.Join(b.root, "a.txt")
	if res := b.must("read", in{"path": abs}); res.Title != "a.txt" {
		t.Errorf("title %q", res.Title)
	}
}

func TestReadPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&text, "line %d\n", i+1)
	}
	b.file("long", text.String())
	res := b.must("read", in{"path": "long"})
	if n := strings.Count(res.Output, "\n"); n != 2001 || res.Metadata["next"] != 2001 || res.Metadata["outputPath"] != nil {
		t.Errorf("%d lines, %v", n, res.Metadata)
	}
	contains(t, res.Output, "\n2000\tline 2000\n", "Continue with offset 2001")
	res = b.must("read", in{"path": "long", "offset": 4999, "limit": 1})
	if want := "4999\tline 4999\n(The file goes on. Continue with offset 5000.)\n"; res.Output != want {
		t.Errorf("%q", res.Output)
	}
	res = b.must("read", in{"path": "long", "offset": 5000})
	if res.Output != "5000\tline 5000\n" || res.Metadata["truncated"] != false {
		t.Errorf("%q %v", res.Output, res.Metadata)
	}
	contains(t, b.refused(fault.RangeInvalid, "read", in{"path": "long", "offset": 5001}), "5000 lines")
}

func TestReadBoundsBytesAndLines(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.file("wide", strings.Repeat(strings.Repeat("ä", 300)+"\n", 500))
	res := b.must("read", in{"path": "wide"})
	if len(res.Output) > 51200+200 || len(res.Output) < 50000 {
		t.Errorf("%d bytes", len(res.Output))
	}
	b.file("one", strings.Repeat("é", 3<<20))
	res = b.must("read", in{"path": "one"})
	if len(res.Output) > 2200 || !strings.Contains(res.Output, "é…\n") {
		t.Errorf("%d bytes: %q", len(res.Output), res.Output[max(0, len(res.Output)-200):])
	}
}

func TestReadRefusesWhatIsNoText(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.file("bin", "abc\x00def")
	b.file("ctl", strings.Repeat("\x01\x02a", 100))
	b.file("doc.pdf", "%PDF-1.7\nabc")
	for _, name := range []string{"bin", "ctl", "doc.pdf"} {
		contains(t, b.refused(fault.NotAFile, "read", in{"path": name}), "binary")
	}
	if err := syscall.Mkfifo(filepath.Join(b.root, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.refused(fault.NotAFile, "read", in{"path": "fifo"})
	b.file("latin", "caf\xe9\n")
	contains(t, b.must("read", in{"path": "latin"}).Output, "caf\uFFFD", "not UTF-8")
}

func TestReadSparseFileStaysSmall(t *testing.T) {
	t.Parallel()
	b := setup(t)
	f, err := os.Create(filepath.Join(b.root, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(strings.Repeat("text\n", 4000)); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(3 << 30); err != nil {
		t.Fatal(err)
	}
	contains(t, b.must("read", in{"path": "sparse", "limit": 2}).Output, "1\ttext\n2\ttext\n")
}

func TestReadShowsImages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	heads := map[string]string{
		"image/png": "\x89PNG\r\n\x1a\nrest", "image/jpeg": "\xff\xd8\xff\xe0rest", "image/gif": "GIF89arest", "image/webp": "RIFF\x01\x02\x03\x04WEBPrest",
	}
	for mime, data := range heads {
		b.file("pic.dat", data)
		res := b.must("read", in{"path": "pic.dat"})
		want := "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString([]byte(data))
		if len(res.Attachments) != 1 || res.Attachments[0].URL != want || res.Attachments[0].Mime != mime || res.Attachments[0].Filename != "pic.dat" {
			t.Errorf("%s: %+v", mime, res)
		}
	}
	b.file("big.png", heads["image/png"]+strings.Repeat("x", 6<<20))
	b.refused(fault.BodyTooLarge, "read", in{"path": "big.png"})
}

func TestReadListsDirectories(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.file("b.txt", "")
	b.file("sub/a", "")
	b.file("a.txt", "")
	b.link("sub", "ln")
	res := b.must("read", in{"path": "."})
	if want := "sub/\na.txt\nb.txt\nln@\n"; res.Output != want {
		t.Errorf("%q", res.Output)
	}
	res = b.must("read", in{"path": ".", "offset": 2, "limit": 1})
	if want := "a.txt\n(1 entries of 4. Go on with offset 3.)\n"; res.Output != want {
		t.Errorf("%q", res.Output)
	}
	b.refused(fault.RangeInvalid, "read", in{"path": ".", "offset": 5})
}

func TestReadSuggestsNames(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.file("src/main.go", "")
	if got := b.refused(fault.FileNotFound, "read", in{"path": "src/Main"}); !strings.Contains(got, "Did you mean src/main.go?") {
		t.Error(got)
	}
	b.refused(fault.FileNotFound, "read", in{"path": "none/at/all"})
}

// The same paths as over HTTP, seen from a tool: inside is read, everything
// else is refused or asked for, and no byte from outside comes without that.
func TestSC38ContainmentOfTools(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.file("d/f", "inside")
	b.link(filepath.Join(b.root, "d"), "in")
	b.link("/etc", "out")
	b.link("loop", "loop")
	if err := os.Symlink("..", filepath.Join(b.root, "d/up")); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(filepath.Dir(b.root), "secret")
	if err := os.WriteFile(secret, []byte("SECRET"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"d/f", "in/f", "d/up/d/f", "./d/../d/f"} {
		contains(t, b.must("read", in{"path": p}).Output, "inside")
	}
	for _, p := range []string{"out/passwd", "loop", "a\x00b"} {
		for _, name := range []string{"read", "grep", "list", "glob", "edit", "write"} {
			input := in{"path": p, "pattern": "x", "oldString": "a", "newString": "b", "content": "x"}
			if res, err := b.run(name, input); err == nil {
				t.Errorf("%s %q: %q", name, p, res.Output)
			}
		}
	}
	for _, p := range []string{"../secret", "d/../../secret", secret, "/etc/passwd"} {
		plan, err := b.plan("read", in{"path": p})
		if err != nil {
			continue
		}
		if len(plan.Asks) != 2 || plan.Asks[0].Permission != "external_directory" {
			t.Errorf("%q: %+v", p, plan.Asks)
		}
	}
	for _, p := range []string{"%2e%2e/secret", `..%5csecret`} {
		if res, err := b.run("read", in{"path": p}); err == nil || bytes.Contains([]byte(res.Output), []byte("SECRET")) {
			t.Errorf("%q: %q", p, res.Output)
		}
	}
}
