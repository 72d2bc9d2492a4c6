package shell

import (
	"slices"
	"strings"
)

// place are the directories that a command may run in; nil when that cannot be
// told. Several are possible since a cd can fail.
type place []string

func (p place) or(q place) place {
	if p == nil || q == nil {
		return nil
	}
	all := slices.Clone(p)
	for _, d := range q {
		if !slices.Contains(all, d) {
			all = append(all, d)
		}
	}
	if len(all) > maxPlaces {
		return nil
	}
	return all
}

// join gives what a path can mean in p. It is nil for a relative path where the
// place is not known.
func (p place) join(name string) []string {
	if strings.HasPrefix(name, "/") {
		return []string{name}
	}
	var all []string
	for _, d := range p {
		all = append(all, strings.TrimSuffix(d, "/")+"/"+name)
	}
	return all
}

// same reports whether both are known and equal as sets.
func (p place) same(q place) bool {
	return p != nil && q != nil && len(p) == len(p.or(q)) && len(q) == len(p)
}
