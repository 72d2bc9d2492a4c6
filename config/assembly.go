package config

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"time"
)

// assembly puts one location's configuration together and notes what it saw on
// the way, so that the result can be kept until something of it changes.
type assembly struct {
	options Options
	loc     Location
	report  report
	stamps  []stamp
	env     []variable
}

// source is where a text comes from.
type source struct {
	file      string // for people: a path or the name of a variable
	directory string // what {file:} is relative to
	project   bool
}

// file reads one place. It gives nil where there is nothing to merge.
func (a *assembly) file(p place) *node {
	full := p.path
	if p.project {
		full = filepath.Join(a.loc.Root, filepath.FromSlash(p.path))
	}
	data, err := a.read(p)
	switch {
	case err == nil:
		return a.text(source{file: full, directory: filepath.Dir(full), project: p.project}, data)
	case absent(err):
	case outside(err):
		a.report.warnf(Position{File: full}, "the file is ignored: %s", reason(err))
	default:
		a.report.errorf(Position{File: full}, "the file cannot be read: %s", reason(err))
	}
	return nil
}

// named reads what the environment names: a file, then a text.
func (a *assembly) named() []*node {
	var out []*node
	if name, _ := a.lookup(envFile); name != "" {
		full, err := filepath.Abs(expandHome(name, a.options.Home))
		if err != nil {
			full = name
		}
		p := place{path: full}
		if data, err := a.read(p); err != nil {
			a.report.errorf(Position{File: full}, "the file that %s names cannot be read: %s", envFile, reason(err))
		} else if root := a.text(source{file: full, directory: filepath.Dir(full)}, data); root != nil {
			out = append(out, root)
		}
	}
	if text, _ := a.lookup(envContent); text != "" {
		// {file:} is relative to where the server was started.
		directory, err := filepath.Abs(".")
		if err != nil {
			directory = a.options.Home
		}
		if root := a.text(source{file: envContent, directory: directory}, []byte(text)); root != nil {
			out = append(out, root)
		}
	}
	return out
}

func (a *assembly) lookup(name string) (string, bool) {
	value, set := a.options.LookupEnv(name)
	a.env = append(a.env, variable{name: name, value: value, set: set})
	return value, set
}

func (a *assembly) read(p place) ([]byte, error) {
	data, info, err := readFile(filesOf(p, a.loc), p.path, maxFile)
	s := stamp{place: p}
	if err == nil {
		s.info = info
		age := time.Since(info.ModTime())
		s.fresh = -freshFor < age && age < freshFor
	}
	a.stamps = append(a.stamps, s)
	return data, err
}

// include reads what {file:} names: in the project through its own files.
func (a *assembly) include(src source, full string) (string, error) {
	p := place{path: full}
	if rel, inside := a.loc.inside(full); inside && src.project && a.loc.Files != nil {
		p = place{path: rel, project: true}
	}
	data, err := a.read(p)
	return string(data), err
}

// text takes one file's text through all steps before merging and gives nil when
// it cannot be used.
func (a *assembly) text(src source, data []byte) *node {
	before := len(a.report.problems)
	defer func() { inOrder(a.report.problems[before:]) }()
	root := parse(src.file, data, src.project, &a.report)
	if root == nil {
		return nil
	}
	f := filler{
		report:  &a.report,
		project: src.project,
		env:     a.lookup,
		inside: func(full string) bool {
			_, inside := a.loc.inside(full)
			return inside
		},
		read:      func(full string) (string, error) { return a.include(src, full) },
		directory: src.directory,
		home:      a.options.Home,
	}
	f.fill(root, nil)
	normalise(root, &a.report)
	if src.project {
		restrict(root, &a.report)
	}
	a.decode(root)
	return root
}

func (a *assembly) decode(root *node) *Config {
	c := &Config{}
	d := decoder{report: &a.report, home: a.options.Home}
	d.value(root, reflect.ValueOf(c).Elem(), "")
	return c
}

// finish makes the result of the merged tree.
func (a *assembly) finish(merged *node) (*Resolved, error) {
	c := a.decode(merged)
	if err := a.report.fault(); err != nil {
		return nil, err
	}
	r := &Resolved{
		Config:   c,
		Public:   json.RawMessage(redacted(merged, nil).json()),
		Sources:  map[string]Source{},
		Warnings: a.report.of(SeverityWarning),
	}
	sourcesOf(merged, "", r.Sources)
	return r, nil
}
