package app_test

import (
	"encoding/base64"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/switchyard-dev/switchyard/app/apptest"
	"github.com/switchyard-dev/switchyard/fs"
	"github.com/switchyard-dev/switchyard/internal/testkit"
)

// content reads a file of the disk.
func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// put writes a file over HTTP.
func put(s *apptest.Server, path, text string, headers ...string) apptest.Answer {
	return s.Do("PUT", "/api/fs/file", map[string]any{"path": path, "content": text}, headers...)
}

func TestWritingFiles(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	dir := s.Directory
	st := s.Events("?types=file.*")
	if e := st.Next(); e.Type != "server.connected" {
		t.Fatal(e.Type)
	}

	made := apptest.Data[fs.Written](s, "PUT", "/api/fs/file", map[string]any{"path": "a/b/new.txt", "content": "one\ntwo\n"}, "If-None-Match", "*")
	if !made.Created || made.Size != 8 || content(t, dir+"/a/b/new.txt") != "one\ntwo\n" {
		t.Fatalf("%+v", made)
	}
	if e := apptest.Payload[fs.FileEdited](s, st.Next()); e.File != dir+"/a/b/new.txt" {
		t.Errorf("%+v", e)
	}
	if a := put(s, "a/b/new.txt", "x", "If-None-Match", "*"); a.Status != 412 || a.Code() != "etag_mismatch" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	read := apptest.Data[fs.File](s, "GET", "/api/fs/file?path=a/b/new.txt", nil)
	if read.ETag != made.ETag {
		t.Errorf("the etag of a read is %s, of the write %s", read.ETag, made.ETag)
	}
	if a := put(s, "a/b/new.txt", "mine\n", "If-Match", strconv.Quote(read.ETag)); a.Status != 200 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if a := put(s, "a/b/new.txt", "late\n", "If-Match", strconv.Quote(read.ETag)); a.Code() != "etag_mismatch" || content(t, dir+"/a/b/new.txt") != "mine\n" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if a := put(s, "gone.txt", "x", "If-Match", "*"); a.Code() != "etag_mismatch" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if a := put(s, "a", "x"); a.Code() != "not_a_file" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if a := put(s, "a/b/new.txt/below", "x"); a.Code() != "not_a_directory" && a.Code() != "file_not_found" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if a := s.Do("PUT", "/api/fs/file", map[string]any{"path": "b", "content": "%%", "encoding": "base64"}); a.Code() != "validation_failed" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if a := put(s, "big", strings.Repeat("a", fs.MaxWrite+1)); a.Code() != "body_too_large" {
		t.Errorf("%d %.100s", a.Status, a.Body)
	}
}

func TestWritingKeepsWhatAFileIsLike(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	dir := s.Directory
	const crlf = "\uFEFFone\r\ntwo\r\n"
	write(t, dir+"/crlf.txt", []byte(crlf))
	if err := os.Chmod(dir+"/crlf.txt", 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/mixed.txt", []byte("one\r\ntwo\n"))
	if err := os.Symlink("crlf.txt", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, text, encoding string
		exact                bool
		file, want           string
	}{
		{"crlf.txt", "1\n2\n3\n", "", false, "crlf.txt", "\uFEFF1\r\n2\r\n3\r\n"},
		{"link", "4\n", "", false, "crlf.txt", "\uFEFF4\r\n"},
		{"crlf.txt", "5\n\r\n", "", false, "crlf.txt", "\uFEFF5\n\r\n"},
		{"mixed.txt", "1\n", "", false, "mixed.txt", "1\n"},
		{"crlf.txt", crlf, "", true, "crlf.txt", crlf},
		{"crlf.txt", "6\n", "", true, "crlf.txt", "6\n"},
		{"raw", base64.StdEncoding.EncodeToString([]byte("\x00\xff\n")), "base64", false, "raw", "\x00\xff\n"},
	} {
		body := map[string]any{"path": c.path, "content": c.text, "exact": c.exact}
		if c.encoding != "" {
			body["encoding"] = c.encoding
		}
		if a := s.Do("PUT", "/api/fs/file", body); a.Status != 200 {
			t.Fatalf("%s: %d %s", c.path, a.Status, a.Body)
		}
		if got := content(t, dir+"/"+c.file); got != c.want {
			t.Errorf("%s of %q: %q, want %q", c.path, c.text, got, c.want)
		}
	}
	if info, err := os.Stat(dir + "/crlf.txt"); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if info, err := os.Lstat(dir + "/link"); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link became %v", info.Mode())
	}
}

// TestWritersWithOneETag lets eight write at once on the ground of one read: only
// one may win.
func TestWritersWithOneETag(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	made := apptest.Data[fs.Written](s, "PUT", "/api/fs/file", map[string]any{"path": "f", "content": "0"})
	var wg sync.WaitGroup
	won := make(chan string, 8)
	for i := range 8 {
		wg.Go(func() {
			text := strings.Repeat("x", i+1)
			if a := put(s, "f", text, "If-Match", strconv.Quote(made.ETag)); a.Status == 200 {
				won <- text
			} else if a.Code() != "etag_mismatch" {
				t.Errorf("%d %s", a.Status, a.Body)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Fatalf("%d writers won", len(won))
	}
	if text := <-won; content(t, s.Directory+"/f") != text {
		t.Errorf("the winner's text is not there")
	}
}

func TestMovingAndDeleting(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	dir := s.Directory
	for path, text := range map[string]string{"a.txt": "a", "b.txt": "b", "d/in/c.txt": "c"} {
		write(t, filepath.Join(dir, path), []byte(text))
	}
	if err := os.Symlink("d", dir+"/ln"); err != nil {
		t.Fatal(err)
	}
	rename := func(from, to string, overwrite bool) apptest.Answer {
		return s.Do("POST", "/api/fs/rename", map[string]any{"from": from, "to": to, "overwrite": overwrite})
	}
	wantAnswers(t, []answered{
		{"over a file", rename("a.txt", "b.txt", false), 409, "entry_exists"},
		{"over a directory", rename("a.txt", "d", true), 409, "entry_exists"},
		{"below itself", rename("d", "d/in/d", true), 409, "entry_exists"},
		{"of nothing", rename("none", "x", false), 404, "file_not_found"},
		{"over a file on wish", rename("a.txt", "b.txt", true), 200, ""},
		{"of a directory", rename("d", "new/place", false), 200, ""},
	})
	if content(t, dir+"/b.txt") != "a" || content(t, dir+"/new/place/in/c.txt") != "c" {
		t.Error("the files are not where they were moved")
	}
	if e := apptest.Data[fs.Entry](s, "POST", "/api/fs/directory", map[string]any{"path": "p/q"}); e.Type != "directory" || e.Path != "p/q" || e.Absolute != dir+"/p/q" {
		t.Errorf("%+v", e)
	}
	made := apptest.Data[fs.Written](s, "PUT", "/api/fs/file", map[string]any{"path": "p/f", "content": "x"})
	remove := func(path string, headers ...string) apptest.Answer {
		return s.Do("DELETE", "/api/fs/entry?path="+path, nil, headers...)
	}
	wantAnswers(t, []answered{
		{"mkdir again", s.Do("POST", "/api/fs/directory", map[string]any{"path": "p/q"}), 200, ""},
		{"mkdir over a file", s.Do("POST", "/api/fs/directory", map[string]any{"path": "b.txt"}), 400, "not_a_directory"},
		{"of another version", remove("p/f", "If-Match", `"other"`), 412, "etag_mismatch"},
		{"of a full directory", remove("p"), 409, "directory_not_empty"},
		{"of the version", remove("p/f", "If-Match", strconv.Quote(made.ETag)), 204, ""},
		{"again", remove("p/f"), 404, "file_not_found"},
		{"of an empty directory", remove("p/q"), 204, ""},
		{"of a link", remove("ln"), 204, ""},
		{"of all", remove("new&recursive=true"), 204, ""},
		{"of the directory itself", remove("."), 400, "path_outside"},
	})
	if _, err := os.Stat(dir + "/new"); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}

// answered is an answer and what it should be.
type answered struct {
	what   string
	got    apptest.Answer
	status int
	code   string
}

func wantAnswers(t *testing.T, list []answered) {
	t.Helper()
	for _, a := range list {
		if a.got.Status != a.status || a.got.Code() != a.code {
			t.Errorf("%s: %d %s, want %d %s", a.what, a.got.Status, a.got.Body, a.status, a.code)
		}
	}
}

// TestSC38_ChangesStayInside tries every way out that reading refuses, and into
// git's own files, for all changes.
func TestSC38_ChangesStayInside(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	repo := repoWith(t, "d", "in")
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, []byte("keep"))
	write(t, repo+"/d/f", []byte("f"))
	for link, target := range map[string]string{"out": filepath.Dir(secret), "loop": repo + "/loop", "d/up": "..", "git": ".git", "inside": repo + "/d"} {
		if err := os.Symlink(target, filepath.Join(repo, link)); err != nil {
			t.Fatal(err)
		}
	}
	config := content(t, repo+"/.git/config")
	at := "?directory=" + url.QueryEscape(repo)
	for _, path := range []string{
		"../x", secret, "out/secret", "d/../../x", "%2e%2e/x", `..%5cx`, "a\x00b", ".git/config", ".GIT/hooks/pre-commit", "git/config",
		"git/hooks/pre-commit", "d/up/.git/config", "sub/.git/hooks/x",
	} {
		for what, a := range map[string]apptest.Answer{
			"write":       s.Do("PUT", "/api/fs/file"+at, map[string]any{"path": path, "content": "x"}),
			"mkdir":       s.Do("POST", "/api/fs/directory"+at, map[string]any{"path": path}),
			"delete":      s.Do("DELETE", "/api/fs/entry"+at+"&recursive=true&path="+url.QueryEscape(path), nil),
			"rename from": s.Do("POST", "/api/fs/rename"+at, map[string]any{"from": path, "to": "taken"}),
			"rename to":   s.Do("POST", "/api/fs/rename"+at, map[string]any{"from": "d/f", "to": path}),
		} {
			if a.Code() != "path_outside" {
				t.Errorf("%s of %q: %d %s", what, path, a.Status, a.Body)
			}
		}
	}
	if content(t, secret) != "keep" || content(t, repo+"/.git/config") != config || content(t, repo+"/d/f") != "f" {
		t.Error("something outside was changed")
	}
	if a := s.Do("PUT", "/api/fs/file"+at, map[string]any{"path": "inside/f", "content": "new"}); a.Status != 200 || content(t, repo+"/d/f") != "new" {
		t.Errorf("through a link that stays inside: %d %s", a.Status, a.Body)
	}
	if out := testkit.Git(t, repo, "status", "--porcelain", "d"); !strings.Contains(out, "d/") {
		t.Errorf("git sees %q", out)
	}
}
