package event_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/event"
)

func TestKindDescribesItself(t *testing.T) {
	t.Parallel()
	var k event.Descriptor = event.Define[notePayload]("lsp.updated", event.Ephemeral, event.Invalidates("lsp.status"))
	if k.Name() != "lsp.updated" || k.Durable() || k.Payload() != reflect.TypeFor[notePayload]() || !slices.Equal(k.Invalidates(), []string{"lsp.status"}) {
		t.Errorf("%s %v %v %v", k.Name(), k.Durable(), k.Payload(), k.Invalidates())
	}
	if !noted.Durable() || len(noted.Invalidates()) != 0 {
		t.Errorf("a plain kind: %v, %v", noted.Durable(), noted.Invalidates())
	}
	names := []string{}
	for _, k := range event.Kinds() {
		names = append(names, k.Name())
		if k.Durable() {
			t.Errorf("%s would be in the log", k.Name())
		}
	}
	if want := []string{"server.connected", "server.resync", "server.cursor", "server.lagged", "server.stopping"}; !slices.Equal(names, want) {
		t.Errorf("own kinds %v", names)
	}
}

func TestDefineRefusesMistakes(t *testing.T) {
	t.Parallel()
	for name, define := range map[string]func(){
		"name without a dot":   func() { event.Define[notePayload]("note") },
		"name in capitals":     func() { event.Define[notePayload]("Pty.created") },
		"payload is no object": func() { event.Define[[]string]("pty.created") },
		"merging another payload": func() {
			event.Define[notePayload]("pty.created", event.Ephemeral, event.Merge(deltaPayload.key, joinDeltas))
		},
		"merging durable events": func() { event.Define[deltaPayload]("pty.created", event.Merge(deltaPayload.key, joinDeltas)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			define()
		}()
	}
}

func TestAppendMakesARow(t *testing.T) {
	t.Parallel()
	var tx transaction
	if err := noted.Append(&tx, event.At(contextB, "ses_child", "ses_root"), notePayload{N: 7}); err != nil {
		t.Fatal(err)
	}
	r := tx[0]
	if r.Type != "pty.created" || r.Directory != "/b" || r.WorkspaceID != "ws_1" || r.SessionID != "ses_child" || r.RootSessionID != "ses_root" || string(r.Payload) != `{"n":7}` || r.Time == 0 {
		t.Errorf("row %+v", r)
	}
	if err := partDelta.Append(&tx, event.ServerWide(), deltaPayload{}); err == nil || len(tx) != 1 {
		t.Errorf("an ephemeral event went into the log: %v", err)
	}
	broken := event.Define[struct{ F func() }]("pty.broken")
	if err := broken.Append(&tx, event.ServerWide(), struct{ F func() }{}); err == nil || !strings.Contains(err.Error(), "pty.broken") {
		t.Errorf("error %v", err)
	}
}

func TestEnvelope(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	s := subscribe(w, event.Options{Filter: event.Filter{All: true}})
	strange := event.Context{Directory: "/ünï \"q\"\n<b>", WorkspaceID: "ws_2"}
	commit(w, partUpdated, event.At(strange, "", ""), partPayload{Text: "a\nb\u2028<tag> & \x00 \"q\""})
	rows := w.log.add(event.Record{Type: "pty.created", Time: 5, Payload: []byte("{\n \"n\": 1\r\n}")})
	w.bus.Commit(rows)

	ctx := t.Context()
	if _, err := s.Next(ctx); err != nil { // server.connected
		t.Fatal(err)
	}
	f, err := s.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	g := frame(f)
	if g.Context != strange || decode[partPayload](t, g).Text != "a\nb\u2028<tag> & \x00 \"q\"" || !f.Durable() {
		t.Errorf("frame %s", f.SSE())
	}
	if want := "id: " + g.ID + "\ndata: " + string(f.Envelope()) + "\n\n"; string(f.SSE()) != want {
		t.Errorf("frame %q, want %q", f.SSE(), want)
	}
	f, err = s.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(f.SSE()), "\n") != 3 || strings.Contains(string(f.SSE()), "\r") || !json.Valid(f.Payload()) {
		t.Errorf("frame %q", f.SSE())
	}
	if want := `,"type":"pty.created","time":5,"context":{"directory":""},"payload":{`; !strings.Contains(string(f.Envelope()), want) {
		t.Errorf("envelope %s", f.Envelope())
	}
}
