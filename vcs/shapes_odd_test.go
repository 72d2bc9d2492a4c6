package vcs_test

import (
	"os"
	"path/filepath"
	"testing"
)

// conflict makes a merge that fails in a.txt and, by deletion, in b.txt.
func conflict(b *bundle, how ...string) {
	b.git("switch", "-q", "-c", "side")
	b.commit(map[string]string{"a.txt": "side\n", "dir/c.txt": "side c\n"})
	b.git("switch", "-q", "main")
	b.git("rm", "-q", "dir/c.txt")
	b.commit(map[string]string{"a.txt": "main\n", "both.txt": "x\n"})
	if _, err := b.try(append(how, "side")...); err == nil {
		b.t.Fatal("no conflict")
	}
}

// oddShapes are conflicts, submodules and unusual places.
func oddShapes(all map[string]shape) {
	all["merge conflict"] = change(func(b *bundle) { conflict(b, "merge", "-q") })
	all["cherry-pick conflict"] = change(func(b *bundle) { conflict(b, "cherry-pick") })
	all["rebase conflict"] = change(func(b *bundle) { conflict(b, "rebase", "-q") })
	all["conflict both added"] = change(func(b *bundle) {
		b.git("switch", "-q", "-c", "side")
		b.commit(map[string]string{"n.txt": "side\n"})
		b.git("switch", "-q", "main")
		b.commit(map[string]string{"n.txt": "main\n"})
		_, _ = b.try("merge", "-q", "side")
	})
	all["conflict resolved in the tree"] = change(func(b *bundle) { conflict(b, "merge", "-q"); b.write("a.txt", "resolved\n") })
	all["conflict file gone"] = change(func(b *bundle) { conflict(b, "merge", "-q"); b.must(os.Remove(b.dir + "/a.txt")) })
	all["no commits"] = func(t *testing.T) *bundle {
		b := setup(t)
		b.git("init", "-q")
		b.write("a", "a\n")
		b.write("b", "b\n")
		b.git("add", "a")
		b.write("a", "a2\n")
		return b
	}
	all["no commits, nothing"] = func(t *testing.T) *bundle { b := setup(t); b.git("init", "-q"); return b }
	all["submodule clean"] = submodule(func(*bundle) {})
	all["submodule modified"] = submodule(func(b *bundle) { b.write("sub/s.txt", "changed\n") })
	all["submodule untracked"] = submodule(func(b *bundle) { b.write("sub/new", "new\n") })
	all["submodule commit"] = submodule(func(b *bundle) {
		b.write("sub/s.txt", "changed\n")
		b.git("-C", "sub", "commit", "-qam", "x")
		b.write("sub/u", "u\n")
	})
	all["submodule ignored by configuration"] = submodule(func(b *bundle) {
		b.git("config", "submodule.sub.ignore", "dirty")
		b.write("sub/s.txt", "changed\n")
	})
	all["submodule gone"] = submodule(func(b *bundle) { b.must(os.RemoveAll(b.dir + "/sub")) })
	all["submodule not checked out"] = submodule(func(b *bundle) { b.git("submodule", "-q", "deinit", "-f", "sub") })
	all["submodule added"] = func(t *testing.T) *bundle {
		b := submodule(func(*bundle) {})(t)
		b.git("submodule", "-q", "add", b.home+"/lib", "other")
		return b
	}
	all["nested repository"] = change(func(b *bundle) {
		b.git("init", "-q", "nested")
		b.write("nested/x", "x\n")
		b.git("-C", "nested", "add", "-A")
		b.git("-C", "nested", "commit", "-qm", "x")
		b.git("init", "-q", "empty")
		b.write("empty/y", "y\n")
	})
	all["sparse checkout"] = change(func(b *bundle) {
		b.git("sparse-checkout", "set", "dir")
		b.write("dir/c.txt", "x\n")
		b.write("b.txt", "back\n")
	})
	all["skip worktree"] = change(func(b *bundle) { b.git("update-index", "--skip-worktree", "b.txt"); b.write("b.txt", "x\n") })
	all["assume unchanged"] = change(func(b *bundle) { b.git("update-index", "--assume-unchanged", "b.txt"); b.write("b.txt", "x\n") })
	all["split index"] = change(func(b *bundle) { b.git("update-index", "--split-index"); b.write("b.txt", "x\n") })
	all["index version 4"] = change(func(b *bundle) { b.git("update-index", "--index-version", "4"); b.write("b.txt", "x\n") })
	all["untracked cache"] = change(func(b *bundle) { b.git("update-index", "--untracked-cache"); b.write("u", "x\n") })
	all["linked worktree"] = change(func(b *bundle) {
		other := filepath.Join(filepath.Dir(b.dir), "other")
		b.git("worktree", "add", "-q", "-b", "other", other)
		b.dir = other
		b.write("b.txt", "x\n")
		b.write("u", "u\n")
	})
	all["bare with worktree"] = change(func(b *bundle) {
		bare, other := filepath.Join(b.home, "bare.git"), filepath.Join(filepath.Dir(b.dir), "other")
		b.git("clone", "-q", "--bare", b.dir, bare)
		b.git("-C", bare, "worktree", "add", "-q", other, "main")
		b.dir = other
		b.write("b.txt", "x\n")
		b.git("mv", "a.txt", "z.txt")
	})
	all["packed refs"] = change(func(b *bundle) { b.git("pack-refs", "--all"); b.git("gc", "-q"); b.write("b.txt", "x\n") })
	all["sha256"] = func(t *testing.T) *bundle {
		b := setup(t)
		b.git("init", "-q", "--object-format=sha256")
		b.commit(map[string]string{"a": "a\n"})
		b.write("a", "b\n")
		b.write("bin", "\x00")
		return b
	}
	all["separate git directory"] = func(t *testing.T) *bundle {
		b := setup(t)
		b.git("init", "-q", "--separate-git-dir", b.home+"/elsewhere.git")
		b.commit(map[string]string{"a": "a\n"})
		b.write("a", "b\n")
		return b
	}
	all["more changes than are named"] = change(func(b *bundle) {
		for i := range 300 {
			b.write(filepath.Join("many", string(rune('a'+i%26)), string(rune('A'+i/26))), "x\n")
		}
		b.git("add", "-A")
	})
}

// submodule makes a repository with the submodule sub.
func submodule(f func(b *bundle)) shape {
	return func(t *testing.T) *bundle {
		b := setup(t)
		b.git("init", "-q", b.home+"/lib")
		b.write(b.home+"/lib/s.txt", "s\n")
		b.git("-C", b.home+"/lib", "add", "-A")
		b.git("-C", b.home+"/lib", "commit", "-qm", "s")
		b.git("init", "-q")
		b.git("submodule", "-q", "add", b.home+"/lib", "sub")
		b.commit(map[string]string{"a.txt": "a\n"})
		f(b)
		return b
	}
}
