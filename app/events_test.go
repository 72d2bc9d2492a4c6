package app_test

import (
	"context"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/app"
	"github.com/switchyard-dev/switchyard/app/apptest"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/session"
)

// control tells frames that belong to a connection, not to the log or a part.
func control(e apptest.Event) bool { return strings.HasPrefix(e.Type, "server.") }

func ids(events []apptest.Event) []string {
	var out []string
	for _, e := range events {
		if !control(e) {
			out = append(out, e.ID)
		}
	}
	return out
}

func joined(s *apptest.Server, events []apptest.Event) string {
	var b strings.Builder
	for _, e := range events {
		if e.Type == "message.part.delta" {
			b.WriteString(apptest.Payload[session.PartDelta](s, e).Delta)
		}
	}
	return b.String()
}

func TestSC01_ResumeWithoutGapOrDuplicate(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		s := apptest.Start(t, o)
		a, b := apptest.Dir(t), apptest.Dir(t)
		text := strings.Repeat("0123456789abcdé\t", 27)[:400]
		ses := s.Session(a)
		whole, broken := s.Events(apptest.Query("directory", a)), s.Events(apptest.Query("directory", a))
		s.Prompt(ses, "say:"+text)
		var first []apptest.Event
		for deltas := 0; deltas < 10; {
			e := broken.Next()
			first = append(first, e)
			if e.Type == "message.part.delta" {
				deltas++
			}
		}
		broken.Close()
		all := whole.Until("session.idle")
		last := first[len(first)-1].ID
		second := s.Events(apptest.Query("directory", a), "Last-Event-ID", last).Until("session.idle")
		if second[0].Type != "server.connected" || second[0].ID != last {
			t.Fatalf("the resumed stream begins with %s %s, not at %s", second[0].Type, second[0].ID, last)
		}
		if got, want := append(ids(first), ids(second)...), ids(all); !slices.Equal(got, want) {
			t.Fatalf("%d ids in two readings, %d in one", len(got), len(want))
		}
		if got := joined(s, first) + joined(s, second); got != text || s.Text(ses) != text {
			t.Fatalf("joined %q, stored %q", got, s.Text(ses))
		}
		foreign := s.Events(apptest.Query("directory", b), "Last-Event-ID", last)
		if rest := ids(foreign.Rest(300 * time.Millisecond)); len(rest) != 0 {
			t.Fatalf("events of another directory: %v", rest)
		}
	})
}

func TestSC02_BadForeignOrExpiredCursor(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		s := apptest.Start(t, o)
		head, ok := event.ParsePosition(s.Events("").Next().ID)
		if !ok {
			t.Fatal("the first frame has no position")
		}
		foreign := head
		foreign.Epoch ^= 1
		for reason, cursor := range map[string]string{"malformed": "zzz", "unknown": foreign.String()} {
			st := s.Events("", "Last-Event-ID", cursor)
			e := st.Next()
			if e.Type != "server.resync" {
				t.Fatalf("%s: first frame %s", reason, e.Type)
			}
			if got := apptest.Payload[event.Resync](s, e); string(got.Reason) != reason || got.Earliest == "" {
				t.Fatalf("%s: %+v", reason, got)
			}
			ses := s.Session("")
			created := st.Next()
			if created.Type != "session.created" || !strings.Contains(string(created.Payload), string(ses.ID)) {
				t.Fatalf("%s: after the resync came %s", reason, created.Type)
			}
			st.Close()
		}
	})
}

func TestSC02_ExpiredCursorAfterTrimming(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{Change: func(c *app.Config) { c.Retention.Rows = 20 }})
	first := s.Events("").Next().ID
	for range 300 {
		s.Session("")
	}
	st := s.Events("", "Last-Event-ID", first)
	e := st.Next()
	for e.Type == "server.connected" { // trimming rides on writes: more of them until it has happened
		st.Close()
		for range 200 {
			s.Session("")
		}
		st = s.Events("", "Last-Event-ID", first)
		e = st.Next()
	}
	if got := apptest.Payload[event.Resync](s, e); e.Type != "server.resync" || got.Reason != event.ReasonExpired {
		t.Fatalf("%s %+v", e.Type, got)
	}
}

func TestSC03_FramingAndHeartbeat(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{Change: func(c *app.Config) { c.Events.Heartbeat = 200 * time.Millisecond }})
	st := s.Events("", "Accept-Encoding", "gzip")
	for name, want := range map[string]string{"Content-Type": "text/event-stream", "X-Accel-Buffering": "no", "Content-Encoding": "", "Connection": ""} {
		if got := st.Header.Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := st.Header.Get("Cache-Control"); !strings.Contains(got, "no-cache") || !strings.Contains(got, "no-transform") {
		t.Errorf("Cache-Control %q", got)
	}
	if rest := st.Rest(time.Second); len(rest) != 1 || rest[0].Type != "server.connected" {
		t.Fatalf("an idle stream gave %v", rest)
	}
	ses := s.Session("")
	last := ""
	for range 3 {
		s.Prompt(ses, "say:hello")
		for _, e := range st.Until("session.idle") {
			if e.ID <= last || strings.HasPrefix(e.Type, "broken") {
				t.Fatalf("%s after %s: %s", e.ID, last, e.Type)
			}
			last = e.ID
		}
	}
	st.Close()
	st.Rest(time.Second)
	if st.Comments < 2 {
		t.Fatalf("%d comments in an idle second", st.Comments)
	}
}

func TestSC04_ContextIsolation(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		s := apptest.Start(t, o)
		a, b := apptest.Dir(t), apptest.Dir(t)
		onA, onB, onDefault := s.Events(apptest.Query("directory", a)), s.Events(apptest.Query("directory", b)), s.Events("")
		both := s.Events(apptest.Query("directory", a, "directory", b))
		everything := s.Events("?scope=server")
		sa, sb := s.Session(a), s.Session(b)
		if sa.Directory != a || sb.Directory != b {
			t.Fatalf("%s, %s", sa.Directory, sb.Directory)
		}
		s.Prompt(sa, "say:in a")
		s.Prompt(sb, "say:in b")
		for dir, st := range map[string]*apptest.Stream{a: onA, b: onB} {
			for _, e := range st.Until("session.idle") {
				if e.Context.Directory != dir && !control(e) {
					t.Fatalf("%s on the stream of %s", e.Context.Directory, dir)
				}
			}
		}
		for _, st := range []*apptest.Stream{both, everything} {
			seen := map[string]bool{}
			for len(seen) < 2 {
				if e := st.Next(); e.Type == "session.idle" {
					seen[e.Context.Directory] = true
				}
			}
			if !seen[a] || !seen[b] {
				t.Fatalf("idle events of %v", seen)
			}
		}
		if rest := ids(onDefault.Rest(200 * time.Millisecond)); len(rest) != 0 {
			t.Fatalf("the default directory's stream got %v", rest)
		}
	})
}

func TestStreamNamesMissingDirectoryAndLetsItJoin(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	here, later := apptest.Dir(t), apptest.Dir(t)+"/later"
	st := s.Events(apptest.Query("directory", here, "directory", later))
	first := apptest.Payload[event.Connected](s, st.Next())
	if len(first.Contexts) != 2 || first.Contexts[0].Directory != here || first.Contexts[1].Error != "directory_not_found" {
		t.Fatalf("%+v", first.Contexts)
	}
	if err := os.Mkdir(later, 0o700); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for { // a session a second until the stream has joined
		s.Session(later)
		for _, e := range st.Rest(time.Second) {
			if e.Context.Directory == later && e.Type == "session.created" {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the directory never joined")
		}
	}
}

func TestSC08_OrderInsideATurn(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		s := apptest.Start(t, o)
		s.Model.SetChunk(1)
		ses := s.Session("")
		st := s.Events(apptest.Query("session", string(ses.ID)))
		text := "  a\n\tb  "
		s.Model.Enqueue(turnWith(text, "todowrite", `{"todos":[]}`))
		s.Prompt(ses, "go")
		order := st.Until("session.idle")
		place := func(match func(apptest.Event) bool) int { return slices.IndexFunc(order, match) }
		message := func(role string) func(apptest.Event) bool {
			return func(e apptest.Event) bool {
				return e.Type == "message.updated" && strings.Contains(string(e.Payload), `"role":"`+role+`"`)
			}
		}
		user, answer := place(message("user")), place(message("assistant"))
		part := place(func(e apptest.Event) bool {
			return e.Type == "message.part.updated" && strings.Contains(string(e.Payload), `"type":"text"`) && place(message("assistant")) < place(func(x apptest.Event) bool { return x.ID == e.ID })
		})
		delta := place(func(e apptest.Event) bool { return e.Type == "message.part.delta" })
		if user < 0 || user >= answer || answer >= part || part >= delta {
			t.Fatalf("user %d, answer %d, part %d, delta %d", user, answer, part, delta)
		}
		var got strings.Builder
		var states []string
		for _, e := range order {
			if e.Type == "message.part.delta" {
				d := apptest.Payload[session.PartDelta](s, e)
				if d.Field == "text" && got.Len() < len(text) {
					if d.Offset != int64(got.Len()) {
						t.Fatalf("offset %d after %d bytes", d.Offset, got.Len())
					}
					got.WriteString(d.Delta)
				}
			}
			if e.Type == "message.part.updated" {
				p := apptest.Payload[struct{ Part apptest.Part }](s, e).Part
				if p.Type == "tool" && !slices.Contains(states, p.State.Status) {
					states = append(states, p.State.Status)
				}
			}
		}
		if got.String() != text {
			t.Fatalf("deltas %q", got.String())
		}
		if want := []string{"pending", "running", "completed"}; !slices.Equal(states, want) {
			t.Fatalf("tool states %v", states)
		}
		for _, e := range st.Rest(300 * time.Millisecond) {
			if e.Type != "session.updated" && !control(e) {
				t.Fatalf("%s after the idle", e.Type)
			}
		}
	})
}

func TestStreamEndsAfterIdleWhenAsked(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	ses := s.Session("")
	st := s.Events(apptest.Query("session", string(ses.ID), "until", "idle"))
	s.Prompt(ses, "say:x")
	st.Until("session.idle")
	if rest := st.Rest(5 * time.Second); len(rest) != 0 || !st.Clean {
		t.Fatalf("rest %v, clean %v", rest, st.Clean)
	}
}

func TestSC09_ShutdownWithOpenStreams(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	ses := s.Session("")
	streams := []*apptest.Stream{s.Events(""), s.Events("?scope=server"), s.Events(apptest.Query("session", string(ses.ID)))}
	s.Prompt(ses, "hang")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.Model.WaitHanging(ctx, 1); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	s.Stop()
	if took := time.Since(start); took > 6*time.Second {
		t.Fatalf("the stop took %v", took)
	}
	for i, st := range streams {
		rest := st.Rest(2 * time.Second)
		if len(rest) == 0 || rest[len(rest)-1].Type != "server.stopping" || st.Clean {
			t.Fatalf("stream %d ended %v, clean %v", i, rest, st.Clean)
		}
	}
	again := s.Restart(apptest.Options{})
	items := again.Messages(ses)
	if last := items[len(items)-1]; last.Info.Error == nil || last.Info.Time.Completed == 0 {
		t.Fatalf("%+v", last.Info)
	}
	if got := again.Wait(ses); got.Outcome != "interrupted" {
		t.Fatalf("%+v", got)
	}
	again.Prompt(ses, "say:back")
	if got := again.Wait(ses); got.Outcome != "completed" {
		t.Fatalf("%+v", got)
	}
}

func TestEventCursorOfAnAnswerIsAValidStart(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	a := s.Do(http.MethodPost, "/api/session", map[string]any{"title": "x"})
	cursor := a.Header.Get("X-Event-Cursor")
	st := s.Events("?after=" + cursor)
	if e := st.Next(); e.ID != cursor {
		t.Fatalf("the stream starts at %s, not at %s", e.ID, cursor)
	}
	if e := st.Next(); e.Type != "session.created" {
		t.Fatalf("then came %s", e.Type)
	}
}
