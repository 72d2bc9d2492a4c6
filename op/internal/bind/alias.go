package bind

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// EverythingElse is the synonym for all fields of a body that are not declared.
const EverythingElse = "*"

// canonical rewrites synonyms in a query. The given values are not changed.
func (p *Plan) canonical(query url.Values, bad *findings) url.Values {
	if len(query) == 0 {
		return query
	}
	query = maps.Clone(query)
	for _, from := range slices.Sorted(maps.Keys(p.Aliases)) {
		to := p.Aliases[from]
		values, ok := query[from]
		if !ok {
			continue
		}
		if _, both := query[to]; both {
			bad.add(InQuery+"."+from, "another spelling of %q: give one of them", to)
			continue
		}
		query[to] = values
		delete(query, from)
	}
	for name, synonyms := range p.Values {
		values := slices.Clone(query[name])
		for i, v := range values {
			if c, ok := synonyms[v]; ok {
				values[i] = c
			}
		}
		if values != nil {
			query[name] = values
		}
	}
	return query
}

// rewrite gives a body with its synonyms replaced, as text and as value. A body
// without any stays as it is.
func (p *Plan) rewrite(data []byte, object map[string]any, where string, bad *findings) ([]byte, map[string]any) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber() // Numbers keep their digits.
	var exact map[string]any
	if decoder.Decode(&exact) != nil {
		return data, object
	}
	changed := false
	for _, from := range slices.Sorted(maps.Keys(p.Aliases)) {
		to := p.Aliases[from]
		for _, source := range p.sources(exact, from, to) {
			target := to
			if from == EverythingElse {
				target = to + "." + source
			}
			moved, ok := move(exact, strings.Split(source, "."), strings.Split(target, "."))
			if !ok {
				bad.add(where+"."+source, "another spelling of %q: give one of them", target)
			}
			changed = changed || moved
		}
	}
	for path, synonyms := range p.Values {
		holder, name := holderOf(exact, strings.Split(path, "."), false)
		given, _ := holder[name].(string)
		if canonical, ok := synonyms[given]; ok {
			holder[name], changed = canonical, true
		}
	}
	if !changed {
		return data, object
	}
	var fresh map[string]any
	text, err := json.Marshal(exact)
	if err != nil || json.Unmarshal(text, &fresh) != nil { // It came from JSON.
		return data, object
	}
	return text, fresh
}

// sources lists the paths in a body that the synonym from stands for.
func (p *Plan) sources(object map[string]any, from, to string) []string {
	if from != EverythingElse {
		return []string{from}
	}
	if _, given := object[to]; given {
		return nil
	}
	var rest []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !slices.ContainsFunc(p.fields, func(f planned) bool { return f.Name == name }) {
			rest = append(rest, name)
		}
	}
	return rest
}

// move takes the value at from to to, and says whether there was one. It is not
// ok, and nothing changes, when to has a value or cannot have one.
func move(object map[string]any, from, to []string) (moved, ok bool) {
	source, name := holderOf(object, from, false)
	value, found := source[name]
	if !found {
		return false, true
	}
	target, newName := holderOf(object, to, true)
	if _, taken := target[newName]; taken || target == nil {
		return false, false
	}
	delete(source, name)
	target[newName] = value
	return true, true
}

// holderOf gives the object that has, or would have, the last name of a path as
// its member; nil when there is none. It makes the objects on the way if asked.
func holderOf(object map[string]any, path []string, create bool) (holder map[string]any, name string) {
	for _, step := range path[:len(path)-1] {
		inner, found := object[step]
		if !found && create {
			inner = map[string]any{}
			object[step] = inner
		}
		next, ok := inner.(map[string]any)
		if !ok {
			return nil, ""
		}
		object = next
	}
	return object, path[len(path)-1]
}
