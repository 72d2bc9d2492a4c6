package bind

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/switchyard-dev/switchyard/fault"
)

// maxFindings bounds an answer about an input that is wrong in many places.
const maxFindings = 50

// findings gathers what is wrong with an input.
type findings struct {
	items   []fault.Item
	unknown bool
}

func (b *findings) add(location, format string, args ...any) {
	if len(b.items) < maxFindings {
		b.items = append(b.items, fault.Item{Location: location, Message: fmt.Sprintf(format, args...)})
	}
}

func (b *findings) any() bool { return len(b.items) > 0 }

// err gives the failure for what was found, nil for nothing.
func (b *findings) err() error {
	if !b.any() {
		return nil
	}
	slices.SortStableFunc(b.items, func(x, y fault.Item) int { return strings.Compare(x.Location, y.Location) })
	code := fault.ValidationFailed
	if b.unknown {
		code = fault.UnknownParameter
	}
	first := b.items[0]
	e := fault.New(code, "%s: %s", first.Location, first.Message)
	if more := len(b.items) - 1; more > 0 {
		e = fault.New(code, "%s: %s (and %d more)", first.Location, first.Message, more)
	}
	e.Items = b.items
	return e
}

// nearest gives the name among known that is most like name; "" for no names.
func nearest(name string, known []string) string {
	best, least := "", 0
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); best == "" || d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is the number of bytes to insert, delete or replace between a and b.
func distance(a, b string) int {
	a, b = a[:min(len(a), 64)], b[:min(len(b), 64)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func quoted(set map[string]string) string {
	return `"` + strings.Join(slices.Sorted(maps.Keys(set)), `", "`) + `"`
}

func (p *Plan) unknownField(name string, known map[string]bool) string {
	near := nearest(name, slices.Sorted(maps.Keys(known)))
	switch {
	case near == "":
		return "unknown field: there are none here"
	case slices.ContainsFunc(p.fields, func(f planned) bool { return f.Name == name && f.In == InQuery }):
		return "this is a query parameter"
	}
	return fmt.Sprintf("unknown field, the nearest known one is %q", near)
}
