package floors

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// pkg is a directory with Go files.
type pkg struct {
	dir   string // relative to the root, with forward slashes
	files []*file
}

// file is a parsed source file that somebody wrote by hand.
type file struct {
	name    string // relative to the root
	test    bool   // its name ends in _test.go
	lines   int
	imports []imported
	ast     *ast.File
	fset    *token.FileSet
}

type imported struct {
	path string
	name string // as the file says it: the path's last element or its own name for it
	line int
}

func (f *file) at(line int) string { return fmt.Sprintf("%s:%d", f.name, line) }

func (f *file) line(pos token.Pos) int { return f.fset.Position(pos).Line }

// readTree parses all hand-written Go files of the module at root, by package.
// Generated files count for nothing but their package's place.
func readTree(root string) ([]*pkg, error) {
	packages := map[string]*pkg{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skip(root, name)
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		f, err := readFile(name, filepath.ToSlash(rel))
		if err != nil {
			return err
		}
		dir := path.Dir(filepath.ToSlash(rel))
		p := packages[dir]
		if p == nil {
			p = &pkg{dir: dir}
			packages[dir] = p
		}
		if !ast.IsGenerated(f.ast) {
			p.files = append(p.files, f)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	list := make([]*pkg, 0, len(packages))
	for _, p := range packages {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *pkg) int { return strings.Compare(a.dir, b.dir) })
	return list, nil
}

// skip passes by what is not this module's source, as the go command does.
func skip(root, dir string) error {
	if dir == root {
		return nil
	}
	base := filepath.Base(dir)
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || base == "node_modules" {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		return filepath.SkipDir
	}
	return nil
}

func readFile(name, rel string) (*file, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	f := &file{name: rel, test: strings.HasSuffix(rel, "_test.go"), lines: bytes.Count(text, []byte("\n")), fset: token.NewFileSet()}
	if f.ast, err = parser.ParseFile(f.fset, rel, text, parser.ParseComments); err != nil {
		return nil, err
	}
	for _, spec := range f.ast.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", rel, err)
		}
		name := path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		f.imports = append(f.imports, imported{path: p, name: name, line: f.line(spec.Pos())})
	}
	return f, nil
}
