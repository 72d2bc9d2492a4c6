package event

import (
	"maps"
	"slices"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
)

// sessionIdle is the kind that says that a session's turn is over.
const sessionIdle = "session.idle"

// Filter says which events a stream gets. Server-wide events pass it whatever
// the contexts and the session are.
type Filter struct {
	// All lets the events of all contexts pass.
	All bool
	// Contexts are the ones whose events pass. The first names the context of
	// the stream's control frames.
	Contexts []Context
	// Session, when set, lets only events of this session or of sessions with
	// this root pass, in whatever contexts; All and Contexts then mean nothing.
	Session id.Session
	// Types selects kinds.
	Types Types
	// UntilIdle ends the stream cleanly after the next session.idle of Session,
	// which passes even where Types leaves it out.
	UntilIdle bool
	// Allow, when set, must agree to every event: what the caller may see. It is
	// called while the bus is locked, so it must be quick and must not publish.
	Allow func(kind string, at Origin) bool
}

// FilterQuery holds the raw query values that select events beside directory,
// workspace and context. An absent value is "".
type FilterQuery struct {
	Scope, Session, Types, Until string
}

// ParseFilter reads the query values into a Filter without contexts. scope is
// "context" (the default) or "server"; until is "idle" and needs session. Wrong
// values are validation_failed faults with their places; a malformed session id
// is session_not_found.
func ParseFilter(q FilterQuery) (Filter, error) {
	types, err := ParseTypes(q.Types)
	if err != nil {
		return Filter{}, err
	}
	f := Filter{Types: types}
	switch q.Scope {
	case "", "context":
	case "server":
		f.All = true
	default:
		return Filter{}, invalid("query.scope", "must be context or server")
	}
	if q.Session != "" {
		ses, ok := id.Parse[id.Session](q.Session)
		if !ok {
			return Filter{}, fault.New(fault.SessionNotFound, "there is no session %q", q.Session).With("sessionID", q.Session)
		}
		f.Session = ses
	}
	switch {
	case q.Until == "":
	case q.Until != "idle":
		return Filter{}, invalid("query.until", "must be idle")
	case f.Session == "":
		return Filter{}, invalid("query.until", "needs session")
	default:
		f.UntilIdle = true
	}
	return f, nil
}

func invalid(location, message string) error {
	return fault.New(fault.ValidationFailed, "%s %s", location, message).At(location, "%s", message)
}

// matcher is a Filter made quick. It is never altered.
type matcher struct {
	Filter
	contexts map[Context]struct{}
}

func newMatcher(f Filter) *matcher {
	f.Contexts = slices.Clone(f.Contexts)
	m := &matcher{Filter: f, contexts: make(map[Context]struct{}, len(f.Contexts))}
	for _, c := range f.Contexts {
		m.contexts[c] = struct{}{}
	}
	return m
}

// with gives a matcher that lets one more context pass.
func (m *matcher) with(c Context) *matcher {
	wider := *m
	wider.Contexts = append(slices.Clone(m.Contexts), c)
	wider.contexts = maps.Clone(m.contexts)
	wider.contexts[c] = struct{}{}
	return &wider
}

// place is the context of control frames.
func (m *matcher) place() Context {
	if len(m.Contexts) == 0 {
		return Context{}
	}
	return m.Contexts[0]
}

func (m *matcher) match(kind string, at *Origin) bool {
	if !m.covers(at) || (m.Allow != nil && !m.Allow(kind, *at)) {
		return false
	}
	return m.Types.Match(kind) || m.ends(kind, at)
}

func (m *matcher) covers(at *Origin) bool {
	switch {
	case at.Context == Context{}:
		return true
	case m.Session != "":
		return at.SessionID == m.Session || at.RootSessionID == m.Session
	case m.All:
		return true
	}
	_, ok := m.contexts[at.Context]
	return ok
}

// ends tells whether the stream is over after this event.
func (m *matcher) ends(kind string, at *Origin) bool {
	return m.UntilIdle && kind == sessionIdle && at.SessionID == m.Session
}
