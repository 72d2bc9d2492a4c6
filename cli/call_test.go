package cli_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/cli"
	"github.com/switchyard-dev/switchyard/op"
)

func TestCallPutsEachMemberWhereItBelongs(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	nested := b.file("note.json", ` {"text": "from a file"} `)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	cwd := "directory=" + url.QueryEscape(here)
	tests := []struct {
		args  string // split at |
		stdin string
		want  string
	}{
		{args: "thing.put|--thingID|a b", want: `PUT /api/thing/a%20b {}`},
		{args: "thing.put|a/b|--name|@x|--count|-3|--ratio|0.5|--on", want: `PUT /api/thing/a%2Fb {"count":-3,"name":"@x","on":true,"ratio":0.5}`},
		{args: "thing.put|a|--on=false|--count=0", want: `PUT /api/thing/a {"count":0,"on":false}`},
		{args: "thing.put|a|--tags|x,y|--tags|z|--numbers|1|--numbers|2", want: `PUT /api/thing/a {"numbers":[1,2],"tags":["x,y","z"]}`},
		{args: `thing.put|a|--note|{"text":"t"}`, want: `PUT /api/thing/a {"note":{"text":"t"}}`},
		{args: `thing.put|a|--note|@` + nested, want: `PUT /api/thing/a {"note":{"text":"from a file"}}`},
		{args: `thing.put|a|--note|@-`, stdin: `{"text":"typed"}`, want: `PUT /api/thing/a {"note":{"text":"typed"}}`},
		{args: `thing.put|a|--notes|{"text":"1"}|--notes|[{"text":"2"},{"text":"3"}]`, want: `PUT /api/thing/a {"notes":[{"text":"1"},{"text":"2"},{"text":"3"}]}`},
		{args: `thing.put|a|--extra|plain words`, want: `PUT /api/thing/a {"extra":"plain words"}`},
		{args: `thing.put|a|--extra|[1,{"x":null}]`, want: `PUT /api/thing/a {"extra":[1,{"x":null}]}`},
		{args: `thing.put|a|--text|[short]|--stars|3`, want: `PUT /api/thing/a {"stars":3,"text":"[short]"}`},
		{args: `thing.put|a|--Idempotency-Key|k1`, want: `PUT /api/thing/a Idempotency-Key=k1 {}`},
		{args: `thing.put|--thing-id|a|--idempotencykey|k2`, want: `PUT /api/thing/a Idempotency-Key=k2 {}`},
		{args: `thing.put|a|--input-output|o`, want: `PUT /api/thing/a {"output":"o"}`},
		{args: `thing.put|a|--json|{"name":"n","count":1,"Idempotency-Key":"k3","odd":null}|--count|2`, want: `PUT /api/thing/a Idempotency-Key=k3 {"count":2,"name":"n","odd":null}`},
		{args: `thing.put|--json|@-`, stdin: `{"thingID":"b","on":true}`, want: `PUT /api/thing/b {"on":true}`},
		{args: "thing.file|a|dir/some file", want: `GET /api/thing/a/file/dir%2Fsome%20file`},
		{args: "thing.upload|--body|" + nested + "|--name|n", want: `POST /api/upload?name=n  {"text": "from a file"} `},
		{args: "thing.find", want: "GET /api/thing?" + cwd},
		{args: "thing.find|--directory|sub", want: "GET /api/thing?directory=" + url.QueryEscape(filepath.Join(here, "sub"))},
		{args: "thing.find|--directory|", want: "GET /api/thing"},
		{args: "thing.find|--workspace|ws_1", want: "GET /api/thing?workspace=ws_1"},
		{args: "thing.find|--directory|/d|--workspace|ws_1", want: "GET /api/thing?directory=%2Fd&workspace=ws_1"},
		{args: "thing.find|--directory||--words|a b|--words|c|--ids|1|--ids|2", want: "GET /api/thing?ids=1%2C2&words=a+b&words=c"},
		{args: "thing.find|--directory||--all|--sort|age|--limit|5", want: "GET /api/thing?all=true&limit=5&sort=age"},
		{args: `thing.find|--directory||--json|{"words":["a","b"],"all":false,"odd":1}`, want: "GET /api/thing?all=false&odd=1&words=a&words=b"},
		{args: "thing.reply|a", want: "POST /api/thing/a/reply {}"},
		{args: "event.subscribe|--directory|/a|--directory|/b", want: "GET /api/event?directory=%2Fa&directory=%2Fb"},
		{args: "event.subscribe|--context|local:/a", want: "GET /api/event?context=local%3A%2Fa"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			if _, err := b.run(t.Context(), tt.stdin, append([]string{"call"}, strings.Split(tt.args, "|")...)...); err != nil {
				t.Fatal(err)
			}
			seen := b.seen()
			if got := seen[len(seen)-1]; got != tt.want {
				t.Errorf("sent\n %s, not\n %s", got, tt.want)
			}
		})
	}
}

func TestCallRefusesWrongUsage(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	for args, word := range map[string]string{
		"thing.put":                       "needs --thingID",
		"thing.put|":                      "needs --thingID",
		"thing.put|a|b":                   "at most 1 arg",
		"thing.put|a|--thingID|b":         "given twice",
		"thing.put|a|--count|many":        "whole number",
		"thing.put|a|--ratio|half":        "a number is needed",
		"thing.put|a|--on=perhaps":        "true or false",
		"thing.put|a|--odd|1":             "unknown flag",
		`thing.put|a|--note|{"text":`:     "not JSON at byte",
		"thing.put|a|--note|@no/such":     "no such file",
		"thing.put|a|--json|[]":           "one JSON object",
		"thing.put|a|--json|null":         "one JSON object",
		"thing.put|a|--output|yaml":       "--output is one of",
		"thing.reply|a|--directory|/d":    "unknown flag",
		"thing.pot":                       "did you mean thing.put",
		"nothing.like.it|--output|json":   "--list names them",
		"thing.find|--limit|1|--server|x": "is not the URL of a server",
	} {
		_, err := b.run(t.Context(), "", append([]string{"call"}, strings.Split(args, "|")...)...)
		if cli.ExitCode(err) != 2 || !strings.Contains(fmt.Sprint(err), word) {
			t.Errorf("%s: %v (code %d)", args, err, cli.ExitCode(err))
		}
	}
	if seen := b.seen(); len(seen) > 0 {
		t.Errorf("something was sent: %v", seen)
	}
}

func TestCallPrintsAnswers(t *testing.T) {
	t.Parallel()
	const list = `{"data":[{"id":1,"name":"a\u001b[2J\nb","deep":{"x":1}},{"on":true,"id":22,"none":null}],"cursor":{}}`
	tests := []struct {
		name, kind, body, format, want string
	}{
		{"as it is", op.TypeJSON, "  " + list + "\n", "", list + "\n"},
		{"indented", op.TypeJSON, `{"data":{"n":12345678901234567890}}`, "json", "{\n  \"data\": {\n    \"n\": 12345678901234567890\n  }\n}\n"},
		{"as a table", op.TypeJSON, list, "table", "id  name    on    none\n1   a[2J b  -     -\n22  -       true  -\n"},
		{"no table of one object", op.TypeJSON, `{"data":{}}`, "table", "{\n  \"data\": {}\n}\n"},
		{"no table of words", op.TypeJSON, `{"data":["a"]}`, "table", "{\n  \"data\": [\n    \"a\"\n  ]\n}\n"},
		{"lines", op.TypeLines, "{\"a\":1}\n{\"a\":2}\n", "json", "{\"a\":1}\n{\"a\":2}\n"},
		{"bytes", op.TypeBytes, "\x00\x01", "", "\x00\x01"},
		{"events", op.TypeStream, ": hello\n\nid: 1\ndata: {\"a\":1}\n\nretry: 5\n\nid: 2\ndata: {\"a\":2}\n\n", "", "{\"a\":1}\n{\"a\":2}\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tt.kind)
				fmt.Fprint(w, tt.body)
			})
			args := []string{"call", "thing.find"}
			if tt.format != "" {
				args = append(args, "--output", tt.format)
			}
			got, err := b.run(t.Context(), "", args...)
			if err != nil || got != tt.want {
				t.Errorf("printed %q, %v, not %q", got, err, tt.want)
			}
		})
	}
}

func TestCallTellsFailures(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		answer http.HandlerFunc
		code   int
		want   string
	}{
		{
			"with the places", problem(422, `{"code":"validation_failed","detail":"two things","errors":[{"location":"query.a","message":"bad"},{"location":"query.b","message":"worse"}]}`),
			1, "validation_failed: two things\n  query.a: bad\n  query.b: worse",
		},
		{"with what to do", problem(401, `{"code":"unauthorized","detail":"no"}`), 1, "unauthorized: no\n  give the server's token by --token-file or SWITCHYARD_TOKEN"},
		{"of the server itself", problem(500, `{"code":"internal","detail":"oh","reference":"err_1"}`), 1, "internal: oh\n  reference: err_1"},
		{"of something else", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", http.StatusBadGateway) }, 1, "does not answer as a Switchyard server: 502 Bad Gateway"},
		{"of a page that moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusFound) }, 1, "does not answer as a Switchyard server: 302 Found"},
		{"of a broken connection", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 3, "cannot reach the server at http://"},
		{"of a broken answer", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", op.TypeJSON)
			fmt.Fprint(w, `{"data":`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, 3, "broke off"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, tt.answer)
			out, err := b.run(t.Context(), "", "call", "thing.find")
			if cli.ExitCode(err) != tt.code || !strings.Contains(fmt.Sprint(err), tt.want) || out != "" {
				t.Errorf("code %d, %v, output %q", cli.ExitCode(err), err, out)
			}
			if n := len(b.seen()); n != 1 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

func TestCallEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	b := setup(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	if _, err := b.run(ctx, "", "call", "thing.find"); cli.ExitCode(err) != 130 {
		t.Errorf("code %d: %v", cli.ExitCode(err), err)
	}
}

func TestTheTokenComesFromWhereTheUserSays(t *testing.T) {
	t.Parallel()
	b := setup(t, answerJSON(`{"data":[]}`))
	other := b.file("other", "swy_another-token-than-that\n")
	for _, args := range [][]string{{}, {"--token-file", other}} {
		if _, err := b.run(t.Context(), "", append([]string{"call", "thing.find"}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(b.tokens, " "); got != "Bearer "+secret+" Bearer swy_another-token-than-that" {
		t.Errorf("sent %s", got)
	}
	if err := os.Remove(filepath.Join(b.state, "token")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.run(t.Context(), "", "call", "thing.find"); err != nil || b.tokens[2] != "" {
		t.Errorf("sent %q without a token, %v", b.tokens[2], err)
	}
	if _, err := os.Stat(filepath.Join(b.state, "token")); err == nil {
		t.Error("a client made a token")
	}
}
