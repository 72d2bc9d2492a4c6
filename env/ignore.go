package env

import (
	"cmp"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

const (
	gitIgnoreFile   = ".gitignore"
	plainIgnoreFile = ".ignore"

	// maxIgnoreFile bounds what is read of one file of rules, in bytes.
	maxIgnoreFile = 1 << 20
)

// ignores are the rules that hold in one directory. As with ripgrep, .ignore
// files stand above .gitignore files wherever they are; of one kind the deeper
// file wins, and in one file the later line.
type ignores struct {
	git   *ruleFile
	plain *ruleFile
}

// ruleFile is one file of rules, linked to the ones above it.
type ruleFile struct {
	above *ruleFile
	depth int // elements of the directory that the rules are relative to

	// Most lines are plain names or extensions: these are looked up. The others
	// are tried one by one.
	names, extensions map[string][]rule
	globs             []rule
}

// rule is one line.
type rule struct {
	line    int // the greater one wins
	include bool
	dirOnly bool
	pattern gitignore.Pattern // only in globs
	base    bool              // the pattern has no slash: it is about names
	inside  bool              // the line ends in "/**": it is about what is below
}

// excludes reports whether a path, given by its elements, is to be ignored.
// The directories above it are taken to be not ignored.
func (g ignores) excludes(at []string, isDir bool) bool {
	for _, file := range []*ruleFile{g.plain, g.git} {
		for ; file != nil; file = file.above {
			if r := file.find(at[file.depth:], isDir); r != nil {
				return !r.include
			}
		}
	}
	return false
}

// find gives the last rule that matches.
func (f *ruleFile) find(at []string, isDir bool) *rule {
	name := at[len(at)-1]
	best := lastOf(nil, f.names[name], isDir)
	if ext := path.Ext(name); ext != "" && len(f.extensions) > 0 {
		best = lastOf(best, f.extensions[ext], isDir)
	}
	for i := len(f.globs) - 1; i >= 0; i-- {
		r := &f.globs[i]
		if best != nil && best.line > r.line {
			break
		}
		if r.matches(at, isDir) {
			return r
		}
	}
	return best
}

func lastOf(best *rule, rules []rule, isDir bool) *rule {
	for i := len(rules) - 1; i >= 0; i-- {
		r := &rules[i]
		if r.dirOnly && !isDir {
			continue
		}
		if best == nil || r.line > best.line {
			best = r
		}
		break
	}
	return best
}

// matches reports whether the rule is about exactly this path. go-git's patterns
// also match everything below what they name; here the walk has asked for the
// directories above already, and a line that includes a directory must not
// include what other lines exclude in it.
func (r *rule) matches(at []string, isDir bool) bool {
	if r.base {
		at = at[len(at)-1:]
	}
	if r.inside {
		return (isDir || !r.dirOnly) && len(at) > 1 && r.pattern.Match(at[:len(at)-1], true) != gitignore.NoMatch
	}
	if r.pattern.Match(at, isDir) == gitignore.NoMatch {
		return false
	}
	return len(at) == 1 || r.pattern.Match(at[:len(at)-1], true) == gitignore.NoMatch
}

// parseRules reads a file of rules that are relative to a directory of depth
// elements. It gives above itself when there are none.
func parseRules(above *ruleFile, depth int, text string) *ruleFile {
	f := &ruleFile{above: above, depth: depth, names: map[string][]rule{}, extensions: map[string][]rule{}}
	text = strings.TrimPrefix(text, "\ufeff")
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		n++
		f.add(n, strings.TrimSuffix(line, "\r"))
	}
	if len(f.names)+len(f.extensions)+len(f.globs) == 0 {
		return above
	}
	return f
}

func (f *ruleFile) add(n int, line string) {
	if !strings.HasSuffix(line, `\ `) {
		line = strings.TrimRight(line, " ")
	}
	if line == "" || line[0] == '#' {
		return
	}
	r := rule{line: n}
	body, negated := strings.CutPrefix(line, "!")
	r.include = negated
	name, dirOnly := strings.CutSuffix(body, "/")
	r.dirOnly = dirOnly
	ext, isExt := strings.CutPrefix(name, "*.")
	switch {
	case name == "":
	case !strings.ContainsAny(name, `*?[\/`):
		f.names[name] = append(f.names[name], r)
	case isExt && ext != "" && !strings.ContainsAny(ext, `*?[\/.`):
		f.extensions["."+ext] = append(f.extensions["."+ext], r)
	default:
		f.globs = append(f.globs, r.glob(name, body))
	}
}

// glob completes a rule that needs go-git's matcher. name is body without the
// slash that marks directories.
func (r rule) glob(name, body string) rule {
	if holder, ok := strings.CutSuffix(name, "/**"); ok && holder != "" {
		r.inside = true
		body = holder
		if !strings.Contains(body, "/") {
			body = "/" + body // anchored by the slash that was cut
		}
	} else if ok {
		body = "*" // "/**" is all there is
	}
	r.base = !strings.Contains(strings.TrimSuffix(body, "/"), "/")
	r.pattern = gitignore.ParsePattern(gitClass(body), nil)
	return r
}

// gitClass spells a negated class the way Go's matcher knows it.
func gitClass(pattern string) string {
	var out strings.Builder
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		out.WriteByte(c)
		switch {
		case c == '\\' && i+1 < len(pattern):
			i++
			out.WriteByte(pattern[i])
		case c == '[' && i+1 < len(pattern) && pattern[i+1] == '!':
			i++
			out.WriteByte('^')
		}
	}
	return out.String()
}

// ruleSources tells which files with rules a directory may have.
type ruleSources struct{ repository, git, plain bool }

// sourcesIn looks for files with rules in a listing.
func sourcesIn(list []listed) ruleSources {
	var s ruleSources
	for _, d := range list {
		switch d.name {
		case ".git":
			s.repository = true
		case gitIgnoreFile:
			s.git = true
		case plainIgnoreFile:
			s.plain = true
		}
	}
	return s
}

// unlisted is sourcesIn for a directory that is not going to be listed.
func unlisted(dir *os.Root) ruleSources {
	_, err := dir.Lstat(".git")
	return ruleSources{repository: err == nil, git: true, plain: true}
}

// enter gives the rules inside a directory whose path has depth elements.
func (g ignores) enter(dir *os.Root, s ruleSources, depth int) ignores {
	if s.repository {
		if depth > 0 { // another repository: the outer one's rules end here
			g.git = nil
		}
		g.git = parseRules(g.git, depth, excludeFile(dir))
	}
	if s.git {
		g.git = parseRules(g.git, depth, readRules(dir, gitIgnoreFile))
	}
	if s.plain {
		g.plain = parseRules(g.plain, depth, readRules(dir, plainIgnoreFile))
	}
	return g
}

// excludeFile reads info/exclude of the repository at dir. In a linked work tree
// .git is a file that names the repository's directory, and that one may name
// the directory which all work trees share. Callers see the effect of these
// rules only, never their text, so reading them outside of the root is harmless.
func excludeFile(dir *os.Root) string {
	const name = "info/exclude"
	if info, err := dir.Lstat(".git"); err != nil || info.IsDir() {
		return readRules(dir, ".git/"+name)
	}
	gitDir, ok := strings.CutPrefix(strings.TrimSpace(readRules(dir, ".git")), "gitdir: ")
	if !ok {
		return ""
	}
	if !filepath.IsAbs(gitDir) {
		gitDir = filepath.Join(dir.Name(), gitDir)
	}
	common := strings.TrimSpace(readOutside(gitDir, "commondir"))
	if common != "" && !filepath.IsAbs(common) {
		common = filepath.Join(gitDir, common)
	}
	return readOutside(cmp.Or(common, gitDir), name)
}

func readOutside(dir, name string) string {
	root, err := os.OpenRoot(dir + "/.")
	if err != nil {
		return ""
	}
	defer root.Close()
	return readRules(root, name)
}

// readRules reads a file of rules; what cannot be read has none.
func readRules(dir *os.Root, name string) string {
	file, err := openRegular(dir, name, name)
	if err != nil {
		return ""
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxIgnoreFile))
	if err != nil {
		return ""
	}
	return string(text)
}

// rulesAbove gathers the rules that hold for name, relative to root: those of
// the work tree that root lies in, then those on the way from root to name. It
// gives them with the elements of name below the base of the rules, and whether
// they exclude name or a directory above it.
func (f *localFiles) rulesAbove(root *os.Root, name string, isDir bool) (rules ignores, at []string, ignored bool) {
	rules, at = outerRules(f.dir)
	if name == "." {
		return rules, at, false
	}
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if dir, err := root.OpenRoot(path.Join(".", path.Join(parts[:i]...)) + "/."); err == nil {
			rules = rules.enter(dir, unlisted(dir), len(at))
			_ = dir.Close()
		}
		at = append(at, part)
		last := i == len(parts)-1
		ignored = ignored || part == ".git" || rules.excludes(at, isDir || !last)
	}
	return rules, at, ignored
}

// outerRules gives the rules of the work tree's directories above dir, and the
// elements of dir below the top of the work tree. Outside of a work tree there
// are none: what lies above is no business of the directory.
func outerRules(dir string) (rules ignores, at []string) {
	var above []string // from dir's parent up to the top
	for top := dir; ; {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			break
		}
		at = append(at, filepath.Base(top))
		parent := filepath.Dir(top)
		if parent == top {
			return ignores{}, nil
		}
		top = parent
		above = append(above, top)
	}
	slices.Reverse(at)
	slices.Reverse(above)
	for depth, outer := range above {
		root, err := os.OpenRoot(outer + "/.")
		if err != nil {
			continue
		}
		rules = rules.enter(root, unlisted(root), depth)
		_ = root.Close()
	}
	return rules, at
}
