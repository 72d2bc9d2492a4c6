// Package patchfile reads patches, says what must not be applied, and keeps what
// was there before.
package patchfile

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/switchyard-dev/switchyard/vcs/internal/difftext"
)

// Read reads a patch. The names that it gives are relative to the work
// tree's top: without the first part ("a/", "b/"), as git apply takes them.
func Read(patch string) ([]*gitdiff.File, error) {
	plain, doubled := sections(patch)
	if doubled != "" {
		return nil, outsidePath(doubled, "names an absolute path")
	}
	parsed, _, err := gitdiff.Parse(strings.NewReader(patch))
	if err != nil {
		return nil, err
	}
	if len(parsed) == 0 {
		return nil, errors.New("it changes no file")
	}
	if len(plain) != len(parsed) {
		return nil, errors.New("it can be read in two ways")
	}
	for i, f := range parsed {
		// Git's own headers are stripped by the parser, plain ones are not.
		if plain[i] {
			if err := strip(f); err != nil {
				return nil, err
			}
		}
	}
	return parsed, nil
}

func strip(f *gitdiff.File) error {
	for _, name := range []*string{&f.OldName, &f.NewName} {
		if *name == "" {
			continue
		}
		_, rest, ok := strings.Cut(*name, "/")
		if !ok {
			return fmt.Errorf("%s has nothing to strip: names begin with a/ or b/", *name)
		}
		*name = rest
	}
	if f.OldName != f.NewName && f.OldName != "" && f.NewName != "" {
		return fmt.Errorf("it names both %s and %s without a rename", f.OldName, f.NewName)
	}
	return nil
}

// sections tells for each file of a patch whether its header is a plain one (---
// and +++ alone) and not one of git's. doubled is a header with two slashes in a
// row, which the parser takes for one.
func sections(patch string) (plain []bool, doubled string) {
	var h left
	git := false // in a header of git's
	lines := strings.Split(patch, "\n")
	for i, line := range lines {
		if h.take(line) {
			continue
		}
		switch {
		case strings.HasPrefix(line, "diff --git "):
			plain, git = append(plain, false), true
		case strings.HasPrefix(line, "@@ -"):
			git = false
			h.begin(line)
			continue
		case !git && strings.HasPrefix(line, "--- ") && i+1 < len(lines) && strings.HasPrefix(lines[i+1], "+++ "):
			plain = append(plain, true)
		}
		if header.MatchString(line) && strings.Contains(line, "//") {
			doubled = line
		}
	}
	return plain, doubled
}

var header = regexp.MustCompile(`^(diff --git|---|\+\+\+|rename (from|to)|copy (from|to)) `)

// left counts the lines of a hunk that are still to come.
type left struct{ before, after int }

func (l *left) begin(line string) {
	if h, err := difftext.ParseHunk(line); err == nil {
		l.before, l.after = h.OldLines, h.NewLines
	}
}

// take reports whether a line is of the hunk.
func (l *left) take(line string) bool {
	if l.before <= 0 && l.after <= 0 {
		return false
	}
	switch {
	case strings.HasPrefix(line, "-"):
		l.before--
	case strings.HasPrefix(line, "+"):
		l.after--
	case !strings.HasPrefix(line, `\`):
		l.before, l.after = l.before-1, l.after-1
	}
	return true
}
