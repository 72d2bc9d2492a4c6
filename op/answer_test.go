package op_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/access"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/runtime"
)

// answers makes a request operation at /api/thing that gives what out gives.
func answers[Out any](out func() (Out, error)) op.Any {
	return op.New(op.Spec{Name: "thing.get", Method: "GET", Path: "/api/thing", Summary: "A thing."},
		func(context.Context, *runtime.Request, struct{}) (Out, error) { return out() })
}

func TestValuesAreWrapped(t *testing.T) {
	t.Parallel()
	const where = `"context":{"directory":"/default"}`
	n := 0
	for want, o := range map[string]op.Any{
		`{"data":{"a":"<&>"},` + where + "}\n": answers(func() (map[string]string, error) { return map[string]string{"a": "<&>"}, nil }),
		`{"data":[],` + where + "}\n":          answers(func() ([]int, error) { return nil, nil }),
		`{"data":{ "raw" : 1.0 },` + where + "}\n": answers(func() (op.JSON[int], error) {
			return op.JSON[int](`{ "raw" : 1.0 }`), nil
		}),
		`{"data":null,` + where + "}\n": answers(func() (op.JSON[int], error) { return nil, nil }),
		`{"data":[],"cursor":{},` + where + "}\n": answers(func() (op.Page[int], error) {
			return op.Page[int]{}, nil
		}),
		`{"data":[1],"cursor":{"previous":"p","next":"n"},"total":7,"startIndex":0,` + where + "}\n": answers(func() (op.Page[int], error) {
			total := 7
			return op.Page[int]{Items: []int{1}, Cursor: op.Cursor{Previous: "p", Next: "n"}, Total: &total, StartIndex: &n}, nil
		}),
		`{"data":[{ "a":1},{"b":2 }],"cursor":{},` + where + "}\n": answers(func() (op.Page[op.JSON[int]], error) {
			return op.Page[op.JSON[int]]{Items: []op.JSON[int]{op.JSON[int](`{ "a":1}`), op.JSON[int](`{"b":2 }`)}}, nil
		}),
		`{"data":[{ }],"cursor":{"next":"n"},` + where + "}\n": answers(func() (op.Page[json.RawMessage], error) {
			return op.Page[json.RawMessage]{Items: []json.RawMessage{json.RawMessage(`{ }`)}, Cursor: op.Cursor{Next: "n"}}, nil
		}),
	} {
		b := setup(t, o)
		got := b.send("GET", "/api/thing", "")
		if got.status != http.StatusOK || got.text != want || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("got %d %s, want %s", got.status, got.text, want)
		}
		if got.header.Get("Cache-Control") != "no-store" {
			t.Error(got.header)
		}
		if head := b.send("HEAD", "/api/thing", ""); head.status != http.StatusOK || head.text != "" ||
			head.header.Get("Content-Length") != got.header.Get("Content-Length") {
			t.Errorf("HEAD: %d %v", head.status, head.header)
		}
	}
}

func TestNoneIs204(t *testing.T) {
	t.Parallel()
	b := setup(t, answers(func() (op.None, error) { return op.None{}, nil }))
	if got := b.send("GET", "/api/thing", ""); got.status != http.StatusNoContent || got.text != "" || got.header.Get("Content-Type") != "" {
		t.Errorf("%d %q %v", got.status, got.text, got.header)
	}
}

func TestEventCursorIsReadBeforeTheHandlerRuns(t *testing.T) {
	t.Parallel()
	var b *bundle
	moves := func(name, path string, noCursor bool, result error) op.Any {
		return op.New(op.Spec{Name: name, Method: "POST", Path: path, Summary: "Moves.", NoCursor: noCursor},
			func(context.Context, *runtime.Request, struct{}) (op.None, error) {
				b.host.move("evt_2")
				return op.None{}, result
			})
	}
	b = setup(t, moves("a.move", "/a", false, nil), moves("a.fail", "/b", false, fault.New(fault.Forbidden, "no")), moves("a.none", "/c", true, nil))
	for path, want := range map[string]string{"/a": "evt_1", "/b": "evt_1", "/c": ""} {
		b.host.move("evt_1")
		if got := b.send("POST", path, ""); got.header.Get("X-Event-Cursor") != want {
			t.Errorf("%s: %v", path, got.header)
		}
	}
	b.host.move("")
	if _, there := b.send("POST", "/a", "").header["X-Event-Cursor"]; there {
		t.Error("an empty cursor is sent")
	}
}

func TestPrincipalReachesTheHost(t *testing.T) {
	t.Parallel()
	o := answers(func() (op.None, error) { return op.None{}, nil })
	h := &host{}
	want := access.Principal{TokenID: "tok_1", Name: "me"}
	if _, err := o.Invoke(t.Context(), h, op.Target{Principal: want}, nil); err != nil {
		t.Fatal(err)
	}
	if len(h.calls) != 1 || h.calls[0] != want {
		t.Errorf("%v", h.calls)
	}
}

func TestResponseHeaderIsTheHandlersToSet(t *testing.T) {
	t.Parallel()
	b := setup(t, op.New(op.Spec{Name: "a.b", Method: "POST", Path: "/a", Summary: "Sets."},
		func(ctx context.Context, _ *runtime.Server, _ struct{}) (string, error) {
			op.ResponseHeader(ctx).Set("Idempotent-Replayed", "true")
			return op.RequestID(ctx), nil
		}))
	got := b.send("POST", "/a", "")
	got.wantData(t, `"req_test"`)
	if got.header.Get("Idempotent-Replayed") != "true" {
		t.Error(got.header)
	}
}

func TestTagged(t *testing.T) {
	t.Parallel()
	for _, tag := range []string{"", `v"1`} {
		b := setup(t, answers(func() (op.Tagged[[]int], error) { return op.Tagged[[]int]{Value: []int{1}, ETag: tag}, nil }))
		got := b.send("GET", "/api/thing", "")
		etag := got.header.Get("ETag")
		got.wantData(t, `[1]`)
		if !strings.HasPrefix(etag, `W/"`) || got.header.Get("Cache-Control") != "private, no-cache" {
			t.Error(got.header)
		}
		for header, status := range map[string]int{etag: 304, strings.TrimPrefix(etag, "W/"): 304, `"x", ` + etag: 304, "*": 304, `"x"`: 200, "": 200} {
			got := b.send("GET", "/api/thing", "", "If-None-Match", header)
			if got.status != status || got.header.Get("ETag") != etag || got.header.Get("X-Event-Cursor") == "" {
				t.Errorf("If-None-Match %s: %d %v", header, got.status, got.header)
			}
		}
	}
}

func TestTaggedPage(t *testing.T) {
	t.Parallel()
	b := setup(t, answers(func() (op.Tagged[op.Page[int]], error) {
		return op.Tagged[op.Page[int]]{Value: op.Page[int]{Items: []int{1}}}, nil
	}))
	got := b.send("GET", "/api/thing", "")
	got.wantData(t, `[1]`)
	if got.header.Get("ETag") == "" || got.json["cursor"] == nil {
		t.Error(got.text, got.header)
	}
}

type closing struct {
	*bytes.Reader
	closed *bool
}

func (c closing) Close() error { *c.closed = true; return nil }

func TestRaw(t *testing.T) {
	t.Parallel()
	closed := false
	modified := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b := setup(t, answers(func() (op.Raw, error) {
		return op.Raw{Content: closing{bytes.NewReader([]byte("0123456789")), &closed}, Type: "text/html", ETag: "v1", ModTime: modified}, nil
	}))
	got := b.send("GET", "/api/thing?directory=/a%20b/ä&workspace=ws_1", "")
	if got.status != 200 || got.text != "0123456789" || !closed {
		t.Fatal(got.status, got.text, closed)
	}
	for name, want := range map[string]string{
		"Content-Type": "text/html", "ETag": `"v1"`, "X-Context-Directory": "/a%20b/%C3%A4", "X-Context-Workspace": "ws_1",
		"Content-Length": "10", "Accept-Ranges": "bytes", "X-Content-Type-Options": "nosniff", "X-Event-Cursor": "evt_1",
		"Content-Security-Policy": "default-src 'none'; sandbox", "Last-Modified": "Fri, 02 Jan 2026 03:04:05 GMT",
	} {
		if got.header.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, got.header.Get(name), want)
		}
	}
	for _, c := range []struct {
		header, value string
		status        int
		text          string
	}{
		{"Range", "bytes=2-4", 206, "234"},
		{"Range", "bytes=-3", 206, "789"},
		{"Range", "lines=1-2", 416, ""},
		{"If-None-Match", `"v1"`, 304, ""},
		{"If-None-Match", `"v2"`, 200, "0123456789"},
		{"If-Modified-Since", modified.Format(http.TimeFormat), 304, ""},
	} {
		got := b.send("GET", "/api/thing", "", c.header, c.value)
		if got.status != c.status || c.text != "" && got.text != c.text {
			t.Errorf("%s: %s: %d %q", c.header, c.value, got.status, got.text)
		}
	}
	got = b.send("GET", "/api/thing", "", "Range", "bytes=20-30")
	got.wantProblem(t, fault.RangeInvalid)
	if got.header.Get("Content-Range") != "bytes */10" {
		t.Error(got.header)
	}
	b.send("GET", "/api/thing", "", "If-Match", `"v2"`).wantProblem(t, fault.ETagMismatch)
	if head := b.send("HEAD", "/api/thing", ""); head.status != 200 || head.header.Get("Content-Length") != "10" {
		t.Error(head.status, head.header)
	}
}

func TestRawBytesHaveASafeTypeByDefault(t *testing.T) {
	t.Parallel()
	b := setup(t, answers(func() (op.Raw, error) { return op.Raw{Bytes: []byte("<script>"), Immutable: true}, nil }))
	got := b.send("GET", "/api/thing", "")
	if got.header.Get("Content-Type") != "application/octet-stream" || !strings.Contains(got.header.Get("Cache-Control"), "immutable") {
		t.Error(got.header)
	}
	if _, there := got.header["Etag"]; there {
		t.Error(got.header)
	}
}

func TestAlt(t *testing.T) {
	t.Parallel()
	b := setup(t, op.New(op.Spec{Name: "fs.file", Method: "GET", Path: "/api/file", Summary: "A file."},
		func(_ context.Context, _ *runtime.Request, in struct {
			Raw    bool   `json:"raw,omitempty"`
			Accept string `json:"Accept,omitempty" in:"header"`
		},
		) (op.Alt[op.Tagged[string], op.Raw], error) {
			if in.Raw || op.Accepts(in.Accept, "application/octet-stream") {
				return op.Alt[op.Tagged[string], op.Raw]{Other: &op.Raw{Bytes: []byte("raw")}}, nil
			}
			return op.Alt[op.Tagged[string], op.Raw]{Value: op.Tagged[string]{Value: "json"}}, nil
		}))
	b.send("GET", "/api/file", "").wantData(t, `"json"`)
	for _, got := range []reply{
		b.send("GET", "/api/file?raw=true", ""),
		b.send("GET", "/api/file", "", "Accept", "text/html, application/octet-stream;q=0.5"),
	} {
		if got.text != "raw" {
			t.Error(got.text)
		}
	}
	for _, accept := range []string{"*/*", "application/octet-stream;q=0", "application/octet-stream; q=0.0", "application/json"} {
		b.send("GET", "/api/file", "", "Accept", accept).wantData(t, `"json"`)
	}
}

func TestAnswerThatCannotBeEncodedIsInternal(t *testing.T) {
	t.Parallel()
	b := setup(t, answers(func() (map[string]any, error) { return map[string]any{"a": func() {}}, nil }))
	b.send("GET", "/api/thing", "").wantProblem(t, fault.Internal)
}
