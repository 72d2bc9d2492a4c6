package app_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/switchyard-dev/switchyard/app/apptest"
	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/rule"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// onBoth runs a test on each engine.
func onBoth(t *testing.T, fn func(t *testing.T, o apptest.Options)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		fn(t, apptest.Options{})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		fn(t, apptest.Options{Database: testkit.Postgres(t)})
	})
}

func TestReadmeJob(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		o.Config = `{"permission": {"edit": "ask"}}`
		s := apptest.Start(t, o)
		dir := apptest.Dir(t)
		stream := s.Events(apptest.Query("directory", dir))
		ses := s.Session(dir)
		s.Prompt(ses, `tool:write:{"path":"hello.txt","content":"hi\n"}`)
		asked := stream.Until("permission.asked")
		req := apptest.Payload[rule.Request](s, asked[len(asked)-1])
		pending := apptest.Data[[]rule.Request](s, "GET", "/api/permission"+apptest.Query("directory", dir), nil)
		if len(pending) != 1 || pending[0].ID != req.ID {
			t.Fatalf("pending %+v, asked %+v", pending, req)
		}
		if _, err := os.Stat(filepath.Join(dir, "hello.txt")); err == nil {
			t.Fatal("the file was written before the answer")
		}
		if a := s.Do("POST", "/api/permission/"+string(req.ID)+"/reply", map[string]any{"response": "once"}); a.Status != 204 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		stream.Until("session.idle")
		if got := s.Wait(ses); got.Outcome != "completed" {
			t.Fatalf("%+v", got)
		}
		data, err := os.ReadFile(filepath.Join(dir, "hello.txt"))
		if err != nil || string(data) != "hi\n" {
			t.Fatalf("%q, %v", data, err)
		}
		if n := len(s.Model.Requests()); n != 2 {
			t.Fatalf("%d requests to the model, want 2", n)
		}
	})
}
