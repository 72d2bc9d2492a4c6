package sse_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/sse"
)

func TestAppend(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, id, data, want string }{
		{"a frame", "evt_1", `{"a":1}`, "id: evt_1\ndata: {\"a\":1}\n\n"},
		{"no id", "", `{}`, "data: {}\n\n"},
		{"line breaks between tokens", "1", "{\r\n\"a\":\n1}", "id: 1\ndata: {  \"a\": 1}\n\n"},
		{"an escaped line break", "1", `{"a":"x\ny"}`, "id: 1\ndata: {\"a\":\"x\\ny\"}\n\n"},
		{"an id that would break the frame", "1\ndata: x", `{}`, "data: {}\n\n"},
		{"an id with a NUL", "1\x00", `{}`, "data: {}\n\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := string(sse.Append(nil, c.id, []byte(c.data))); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func FuzzAppendGivesOneDataLine(f *testing.F) {
	f.Add("evt_1", "a\r\nb")
	f.Add("a\nb", "\u2028")
	f.Fuzz(func(t *testing.T, id, text string) {
		data, err := json.MarshalIndent(map[string]string{"text": text}, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		frame := sse.Append(nil, id, data)
		body, ok := bytes.CutSuffix(frame, []byte("\n\n"))
		if !ok || bytes.Count(body, []byte("\n")) > 1 || bytes.ContainsAny(body, "\r\x00") {
			t.Fatalf("not one frame: %q", frame)
		}
		_, got, _ := bytes.Cut(body, []byte("data: "))
		if !json.Valid(got) {
			t.Fatalf("changed the JSON: %q", got)
		}
	})
}

func TestWriterSendsHeadersAndFrames(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		out := sse.NewWriter(w, time.Second)
		out.Start()
		one, two := sse.Append(nil, "1", []byte(`1`)), sse.Append(nil, "2", []byte(`2`))
		for _, err := range []error{out.Send(one), out.Send(one, two), out.Comment("heartbeat")} {
			if err != nil {
				t.Error(err)
			}
		}
	}))
	defer server.Close()
	res, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	want := "id: 1\ndata: 1\n\nid: 1\ndata: 1\n\nid: 2\ndata: 2\n\n: heartbeat\n\n"
	if string(body) != want {
		t.Errorf("body %q, want %q", body, want)
	}
	for name, value := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no", "Content-Encoding": "",
	} {
		if got := res.Header.Get(name); got != value {
			t.Errorf("%s: %q, want %q", name, got, value)
		}
	}
}

func TestAbortIsAnUncleanEnd(t *testing.T) {
	t.Parallel()
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		out := sse.NewWriter(w, time.Second)
		out.Start()
		if err := out.Send(sse.Append(nil, "1", []byte(`1`))); err != nil {
			t.Error(err)
		}
		sse.Abort()
	})
	for _, http2 := range []bool{false, true} {
		server := httptest.NewUnstartedServer(handler)
		server.EnableHTTP2 = http2
		server.StartTLS()
		defer server.Close()
		res, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		if (res.ProtoMajor == 2) != http2 {
			t.Fatalf("spoke %s", res.Proto)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err == nil || string(body) != "id: 1\ndata: 1\n\n" {
			t.Errorf("%s: body %q, error %v; want the frame and an error", res.Proto, body, err)
		}
	}
}

func TestIdleStreamOutlivesItsWriteDeadline(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		out := sse.NewWriter(w, 30*time.Millisecond)
		out.Start()
		if err := out.Send([]byte("data: 1\n\n")); err != nil {
			t.Error(err)
		}
		<-release
		if err := out.Send([]byte("data: 2\n\n")); err != nil {
			t.Error(err)
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	res, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	time.AfterFunc(150*time.Millisecond, func() { close(release) })
	body, err := io.ReadAll(res.Body)
	if err != nil || strings.Count(string(body), "data:") != 2 {
		t.Errorf("body %q, error %v", body, err)
	}
}

func TestSendFailsWhenNobodyReads(t *testing.T) {
	t.Parallel()
	failed := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		out := sse.NewWriter(w, 50*time.Millisecond)
		out.Start()
		big := bytes.Repeat([]byte("x"), 1<<20)
		for range 64 {
			if err := out.Send(big); err != nil {
				failed <- err
				return
			}
		}
		failed <- nil
	}))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("error %v, want the deadline's", err)
	}
}
