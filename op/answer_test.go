package op_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/access"
	"github.com/switchyard-dev/switchyard/event"
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

func TestStream(t *testing.T) {
	t.Parallel()
	b := setup(t,
		answers(func() (op.Stream[int], error) {
			return op.Stream[int]{Serve: func(ctx context.Context, w http.ResponseWriter, r *http.Request) error {
				w.Header().Set("Content-Type", "text/event-stream")
				_, err := io.WriteString(w, "data: 1\n\n")
				if flushErr := http.NewResponseController(w).Flush(); flushErr != nil {
					return flushErr
				}
				if r.URL.Query().Has("workspace") {
					return errors.New("lost")
				}
				return err
			}}, nil
		}),
		op.New(op.Spec{Name: "a.early", Method: "GET", Path: "/early", Summary: "Fails."},
			func(context.Context, *runtime.Server, struct{}) (op.Stream[int], error) {
				return op.Stream[int]{Serve: func(context.Context, http.ResponseWriter, *http.Request) error {
					return fault.New(fault.Stopping, "stopping")
				}}, nil
			}),
	)
	if got := b.send("GET", "/api/thing", ""); got.text != "data: 1\n\n" || got.header.Get("X-Context-Directory") != "/default" {
		t.Error(got.text, got.header)
	}
	if got := b.send("HEAD", "/api/thing", ""); got.status != 200 || got.header.Get("Content-Type") != "text/event-stream" {
		t.Error(got.status, got.header)
	}
	b.send("GET", "/early", "").wantProblem(t, fault.Stopping)
	res, err := http.Get(b.url + "/api/thing?workspace=x")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("a stream that failed ended cleanly: %q", text)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	lines := func(items ...any) iter.Seq2[map[string]int, error] {
		return func(yield func(map[string]int, error) bool) {
			for _, item := range items {
				err, _ := item.(error)
				line, _ := item.(map[string]int)
				if !yield(line, err) {
					return
				}
			}
		}
	}
	one := map[string]int{"a": 1}
	for want, items := range map[string][]any{"{\"a\":1}\n{\"a\":1}\n": {one, one}, "": nil} {
		b := setup(t, answers(func() (op.Lines[map[string]int], error) { return op.Lines[map[string]int]{Items: lines(items...)}, nil }))
		got := b.send("GET", "/api/thing", "")
		if got.status != 200 || got.text != want || got.header.Get("Content-Type") != "application/x-ndjson" || got.header.Get("X-Context-Directory") != "/default" {
			t.Errorf("%d %q %v", got.status, got.text, got.header)
		}
	}
	b := setup(t, answers(func() (op.Lines[map[string]int], error) {
		return op.Lines[map[string]int]{Items: lines(fault.New(fault.PatternInvalid, "bad"))}, nil
	}))
	b.send("GET", "/api/thing", "").wantProblem(t, fault.PatternInvalid)
	b = setup(t, answers(func() (op.Lines[map[string]int], error) {
		return op.Lines[map[string]int]{Items: lines(one, errors.New("lost"))}, nil
	}))
	res, err := http.Get(b.url + "/api/thing")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("lines that failed ended cleanly: %q", text)
	}
}

func TestEarlySendsHeadersAndSpacesBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	b := setupServing(t, &op.Serving{Beat: 5 * time.Millisecond}, answers(func() (op.Early[string], error) {
		return op.Early[string]{Wait: func(ctx context.Context) (string, error) {
			select {
			case <-release:
				return "done", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}}, nil
	}))
	res, err := http.Get(b.url + "/api/thing")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/json" {
		t.Fatal(res.Status, res.Header)
	}
	body := bufio.NewReader(res.Body)
	for range 2 {
		if space, err := body.ReadByte(); err != nil || space != ' ' {
			t.Fatal(space, err)
		}
	}
	close(release)
	var got struct {
		Data    string
		Context event.Context
	}
	if err := json.NewDecoder(body).Decode(&got); err != nil || got.Data != "done" || got.Context.Directory != "/default" {
		t.Fatal(got, err)
	}
}

func TestEarlyThatFailsAbortsTheConnection(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(context.Context) (int, error){
		"an error": func(context.Context) (int, error) { return 0, errors.New("lost") },
		"a panic":  func(context.Context) (int, error) { panic("lost") },
	} {
		b := setup(t, answers(func() (op.Early[int], error) { return op.Early[int]{Wait: wait}, nil }))
		res, err := http.Get(b.url + "/api/thing")
		if err != nil {
			continue // Aborted before the header was read.
		}
		if text, err := io.ReadAll(res.Body); err == nil {
			t.Errorf("%s ended cleanly: %q", name, text)
		}
		res.Body.Close()
	}
}

func TestEarlyEndsWithItsClient(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	b := setup(t, answers(func() (op.Early[int], error) {
		return op.Early[int]{Wait: func(ctx context.Context) (int, error) {
			<-ctx.Done()
			close(ended)
			return 0, ctx.Err()
		}}, nil
	}))
	res, err := http.Get(b.url + "/api/thing")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Fatal("the wait goes on without its client")
	}
}

func TestAnswerThatCannotBeEncodedIsInternal(t *testing.T) {
	t.Parallel()
	b := setup(t, answers(func() (map[string]any, error) { return map[string]any{"a": func() {}}, nil }))
	b.send("GET", "/api/thing", "").wantProblem(t, fault.Internal)
}
