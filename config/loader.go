package config

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"sync"
)

const (
	// maxCached bounds the directories whose configuration is kept.
	maxCached = 512

	envFile    = "SWITCHYARD_CONFIG"
	envContent = "SWITCHYARD_CONFIG_CONTENT"
)

// Options say where the owner's files are.
type Options struct {
	// Home is the home directory and ConfigHome the XDG one (~/.config).
	Home, ConfigHome string
	// LookupEnv reads the environment; nil means os.LookupEnv.
	LookupEnv func(name string) (string, bool)
}

// DefaultOptions are those of the process's user.
func DefaultOptions() Options {
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	o := Options{Home: home, ConfigHome: os.Getenv("XDG_CONFIG_HOME"), LookupEnv: os.LookupEnv}
	if !filepath.IsAbs(o.ConfigHome) && home != "" {
		o.ConfigHome = filepath.Join(home, ".config")
	}
	return o
}

// Resolved is the configuration of one directory. It is shared between callers:
// treat it as read-only.
type Resolved struct {
	Config *Config `json:"-"`
	// Public is the merged document for clients; secrets in it read "***".
	Public json.RawMessage `json:"config"`
	// Sources tells by JSON pointer which file a value is from.
	Sources map[string]Source `json:"sources"`
	// Warnings are in the order of the files; never nil.
	Warnings []Problem `json:"warnings"`
}

// Loader resolves configurations. What has not changed is not read again: that
// costs one stat for each file that there is or could be. It is safe for
// concurrent use.
type Loader struct {
	options Options

	mu    sync.Mutex // protects cache
	cache map[[2]string]*entry
}

// entry is a cached result with what it was made of. It does not change.
type entry struct {
	resolved *Resolved
	err      error
	problems []Problem
	stamps   []stamp
	env      []variable
}

// variable is an environment variable as it was seen.
type variable struct {
	name, value string
	set         bool
}

// NewLoader returns a Loader.
func NewLoader(o Options) *Loader {
	if o.LookupEnv == nil {
		o.LookupEnv = os.LookupEnv
	}
	return &Loader{options: o, cache: map[[2]string]*entry{}}
}

// Global gives the configuration without any project: for the server itself.
func (l *Loader) Global(ctx context.Context) (*Resolved, error) {
	return l.Resolve(ctx, Location{})
}

// Resolve gives the configuration of a directory. A file that is wrong makes it
// a config_invalid fault with "path", "line" and "column" of the first error and
// all errors as items; other directories are not concerned, unless the file is a
// global one.
func (l *Loader) Resolve(ctx context.Context, loc Location) (*Resolved, error) {
	key := [2]string{loc.Root, loc.Directory}
	l.mu.Lock()
	e := l.cache[key]
	l.mu.Unlock()
	if e != nil && l.current(e, loc) {
		return e.resolved, e.err
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	e, err := l.load(loc)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.cache[key]; !known && len(l.cache) >= maxCached {
		l.forget()
	}
	l.cache[key] = e
	return e.resolved, e.err
}

// forget drops some entry; which one hardly matters, as each is quickly made.
func (l *Loader) forget() {
	for key := range l.cache {
		delete(l.cache, key)
		return
	}
}

func (l *Loader) current(e *entry, loc Location) bool {
	for _, v := range e.env {
		if value, set := l.options.LookupEnv(v.name); value != v.value || set != v.set {
			return false
		}
	}
	for _, s := range e.stamps {
		if !s.current(filesOf(s.place, loc)) {
			return false
		}
	}
	return true
}

func filesOf(p place, loc Location) Files {
	if p.project {
		return loc.Files
	}
	return hostFiles{}
}

// load reads everything anew. Problems of files are in the entry; the error is
// for a location that makes no sense.
func (l *Loader) load(loc Location) (*entry, error) {
	places, err := l.places(loc)
	if err != nil {
		return nil, err
	}
	a := &assembly{options: l.options, loc: loc}
	merged := &node{kind: kindObject}
	mg := merger{report: &a.report}
	for _, p := range places {
		if root := a.file(p); root != nil {
			mg.merge(merged, root, nil)
		}
	}
	for _, root := range a.named() {
		mg.merge(merged, root, nil)
	}
	e := &entry{}
	e.resolved, e.err = a.finish(merged)
	e.problems, e.stamps, e.env = a.report.sorted(), a.stamps, a.env
	return e, nil
}

// globalNames are the files below ConfigHome and projectNames those of each
// directory of a project, weakest first.
var (
	globalNames = []string{
		"opencode/opencode.json", "opencode/opencode.jsonc",
		"switchyard/switchyard.json", "switchyard/switchyard.jsonc",
	}
	projectNames = []string{
		"opencode.json", "opencode.jsonc", "switchyard.json", "switchyard.jsonc",
		".opencode/opencode.json", ".opencode/opencode.jsonc",
		".switchyard/switchyard.json", ".switchyard/switchyard.jsonc",
	}
)

// places lists where files may be, weakest first.
func (l *Loader) places(loc Location) ([]place, error) {
	var out []place
	owned := map[string]bool{}
	if l.options.ConfigHome != "" {
		for _, name := range globalNames {
			p := place{path: filepath.Join(l.options.ConfigHome, name)}
			owned[p.path] = true
			out = append(out, p)
		}
	}
	if loc.Root == "" {
		return out, nil
	}
	directories, err := loc.directories()
	if err != nil {
		return nil, err
	}
	for _, d := range directories {
		for _, name := range projectNames {
			p := place{path: path.Join(d, name), project: true}
			// A session in the configuration directory itself.
			if !owned[filepath.Join(loc.Root, p.path)] {
				out = append(out, p)
			}
		}
	}
	return out, nil
}

// Check lists what is wrong in one file of the host, errors first. A file below
// ConfigHome is judged as the owner's, any other as a project's. The error is
// for a file that cannot be read.
func (l *Loader) Check(file string) ([]Problem, error) {
	full, err := filepath.Abs(file)
	if err != nil {
		return nil, fmt.Errorf("checking configuration: %w", err)
	}
	data, _, err := readFile(hostFiles{}, full, maxFile)
	if err != nil {
		return nil, fmt.Errorf("checking configuration: %s: %s", full, reason(err))
	}
	_, owned := Location{Root: l.options.ConfigHome}.inside(full)
	a := &assembly{options: l.options, loc: Location{Root: projectRoot(full)}}
	a.text(source{file: full, directory: filepath.Dir(full), project: !owned}, data)
	return a.report.sorted(), nil
}

// projectRoot gives the nearest directory above a file that looks like the top
// of a work tree, or else the file's own.
func projectRoot(file string) string {
	for dir := filepath.Dir(file); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return filepath.Dir(file)
		}
	}
}

// Problems lists what is wrong in all files of a location, errors first.
func (l *Loader) Problems(ctx context.Context, loc Location) ([]Problem, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	e, err := l.load(loc)
	if err != nil {
		return nil, err
	}
	return e.problems, nil
}
