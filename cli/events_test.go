package cli_test

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/switchyard-dev/switchyard/cli"
	"github.com/switchyard-dev/switchyard/op"
)

// stream sends events with the given ids, then breaks the connection.
func stream(w http.ResponseWriter, ids ...int) {
	w.Header().Set("Content-Type", op.TypeStream)
	for _, id := range ids {
		fmt.Fprintf(w, "id: e%d\ndata: {\"id\":\"e%d\",\"type\":\"x.y\",\"payload\":{\"sessionID\":\"ses_1\"}}\n\n", id, id)
	}
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func TestEventsGoOnAfterTheLastOne(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	b := setup(t, func(w http.ResponseWriter, r *http.Request) {
		switch calls.Add(1) {
		case 1:
			stream(w, 1, 2)
		case 2:
			problem(http.StatusServiceUnavailable, `{"code":"stopping","detail":"bye"}`)(w, r)
		case 3:
			stream(w, 3)
		default:
			problem(http.StatusUnauthorized, `{"code":"unauthorized","detail":"no more"}`)(w, r)
		}
	})
	defer cancel()
	out, err := b.run(ctx, "", "events", "--json", "--after", "e0", "--directory", "/d")
	if cli.ExitCode(err) != 1 || !strings.Contains(fmt.Sprint(err), "no more") {
		t.Errorf("code %d: %v", cli.ExitCode(err), err)
	}
	if n := strings.Count(out, "\n"); n != 3 || strings.Count(out, `"type":"x.y"`) != 3 {
		t.Errorf("printed\n%s", out)
	}
	want := []string{
		"GET /api/event?after=e0&directory=%2Fd",
		"GET /api/event?directory=%2Fd Last-Event-Id=e2",
		"GET /api/event?directory=%2Fd Last-Event-Id=e2",
		"GET /api/event?directory=%2Fd Last-Event-Id=e3",
	}
	if got := b.seen(); !reflect.DeepEqual(got, want) {
		t.Errorf("asked for\n%s", strings.Join(got, "\n"))
	}
}

func TestEventsEndWhereTheyCannotBegin(t *testing.T) {
	t.Parallel()
	b := setup(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if _, err := b.run(t.Context(), "", "events"); cli.ExitCode(err) != 3 || len(b.seen()) != 1 {
		t.Errorf("code %d after %d tries: %v", cli.ExitCode(err), len(b.seen()), err)
	}
}

func TestEventsOfAServerNeedNoDirectory(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--scope|server":                "GET /api/event?scope=server",
		"--session|ses_1":               "GET /api/event?session=ses_1",
		"--workspace|ws_1|--types|x.*":  "GET /api/event?types=x.%2A&workspace=ws_1",
		"--directory|/a|--directory|/b": "GET /api/event?directory=%2Fa&directory=%2Fb",
	} {
		b := setup(t, problem(http.StatusNotFound, `{"code":"x","detail":"y"}`))
		_, _ = b.run(t.Context(), "", append([]string{"events"}, strings.Split(args, "|")...)...)
		if got := b.seen(); len(got) != 1 || got[0] != want {
			t.Errorf("%s asked for %v, not %s", args, got, want)
		}
	}
}

func TestEventsPrintOneLineEach(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		`{"type":"server.resync","payload":{"reason":"expired","earliest":"evt_1","version":"v"}}`:                                                                    "server.resync           -  expired evt_1",
		`{"type":"server.lagged","payload":{"reason":"backlog"}}`:                                                                                                     "server.lagged           -  backlog",
		`{"type":"session.idle","payload":{"sessionID":"ses_1","outcome":"failed","error":{"data":{"message":"no key"}}}}`:                                            `session.idle            ses_1  failed "no key"`,
		`{"type":"message.part.updated","payload":{"sessionID":"ses_1","part":{"type":"tool","tool":"bash","state":{"status":"completed","title":"List\u001b[2J"}}}}`: `message.part.updated    ses_1  tool bash completed List[2J`,
		`{"type":"message.part.delta","payload":{"sessionID":"ses_1","field":"text","delta":"a\nb"}}`:                                                                 `message.part.delta      ses_1  text "a\nb"`,
		`{"type":"new.kind","payload":{"a":[1,2]}}`:                                                                                                                   `new.kind                -  {"a":[1,2]}`,
		`{"type":"server.stopping","payload":{}}`:                                                                                                                     `server.stopping         -  {}`,
	}
	for data, want := range tests {
		var calls atomic.Int32
		b := setup(t, func(w http.ResponseWriter, r *http.Request) {
			if calls.Add(1) > 1 {
				problem(http.StatusGone, `{"code":"x","detail":"y"}`)(w, r)
				return
			}
			w.Header().Set("Content-Type", op.TypeStream)
			fmt.Fprintf(w, "id: 1\ndata: %s\n\n", data)
		})
		out, _ := b.run(t.Context(), "", "events")
		if _, line, _ := strings.Cut(out, "  "); line != want+"\n" {
			t.Errorf("printed %q, not %q", line, want)
		}
	}
}
