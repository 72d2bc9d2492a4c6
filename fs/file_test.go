package fs_test

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/fs"
)

func (b bundle) read(t testing.TB, in fs.ReadInput) fs.File {
	t.Helper()
	f, err := b.Read(t.Context(), in)
	must(t, err)
	return f
}

// bytesOf gives the exact bytes of an answer.
func bytesOf(t testing.TB, f fs.File) string {
	t.Helper()
	if f.Encoding == "utf-8" {
		return f.Content
	}
	data, err := base64.StdEncoding.DecodeString(f.Content)
	must(t, err)
	return string(data)
}

func TestSC41_ReadingKeepsEveryByte(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, tt := range []struct{ name, content, typ, mime string }{
		{"crlf.txt", "\xef\xbb\xbfone\r\ntwo\r\n", "text", "text/plain; charset=utf-8"},
		{"a.go", "package a\n", "text", "text/x-go; charset=utf-8"},
		{"a.ts", "export {}\n", "text", "text/x-typescript; charset=utf-8"},
		{"a.json", "{}", "text", "application/json; charset=utf-8"},
		{"a.svg", "<svg/>", "text", "image/svg+xml; charset=utf-8"},
		{"page", "<!DOCTYPE html><p>", "text", "text/html; charset=utf-8"},
		{"empty", "", "text", "text/plain; charset=utf-8"},
		{"spaces", "  \n\n\t", "text", "text/plain; charset=utf-8"},
		{"wide.txt", "\xff\xfea\x00b\x00", "binary", "text/plain; charset=utf-16le"},
		{"latin.txt", "caf\xe9", "binary", "text/plain; charset=utf-8"},
		{"a.png", "\x89PNG\r\n\x1a\n\x00\x00", "binary", "image/png"},
		{"lib.woff2", "\x00\x01", "binary", "font/woff2"},
		{"a.out", "\x7fELF\x00\x01", "binary", "application/octet-stream"},
		{"late.txt", strings.Repeat("x", 9000) + "\xff", "binary", "text/plain; charset=utf-8"},
	} {
		b.write(t, tt.name, tt.content)
		f := b.read(t, fs.ReadInput{In: fs.In{Path: tt.name}})
		if f.Type != tt.typ || bytesOf(t, f) != tt.content || f.Mime != tt.mime || f.Size != int64(len(tt.content)) || f.Truncated || f.Offset != 0 {
			t.Errorf("%s: %+v", tt.name, f)
		}
		if want := map[string]string{"text": "utf-8", "binary": "base64"}[tt.typ]; f.Encoding != want {
			t.Errorf("%s: encoding %s", tt.name, f.Encoding)
		}
	}
}

func TestReadRanges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write(t, "runes", "aé€😀z") // 1 + 2 + 3 + 4 + 1 bytes
	b.write(t, "bin", "\x00\x01\x02\x03")
	b.write(t, "lines", "0\n1\r\n\n3")
	for _, tt := range []struct {
		name          string
		unit          fs.Unit
		offset, limit int64
		want          string
		at            int64
		more          bool
	}{
		{"runes", "", 0, 2, "a", 0, true},
		{"runes", "", 0, 3, "aé", 0, true},
		{"runes", fs.Bytes, 2, 4, "é€", 1, true}, // begins inside of é
		{"runes", fs.Bytes, 5, 1, "€", 3, true},  // at least one character
		{"runes", fs.Bytes, 9, 1, "😀", 6, true},
		{"runes", fs.Bytes, 10, 100, "z", 10, false},
		{"runes", fs.Bytes, 11, 5, "", 11, false},
		{"runes", fs.Bytes, 500, 5, "", 500, false},
		{"runes", fs.Bytes, -3, 1, "a", 0, true},
		{"bin", "", 1, 2, "\x01\x02", 1, true},
		{"bin", "", 3, 9, "\x03", 3, false},
		{"lines", fs.Lines, 0, 1, "0\n", 0, true},
		{"lines", fs.Lines, 1, 2, "1\r\n\n", 1, true},
		{"lines", fs.Lines, 3, 1, "3", 3, false},
		{"lines", fs.Lines, 1, 0, "1\r\n\n3", 1, false},
		{"lines", fs.Lines, 9, 1, "", 9, false},
	} {
		f := b.read(t, fs.ReadInput{In: fs.In{Path: tt.name}, Unit: tt.unit, Offset: tt.offset, Limit: tt.limit})
		if bytesOf(t, f) != tt.want || f.Offset != tt.at || f.Truncated != tt.more {
			t.Errorf("%s %s %d+%d: %q at %d, truncated %v", tt.name, tt.unit, tt.offset, tt.limit, bytesOf(t, f), f.Offset, f.Truncated)
		}
	}
}

func TestReadingPieceByPieceGivesTheWhole(t *testing.T) {
	t.Parallel()
	b := setup(t)
	whole := strings.Repeat("naïve €uro 😀\n", 100_000) // 1.8 MB
	b.write(t, "big.txt", whole)
	var got strings.Builder
	for steps := 0; ; steps++ {
		f := b.read(t, fs.ReadInput{In: fs.In{Path: "big.txt"}, Offset: int64(got.Len()), Limit: []int64{0, 7, 1000}[min(steps, 2)]})
		if f.Encoding != "utf-8" || f.Offset != int64(got.Len()) || len(f.Content) > fs.MaxContent {
			t.Fatalf("%s at %d, %d bytes", f.Encoding, f.Offset, len(f.Content))
		}
		got.WriteString(f.Content)
		if !f.Truncated {
			break
		}
	}
	if got.String() != whole {
		t.Error("the pieces are not the whole")
	}
}

// TestSC41_HugeFileStaysOnDisk reads parts of a sparse file of 3 GB.
func TestSC41_HugeFileStaysOnDisk(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write(t, "huge", "")
	must(t, os.Truncate(b.path("huge"), 3<<30))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)

	f := b.read(t, fs.ReadInput{In: fs.In{Path: "huge"}})
	if f.Size != 3<<30 || !f.Truncated || len(bytesOf(t, f)) != fs.MaxContent || f.Type != "binary" {
		t.Errorf("%d bytes of %d", len(bytesOf(t, f)), f.Size)
	}
	f = b.read(t, fs.ReadInput{In: fs.In{Path: "huge"}, Offset: 3<<30 - 10, Limit: 100})
	if len(bytesOf(t, f)) != 10 || f.Truncated {
		t.Errorf("the end holds %d bytes", len(bytesOf(t, f)))
	}
	f = b.read(t, fs.ReadInput{In: fs.In{Path: "huge"}, Unit: fs.Lines, Limit: 1})
	if len(bytesOf(t, f)) != fs.MaxContent || !f.Truncated {
		t.Errorf("one line of %d bytes", len(bytesOf(t, f)))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := b.Read(ctx, fs.ReadInput{In: fs.In{Path: "huge"}, Unit: fs.Lines, Offset: 1}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("looking for a second line: %v", err)
	}
	raw, err := b.Raw(fs.In{Path: "huge"})
	must(t, err)
	end, err := raw.Seek(0, io.SeekEnd)
	must(t, errors.Join(err, raw.Close()))
	if end != 3<<30 || raw.Size != end {
		t.Errorf("raw: %d, %d", end, raw.Size)
	}
	// Other tests allocate too, so the bound is far from what one reading needs.
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 1<<30 {
		t.Errorf("%d MiB allocated", (after.TotalAlloc-before.TotalAlloc)>>20)
	}
}

// contained makes the directory of the containment matrix and gives paths with
// the codes that they must have, "" for those inside.
func contained(t testing.TB) (bundle, map[string]fault.Code) {
	b := setup(t)
	b.write(t, "d/f", "inside")
	must(t, os.WriteFile(filepath.Join(filepath.Dir(b.root), "secret"), []byte("secret"), 0o644))
	b.link(t, "in", "d")
	b.link(t, "abs", b.path("d"))
	b.link(t, "out", "/etc")
	b.link(t, "loop", "loop")
	b.link(t, "d/up", "..")
	b.link(t, "proc", "/proc/self/environ")
	b.link(t, "dangling", "none")
	b.fifo(t, "fifo")
	return b, map[string]fault.Code{
		"d/f": "", "in/f": "", "abs/f": "", "d/up/in/f": "", b.path("d/f"): "", "./d//f": "", "d/../d/f": "",
		"../x": fault.PathOutside, "../secret": fault.PathOutside, "/etc/passwd": fault.PathOutside,
		"out/passwd": fault.PathOutside, "d/../../x": fault.PathOutside, "%2e%2e/x": fault.PathOutside,
		`..%5cx`: fault.PathOutside, `..\x`: fault.PathOutside, "a\x00b": fault.PathOutside,
		"d/up/../../../secret": fault.PathOutside, "proc": fault.PathOutside, b.root + "/../secret": fault.PathOutside,
		"loop": fault.FileNotFound, "dangling": fault.FileNotFound, "none": fault.FileNotFound, "d/f/x": fault.FileNotFound,
		"d": fault.NotAFile, "": fault.NotAFile, "/": fault.PathOutside, "fifo": fault.NotAFile,
	}
}

func TestSC38_ReadingStaysInside(t *testing.T) {
	t.Parallel()
	b, paths := contained(t)
	for p, code := range paths {
		f, err := b.Read(t.Context(), fs.ReadInput{In: fs.In{Path: p}})
		raw, rawErr := b.Raw(fs.In{Path: p})
		if code == "" {
			must(t, errors.Join(err, rawErr))
			data, err := io.ReadAll(raw)
			must(t, errors.Join(err, raw.Close()))
			if f.Content != "inside" || string(data) != "inside" {
				t.Errorf("%s: %q, %q", p, f.Content, data)
			}
			continue
		}
		wantCode(t, "read "+p, err, code)
		wantCode(t, "raw "+p, rawErr, code)
	}
}

// TestSC38_ReadingWhileADirectoryIsSwapped reads, lists and searches while a
// directory turns into a link to the outside and back.
func TestSC38_ReadingWhileADirectoryIsSwapped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write(t, "d/f", "inside")
	outside := filepath.Join(filepath.Dir(b.root), "outside")
	must(t, os.Mkdir(outside, 0o755))
	must(t, os.WriteFile(filepath.Join(outside, "f"), []byte("secret"), 0o644))
	b.link(t, "link", outside)
	ctx, cancel := context.WithCancel(t.Context())
	var swapping sync.WaitGroup
	swapping.Go(func() {
		defer cancel()
		for i, end := 0, time.Now().Add(1500*time.Millisecond); i < 10_000 && time.Now().Before(end); i++ {
			_ = os.Rename(b.path("d"), b.path("kept"))
			_ = os.Rename(b.path("link"), b.path("d"))
			_ = os.Rename(b.path("d"), b.path("link"))
			_ = os.Rename(b.path("kept"), b.path("d"))
		}
	})
	for ctx.Err() == nil {
		if f, err := b.Read(ctx, fs.ReadInput{In: fs.In{Path: "d/f"}}); err == nil && f.Content != "inside" {
			t.Fatalf("read %q", f.Content)
		}
		page, err := b.Tree(ctx, fs.TreeInput{In: fs.In{Path: "d"}})
		if err == nil && slices.ContainsFunc(page.Entries, func(e fs.Entry) bool { return e.Path != "d/f" }) {
			t.Fatalf("listed %+v", page)
		}
		if out, err := b.Grep(ctx, fs.GrepInput{Pattern: "secret"}); err == nil && len(out.Matches) > 0 {
			t.Fatalf("found %+v", out.Matches)
		}
	}
	swapping.Wait()
}

func TestETagChangesWithTheFile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write(t, "f", "one")
	tag := func() string {
		raw, err := b.Raw(fs.In{Path: "f"})
		must(t, errors.Join(err, raw.Close()))
		if f := b.read(t, fs.ReadInput{In: fs.In{Path: "f"}}); f.ETag != raw.ETag {
			t.Errorf("read has %s, raw %s", f.ETag, raw.ETag)
		}
		return raw.ETag
	}
	first := tag()
	if tag() != first {
		t.Error("the tag changes by itself")
	}
	b.write(t, "f", "three")
	second := tag()
	must(t, os.Chtimes(b.path("f"), time.Time{}, time.Unix(1, 5)))
	third := tag()
	b.write(t, "g", "three")
	must(t, os.Chtimes(b.path("g"), time.Time{}, time.Unix(1, 5)))
	must(t, os.Rename(b.path("g"), b.path("f")))
	if fourth := tag(); first == second || second == third || third == fourth {
		t.Errorf("tags %s, %s, %s, %s", first, second, third, fourth)
	}
}

func TestNamesThatAreNotUTF8(t *testing.T) {
	t.Parallel()
	b := setup(t)
	name := "caf\xe9\xff.txt"
	b.write(t, "d/"+name, "needle")
	page, err := b.Tree(t.Context(), fs.TreeInput{In: fs.In{Path: "d"}})
	must(t, err)
	e := page.Entries[0]
	if e.Name != "caf\ufffd\ufffd.txt" || e.Path != "d/caf\ufffd\ufffd.txt" || e.PathBytes == "" {
		t.Fatalf("%+v", e)
	}
	for _, spelled := range []string{e.PathBytes, base64.RawURLEncoding.EncodeToString([]byte("d/" + name))} {
		if f := b.read(t, fs.ReadInput{In: fs.In{Bytes: spelled}}); f.Content != "needle" || f.PathName != e.PathName {
			t.Errorf("%+v", f)
		}
	}
	found, err := b.Search(t.Context(), fs.SearchInput{Query: "caf"})
	must(t, err)
	matches, err := b.Grep(t.Context(), fs.GrepInput{Pattern: "needle"})
	must(t, err)
	if found.Entries[0].PathName != e.PathName || matches.Matches[0].PathName != e.PathName {
		t.Errorf("%+v, %+v", found, matches)
	}
	_, err = b.Read(t.Context(), fs.ReadInput{In: fs.In{Bytes: "!"}})
	wantCode(t, "no base64", err, fault.ValidationFailed)
	_, err = b.Read(t.Context(), fs.ReadInput{In: fs.In{Bytes: base64.StdEncoding.EncodeToString([]byte("../secret"))}})
	wantCode(t, "outside in base64", err, fault.PathOutside)
}
