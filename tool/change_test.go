package tool_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/tool"
)

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestWriteCreatesAndReplaces(t *testing.T) {
	t.Parallel()
	b := setup(t)
	res := b.must("write", in{"filePath": "a/b/c.txt", "content": "one\ntwo\n"})
	abs := filepath.Join(b.root, "a/b/c.txt")
	if b.content("a/b/c.txt") != "one\ntwo\n" || res.Before[abs] != "" || res.After[abs] != sha("one\ntwo\n") {
		t.Errorf("%+v", res)
	}
	contains(t, res.Output, "Created a/b/c.txt (2 lines)")
	if err := os.Chmod(abs, 0o751); err != nil {
		t.Fatal(err)
	}
	res = b.must("write", in{"path": abs, "content": "three\n"})
	contains(t, res.Output, "Replaced a/b/c.txt")
	contains(t, res.Metadata["diff"].(string), "--- a/a/b/c.txt\n+++ b/a/b/c.txt\n", "-one\n", "+three\n")
	if res.Metadata["additions"] != 1 || res.Metadata["deletions"] != 2 || res.Metadata["status"] != "modified" || res.Before[abs] != sha("one\ntwo\n") {
		t.Errorf("%+v", res)
	}
	if info, err := os.Stat(abs); err != nil || info.Mode().Perm() != 0o751 {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
	if len(b.edited) != 2 || b.edited[1] != abs {
		t.Errorf("edited %v", b.edited)
	}
}

func TestWriteKeepsByteOrderMark(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.file("a", "\uFEFFold")
	b.must("write", in{"path": "a", "content": "new"})
	if got := b.content("a"); got != "\uFEFFnew" {
		t.Errorf("%q", got)
	}
	b.must("write", in{"path": "a", "content": "\uFEFFnewer"})
	if got := b.content("a"); got != "\uFEFFnewer" {
		t.Errorf("%q", got)
	}
}

func TestWriteRefusesDirectoriesAndPathsThroughFiles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.file("d/f", "x")
	contains(t, b.refused(fault.NotAFile, "write", in{"path": "d", "content": "x"}), "d is not a regular file")
	b.refused(fault.NotADirectory, "write", in{"path": "d/f/g", "content": "x"})
}

// What was approved is what is replaced: anything else that happened to the
// file in between stands.
func TestChangesBetweenApprovalAndWriteAreKept(t *testing.T) {
	t.Parallel()
	b := setup(t)
	path := b.file("a", "one")
	for name, input := range map[string]in{
		"write": {"path": "a", "content": "two"},
		"edit":  {"path": "a", "oldString": "one", "newString": "two"},
	} {
		if err := os.WriteFile(path, []byte("one"), 0o644); err != nil {
			t.Fatal(err)
		}
		c := b.with(input)
		plan, err := b.tool(name).Plan(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if plan.Before[path] != sha("one") {
			t.Errorf("%s: %+v", name, plan)
		}
		c.Before = plan.Before
		if err := os.WriteFile(path, []byte("one, changed"), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err = tool.Execute(t.Context(), b.tool(name), c)
		if !fault.Is(err, fault.ETagMismatch) || b.content("a") != "one, changed" {
			t.Errorf("%s: %v, %q", name, err, b.content("a"))
		}
	}
	c := b.with(in{"path": "new", "content": "two"})
	plan, _ := b.tool("write").Plan(t.Context(), c)
	c.Before = plan.Before
	b.file("new", "theirs")
	if _, err := tool.Execute(t.Context(), b.tool("write"), c); !fault.Is(err, fault.ETagMismatch) || b.content("new") != "theirs" {
		t.Errorf("%v, %q", err, b.content("new"))
	}
}

func TestWriteRefusesWhatTheModelHasNotSeen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	path := b.file("a", "one\n")
	b.must("read", in{"path": "a"})
	b.must("write", in{"path": "a", "content": "two\n"})
	b.must("write", in{"path": "a", "content": "three\n"})
	if err := os.WriteFile(path, []byte("theirs\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	contains(t, b.refused(fault.ETagMismatch, "write", in{"path": "a", "content": "x"}), "Read it again")
	contains(t, b.refused(fault.ETagMismatch, "edit", in{"path": "a", "oldString": "three", "newString": "x"}), "has changed since you read it")
	b.must("edit", in{"path": "a", "oldString": "theirs", "newString": "ours"})
	b.must("write", in{"path": "a", "content": "x"})
}

func TestEdit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	path := b.file("a.go", "func a() {\n\treturn 1\n}\n\nfunc b() {\n\treturn 1\n}\n")
	contains(t, b.refused(fault.ValidationFailed, "edit", in{"path": "a.go", "oldString": "return 1", "newString": "return 2"}), "found 2 times (lines 2, 6)")
	contains(t, b.refused(fault.ValidationFailed, "edit", in{"path": "a.go", "oldString": "return 9", "newString": "x"}), "was not found")
	b.refused(fault.FileNotFound, "edit", in{"path": "b.go", "oldString": "a", "newString": "b"})
	b.file("dir/x", "")
	b.refused(fault.NotAFile, "edit", in{"path": "dir", "oldString": "a", "newString": "b"})
	res := b.must("edit", in{"file_path": "a.go", "old_string": "a() {\n\treturn 1", "new_string": "a() {\n\treturn 2"})
	if got := b.content("a.go"); got != "func a() {\n\treturn 2\n}\n\nfunc b() {\n\treturn 1\n}\n" {
		t.Errorf("%q", got)
	}
	contains(t, res.Metadata["diff"].(string), "-\treturn 1\n+\treturn 2\n")
	if res.After[path] != sha(b.content("a.go")) || res.Metadata["replacements"] != 1 {
		t.Errorf("%+v", res)
	}
	res = b.must("edit", in{"path": "a.go", "oldString": "func", "newString": "fn", "replaceAll": true})
	contains(t, res.Output, "2 occurrences")
	b.file("bin", "a\x00b")
	b.refused(fault.NotAFile, "edit", in{"path": "bin", "oldString": "a", "newString": "b"})
}

func TestEditKeepsModeMarkAndLineEndings(t *testing.T) {
	t.Parallel()
	b := setup(t)
	path := b.file("a", "\uFEFFone\r\ntwo\r\nthree\r\n")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	b.must("edit", in{"path": "a", "oldString": "one\ntwo", "newString": "1\n2\n2b"})
	if got := b.content("a"); got != "\uFEFF1\r\n2\r\n2b\r\nthree\r\n" {
		t.Errorf("%q", got)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestDiffsAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.file("a", strings.Repeat("a line of text\n", 10000))
	res := b.must("write", in{"path": "a", "content": strings.Repeat("another line of text\n", 10000)})
	diff := res.Metadata["diff"].(string)
	if len(diff) > 51200 || !strings.HasSuffix(diff, "\n") || res.Metadata["diffTruncated"] != true || res.Metadata["additions"] != 10000 {
		t.Errorf("%d bytes, %v", len(diff), res.Metadata["additions"])
	}
	res = b.must("write", in{"path": "a", "content": strings.Repeat("x", 2<<20)})
	if res.Metadata["diff"] != "" || res.Metadata["diffTruncated"] != true {
		t.Error("a diff of a large file")
	}
	f, err := os.Create(filepath.Join(b.root, "huge"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(1 << 30); err != nil {
		t.Fatal(err)
	}
	b.refused(fault.BodyTooLarge, "write", in{"path": "huge", "content": "x"})
}

func TestChangesOutsideAreMadeAfterTheyWereAllowed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := filepath.Join(filepath.Dir(b.root), "other")
	file := filepath.Join(other, "new/a.txt")
	plan, err := b.plan("write", in{"path": file, "content": "x"})
	if err != nil || len(plan.Asks) != 2 {
		t.Fatalf("%+v %v", plan, err)
	}
	if a := plan.Asks[0]; a.Permission != "external_directory" || a.Patterns[0] != filepath.Dir(file)+"/*" {
		t.Errorf("%+v", a)
	}
	if a := plan.Asks[1]; a.Permission != "edit" || a.Patterns[0] != file || a.Always[0] != file {
		t.Errorf("%+v", a)
	}
	b.must("write", in{"path": file, "content": "one"})
	b.must("edit", in{"path": file, "oldString": "one", "newString": "two"})
	if data, err := os.ReadFile(file); err != nil || string(data) != "two" {
		t.Errorf("%q %v", data, err)
	}
	// Before it is allowed the model does not learn what is in the file.
	if _, err := b.plan("edit", in{"path": file, "oldString": "nothing", "newString": "x"}); err != nil {
		t.Errorf("the plan tells: %v", err)
	}
	b.refused(fault.ValidationFailed, "edit", in{"path": file, "oldString": "nothing", "newString": "x"})
}
