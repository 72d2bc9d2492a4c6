package floors

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// Limits: the first number of each is what we aim at, the second is never passed.
const (
	fileSoft, fileHard       = 400, 600
	packageSoft, packageHard = 2500, 4000
	funcSoft, funcHard       = 60, 100
	nestSoft, nestHard       = 3, 4
	methodsHard              = 5
)

// sizes checks the package's files and its product code as a whole.
func (c *checker) sizes(p *pkg) {
	sum := 0
	for _, f := range p.files {
		c.limit(f.name, "lines of the file", f.lines, fileSoft, fileHard)
		if !f.test {
			sum += f.lines
		}
	}
	c.limit(p.dir, "lines of the package without tests", sum, packageSoft, packageHard)
}

// contents checks what each file declares and calls.
func (c *checker) contents(p *pkg) {
	for _, f := range p.files {
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok {
				c.function(f, fn)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			c.node(p, f, n)
			return true
		})
	}
}

func (c *checker) function(f *file, fn *ast.FuncDecl) {
	start := f.line(fn.Pos())
	if fn.Name.Name == "init" && fn.Recv == nil {
		c.broken(f.at(start), "init(): make the value where it is used, or hand it in")
	}
	if fn.Body == nil {
		return
	}
	c.limit(f.at(start), "lines of "+fn.Name.Name, f.line(fn.End())-start+1, funcSoft, funcHard)
	c.limit(f.at(start), "nesting in "+fn.Name.Name, nesting(fn.Body, 0), nestSoft, nestHard)
}

func (c *checker) node(p *pkg, f *file, n ast.Node) {
	switch n := n.(type) {
	case *ast.FuncLit:
		c.limit(f.at(f.line(n.Pos())), "nesting in a closure", nesting(n.Body, 0), nestSoft, nestHard)
	case *ast.InterfaceType:
		if count := methods(n); count > methodsHard {
			c.broken(f.at(f.line(n.Pos())), "interface with %d methods, at most %d", count, methodsHard)
		}
	case *ast.SelectorExpr:
		c.selector(p, f, n)
	}
}

// selector checks the names that belong to one place. Tests may sleep where the
// linter finds the reason for it.
func (c *checker) selector(p *pkg, f *file, sel *ast.SelectorExpr) {
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return
	}
	from := c.component(p.dir)
	imports := func(path string) bool {
		return slices.ContainsFunc(f.imports, func(i imported) bool { return i.path == path && i.name == id.Name })
	}
	switch sel.Sel.Name {
	case "Sleep":
		if from != "clock" && !f.test && imports("time") {
			c.broken(f.at(f.line(sel.Pos())), "time.Sleep: use clock.Sleep, which ends with its context")
		}
	case "At":
		if _, ok := c.rules.At[from]; !ok && !f.test && !testHelper(p.dir) && imports(c.rules.Module+"/event") {
			known := slices.Sorted(maps.Keys(c.rules.At))
			c.broken(f.at(f.line(sel.Pos())), "event.At: only %s know where an event comes from", strings.Join(known, ", "))
		}
	}
}

// methods counts the methods that an interface names itself; embedding is composing.
func methods(i *ast.InterfaceType) int {
	count := 0
	for _, m := range i.Methods.List {
		if _, ok := m.Type.(*ast.FuncType); ok {
			count += len(m.Names)
		}
	}
	return count
}

// nesting gives the depth of the deepest statement in n, where each if, loop,
// switch and select adds one to what is inside it. An else-if chain is one level,
// and a closure counts for itself.
func nesting(n ast.Node, depth int) int {
	deepest := depth
	ast.Inspect(n, func(child ast.Node) bool {
		if child == n {
			return true
		}
		var bodies []ast.Node
		switch s := child.(type) {
		case *ast.FuncLit:
			return false
		case *ast.IfStmt:
			bodies = branches(s)
		case *ast.ForStmt:
			bodies = []ast.Node{s.Body}
		case *ast.RangeStmt:
			bodies = []ast.Node{s.Body}
		case *ast.SwitchStmt:
			bodies = []ast.Node{s.Body}
		case *ast.TypeSwitchStmt:
			bodies = []ast.Node{s.Body}
		case *ast.SelectStmt:
			bodies = []ast.Node{s.Body}
		default:
			return true
		}
		for _, b := range bodies {
			deepest = max(deepest, nesting(b, depth+1))
		}
		return false
	})
	return deepest
}

// branches gives the blocks of an if and of the ifs that follow its else.
func branches(s *ast.IfStmt) []ast.Node {
	all := []ast.Node{s.Body}
	switch e := s.Else.(type) {
	case *ast.IfStmt:
		return append(all, branches(e)...)
	case *ast.BlockStmt:
		return append(all, e)
	}
	return all
}
