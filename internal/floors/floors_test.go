package floors_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/switchyard-dev/switchyard/internal/floors"
	"github.com/switchyard-dev/switchyard/internal/testkit"
)

// TestRepository is the check of this repository; with -v it tells too what is
// over the limits that we aim at.
func TestRepository(t *testing.T) {
	t.Parallel()
	report, err := floors.Check(filepath.Join("..", ".."), floors.Repository())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Broken {
		t.Error(f)
	}
	for _, f := range report.Soft {
		t.Log(f)
	}
}

// rules of the broken tree.
func rules() floors.Rules {
	return floors.Rules{
		Module: "example.com/tree",
		Floors: map[string]int{"low": 0, "peer": 0, "old": 0, "clock": 0, "event": 1, "generated": 1, "high": 2},
		Tools:  []string{"kit"},
		Only:   map[string][]string{"example.com/driver": {"low"}},
		At:     map[string]string{"low": "for the test"},
		Exceptions: []floors.Exception{
			{From: "peer", Import: "old"},
			{From: "old", Import: "example.com/gone", Reason: "it was once"},
		},
	}
}

// tree writes files below a temporary directory.
func tree(t *testing.T, files ...txtar.File) string {
	t.Helper()
	root := t.TempDir()
	for _, f := range files {
		testkit.WriteFile(t, root, f.Name, string(f.Data))
	}
	return root
}

var update = flag.Bool("update", false, "write what the check finds into testdata")

func TestEveryRuleCanBeBroken(t *testing.T) {
	t.Parallel()
	const golden = "testdata/broken.txtar"
	archive, err := txtar.ParseFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	last := len(archive.Files) - 1
	report, err := floors.Check(tree(t, archive.Files[:last]...), rules())
	if err != nil {
		t.Fatal(err)
	}
	got := lines(report.Broken)
	if *update {
		archive.Files[last].Data = []byte(got)
		if err := os.WriteFile(golden, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := string(archive.Files[last].Data); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if len(report.Soft) != 0 {
		t.Errorf("soft: %v", report.Soft)
	}
}

func TestSizesHaveTwoLimits(t *testing.T) {
	t.Parallel()
	body := func(n int) string {
		return "package low\n\nfunc F() {" + strings.Repeat("\n\tprintln()", n-2) + "\n}\n"
	}
	blank := func(n int) string { return "package low\n" + strings.Repeat("\n", n-1) }
	for name, test := range map[string]struct {
		files        map[string]string
		broken, soft string
	}{
		"at the aims":    {map[string]string{"low/a.go": body(60), "low/b.go": blank(400)}, "", ""},
		"soft function":  {map[string]string{"low/a.go": body(61)}, "", "low/a.go:3: lines of F: 61, better at most 60\n"},
		"hard function":  {map[string]string{"low/a.go": body(101)}, "low/a.go:3: lines of F: 101, at most 100\n", ""},
		"soft file":      {map[string]string{"low/a_test.go": blank(401)}, "", "low/a_test.go: lines of the file: 401, better at most 400\n"},
		"hard file":      {map[string]string{"low/a_test.go": blank(601)}, "low/a_test.go: lines of the file: 601, at most 600\n", ""},
		"soft package":   {packageOf(7, blank(400)), "", "low: lines of the package without tests: 2800, better at most 2500\n"},
		"hard package":   {packageOf(11, blank(400)), "low: lines of the package without tests: 4400, at most 4000\n", ""},
		"tests are free": {map[string]string{"low/a_test.go": blank(400), "low/b.go": blank(1)}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var files []txtar.File
			for file, text := range test.files {
				files = append(files, txtar.File{Name: file, Data: []byte(text)})
			}
			r := rules()
			r.Exceptions = nil
			report, err := floors.Check(tree(t, files...), r)
			if err != nil {
				t.Fatal(err)
			}
			if got := lines(report.Broken); got != test.broken {
				t.Errorf("broken: got %q; want %q", got, test.broken)
			}
			if got := lines(report.Soft); got != test.soft {
				t.Errorf("soft: got %q; want %q", got, test.soft)
			}
		})
	}
}

// packageOf gives n files of the same text.
func packageOf(n int, text string) map[string]string {
	files := map[string]string{}
	for i := range n {
		files["low/"+string(rune('a'+i))+".go"] = text
	}
	return files
}

func TestTreeThatDoesNotParseIsAnError(t *testing.T) {
	t.Parallel()
	_, err := floors.Check(tree(t, txtar.File{Name: "low/a.go", Data: []byte("package")}), rules())
	if err == nil || !strings.Contains(err.Error(), "low/a.go") {
		t.Errorf("got %v", err)
	}
}

func TestFloorsAreComplete(t *testing.T) {
	t.Parallel()
	r := floors.Repository()
	for _, component := range []string{"id", "store", "event", "llm", "session", "agent", "runtime", "op", "operations", "compat/acp", "app", "cmd/switchyard"} {
		if _, ok := r.Floors[component]; !ok {
			t.Errorf("%s has no floor", component)
		}
	}
	if r.Floors["cmd/switchyard"] != 11 || r.Floors["id"] != 0 || slices.Contains(r.Tools, "id") {
		t.Errorf("floors %v, tools %v", r.Floors, r.Tools)
	}
}

func lines(findings []floors.Finding) string {
	var b strings.Builder
	for _, f := range findings {
		b.WriteString(f.String() + "\n")
	}
	return b.String()
}
