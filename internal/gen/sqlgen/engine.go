package sqlgen

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// engine is the package that sqlc generated for one database.
type engine struct {
	name  string // what errors call it
	dir   string
	files []source
	types map[string]typeDecl // exported types but the engine's own two
	query map[string]string   // Querier's methods: name to signature
}

// source is one parsed file.
type source struct {
	name string // base name
	text []byte
	ast  *ast.File
	fset *token.FileSet
}

// typeDecl is one generated type.
type typeDecl struct {
	form string // the type in canonical format, without comments
	text string // the whole declaration as generated, comments included
	file string
}

// own are the types that stay in each engine's package: they hold its driver.
var own = []string{"Queries", "DBTX", "Querier"}

// load parses the package in dir.
func load(root fsys, name, dir string) (*engine, error) {
	e := &engine{name: name, dir: dir, types: map[string]typeDecl{}, query: map[string]string{}}
	paths, err := fs.Glob(root, path.Join(dir, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", dir, err)
	}
	slices.Sort(paths)
	for _, p := range paths {
		text, err := fs.ReadFile(root, p)
		if err != nil {
			return nil, fmt.Errorf("reading sqlc's output: %w", err)
		}
		s := source{name: path.Base(p), text: text, fset: token.NewFileSet()}
		if s.ast, err = parser.ParseFile(s.fset, p, text, parser.ParseComments); err != nil {
			return nil, fmt.Errorf("parsing sqlc's output: %w", err)
		}
		e.files = append(e.files, s)
		if err := e.collect(s); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// collect notes the file's types and, where it has the Querier, its methods.
func (e *engine) collect(s source) error {
	for _, decl := range s.ast.Decls {
		g, spec := typeOf(decl)
		if spec == nil {
			continue
		}
		if list, ok := spec.Type.(*ast.InterfaceType); ok && spec.Name.Name == "Querier" {
			if err := e.methods(s, list); err != nil {
				return err
			}
		}
		if slices.Contains(own, spec.Name.Name) {
			continue
		}
		form, err := s.print(spec.Type)
		if err != nil {
			return err
		}
		e.types[spec.Name.Name] = typeDecl{form: form, text: s.cut(g), file: s.name}
	}
	return nil
}

func (e *engine) methods(s source, list *ast.InterfaceType) error {
	for _, m := range list.Methods.List {
		form, err := s.print(m.Type)
		if err != nil {
			return err
		}
		e.query[m.Names[0].Name] = form
	}
	return nil
}

// typeOf gives a declaration's type, nil if it declares none. sqlc never groups types.
func typeOf(decl ast.Decl) (*ast.GenDecl, *ast.TypeSpec) {
	g, ok := decl.(*ast.GenDecl)
	if !ok || g.Tok != token.TYPE || len(g.Specs) != 1 {
		return nil, nil
	}
	spec, _ := g.Specs[0].(*ast.TypeSpec)
	return g, spec
}

// print formats a node without its comments.
func (s source) print(n ast.Node) (string, error) {
	var b strings.Builder
	if err := format.Node(&b, s.fset, n); err != nil {
		return "", fmt.Errorf("printing sqlc's output: %w", err)
	}
	return b.String(), nil
}

// cut gives a declaration's own text with its doc comment.
func (s source) cut(g *ast.GenDecl) string {
	from, to := s.span(g)
	return string(s.text[from:to])
}

func (s source) span(g *ast.GenDecl) (from, to int) {
	start := g.Pos()
	if g.Doc != nil {
		start = g.Doc.Pos()
	}
	return s.fset.Position(start).Offset, s.fset.Position(g.End()).Offset
}

// without gives the file's text without its shared types.
func (s source) without(shared map[string]typeDecl) []byte {
	var out bytes.Buffer
	last := 0
	for _, decl := range s.ast.Decls {
		g, spec := typeOf(decl)
		if spec == nil {
			continue
		}
		if _, ok := shared[spec.Name.Name]; !ok {
			continue
		}
		from, to := s.span(g)
		out.Write(s.text[last:from])
		last = to
	}
	out.Write(s.text[last:])
	return out.Bytes()
}
