package floors

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// variables checks that the package's variables are tables: set where they are
// declared and never changed. A linter that refuses all of them would hide the few
// that matter among exceptions.
func (c *checker) variables(p *pkg) {
	names := map[string]bool{}
	for _, f := range p.files {
		if f.test {
			continue
		}
		for _, spec := range valueSpecs(f.ast) {
			for _, name := range spec.names {
				names[name.Name] = name.Name != "_"
			}
			if why := mutableType(spec); why != "" {
				c.broken(f.at(f.line(spec.names[0].Pos())), "package variable %s: %s", spec.names[0].Name, why)
			}
		}
	}
	for _, f := range p.files {
		if f.test {
			continue
		}
		for _, id := range changed(f.ast) {
			if names[id.Name] && global(f.ast, id) {
				c.broken(f.at(f.line(id.Pos())), "package variable %s is changed: make it a value of what uses it", id.Name)
			}
		}
	}
}

// valueSpec is a declaration of package variables.
type valueSpec struct {
	names    []*ast.Ident
	typ      ast.Expr
	values   []ast.Expr
	embedded bool // the compiler fills it
}

func valueSpecs(f *ast.File) []valueSpec {
	var specs []valueSpec
	for _, decl := range f.Decls {
		g, ok := decl.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			specs = append(specs, valueSpec{v.Names, v.Type, v.Values, embeds(g.Doc) || embeds(v.Doc)})
		}
	}
	return specs
}

func embeds(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") })
}

// mutableType tells why a variable can only be meant to change, empty if it is not:
// it has no value, or one made for sharing state.
func mutableType(spec valueSpec) string {
	if len(spec.values) == 0 {
		if spec.embedded {
			return ""
		}
		return "it has no value, so it is meant to change"
	}
	for _, value := range spec.values {
		if u, ok := value.(*ast.UnaryExpr); ok {
			value = u.X
		}
		lit, ok := value.(*ast.CompositeLit)
		if !ok {
			continue
		}
		if sel, ok := lit.Type.(*ast.SelectorExpr); ok {
			if from, ok := sel.X.(*ast.Ident); ok && (from.Name == "sync" || from.Name == "atomic") {
				return "it holds " + from.Name + "." + sel.Sel.Name
			}
		}
	}
	return ""
}

// changed gives the names at the root of everything that f assigns to, counts up,
// deletes from or takes the address of.
func changed(f *ast.File) []*ast.Ident {
	var all []*ast.Ident
	add := func(targets ...ast.Expr) {
		for _, t := range targets {
			if id := root(t); id != nil {
				all = append(all, id)
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				add(n.Lhs...)
			}
		case *ast.IncDecStmt:
			add(n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				add(n.X)
			}
		case *ast.CallExpr:
			if fn, ok := n.Fun.(*ast.Ident); ok && (fn.Name == "delete" || fn.Name == "clear") {
				add(n.Args[0])
			}
		}
		return true
	})
	return all
}

// root gives x of x, x.f, x[i] and *x in any combination.
func root(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// global tells whether a name means the package's own: the parser has found its
// declaration at the top of this file, or none in this file at all.
func global(f *ast.File, id *ast.Ident) bool {
	return id.Obj == nil || f.Scope.Lookup(id.Name) == id.Obj
}
