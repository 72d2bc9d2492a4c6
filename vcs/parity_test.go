package vcs_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/switchyard-dev/switchyard/vcs"
)

// record matches a record of git status --porcelain=v2, in a way of its own.
var record = regexp.MustCompile(`(?s)^(?:([12u]) (..) (....) (?:[0-7]+ ){3,4}(?:[0-9a-f]+ ){2,3}(?:[RC]\d+ )?|(\?) )(.*)$`)

// wanted gives what git status says: "XY sub path <- old" for each file.
func (b *bundle) wanted() []string {
	b.t.Helper()
	if b.want != nil {
		return b.want
	}
	out := b.git("status", "--porcelain=v2", "-z", "--untracked-files=all", "--find-renames")
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	want := []string{}
	for i := 0; i < len(fields) && out != ""; i++ {
		m := record.FindStringSubmatch(fields[i])
		if m == nil {
			b.t.Fatalf("git says %q", fields[i])
		}
		line := m[2] + " " + m[3] + " " + m[5]
		if m[4] == "?" {
			line = "?? " + m[5]
		}
		if m[1] == "2" {
			i++
			line += " <- " + fields[i]
		}
		want = append(want, line)
	}
	slices.Sort(want)
	b.want = want
	return want
}

var letters = map[string]string{
	"": ".", "added": "A", "modified": "M", "deleted": "D", "renamed": "R", "copied": "C", "typechanged": "T", "unmerged": "U",
}

// told gives what the service says in the same form.
func told(changes []vcs.Change) []string {
	got := []string{}
	for _, c := range changes {
		sub := "N..."
		if s := c.Submodule; s != nil {
			mark := func(on bool, letter string) string {
				if on {
					return letter
				}
				return "."
			}
			sub = "S" + mark(s.Commit, "C") + mark(s.Modified, "M") + mark(s.Untracked, "U")
		}
		line := letters[c.Staged] + letters[c.Unstaged] + " " + sub + " " + exact(c.File, c.FileBytes)
		if c.Status == "untracked" {
			line = "?? " + exact(c.File, c.FileBytes)
		}
		if c.OldFile != "" {
			line += " <- " + exact(c.OldFile, c.OldFileBytes)
		}
		got = append(got, line)
	}
	slices.Sort(got)
	return got
}

// numbers gives what git diff --numstat says of tracked files, without what only
// looks changed.
func (b *bundle) numbers(base string) map[string]string {
	b.t.Helper()
	if b.sums != nil {
		return b.sums
	}
	fields := strings.Split(b.git("diff", "--no-color", "--numstat", "-z", "--find-renames", base), "\x00")
	want := map[string]string{}
	for i := 0; i < len(fields)-1; i++ {
		cells := strings.SplitN(fields[i], "\t", 3)
		name := cells[2]
		if name == "" {
			i += 2
			name = fields[i]
		}
		want[name] = strings.ReplaceAll(cells[0]+" "+cells[1], "-", "0")
	}
	b.sums = want
	return want
}

func (b *bundle) base() string {
	if out, err := b.try("rev-parse", "-q", "--verify", "HEAD"); err == nil {
		return strings.TrimSpace(out)
	}
	return "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
}

func TestParityWithGit(t *testing.T) {
	t.Parallel()
	all := shapes()
	if len(all) < 40 {
		t.Fatalf("%d shapes", len(all))
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := all[name](t)
			index := filepath.Join(strings.TrimSpace(b.git("rev-parse", "--absolute-git-dir")), "index")
			before, _ := os.ReadFile(index)
			s := b.service("")
			b.status(s)
			b.diff(s, "")
			b.patch(t.Context(), s, "")
			if after, _ := os.ReadFile(index); !bytes.Equal(before, after) {
				t.Error("the index was written")
			}
			for range 2 { // cold and from the cache
				b.compareStatus(s)
			}
			b.compareDiff(s)
			b.applies(s)
		})
	}
}

func (b *bundle) compareStatus(s *vcs.Service) {
	b.t.Helper()
	changes := b.status(s)
	if want, got := b.wanted(), told(changes); !slices.Equal(want, got) {
		b.t.Errorf("git status:\n%q\nwe:\n%q", want, got)
	}
	want := b.numbers(b.base())
	for _, c := range changes {
		name := exact(c.File, c.FileBytes)
		n, tracked := want[name]
		tracked = tracked && c.Status != "untracked"
		if got := fmt.Sprint(c.Additions, " ", c.Deletions); tracked && c.Status != "conflict" && c.OldFile == "" && got != n {
			b.t.Errorf("%q: %s lines, git says %s", name, got, n)
		}
	}
}

// compareDiff holds the diff against git's own text, read by another parser.
func (b *bundle) compareDiff(s *vcs.Service) {
	b.t.Helper()
	text := b.git("-c", "core.quotePath=true", "diff", "--no-color", "--no-ext-diff", "--find-renames", "--submodule=short", "--src-prefix=a/", "--dst-prefix=b/", "-U3",
		"--inter-hunk-context=0", b.base())
	parsed, _, err := gitdiff.Parse(strings.NewReader(text))
	b.must(err)
	want := map[string]string{}
	for _, f := range parsed {
		name := f.NewName
		if f.IsDelete {
			name = f.OldName
		}
		var lines strings.Builder
		for _, h := range f.TextFragments {
			fmt.Fprintf(&lines, "@@ %d,%d %d,%d\n", h.OldPosition, h.OldLines, h.NewPosition, h.NewLines)
			for _, l := range h.Lines {
				lines.WriteString(strings.ReplaceAll(string([]rune(l.Op.String()+strings.TrimSuffix(l.Line, "\n"))), "\ufffd", "?") + "\n")
			}
		}
		if f.IsBinary {
			lines.WriteString("binary\n")
		}
		want[name] += lines.String()
	}
	others := strings.Split(b.git("ls-files", "-z", "--others", "--exclude-standard"), "\x00")
	got := b.diff(s, "")
	for _, d := range got {
		name := exact(d.File, d.FileBytes)
		if slices.Contains(others, name) && d.Status == "added" {
			continue
		}
		var lines strings.Builder
		for _, h := range d.Hunks {
			fmt.Fprintf(&lines, "@@ %d,%d %d,%d\n", h.OldStart, h.OldLines, h.NewStart, h.NewLines)
			for _, l := range h.Lines {
				if l[0] != '\\' {
					lines.WriteString(strings.ReplaceAll(l, "\ufffd", "?") + "\n")
				}
			}
		}
		if d.Binary {
			lines.WriteString("binary\n")
		}
		if w, ok := want[name]; !ok || w != lines.String() {
			b.t.Errorf("%q: git diff:\n%s\nwe:\n%s", name, w, lines.String())
		}
		delete(want, name)
	}
	for name, lines := range want {
		b.t.Errorf("%q is missing: %s", name, lines)
	}
	for _, name := range others {
		if name != "" && !strings.HasSuffix(name, "/") && !slices.ContainsFunc(got, func(d vcs.FileDiff) bool { return exact(d.File, d.FileBytes) == name }) {
			b.t.Errorf("the untracked %q is missing", name)
		}
	}
}

// applies applies the whole patch to a checkout of the base and compares trees.
func (b *bundle) applies(s *vcs.Service) {
	b.t.Helper()
	patch := b.patch(b.t.Context(), s, "")
	if b.wantsNoApply() || patch == "" {
		return
	}
	// What git add would store of the work tree must be what the patch makes of
	// the base: both are trees of objects.
	index := filepath.Join(b.t.TempDir(), "index")
	var trees []string
	for _, steps := range [][][]string{
		{{"read-tree", b.base()}, {"add", "-A"}, {"write-tree"}},
		{{"read-tree", b.base()}, {"apply", "--cached", "--whitespace=nowarn", "-"}, {"write-tree"}},
	} {
		_ = os.Remove(index)
		var out string
		for _, step := range steps {
			out = b.with(index, patch, step...)
		}
		trees = append(trees, out)
	}
	if trees[0] != trees[1] {
		b.t.Errorf("the patch makes %s:\n%s\n%s", b.git("diff", "--stat", strings.TrimSpace(trees[0]), strings.TrimSpace(trees[1])), patch, trees)
	}
}

// wantsNoApply tells shapes whose patch git itself does not take back: what it
// says of conflicts and submodules is for people.
func (b *bundle) wantsNoApply() bool {
	for _, w := range b.wanted() {
		if strings.HasPrefix(w, "U") || strings.Contains(w[:3], "U") || strings.HasPrefix(w, "AA") || strings.HasPrefix(w, "DD") ||
			len(w) > 4 && w[3] == 'S' || strings.HasSuffix(w, "/") {
			return true
		}
	}
	_, err := os.Stat(b.dir + "/.noapply")
	return err == nil
}
