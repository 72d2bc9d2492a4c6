package op_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/runtime"
)

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
