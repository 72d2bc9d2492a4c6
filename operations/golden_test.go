package operations_test

import (
	_ "embed"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/operations"
)

//go:embed operations.tsv
var mapTSV string

//go:embed extra.tsv
var extraTSV string

//go:embed pending.tsv
var pendingTSV string

// rows reads a table: its lines without comments, split at tabs.
func rows(text string) map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if line != "" && !strings.HasPrefix(line, "#") {
			cells := strings.Split(line, "\t")
			out[cells[0]] = cells
		}
	}
	return out
}

func TestOperationsAreThoseOfTheMap(t *testing.T) {
	t.Parallel()
	theMap, extra, pending := rows(mapTSV), rows(extraTSV), rows(pendingTSV)
	mounted := map[string]bool{}
	for _, o := range operations.All() {
		d := o.Describe()
		mounted[d.Name] = true
		row, known := theMap[d.Name]
		switch {
		case known && (row[1] != string(d.Kind) || row[2] != d.Method || row[3] != d.Path):
			t.Errorf("%s: %s %s %s, the map says %v", d.Name, d.Kind, d.Method, d.Path, row[1:4])
		case known && d.Summary != row[5] && !strings.HasPrefix(row[5], d.Summary):
			t.Errorf("%s: summary %q, the map says %q", d.Name, d.Summary, row[5])
		case !known && extra[d.Name] == nil:
			t.Errorf("%s is neither in the map nor in extra.tsv", d.Name)
		case !known && (extra[d.Name][1] != d.Method || extra[d.Name][2] != d.Path || len(extra[d.Name]) != 4):
			t.Errorf("%s: extra.tsv says %v", d.Name, extra[d.Name])
		}
		if pending[d.Name] != nil {
			t.Errorf("%s is mounted: take it out of pending.tsv", d.Name)
		}
	}
	for name := range theMap {
		if !mounted[name] && pending[name] == nil {
			t.Errorf("%s of the map is neither mounted nor pending", name)
		}
	}
	for name := range extra {
		if !mounted[name] {
			t.Errorf("%s of extra.tsv is not mounted", name)
		}
	}
	for name := range pending {
		if theMap[name] == nil {
			t.Errorf("%s is pending but not in the map", name)
		}
	}
}

func TestKindsAreNamedOnce(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, k := range operations.Kinds() {
		if seen[k.Name()] {
			t.Errorf("%s is listed twice", k.Name())
		}
		seen[k.Name()] = true
		if k.Payload().Kind() != reflect.Struct {
			t.Errorf("%s has a payload that is no object", k.Name())
		}
	}
	for _, k := range event.Kinds() {
		if !seen[k.Name()] {
			t.Errorf("%s is not listed", k.Name())
		}
	}
}

func TestEveryOperationIsDescribed(t *testing.T) {
	t.Parallel()
	op.CheckAll(operations.All())
	for _, o := range operations.All() {
		d := o.Describe()
		if !strings.HasSuffix(d.Summary, ".") {
			t.Errorf("%s: the summary %q is no sentence", d.Name, d.Summary)
		}
		if slices.Contains([]string{"", "Empty"}, d.Name) {
			t.Errorf("an operation without a name")
		}
	}
}
