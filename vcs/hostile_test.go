package vcs_test

import (
	"os"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/vcs"
)

// trap gives a command line that leaves a mark when it is run.
func (b *bundle) trap(name string) string {
	b.write(b.home+"/trap-"+name, "#!/bin/sh\ntouch '"+b.home+"/sprung-"+name+"'\ncat\n")
	b.must(os.Chmod(b.home+"/trap-"+name, 0o755))
	return b.home + "/trap-" + name
}

// sprung lists the traps that were run.
func (b *bundle) sprung() []string {
	b.t.Helper()
	entries, err := os.ReadDir(b.home)
	b.must(err)
	var out []string
	for _, e := range entries {
		if name, ok := strings.CutPrefix(e.Name(), "sprung-"); ok {
			out = append(out, name)
		}
	}
	return out
}

// arm puts a trap into every setting of a repository that names a program.
func (b *bundle) arm(dir string) {
	b.t.Helper()
	set := func(key, trap string) { b.git("-C", dir, "config", "--add", key, b.trap(trap)) }
	for key, trap := range map[string]string{
		"core.fsmonitor": "fsmonitor", "core.pager": "pager", "core.editor": "editor", "core.askPass": "askpass", "core.sshCommand": "ssh",
		"core.gitProxy": "proxy", "core.alternateRefsCommand": "alternates", "diff.external": "external", "gpg.program": "gpg", "credential.helper": "credential",
		"filter.evil.clean": "clean", "filter.evil.smudge": "smudge", "filter.proc.process": "process", "filter.a=b.clean": "equals", "filter.x y.clean": "space",
		"diff.drv.command": "driver", "diff.drv.textconv": "textconv", "merge.drv.driver": "merge", "pager.status": "pagerstatus", "pager.diff": "pagerdiff",
		"interactive.diffFilter": "interactive", "sequence.editor": "sequence", "uploadpack.packObjectsHook": "pack", "remote.origin.uploadpack": "uploadpack",
		"submodule.sub.update": "update",
	} {
		set(key, trap)
	}
	b.git("-C", dir, "config", "filter.evil.required", "true")
	for _, alias := range []string{"status", "diff", "apply", "config", "ls-files"} {
		b.git("-C", dir, "config", "alias."+alias, "!"+b.trap("alias"))
	}
	// Included files define filters too.
	b.write(b.home+"/included", "[filter \"inc\"]\n\tclean = "+b.trap("included")+"\n[filter \"cond\"]\n\tsmudge = "+b.trap("smudge2")+"\n\tclean = "+b.trap("conditional")+"\n")
	b.git("-C", dir, "config", "include.path", b.home+"/included")
	b.git("-C", dir, "config", "includeIf.gitdir:/**.path", b.home+"/included")
	// Set apart as --type=path would refuse a command with a "!".
	b.git("-C", dir, "config", "core.hooksPath", b.home+"/hooks")
	for _, hook := range []string{"post-index-change", "fsmonitor-watchman", "pre-commit", "post-checkout", "reference-transaction", "applypatch-msg"} {
		b.write(b.home+"/hooks/"+hook, "#!/bin/sh\ntouch '"+b.home+"/sprung-hook-"+hook+"'\n")
		b.must(os.Chmod(b.home+"/hooks/"+hook, 0o755))
	}
}

const armedAttributes = "evil.txt filter=evil\nproc.txt filter=proc\nequals.txt filter=a=b\nspace.txt filter=x\\ y\ninc.txt filter=inc\ncond.txt filter=cond\n" +
	"drv.txt diff=drv merge=drv\n"

func armed(t *testing.T) *bundle {
	b := submodule(func(*bundle) {})(t)
	files := map[string]string{"plain.txt": "plain\n"}
	for _, name := range []string{"evil", "proc", "equals", "space", "inc", "cond", "drv"} {
		files[name+".txt"], files["sub/"+name+".txt"] = name+"\n", name+"\n"
	}
	for name, text := range files {
		b.write(name, text)
	}
	b.git("-C", "sub", "add", "-A")
	b.git("-C", "sub", "commit", "-qm", "files")
	b.commit(nil)
	b.write(".gitattributes", armedAttributes)
	b.write("sub/.gitattributes", armedAttributes)
	b.git("add", "-A", ".gitattributes")
	b.git("commit", "-qm", "attributes")
	for name := range files {
		b.write(name, "changed\n")
	}
	b.arm(b.dir)
	b.arm(b.dir + "/sub")
	for _, e := range b.sprung() { // arming may have run some
		b.must(os.Remove(b.home + "/sprung-" + e))
	}
	return b
}

func TestARepositoryRunsNothingOfItsOwn(t *testing.T) {
	t.Parallel()
	b := armed(t)
	if _, err := b.try("status", "--porcelain"); err == nil && len(b.sprung()) == 0 {
		t.Fatal("the traps do not work")
	}
	for _, e := range b.sprung() {
		b.must(os.Remove(b.home + "/sprung-" + e))
	}
	for _, below := range []string{"", "sub"} {
		s := b.service(below)
		if got := b.status(s); len(got) < 7 {
			t.Errorf("%+v", got)
		}
		if _, err := s.Get(t.Context()); err != nil {
			t.Error(err)
		}
		if got := b.diff(s, ""); len(got) < 7 {
			t.Errorf("%+v", got)
		}
		b.diff(s, vcs.ModeDefault)
		patch := b.patch(t.Context(), s, "")
		for _, name := range []string{"evil", "plain", "drv"} {
			if !strings.Contains(patch, "+changed") {
				t.Errorf("%s is not in the patch", name)
			}
		}
		if _, err := s.Patch(t.Context(), "--- a/evil.txt\n+++ b/evil.txt\n@@ -1 +1 @@\n-changed\n+patched\n"); err != nil {
			t.Error(err)
		}
		if b.read("./"+below+"/evil.txt") != "patched\n" {
			t.Error("the patch was not applied")
		}
	}
	if got := b.sprung(); len(got) > 0 {
		t.Errorf("run: %v", got)
	}
}

func TestAWorkTreeElsewhereIsNotRead(t *testing.T) {
	t.Parallel()
	b := repo(t, map[string]string{"id": "public\n"})
	b.write(b.home+"/secrets/id", "secret\n")
	b.git("config", "core.worktree", b.home+"/secrets")
	s := b.service("")
	if got := b.status(s); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if patch := b.patch(t.Context(), s, ""); strings.Contains(patch, "secret") {
		t.Error(patch)
	}
	if _, err := s.Patch(t.Context(), "--- a/id\n+++ b/id\n@@ -1 +1 @@\n-public\n+patched\n"); err != nil || b.read("id") != "patched\n" {
		t.Errorf("%v %s", err, b.read("id"))
	}
}

func TestMissingObjectsAreNotFetched(t *testing.T) {
	t.Parallel()
	b := repo(t, map[string]string{"a.txt": manyLines(20)})
	far := b.home + "/far.git"
	b.git("clone", "-q", "--bare", b.dir, far)
	b.git("-C", far, "config", "uploadpack.allowFilter", "true")
	b.git("-C", far, "config", "uploadpack.allowAnySHA1InWant", "true")
	b.git("clone", "-q", "--no-checkout", "--filter=blob:none", "file://"+far, b.home+"/partial")
	b.dir = b.home + "/partial"
	b.git("read-tree", "HEAD")
	b.git("config", "remote.origin.url", "ext::"+b.trap("ext")+" x")
	b.git("config", "protocol.ext.allow", "always")
	b.write("a.txt", "changed\n")
	s := b.service("")
	_, _ = s.Status(t.Context())
	_, err := s.Diff(t.Context(), vcs.DiffOptions{})
	if err == nil {
		t.Error("a diff without its objects")
	}
	if got := b.sprung(); len(got) > 0 {
		t.Errorf("run: %v", got)
	}
}

// A directory that is laid out like a repository must not become one.
func TestABareRepositoryInTheTreeIsNotUsed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.git("init", "-q", "--bare", "inner")
	b.git("-C", "inner", "config", "core.bare", "false")
	b.arm(b.dir + "/inner")
	for _, e := range b.sprung() {
		b.must(os.Remove(b.home + "/sprung-" + e))
	}
	b.write("inner/a.txt", "a\n")
	s := b.service("inner")
	if info, err := s.Get(t.Context()); err != nil || info.Type != "none" {
		t.Errorf("%+v %v", info, err)
	}
	if _, err := s.Patch(t.Context(), "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+b\n"); err != nil || b.read("inner/a.txt") != "b\n" {
		t.Errorf("%v", err)
	}
	if got := b.sprung(); len(got) > 0 {
		t.Errorf("run: %v", got)
	}
}
