package event_test

import (
	"slices"
	"testing"

	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
)

func TestTypes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		list    string
		yes, no []string
	}{
		{"", []string{"session.idle", "pty.created"}, nil},
		{"session.idle", []string{"session.idle"}, []string{"session.created", "session.idle.x"}},
		{"message.*, pty.created", []string{"message.part.delta", "message.updated", "pty.created"}, []string{"pty.exited", "messages.x", "message"}},
		{"!message.part.delta", []string{"message.part.updated", "pty.created"}, []string{"message.part.delta"}},
		{"!message.part.delta,message.*", []string{"message.part.updated"}, []string{"message.part.delta", "pty.created"}},
		{"*,!pty.*", []string{"session.idle"}, []string{"pty.created"}},
		{"!*", nil, []string{"session.idle"}},
	} {
		types, err := event.ParseTypes(c.list)
		if err != nil {
			t.Errorf("%q: %v", c.list, err)
		}
		for _, name := range c.yes {
			if !types.Match(name) {
				t.Errorf("%q leaves %s out", c.list, name)
			}
		}
		for _, name := range c.no {
			if types.Match(name) {
				t.Errorf("%q lets %s pass", c.list, name)
			}
		}
	}
	for _, list := range []string{",", "a,", "session.", "!", "!!a", ".x", "*.x", "a b", "Session", "a.**"} {
		if _, err := event.ParseTypes(list); !fault.Is(err, fault.ValidationFailed) {
			t.Errorf("%q: %v", list, err)
		}
	}
}

func TestTypesNames(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]bool{
		"": false, "*": false, "pty.*": false, "file.watcher.updated": true, "file.*": true, "file.*,!file.watcher.updated": false,
	} {
		types, err := event.ParseTypes(list)
		if err != nil || types.Names("file.watcher.updated") != want {
			t.Errorf("%q names it: %v, %v", list, !want, err)
		}
	}
}

func TestParseFilter(t *testing.T) {
	t.Parallel()
	const ses = "ses_01K00000000000000000000000"
	f, err := event.ParseFilter(event.FilterQuery{Scope: "server", Session: ses, Until: "idle", Types: "pty.*"})
	if err != nil || !f.All || f.Session != ses || !f.UntilIdle || f.Types.Match("session.idle") {
		t.Errorf("%+v, %v", f, err)
	}
	for _, c := range []struct {
		q    event.FilterQuery
		code fault.Code
		at   string
	}{
		{event.FilterQuery{Scope: "project"}, fault.ValidationFailed, "query.scope"},
		{event.FilterQuery{Until: "done"}, fault.ValidationFailed, "query.until"},
		{event.FilterQuery{Until: "idle"}, fault.ValidationFailed, "query.until"},
		{event.FilterQuery{Types: "?"}, fault.ValidationFailed, "query.types"},
		{event.FilterQuery{Session: "ses_1"}, fault.SessionNotFound, ""},
	} {
		_, err := event.ParseFilter(c.q)
		e, ok := fault.As(err)
		if !ok || e.Code != c.code || (c.at != "" && (len(e.Items) != 1 || e.Items[0].Location != c.at)) {
			t.Errorf("%+v: %#v", c.q, err)
		}
	}
}

// numbers publishes one event from each of several places and gives what a
// stream with the filter gets of them.
func numbers(t *testing.T, f event.Filter) []int {
	t.Helper()
	w := setup(t, nil)
	s := subscribe(w, event.Options{Filter: f})
	for i, at := range []event.Origin{
		event.ServerWide(),
		event.At(contextA, "", ""),
		event.At(contextB, "", ""),
		event.At(contextA, "ses_root", "ses_root"),
		event.At(contextB, "ses_child", "ses_root"),
		event.At(contextA, "ses_other", "ses_other"),
		event.At(event.Context{Directory: "/b"}, "", ""), // contextB's directory, not its workspace
	} {
		commit(w, noted, at, notePayload{N: i})
	}
	commit(w, wentIdle, event.ServerWide(), idlePayload{})
	out := []int{}
	for _, g := range take(t, s, 1) {
		if g.Type != "server.connected" {
			t.Fatalf("first frame %s", g.Type)
		}
	}
	for {
		g := take(t, s, 1)[0]
		if g.Type == "session.idle" {
			return out
		}
		out = append(out, decode[notePayload](t, g).N)
	}
}

func TestE10_FiltersSelectEvents(t *testing.T) {
	t.Parallel()
	onlyA := func(_ string, at event.Origin) bool { return at.Context != contextB }
	for _, c := range []struct {
		name string
		f    event.Filter
		want []int
	}{
		{"nothing but the whole server", event.Filter{}, []int{0}},
		{"one context", event.Filter{Contexts: []event.Context{contextA}}, []int{0, 1, 3, 5}},
		{"several contexts", event.Filter{Contexts: []event.Context{contextA, contextB}}, []int{0, 1, 2, 3, 4, 5}},
		{"all contexts", event.Filter{All: true}, []int{0, 1, 2, 3, 4, 5, 6}},
		{"a session's tree", event.Filter{Session: "ses_root"}, []int{0, 3, 4}},
		{"a child session", event.Filter{Session: "ses_child", Contexts: []event.Context{contextA}}, []int{0, 4}},
		{"what the caller may see", event.Filter{All: true, Allow: onlyA}, []int{0, 1, 3, 5, 6}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := numbers(t, c.f); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestJoinAddsAContext(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	s := subscribe(w, event.Options{Filter: event.Filter{Contexts: []event.Context{contextA}}})
	take(t, s, 1)
	commit(w, noted, event.At(contextB, "", ""), notePayload{N: 1})
	s.Join(contextB)
	commit(w, noted, event.At(contextB, "", ""), notePayload{N: 2})
	if g := take(t, s, 1)[0]; decode[notePayload](t, g).N != 2 {
		t.Errorf("got %s", g.Payload)
	}
	s.Close()
	s.Join(contextB)
}

func TestAStreamIsNotTouchedByOtherContexts(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	asked := 0
	f := event.Filter{Contexts: []event.Context{contextA}, Allow: func(string, event.Origin) bool { asked++; return true }}
	subscribe(w, event.Options{Filter: f})
	for range 100 {
		commit(w, noted, event.At(contextB, "", ""), notePayload{})
	}
	if asked != 0 {
		t.Errorf("the stream was asked %d times", asked)
	}
	commit(w, noted, event.At(contextA, "", ""), notePayload{})
	if asked != 1 {
		t.Errorf("the stream was asked %d times for its own event", asked)
	}
}

func TestContextKey(t *testing.T) {
	t.Parallel()
	if a, b := contextA.Key(), contextB.Key(); a != "local:/a" || b != "ws_1:/b" {
		t.Errorf("keys %s and %s", a, b)
	}
}
