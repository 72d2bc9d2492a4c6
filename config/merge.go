package config

import (
	"slices"
	"strings"
)

// ownerKeys concern the whole server: one repository must not decide them.
var ownerKeys = []string{"server", "access", "limits", "allowedRoots", "durability", "recover"}

// restrict takes out of a project file what only the owner's files may say.
func restrict(root *node, r *report) {
	for _, key := range ownerKeys {
		if v := root.get(key); v != nil {
			r.warnf(v.at, "%q is ignored: it is read from global files only", key)
			root.remove(key)
		}
	}
	providers := root.get("provider")
	if providers == nil {
		return
	}
	for _, m := range providers.members {
		restrictProvider(m.value, r)
	}
}

// restrictProvider keeps a project file from sending the owner's keys to an
// address of its own: it may set an address only beside a literal key, and then
// nothing of the entry may come from elsewhere.
func restrictProvider(p *node, r *report) {
	if env := p.get("env"); env != nil {
		r.warnf(env.at, `"env" is ignored: project files may not choose which variable is sent as a key`)
		p.remove("env")
	}
	if !hasAddress(p) {
		return
	}
	key := p.get("options").get("apiKey")
	own := key != nil && key.kind == kindString && key.text != ""
	if own && !p.any(func(n *node) bool { return n.filled }) {
		p.closed = true
		return
	}
	dropAddresses(p, func(m member) {
		r.warnf(m.at, "%q is ignored: a project file may set a provider's address only with a literal apiKey beside it and no substitution", m.key)
	})
}

// isAddress reports whether a provider's key may decide where requests go. It
// errs on the side of yes.
func isAddress(key string) bool {
	key = strings.ToLower(key)
	return key == "api" || slices.ContainsFunc([]string{"url", "endpoint", "host", "resource", "region", "proxy"}, func(word string) bool {
		return strings.Contains(key, word)
	})
}

// addressHolders are the objects of a provider entry that may hold addresses.
func addressHolders(p *node) []*node {
	holders := []*node{p}
	if o := p.get("options"); o != nil {
		holders = append(holders, o)
	}
	if models := p.get("models"); models != nil {
		for _, m := range models.members {
			for _, n := range []*node{m.value, m.value.get("provider"), m.value.get("options")} {
				if n != nil {
					holders = append(holders, n)
				}
			}
		}
	}
	return holders
}

func hasAddress(p *node) bool {
	return slices.ContainsFunc(addressHolders(p), func(n *node) bool {
		return slices.ContainsFunc(n.members, func(m member) bool { return isAddress(m.key) })
	})
}

func dropAddresses(p *node, tell func(member)) {
	for _, n := range addressHolders(p) {
		for _, m := range slices.Clone(n.members) {
			if isAddress(m.key) {
				tell(m)
				n.remove(m.key)
			}
		}
	}
}

// merger merges files into one tree, later over earlier.
type merger struct {
	report *report
}

// merge puts src over dst at a path below the root: objects key by key, lists
// and plain values as a whole, null clears. Instructions add up, permissions
// keep their deciding order, providers keep keys and addresses of different
// trust apart.
func (mg *merger) merge(dst, src *node, path []string) {
	for _, m := range src.members {
		at := append(path[:len(path):len(path)], m.key)
		old := dst.get(m.key)
		switch {
		case m.value.kind == kindNull:
			dst.remove(m.key)
		case old == nil || old.kind != m.value.kind:
			m.value.dropNulls()
			dst.set(m)
		case isPermission(at):
			mergeRules(old, m.value)
		case len(at) == 1 && m.key == "instructions":
			mergeList(old, m.value)
		case len(at) == 2 && at[0] == "provider":
			mg.provider(dst, m)
		case m.value.kind == kindObject:
			mg.merge(old, m.value, at)
		default:
			dst.set(m)
		}
	}
}

func isPermission(path []string) bool {
	last := path[len(path)-1] == "permission"
	return last && (len(path) == 1 || (len(path) == 3 && path[0] == "agent"))
}

func mergeList(dst, src *node) {
	for _, item := range src.items {
		same := func(n *node) bool { return n.kind == item.kind && n.text == item.text && n.project == item.project }
		if !slices.ContainsFunc(dst.items, same) {
			dst.items = append(dst.items, item)
		}
	}
}

// provider merges one entry. An entry with a project's own address and key
// stands alone: it takes nothing from the owner's files and gives way to them.
func (mg *merger) provider(providers *node, m member) {
	old := providers.get(m.key)
	switch {
	case m.value.closed:
		m.value.dropNulls()
		providers.set(m)
	case old.closed && !m.value.project:
		mg.report.warnf(old.at, "provider %q of the project is ignored: %s sets the same", m.key, m.value.at.File)
		m.value.dropNulls()
		providers.set(m)
	case old.closed && m.value.any(func(n *node) bool { return n.filled }):
		mg.report.warnf(m.at, "provider %q is ignored here: its address is from %s, so nothing may be substituted", m.key, old.at.File)
	default:
		mg.merge(old, m.value, []string{"provider", m.key})
	}
}
