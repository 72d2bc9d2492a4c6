package event

import (
	"regexp"
	"slices"
	"strings"

	"github.com/switchyard-dev/switchyard/fault"
)

// Types selects kinds by name. The zero value selects all.
type Types struct {
	names, prefixes       []string // wanted; both empty: all
	notNames, notPrefixes []string
}

var typePattern = regexp.MustCompile(`^(\*|[a-z]+(\.[a-z]+)*(\.\*)?)$`)

// ParseTypes reads a comma list of names, "x.*" for all below x, "*" for all,
// and any of these with "!" before it to leave it out. A list that only leaves
// out selects the rest; order does not matter. An empty list selects all. Any
// other item is a validation_failed fault at query.types.
func ParseTypes(list string) (Types, error) {
	var t Types
	if list == "" {
		return t, nil
	}
	for item := range strings.SplitSeq(list, ",") {
		name, not := strings.CutPrefix(strings.TrimSpace(item), "!")
		if !typePattern.MatchString(name) {
			return Types{}, fault.New(fault.ValidationFailed, "types names no kind of events").
				At("query.types", "%q is not a name, a name with .* or one of these after !", item)
		}
		names, prefixes := &t.names, &t.prefixes
		if not {
			names, prefixes = &t.notNames, &t.notPrefixes
		}
		if prefix, ok := strings.CutSuffix(name, "*"); ok {
			*prefixes = append(*prefixes, prefix)
		} else {
			*names = append(*names, name)
		}
	}
	return t, nil
}

// Match tells whether a kind is selected.
func (t Types) Match(name string) bool {
	if matches(name, t.notNames, t.notPrefixes) {
		return false
	}
	return len(t.names)+len(t.prefixes) == 0 || matches(name, t.names, t.prefixes)
}

// Names tells whether a kind is selected by its own name or by a prefix other
// than "*": what is costly to watch is watched only for those who ask for it.
func (t Types) Names(name string) bool {
	prefixes := slices.DeleteFunc(slices.Clone(t.prefixes), func(p string) bool { return p == "" })
	return matches(name, t.names, prefixes) && t.Match(name)
}

func matches(name string, names, prefixes []string) bool {
	if slices.Contains(names, name) {
		return true
	}
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}
