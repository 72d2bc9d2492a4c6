package vcs_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// manyLines gives n different lines.
func manyLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d of the text\n", i)
	}
	return b.String()
}

type shape = func(t *testing.T) *bundle

// change makes a shape: a commit of a few files, then changes.
func change(f func(b *bundle)) shape {
	return func(t *testing.T) *bundle {
		b := repo(t, map[string]string{
			"a.txt": manyLines(40), "b.txt": "one\ntwo\nthree\n", "dir/c.txt": "c\n", "dir/deep/d.go": "package d\n\nfunc D() {}\n", "exec.sh": "#!/bin/sh\n",
		})
		f(b)
		return b
	}
}

// shapes are the repositories that the suite compares; some build on others.
func shapes() map[string]shape {
	all := map[string]shape{
		"clean":             change(func(*bundle) {}),
		"modified":          change(func(b *bundle) { b.write("b.txt", "one\n2\nthree\n") }),
		"staged":            change(func(b *bundle) { b.write("b.txt", "one\n2\nthree\n"); b.git("add", "b.txt") }),
		"both":              change(func(b *bundle) { b.write("b.txt", "1\n"); b.git("add", "b.txt"); b.write("b.txt", "2\n") }),
		"reverted":          change(func(b *bundle) { b.write("b.txt", "1\n"); b.git("add", "b.txt"); b.write("b.txt", "one\ntwo\nthree\n") }),
		"deleted":           change(func(b *bundle) { b.must(os.Remove(b.dir + "/b.txt")) }),
		"removed":           change(func(b *bundle) { b.git("rm", "-q", "b.txt") }),
		"removed and back":  change(func(b *bundle) { b.git("rm", "-q", "--cached", "b.txt") }),
		"added":             change(func(b *bundle) { b.write("n.txt", "n\n"); b.git("add", "n.txt") }),
		"added and changed": change(func(b *bundle) { b.write("n.txt", "n\n"); b.git("add", "n.txt"); b.write("n.txt", "n\nm\n") }),
		"added and gone":    change(func(b *bundle) { b.write("n.txt", "n\n"); b.git("add", "n.txt"); b.must(os.Remove(b.dir + "/n.txt")) }),
		"added empty":       change(func(b *bundle) { b.write("e", ""); b.git("add", "e") }),
		"untracked":         change(func(b *bundle) { b.write("u.txt", "u\n"); b.write("new/v.txt", "v\nw"); b.write("empty", "") }),
		"untracked odd": change(func(b *bundle) {
			b.write("bin", "a\x00b")
			b.write("crlf", "a\r\nb\r\n")
			b.write("run", "#!\n")
			b.must(os.Chmod(b.dir+"/run", 0o755))
			b.must(os.Symlink("b.txt", b.dir+"/link"))
			b.must(os.Symlink("nowhere", b.dir+"/dangling"))
			b.write("big", strings.Repeat("x", 200_000)+"\nend")
		}),
		"renamed":            change(func(b *bundle) { b.git("mv", "a.txt", "z.txt") }),
		"renamed and edited": change(func(b *bundle) { b.git("mv", "a.txt", "dir/z.txt"); b.write("dir/z.txt", manyLines(38)+"new\n") }),
		"renamed and staged edit": change(func(b *bundle) {
			b.git("mv", "a.txt", "z.txt")
			b.write("z.txt", manyLines(39))
			b.git("add", "-A")
			b.write("z.txt", manyLines(37))
		}),
		"renamed and rewritten": change(func(b *bundle) { b.git("mv", "a.txt", "z.txt"); b.write("z.txt", "all new\n") }),
		"renamed and gone":      change(func(b *bundle) { b.git("mv", "a.txt", "z.txt"); b.must(os.Remove(b.dir + "/z.txt")) }),
		"renamed unstaged":      change(func(b *bundle) { b.must(os.Rename(b.dir+"/a.txt", b.dir+"/z.txt")); b.git("add", "-N", "z.txt") }),
		"moved directory":       change(func(b *bundle) { b.git("mv", "dir", "folder") }),
		"swapped":               change(func(b *bundle) { b.git("mv", "a.txt", "t"); b.git("mv", "b.txt", "a.txt"); b.git("mv", "t", "b.txt") }),
		"mode":                  change(func(b *bundle) { b.must(os.Chmod(b.dir+"/b.txt", 0o755)) }),
		"mode staged":           change(func(b *bundle) { b.must(os.Chmod(b.dir+"/b.txt", 0o755)); b.git("add", "-A") }),
		"mode ignored":          change(func(b *bundle) { b.git("config", "core.fileMode", "false"); b.must(os.Chmod(b.dir+"/b.txt", 0o755)) }),
		"touched":               change(func(b *bundle) { at := time.Now().Add(-time.Hour); b.must(os.Chtimes(b.dir+"/b.txt", at, at)) }),
		"intent to add":         change(func(b *bundle) { b.write("n.txt", "n\n"); b.git("add", "-N", "n.txt") }),
		"type to link":          change(func(b *bundle) { b.must(os.Remove(b.dir + "/b.txt")); b.must(os.Symlink("a.txt", b.dir+"/b.txt")) }),
		"file to directory":     change(func(b *bundle) { b.must(os.Remove(b.dir + "/b.txt")); b.write("b.txt/in", "x\n") }),
		"directory to file":     change(func(b *bundle) { b.must(os.RemoveAll(b.dir + "/dir")); b.write("dir", "x\n") }),
		"no final newline":      change(func(b *bundle) { b.write("b.txt", "one\ntwo\nthree") }),
		"binary":                change(func(b *bundle) { b.commit(map[string]string{"x.bin": "a\x00b"}); b.write("x.bin", "a\x00c") }),
		"binary staged":         change(func(b *bundle) { b.write("y.bin", "\x00\x01"); b.git("add", "-A"); b.write("y.bin", "\x00\x02") }),
		"detached":              change(func(b *bundle) { b.git("checkout", "-q", "--detach"); b.write("b.txt", "x\n") }),
		"many hunks": change(func(b *bundle) {
			lines := strings.Split(manyLines(40), "\n")
			lines[2], lines[20], lines[35] = "changed", "changed", "changed"
			b.write("a.txt", strings.Join(lines, "\n"))
		}),
		"function context":  change(func(b *bundle) { b.write("dir/deep/d.go", "package d\n\nfunc D() { return }\n\n// more\n") }),
		"invalid utf8 text": change(func(b *bundle) { b.write("b.txt", "one\n\xff\xfe\nthree\n") }),
		"carriage returns":  change(func(b *bundle) { b.write("b.txt", "one\r\ntwo\r\nthree\r\n") }),
		"blank context": change(func(b *bundle) {
			b.git("config", "diff.suppressBlankEmpty", "true")
			b.write("dir/deep/d.go", "package d\n\nfunc E() {}\n")
		}),
	}
	moreShapes(all)
	oddShapes(all)
	return all
}

func moreShapes(all map[string]shape) {
	all["names"] = change(func(b *bundle) {
		b.commit(map[string]string{"grüße.txt": "a\n", "new\nline": "a\n", "tab\tx": "a\n", `quo"te\x`: "a\n", "sp ace": "a\n", "\xff\xfe": "a\n", " lead": "a\n", "-dash": "a\n", ":(top)x": "a\n", "*": "a\n"})
		for _, n := range []string{"grüße.txt", "new\nline", "tab\tx", `quo"te\x`, "sp ace", "\xff\xfe", " lead", "-dash", ":(top)x", "*"} {
			b.write(n, "b\n")
		}
	})
	all["untracked names"] = change(func(b *bundle) {
		for _, n := range []string{"日本.txt", "new\nline", "tab\tx", `quo"te\x`, "sp ace", "\xfe", "bell\a", "-x", "a b/c d"} {
			b.write(n, "b\n")
		}
	})
	all["renamed names"] = change(func(b *bundle) {
		b.commit(map[string]string{"sp ace ü": manyLines(20)})
		b.git("mv", "sp ace ü", "new\tname")
	})
	all["autocrlf touched"] = change(func(b *bundle) {
		b.git("config", "core.autocrlf", "true")
		b.write("b.txt", "one\r\ntwo\r\nthree\r\n")
		at := time.Now().Add(-time.Hour)
		b.must(os.Chtimes(b.dir+"/a.txt", at, at))
	})
	all["autocrlf changed"] = change(func(b *bundle) {
		b.git("config", "core.autocrlf", "true")
		b.write("b.txt", "one\r\n2\r\nthree\r\n")
	})
	all["eol attribute"] = change(func(b *bundle) {
		b.commit(map[string]string{".gitattributes": "*.txt text eol=crlf\n"})
		b.write("b.txt", "one\r\ntwo\r\n3\r\n")
	})
	all["binary attribute"] = change(func(b *bundle) {
		b.commit(map[string]string{".gitattributes": "*.txt -diff\n"})
		b.write("b.txt", "x\n")
	})
	all["global ignore"] = change(func(b *bundle) {
		b.write(b.home+"/.config/git/ignore", "*.log\n")
		b.write("x.log", "x\n")
		b.write("x.txt", "x\n")
	})
	all["excludes file"] = change(func(b *bundle) {
		b.write(b.home+"/excl", "*.tmp\n")
		b.git("config", "--global", "core.excludesFile", b.home+"/excl")
		b.write("x.tmp", "x\n")
		b.write(".git/info/exclude", "secret\n")
		b.write("secret", "x\n")
	})
	all["ignored"] = change(func(b *bundle) {
		b.commit(map[string]string{".gitignore": "build/\n*.o\n!keep.o\n"})
		b.write("build/x", "x")
		b.write("x.o", "x")
		b.write("keep.o", "x\n")
	})
	all["thirty thousand ignored"] = change(func(b *bundle) {
		b.commit(map[string]string{".gitignore": "node_modules/\n"})
		for i := range 100 {
			dir := fmt.Sprintf("%s/node_modules/%d", b.dir, i)
			b.must(os.MkdirAll(dir, 0o700))
			for j := range 300 {
				b.must(os.WriteFile(fmt.Sprintf("%s/%d.js", dir, j), nil, 0o600))
			}
		}
		b.write("b.txt", "x\n")
	})
	all["status config"] = change(func(b *bundle) {
		for _, kv := range []string{
			"status.showUntrackedFiles=no", "status.renames=false", "diff.renames=false", "status.relativePaths=false", "status.branch=true", "status.short=true",
			"color.ui=always", "diff.noprefix=true", "diff.mnemonicPrefix=true", "core.quotePath=true", "diff.context=1", "diff.algorithm=histogram", "core.pager=false",
		} {
			k, v, _ := strings.Cut(kv, "=")
			b.git("config", k, v)
		}
		b.git("mv", "a.txt", "z.txt")
		b.write("u", "u\n")
		b.write("b.txt", "x\n")
		b.write(".noapply", "")
	})
}
