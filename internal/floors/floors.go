// Package floors checks what the compiler does not: which package may import which
// (the floors), how large files, functions and packages may grow, and a few calls
// that belong to one place. The table of this repository is in table.go; its test
// runs the check over the whole tree.
//
// It reads the source itself and not what a build sees, so that files for other
// systems count too. Direct imports are enough: if each goes strictly down, so do
// all that follow from them.
package floors

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Rules are what a tree is held against.
type Rules struct {
	Module string // import path of the tree's root

	// Floors maps a component to its floor. A component is a directory whose
	// packages belong together; the longest one that contains a package counts.
	Floors map[string]int

	// Tools are components that may import everything, but product code not them.
	Tools []string

	// Only maps an import path, of this module or another, to the components that
	// may import it or what is below it. Tests may import everything.
	Only map[string][]string

	// At maps the components that may call event.At to where they know an event's
	// origin from.
	At map[string]string

	Exceptions []Exception
}

// Exception allows one import that the rules refuse.
type Exception struct {
	From   string // package, relative to the root
	Import string // as written in the import
	Reason string // why it must be
}

// Finding is a rule broken at a place, or a soft limit passed.
type Finding struct {
	Place string // file:line, or a package
	Text  string
}

func (f Finding) String() string { return f.Place + ": " + f.Text }

// Report is the outcome of a check, in order of place.
type Report struct {
	Broken []Finding // must be mended
	Soft   []Finding // ought to be
}

// Check holds the tree at root against the rules. An error means that the tree
// could not be read.
func Check(root string, rules Rules) (Report, error) {
	packages, err := readTree(root)
	if err != nil {
		return Report{}, fmt.Errorf("reading the tree: %w", err)
	}
	c := &checker{rules: rules, used: map[Exception]bool{}}
	for _, p := range packages {
		c.place(p)
		c.imports(p)
		c.sizes(p)
		c.contents(p)
		c.variables(p)
	}
	for _, e := range rules.Exceptions {
		if !c.used[e] {
			c.broken(e.From, "the exception for %s is not needed any more", e.Import)
		}
		if e.Reason == "" {
			c.broken(e.From, "the exception for %s has no reason", e.Import)
		}
	}
	for _, list := range [][]Finding{c.report.Broken, c.report.Soft} {
		slices.SortFunc(list, func(a, b Finding) int {
			return cmp.Or(strings.Compare(a.Place, b.Place), strings.Compare(a.Text, b.Text))
		})
	}
	return c.report, nil
}

// checker collects findings.
type checker struct {
	rules  Rules
	used   map[Exception]bool
	report Report
}

func (c *checker) broken(place, format string, args ...any) {
	c.report.Broken = append(c.report.Broken, Finding{place, fmt.Sprintf(format, args...)})
}

// limit reports a size over the soft or the hard limit.
func (c *checker) limit(place, what string, size, soft, hard int) {
	switch text := fmt.Sprintf("%s: %d, at most %d", what, size, hard); {
	case size > hard:
		c.broken(place, "%s", text)
	case size > soft:
		c.report.Soft = append(c.report.Soft, Finding{place, fmt.Sprintf("%s: %d, better at most %d", what, size, soft)})
	}
}

// component gives the component of a package, empty if it has none.
func (c *checker) component(pkg string) string {
	for dir := pkg; dir != "."; dir = path.Dir(dir) {
		if _, ok := c.rules.Floors[dir]; ok || slices.Contains(c.rules.Tools, dir) {
			return dir
		}
	}
	return ""
}

func (c *checker) isTool(component string) bool { return slices.Contains(c.rules.Tools, component) }

// place checks that the package has a floor at all.
func (c *checker) place(p *pkg) {
	if c.component(p.dir) == "" {
		c.broken(p.dir, "has no floor: add it to the table")
	}
}

// imports checks each import of the package's product code.
func (c *checker) imports(p *pkg) {
	from := c.component(p.dir)
	if from == "" || c.isTool(from) || testHelper(p.dir) {
		return
	}
	for _, f := range p.files {
		if f.test {
			continue
		}
		for _, imp := range f.imports {
			if why := c.refused(from, imp.path); why != "" && !c.excepted(p.dir, imp.path) {
				c.broken(f.at(imp.line), "%s", why)
			}
		}
	}
}

// refused tells why a component may not import a path, empty if it may.
func (c *checker) refused(from, imp string) string {
	for only, owners := range c.rules.Only {
		if (imp == only || strings.HasPrefix(imp, only+"/")) && !slices.Contains(owners, from) {
			return fmt.Sprintf("only %s may import %s", strings.Join(owners, ", "), only)
		}
	}
	rel, inside := strings.CutPrefix(imp, c.rules.Module+"/")
	if !inside {
		return c.alien(from, imp)
	}
	to := c.component(rel)
	switch {
	case to == "", to == from && !testHelper(rel):
		return ""
	case testHelper(rel) || c.isTool(to):
		return fmt.Sprintf("product code imports %s, which is for tests and tools", rel)
	case c.rules.Floors[to] >= c.rules.Floors[from]:
		return fmt.Sprintf("%s (floor %d) imports %s (floor %d)", from, c.rules.Floors[from], rel, c.rules.Floors[to])
	}
	return ""
}

// alien checks an import from outside the module: the lowest floor has the standard
// library and what Only gives it, and product code does not test itself.
func (c *checker) alien(from, imp string) string {
	first, _, _ := strings.Cut(imp, "/")
	external := strings.Contains(first, ".")
	if _, owned := c.rules.Only[imp]; c.rules.Floors[from] == 0 && external && !owned {
		return fmt.Sprintf("floor 0 imports %s: standard library only", imp)
	}
	if imp == "testing" || strings.HasPrefix(imp, "testing/") {
		return fmt.Sprintf("product code imports %s", imp)
	}
	return ""
}

func (c *checker) excepted(from, imp string) bool {
	for _, e := range c.rules.Exceptions {
		if e.From == from && e.Import == strings.TrimPrefix(imp, c.rules.Module+"/") {
			c.used[e] = true
			return true
		}
	}
	return false
}

// testHelper tells whether a package serves tests only: by our naming, <pkg>test.
func testHelper(dir string) bool { return strings.HasSuffix(path.Base(dir), "test") }
