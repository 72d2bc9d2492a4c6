package app_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/app/apptest"
	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/vcs"
)

func vcsStatus(s *apptest.Server, dir string) map[string]vcs.Change {
	out := map[string]vcs.Change{}
	for _, c := range apptest.Data[[]vcs.Change](s, "GET", "/api/vcs/status"+apptest.Query("directory", dir), nil) {
		out[c.File] = c
	}
	return out
}

func TestSC44_StatusParity(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	lib, dir := repoWith(t), repoWith(t)
	git := func(args ...string) { testkit.Git(t, dir, args...) }
	git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib, "lib")
	for name, text := range map[string]string{"touched.txt": "a\n", "mode.sh": "#!/bin/sh\n", "old.txt": strings.Repeat("line\n", 20), "grüße.txt": "a\n", "\"q\".txt": "a\n", ".gitignore": "node_modules/\n", "both.txt": "a\n"} {
		write(t, filepath.Join(dir, name), []byte(text))
	}
	git("add", "--all")
	git("commit", "--quiet", "--message=Files")
	git("switch", "--quiet", "--create", "side")
	write(t, dir+"/both.txt", []byte("side\n"))
	git("commit", "--quiet", "--all", "--message=Side")
	git("switch", "--quiet", "main")
	write(t, dir+"/both.txt", []byte("main\n"))
	git("commit", "--quiet", "--all", "--message=Main")
	git("config", "core.autocrlf", "true")
	git("config", "core.excludesFile", filepath.Join(lib, "ignore"))
	write(t, lib+"/ignore", []byte("*.log\n"))
	if out := gitFails(t, dir, "merge", "--quiet", "side"); !strings.Contains(out, "both.txt") {
		t.Fatal(out)
	}
	old := time.Now().Add(-time.Hour)
	for _, err := range []error{
		os.Chtimes(dir+"/touched.txt", old, old), os.Chmod(dir+"/mode.sh", 0o755),
		os.WriteFile(dir+"/lib/README.md", []byte("changed\n"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	git("mv", "old.txt", "new.txt")
	write(t, dir+"/new.txt", []byte(strings.Repeat("line\n", 19)+"other\n"))
	for _, name := range []string{"grüße.txt", "\"q\".txt", "x.log", "untracked.txt"} {
		write(t, filepath.Join(dir, name), []byte("b\n"))
	}
	for i := range 100 {
		for j := range 300 {
			write(t, fmt.Sprintf("%s/node_modules/%d/%d", dir, i, j), nil)
		}
	}
	got := vcsStatus(s, dir)
	for name, want := range map[string][3]string{
		"untracked.txt": {"", "", "untracked"}, "lib": {"", "modified", "submodule"}, "new.txt": {"renamed", "modified", "renamed"},
		"mode.sh": {"", "modified", "modified"}, "grüße.txt": {"", "modified", "modified"}, "\"q\".txt": {"", "modified", "modified"}, "both.txt": {"unmerged", "unmerged", "conflict"},
	} {
		if c := got[name]; [3]string{c.Staged, c.Unstaged, c.Status} != want {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if len(got) != 7 || got["new.txt"].OldFile != "old.txt" || got["new.txt"].Additions != 1 || got["lib"].Submodule == nil || !got["lib"].Submodule.Modified {
		t.Errorf("%+v", got)
	}
}

// gitFails runs git where it is to fail and gives what it printed.
func gitFails(t *testing.T, dir string, args ...string) string {
	t.Helper()
	return testkit.Git(t, dir, "-c", "alias.try=!git "+strings.Join(args, " ")+" || true", "try")
}

func TestSC47_VCSLocked(t *testing.T) {
	t.Parallel()
	dir := repoWith(t)
	s := apptest.Start(t, apptest.Options{Directory: dir})
	write(t, dir+"/README.md", []byte("changed\n"))
	write(t, dir+"/.git/index.lock", nil)
	if got := vcsStatus(s, dir); len(got) != 1 {
		t.Errorf("%+v", got)
	}
	patch := s.Do("GET", "/api/vcs/diff?format=patch", nil)
	if patch.Status != 200 {
		t.Errorf("%d %s", patch.Status, patch.Body)
	}
	body := map[string]any{"patch": "--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-changed\n+patched\n"}
	a := s.Do("POST", "/api/vcs/patch", body)
	if a.Status != 409 || a.Code() != "vcs_locked" || !bytes.Contains(a.Body, []byte(`"age":`)) {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if err := os.Remove(dir + "/.git/index.lock"); err != nil {
		t.Fatal(err)
	}
	got := apptest.Data[vcs.Patched](s, "POST", "/api/vcs/patch", body)
	if text, _ := os.ReadFile(dir + "/README.md"); string(text) != "patched\n" || len(got.Files) != 1 || got.Files[0].Status != "modified" {
		t.Errorf("%s %+v", text, got)
	}
}

func TestSC49_NotARepositoryUntilItIsOne(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	if info := apptest.Data[vcs.Info](s, "GET", "/api/vcs", nil); info.Type != "none" || info.Engine != "git" {
		t.Errorf("%+v", info)
	}
	for _, path := range []string{"/api/vcs/status", "/api/vcs/diff"} {
		if a := s.Do("GET", path, nil); a.Status != 200 || !bytes.HasPrefix(a.Body, []byte(`{"data":[]`)) {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
	}
	if a := s.Do("GET", "/api/vcs/diff?format=patch", nil); a.Status != 200 || len(a.Body) != 0 || a.Header.Get("Content-Type") != "text/x-diff" {
		t.Errorf("%d %q", a.Status, a.Body)
	}
	testkit.Git(t, s.Directory, "init", "--quiet", "--initial-branch=main")
	if info := apptest.Data[vcs.Info](s, "GET", "/api/vcs", nil); info.Type != "git" || info.Branch != "main" || info.Root != s.Directory || info.Head != "" {
		t.Errorf("%+v", info)
	}
}

func TestSC38_PatchesStayInside(t *testing.T) {
	t.Parallel()
	dir := repoWith(t, "d")
	s := apptest.Start(t, apptest.Options{Directory: dir})
	for link, target := range map[string]string{"in": "d", "out": "/etc", "loop": "loop", "d/up": ".."} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	make := func(name string) apptest.Answer {
		return s.Do("POST", "/api/vcs/patch", map[string]any{"patch": "diff --git a/" + name + " b/" + name + "\nnew file mode 100644\n--- /dev/null\n+++ b/" + name + "\n@@ -0,0 +1 @@\n+x\n"})
	}
	for _, name := range []string{"../x", "/etc/passwd", "out/passwd", "d/../../x", "in/f", "d/up/x", "loop/x", ".git/hooks/pre-commit"} {
		if a := make(name); a.Status != 400 || a.Code() != "path_outside" {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
	}
	if a := make("d/f"); a.Status != 200 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

func TestVCSDiffRoundTrip(t *testing.T) {
	t.Parallel()
	dir, other := repoWith(t, "sub"), repoWith(t)
	s := apptest.Start(t, apptest.Options{Directory: dir})
	write(t, dir+"/README.md", []byte("changed\r\nwithout end"))
	write(t, dir+"/sub/bin", []byte("\x00\x01\x02"))
	write(t, dir+"/sub/new file", []byte("new\n"))
	at := apptest.Query("directory", dir+"/sub")
	diffs := apptest.Data[[]vcs.FileDiff](s, "GET", "/api/vcs/diff"+at+"&context=0", nil)
	if len(diffs) != 3 || diffs[0].File != "../README.md" || len(diffs[0].Hunks) != 1 || !diffs[1].Binary || diffs[2].File != "new file" || diffs[2].Status != "added" {
		t.Errorf("%+v", diffs)
	}
	if again := apptest.Data[[]vcs.FileDiff](s, "GET", "/api/vcs/diff"+at+"&mode=default", nil); len(again) != 3 {
		t.Errorf("%+v", again)
	}
	for _, mode := range []string{"git", "working", "branch"} { // synonyms, which the document names in words
		if a := s.DoWith(s.Plain, "GET", "/api/vcs/diff"+at+"&mode="+mode, nil, "Authorization", "Bearer "+apptest.Token); a.Status != 200 {
			t.Errorf("%s: %d %s", mode, a.Status, a.Body)
		}
	}
	patch := s.Do("GET", "/api/vcs/diff"+at+"&format=patch", nil)
	if patch.Header.Get("Content-Type") != "text/x-diff" || patch.Header.Get("X-Context-Directory") != dir+"/sub" {
		t.Errorf("%v", patch.Header)
	}
	a := s.Do("POST", "/api/vcs/patch"+apptest.Query("directory", other), map[string]any{"patch": string(patch.Body)})
	if a.Status != 200 {
		t.Fatalf("%d %s\n%s", a.Status, a.Body, patch.Body)
	}
	for _, name := range []string{"README.md", "sub/bin", "sub/new file"} {
		want, _ := os.ReadFile(filepath.Join(dir, name))
		if got, err := os.ReadFile(filepath.Join(other, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	a = s.Do("POST", "/api/vcs/patch"+apptest.Query("directory", other), map[string]any{"patch": string(patch.Body)})
	if a.Status != 409 || a.Code() != "patch_conflict" || !bytes.Contains(a.Body, []byte(`"file":`)) {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

func TestSC04_BranchesAreToldWhereTheyChange(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	a, b := repoWith(t), repoWith(t)
	types := func(query string) string { return query + "&types=vcs.*" }
	onA, onB, onAll := s.Events(types(apptest.Query("directory", a))), s.Events(types(apptest.Query("directory", b))), s.Events(types("?scope=server"))
	onC := s.Events(types("?"))
	testkit.Git(t, b, "switch", "--quiet", "--create", "x")
	for _, st := range []*apptest.Stream{onB, onAll} {
		told := st.Until("vcs.branch.updated")
		e := told[len(told)-1]
		if p := apptest.Payload[vcs.BranchChange](s, e); p.Branch != "x" || e.Context.Directory != b {
			t.Errorf("%+v", e)
		}
	}
	for _, st := range []*apptest.Stream{onA, onC} {
		for _, e := range st.Rest(1500 * time.Millisecond) {
			if e.Type == "vcs.branch.updated" {
				t.Errorf("%+v", e)
			}
		}
	}
	// Nobody follows B while it changes: the next one is told.
	onB.Close()
	onB.Rest(time.Second)
	testkit.Git(t, b, "switch", "--quiet", "--detach")
	onB = s.Events(types(apptest.Query("directory", b)))
	told := onB.Until("vcs.branch.updated")
	if p := apptest.Payload[vcs.BranchChange](s, told[len(told)-1]); p.Branch != "" {
		t.Errorf("%+v", p)
	}
}
