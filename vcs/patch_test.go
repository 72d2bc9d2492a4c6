package vcs_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/vcs"
)

// places are the ways in which a patch can be applied.
func places() map[string]func(b *bundle) *vcs.Service {
	return map[string]func(b *bundle) *vcs.Service{
		"repository":        func(b *bundle) *vcs.Service { b.git("init", "-q"); b.commit(nil); return b.service("") },
		"no repository":     func(b *bundle) *vcs.Service { return b.service("") },
		"no git":            func(b *bundle) *vcs.Service { return b.service("", withoutGit) },
		"repository no git": func(b *bundle) *vcs.Service { b.git("init", "-q"); b.commit(nil); return b.service("", withoutGit) },
	}
}

func everywhere(t *testing.T, files map[string]string, test func(t *testing.T, b *bundle, s *vcs.Service)) {
	for name, place := range places() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			for name, text := range files {
				b.write(name, text)
			}
			test(t, b, place(b))
		})
	}
}

const mixed = `diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1,3 +1,3 @@
 one
-two
+2
 three
diff --git a/new/n.txt b/new/n.txt
new file mode 100755
--- /dev/null
+++ b/new/n.txt
@@ -0,0 +1,2 @@
+x
+y
\ No newline at end of file
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/old.txt b/sub/moved.txt
similarity index 100%
rename from old.txt
rename to sub/moved.txt
`

func TestPatchAppliesEverywhere(t *testing.T) {
	t.Parallel()
	everywhere(t, map[string]string{"a.txt": "one\ntwo\nthree\n", "gone.txt": "gone\n", "old.txt": "old\n"}, func(t *testing.T, b *bundle, s *vcs.Service) {
		got, err := s.Patch(t.Context(), mixed)
		b.must(err)
		want := map[string]string{"a.txt": "one\n2\nthree\n", "new/n.txt": "x\ny", "gone.txt": "<none>", "old.txt": "<none>", "sub/moved.txt": "old\n"}
		for name, text := range want {
			if b.read(name) != text {
				t.Errorf("%s: %q", name, b.read(name))
			}
		}
		if info, err := os.Stat(b.dir + "/new/n.txt"); err != nil || info.Mode().Perm()&0o100 == 0 {
			t.Errorf("%v %v", info, err)
		}
		var told []string
		for _, f := range got.Files {
			told = append(told, f.Status+" "+f.OldFile+" "+f.File)
		}
		if s := strings.Join(told, ","); s != "modified  a.txt,added  new/n.txt,deleted  gone.txt,renamed old.txt sub/moved.txt" || got.Files[1].Additions != 2 {
			t.Errorf("%s %+v", s, got.Files)
		}
	})
}

func TestPatchIsAllOrNothing(t *testing.T) {
	t.Parallel()
	everywhere(t, map[string]string{"a.txt": "one\ntwo\nthree\n", "gone.txt": "gone\n", "old.txt": "old\n", "b.txt": "1\n2\n3\n4\n5\n6\n7\n8\n9\n"}, func(t *testing.T, b *bundle, s *vcs.Service) {
		bad := mixed + "diff --git a/b.txt b/b.txt\n--- a/b.txt\n+++ b/b.txt\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n@@ -7,3 +7,3 @@\n 7\n-eight\n+8!\n 9\n"
		_, err := s.Patch(t.Context(), bad)
		f, ok := fault.As(err)
		if !ok || f.Code != fault.PatchConflict || f.Fields["file"] != "b.txt" || f.Fields["hunk"] != 2 {
			t.Fatalf("%v %+v", err, f)
		}
		for name, text := range map[string]string{"a.txt": "one\ntwo\nthree\n", "gone.txt": "gone\n", "new/n.txt": "<none>", "b.txt": "1\n2\n3\n4\n5\n6\n7\n8\n9\n"} {
			if b.read(name) != text {
				t.Errorf("%s: %q", name, b.read(name))
			}
		}
		for _, c := range []struct{ patch, file string }{
			{"--- a/missing\n+++ b/missing\n@@ -1 +1 @@\n-a\n+b\n", "missing"},
			{"--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+a\n", "a.txt"},
		} {
			_, err := s.Patch(t.Context(), c.patch)
			if f, ok := fault.As(err); !ok || f.Code != fault.PatchConflict || f.Fields["file"] != c.file {
				t.Errorf("%s: %v", c.file, err)
			}
		}
	})
}

func TestPatchKeepsBytes(t *testing.T) {
	t.Parallel()
	everywhere(t, map[string]string{"crlf": "a\r\nb\r\nc", "latin": "\xe9\n\xe8\n"}, func(t *testing.T, b *bundle, s *vcs.Service) {
		b.must(os.Chmod(b.dir+"/crlf", 0o755))
		_, err := s.Patch(t.Context(), "--- a/crlf\n+++ b/crlf\n@@ -1,3 +1,3 @@\n a\r\n-b\r\n+B\r\n c\n\\ No newline at end of file\n--- a/latin\n+++ b/latin\n@@ -1,2 +1,2 @@\n \xe9\n-\xe8\n+\xea\n")
		b.must(err)
		info, err := os.Stat(b.dir + "/crlf")
		b.must(err)
		if b.read("crlf") != "a\r\nB\r\nc" || b.read("latin") != "\xe9\n\xea\n" || info.Mode().Perm() != 0o755 {
			t.Errorf("%q %q %v", b.read("crlf"), b.read("latin"), info.Mode())
		}
	})
}

func TestPatchKeepsLineEndsOfTheTree(t *testing.T) {
	t.Parallel()
	b := repo(t, map[string]string{"a.txt": "one\ntwo\nthree\n"})
	b.git("config", "core.autocrlf", "true")
	b.write("a.txt", "one\r\ntwo\r\nthree\r\n")
	_, err := b.service("").Patch(t.Context(), "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n")
	b.must(err)
	if got := b.read("a.txt"); got != "one\r\n2\r\nthree\r\n" {
		t.Errorf("%q", got)
	}
}

func TestPatchMovesHunksAsGitDoes(t *testing.T) {
	t.Parallel()
	b := repo(t, map[string]string{"a.txt": "new first line\n" + manyLines(30)})
	_, err := b.service("").Patch(t.Context(), "--- a/a.txt\n+++ b/a.txt\n@@ -10,3 +10,3 @@\n line 9 of the text\n-line 10 of the text\n+ten\n line 11 of the text\n")
	b.must(err)
	if !strings.Contains(b.read("a.txt"), "\nten\n") {
		t.Error(b.read("a.txt"))
	}
}

func newFile(name, text string) string {
	return "diff --git a/" + name + " b/" + name + "\nnew file mode 100644\n--- /dev/null\n+++ b/" + name + "\n@@ -0,0 +1 @@\n+" + text + "\n"
}

func newLink(name, target string) string {
	return "diff --git a/" + name + " b/" + name + "\nnew file mode 120000\n--- /dev/null\n+++ b/" + name + "\n@@ -0,0 +1 @@\n+" + target + "\n\\ No newline at end of file\n"
}

func TestSC38_PatchStaysInside(t *testing.T) {
	t.Parallel()
	everywhere(t, map[string]string{"d/f": "f\n"}, func(t *testing.T, b *bundle, s *vcs.Service) {
		b.must(os.Symlink("d", b.dir+"/in"))
		b.must(os.Symlink(b.home, b.dir+"/out"))
		b.must(os.Symlink("loop", b.dir+"/loop"))
		b.must(os.Symlink("..", b.dir+"/d/up"))
		for _, patch := range []string{
			newFile("../x", "x"), newFile("d/../../x", "x"), "--- /dev/null\n+++ b/" + b.home + "/x\n@@ -0,0 +1 @@\n+x\n", newFile("out/x", "x"), newFile("in/f2", "x"), newFile("d/up/x", "x"), newFile("loop/x", "x"),
			newFile(".git/hooks/post-commit", "x"), newFile("d/.GIT/config", "x"), newFile(".git", "x"), newFile("GIT~1/config", "x"), newFile(".git./config", "x"),
			newFile("d/.g\u200cit/config", "x"), newFile(`.git::$INDEX_ALLOCATION/config`, "x"),
			newLink("l", "/etc/passwd"), newLink("l", "../x"), newLink("d/l", "../../x"), newLink("l", ".git/config"), newLink("d/l", "a/../../../x"),
			"diff --git a/d/f b/../f\nsimilarity index 100%\nrename from d/f\nrename to ../f\n",
		} {
			if _, err := s.Patch(t.Context(), patch); !fault.Is(err, fault.PathOutside) {
				t.Errorf("%v for\n%s", err, patch)
			}
		}
		for _, p := range []string{"../x", b.home + "/x", ".git/hooks/post-commit", "l", "../f"} {
			if b.read(p) != "<none>" {
				t.Errorf("%s was written", p)
			}
		}
		if b.read("d/f") != "f\n" {
			t.Error("d/f is gone")
		}
		for _, text := range []string{"", "hello", "diff --git a/x b/x\n", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n"} {
			if _, err := s.Patch(t.Context(), text); err == nil {
				t.Errorf("%q was applied", text)
			}
		}
	})
}

func TestPatchMakesLinks(t *testing.T) {
	t.Parallel()
	b := repo(t, map[string]string{"d/f": "f\n"})
	_, err := b.service("").Patch(t.Context(), newLink("d/l", "../d/f"))
	b.must(err)
	if target, err := os.Readlink(b.dir + "/d/l"); err != nil || target != "../d/f" {
		t.Error(target, err)
	}
}

func TestSC47_ALockIsToldAndLeft(t *testing.T) {
	t.Parallel()
	b := repo(t, map[string]string{"a.txt": "a\n"})
	s := b.service("")
	b.write("a.txt", "b\n")
	b.write(".git/index.lock", "")
	at := time.Now().Add(-time.Minute)
	b.must(os.Chtimes(b.dir+"/.git/index.lock", at, at))
	if got := b.status(s); len(got) != 1 {
		t.Errorf("%+v", got)
	}
	if got := b.diff(s, ""); len(got) != 1 {
		t.Errorf("%+v", got)
	}
	patch := "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-b\n+c\n"
	_, err := s.Patch(t.Context(), patch)
	f, ok := fault.As(err)
	if !ok || f.Code != fault.VCSLocked {
		t.Fatal(err)
	}
	if age, ok := f.Fields["age"].(int64); !ok || age < 60_000 || age > 120_000 {
		t.Errorf("%+v", f.Fields)
	}
	if b.read("a.txt") != "b\n" {
		t.Error("it was applied")
	}
	b.must(os.Remove(b.dir + "/.git/index.lock")) // fails if it was removed already
	if _, err := s.Patch(t.Context(), patch); err != nil || b.read("a.txt") != "c\n" {
		t.Error(err)
	}
}
