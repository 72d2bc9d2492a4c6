package app_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/switchyard-dev/switchyard/app/apptest"
	"github.com/switchyard-dev/switchyard/fs"
	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/operations"
)

// repoWith makes a git repository with directories.
func repoWith(t *testing.T, dirs ...string) string {
	t.Helper()
	repo, err := filepath.EvalSymlinks(testkit.Repo(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		if err := os.MkdirAll(filepath.Join(repo, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return repo
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSC41_Reading(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	dir := s.Directory
	crlf := []byte("\xef\xbb\xbfone\r\ntwo\r\nthree")
	png := append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 64)...)
	utf16 := []byte{0xff, 0xfe, 'a', 0, 'b', 0}
	write(t, dir+"/crlf.txt", crlf)
	write(t, dir+"/a.png", png)
	write(t, dir+"/wide.txt", utf16)
	write(t, dir+"/empty", nil)
	sparse, err := os.Create(dir + "/sparse")
	if err != nil {
		t.Fatal(err)
	}
	if err := sparse.Truncate(3 << 30); err != nil {
		t.Fatal(err)
	}
	_ = sparse.Close()
	if err := syscall.Mkfifo(dir+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", dir+"/out"); err != nil {
		t.Fatal(err)
	}
	read := func(query string) fs.File { return apptest.Data[fs.File](s, "GET", "/api/fs/file?"+query, nil) }

	if f := read("path=crlf.txt"); f.Type != "text" || f.Content != string(crlf) || f.Truncated || f.Size != int64(len(crlf)) {
		t.Errorf("%+v", f)
	}
	if f := read("path=crlf.txt&unit=lines&offset=1&limit=1"); f.Content != "two\r\n" || !f.Truncated {
		t.Errorf("%+v", f)
	}
	for name, data := range map[string][]byte{"a.png": png, "wide.txt": utf16} {
		f := read("path=" + name)
		if got, _ := base64.StdEncoding.DecodeString(f.Content); f.Type != "binary" || f.Encoding != "base64" || !bytes.Equal(got, data) {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if f := read("path=empty"); f.Content != "" || f.Type != "text" || f.Truncated {
		t.Errorf("%+v", f)
	}
	if f := read("path=sparse&offset=3000000000&limit=10"); f.Size != 3<<30 || !f.Truncated || f.Offset != 3000000000 {
		t.Errorf("%+v", f)
	}
	for path, code := range map[string]string{
		"fifo": "not_a_file", ".": "not_a_file", "out": "path_outside", "../x": "path_outside", "/etc/passwd": "path_outside", "none": "file_not_found",
		"a%00b": "path_outside",
	} {
		if a := s.Do("GET", "/api/fs/file?path="+path, nil); a.Code() != code {
			t.Errorf("%s: %d %s, want %s", path, a.Status, a.Code(), code)
		}
	}
	rawFile(t, s, crlf)
}

func rawFile(t *testing.T, s *apptest.Server, data []byte) {
	t.Helper()
	raw := s.Do("GET", "/api/fs/file?path=crlf.txt&raw=true", nil)
	tag := raw.Header.Get("ETag")
	if raw.Status != 200 || !bytes.Equal(raw.Body, data) || tag == "" || raw.Header.Get("X-Context-Directory") == "" {
		t.Errorf("raw: %d %q %s", raw.Status, raw.Body, tag)
	}
	if a := s.Do("GET", "/api/fs/file?path=crlf.txt", nil, "Accept", "application/octet-stream", "Range", "bytes=3-5"); a.Status != 206 || string(a.Body) != "one" {
		t.Errorf("range: %d %q", a.Status, a.Body)
	}
	if a := s.Do("GET", "/api/fs/file?path=crlf.txt&raw=true", nil, "Range", "bytes=900-"); a.Status != 416 || a.Code() != "range_invalid" {
		t.Errorf("bad range: %d %s", a.Status, a.Body)
	}
	if a := s.Do("GET", "/api/fs/file?path=crlf.txt&raw=true", nil, "If-None-Match", tag); a.Status != 304 {
		t.Errorf("known: %d", a.Status)
	}
}

func TestSC42_Search(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	dir := s.Directory
	testkit.Git(t, dir, "init", "-q")
	write(t, dir+"/.gitignore", []byte("ignored/\n"))
	for i := range 300 {
		write(t, fmt.Sprintf("%s/ignored/%d/needle.txt", dir, i), []byte("a needle\n"))
	}
	write(t, dir+"/.hidden/needle.txt", []byte("a needle\n"))
	for i := range 15 {
		write(t, fmt.Sprintf("%s/src/session%02d.go", dir, i), []byte("package x\n\nfunc Find() { needle }\n// end\n"))
	}
	if err := os.Symlink("..", dir+"/src/loop"); err != nil {
		t.Fatal(err)
	}
	grep := func(body map[string]any) fs.GrepOutput {
		return apptest.Data[fs.GrepOutput](s, "POST", "/api/fs/grep", body)
	}

	got := grep(map[string]any{"pattern": `\bneedle\b`, "context": 1})
	if len(got.Matches) != 15 || got.Truncated {
		t.Fatalf("%d matches", len(got.Matches))
	}
	m := got.Matches[0]
	if m.Path != "src/session00.go" || m.Line != 3 || m.Offset != 11 || m.Submatches[0].Text != "needle" || m.Text[m.Submatches[0].Start:m.Submatches[0].End] != "needle" ||
		strings.Join(m.Before, "|") != "" || strings.Join(m.After, "|") != "// end" {
		t.Fatalf("%+v", m)
	}
	if got := grep(map[string]any{"pattern": "needle", "hidden": true}); len(got.Matches) != 16 {
		t.Fatalf("hidden: %d", len(got.Matches))
	}
	if got := grep(map[string]any{"pattern": "needle", "ignored": true, "limit": 10_000}); len(got.Matches) != 315 {
		t.Fatalf("ignored: %d", len(got.Matches))
	}
	if got := grep(map[string]any{"pattern": "needle", "limit": 10}); len(got.Matches) != 10 || !got.Truncated {
		t.Fatalf("limit: %d %v", len(got.Matches), got.Truncated)
	}
	if got := grep(map[string]any{"pattern": "Find()", "literal": true, "include": "*00.go"}); len(got.Matches) != 1 {
		t.Fatalf("literal: %d", len(got.Matches))
	}
	a := s.Do("POST", "/api/fs/grep", map[string]any{"pattern": "ab[z-a]"})
	if a.Code() != "pattern_invalid" || !strings.Contains(string(a.Body), `"position":3`) {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	lines := s.Do("POST", "/api/fs/grep", map[string]any{"pattern": "needle"}, "Accept", "application/x-ndjson")
	if n := bytes.Count(lines.Body, []byte("\n")); n != 15 || lines.Header.Get("Content-Type") != "application/x-ndjson" {
		t.Fatalf("%d lines of %s", n, lines.Header.Get("Content-Type"))
	}
	search := func(body map[string]any) []fs.Found {
		return apptest.Data[fs.SearchOutput](s, "POST", "/api/fs/search", body).Entries
	}
	if got := search(map[string]any{"query": "ses07"}); len(got) != 1 || got[0].Path != "src/session07.go" {
		t.Fatalf("%+v", got)
	}
	if got := search(map[string]any{"query": "src", "type": "directory"}); len(got) != 1 || got[0].Type != "directory" {
		t.Fatalf("%+v", got)
	}
	if got := search(map[string]any{"query": ""}); len(got) != 1 {
		t.Fatalf("top level: %+v", got)
	}
}

func TestSC49_NotARepository(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	at := apptest.Data[operations.Location](s, "GET", "/api/location", nil)
	if at.Root != s.Directory || at.Project.VCS != "none" || at.Project.Worktree != s.Directory {
		t.Fatalf("%+v", at)
	}
	for _, path := range []string{"/", "..", "../"} {
		if a := s.Do("GET", "/api/fs/tree"+apptest.Query("path", path), nil); a.Code() != "path_outside" {
			t.Errorf("%s: %d %s", path, a.Status, a.Code())
		}
	}
	if page := apptest.List[fs.Entry](s, "/api/fs/tree"); len(page.Data) != 0 {
		t.Errorf("%+v", page.Data)
	}
}

func TestTreeListsOddEntriesInPages(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	dir := s.Directory
	for i := range 2500 {
		write(t, fmt.Sprintf("%s/f%04d", dir, i), nil)
	}
	for _, err := range []error{
		os.Mkdir(dir+"/zdir", 0o000), os.Symlink("nowhere", dir+"/dangling"), syscall.Mkfifo(dir+"/pipe", 0o600), os.WriteFile(dir+"/\xff", nil, 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	seen, first, cursor := map[string]fs.Entry{}, "", ""
	for {
		page := apptest.List[fs.Entry](s, "/api/fs/tree?limit=1000"+cursor)
		for _, e := range page.Data {
			if first == "" {
				first = e.Name
			}
			seen[e.Name] = e
		}
		if page.Cursor.Next == "" {
			break
		}
		cursor = "&cursor=" + page.Cursor.Next
	}
	if len(seen) != 2504 || first != "zdir" {
		t.Fatalf("%d entries, first %s", len(seen), first)
	}
	for name, typ := range map[string]string{"zdir": "directory", "dangling": "symlink", "pipe": "other", "f0000": "file"} {
		if seen[name].Type != typ {
			t.Errorf("%s is %s", name, seen[name].Type)
		}
	}
	if e := seen["\ufffd"]; e.PathBytes != base64.StdEncoding.EncodeToString([]byte("\xff")) {
		t.Errorf("%+v", e)
	}
	if f := apptest.Data[fs.File](s, "GET", "/api/fs/file"+apptest.Query("pathBytes", base64.StdEncoding.EncodeToString([]byte("\xff"))), nil); f.Size != 0 {
		t.Errorf("%+v", f)
	}
}
