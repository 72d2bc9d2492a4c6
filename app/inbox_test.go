package app_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/switchyard-dev/switchyard/app/apptest"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/session"
)

// waiting sends prompts that wait behind a running turn; their texts are
// "say:<name>", their ids "msg_<name>".
func waiting(t *testing.T, s *apptest.Server, ses session.Session, delivery string, names ...string) {
	t.Helper()
	for _, name := range names {
		in := map[string]any{"messageID": "msg_" + name, "delivery": delivery, "prompt": map[string]any{"text": "say:" + name}}
		if got := apptest.Data[apptest.Prompted](s, "POST", "/api/session/"+string(ses.ID)+"/prompt", in); got.State != "queued" || got.TurnID == "" {
			t.Fatalf("%s: %+v", name, got)
		}
	}
}

// inbox gives the waiting prompts as "<name> <position> <delivery>".
func inbox(s *apptest.Server, ses session.Session) []string {
	out := []string{}
	for _, q := range apptest.Data[[]session.Queued](s, "GET", "/api/session/"+string(ses.ID)+"/inbox", nil) {
		out = append(out, fmt.Sprintf("%s %d %s", strings.TrimPrefix(string(q.MessageID), "msg_"), q.Position, q.Delivery))
	}
	return out
}

// turns gives the users' messages, one string per turn.
func turns(s *apptest.Server, ses session.Session) []string {
	var out []string
	last := ""
	for _, m := range apptest.Data[[]struct {
		Info struct{ ID, Role, TurnID string }
	}](s, "GET", "/api/session/"+string(ses.ID)+"/context", nil) {
		name := strings.TrimPrefix(m.Info.ID, "msg_")
		switch {
		case m.Info.Role != "user":
		case m.Info.TurnID == last:
			out[len(out)-1] += " " + name
		default:
			out, last = append(out, name), m.Info.TurnID
		}
	}
	return out
}

// hold starts a turn that waits for a person; release lets it go on.
func hold(t *testing.T, s *apptest.Server, ses session.Session) (release func()) {
	t.Helper()
	in := map[string]any{"messageID": "msg_first", "prompt": map[string]any{"text": `tool:write:{"path":"f","content":"x"}`}}
	st := s.Events("")
	apptest.Data[apptest.Prompted](s, "POST", "/api/session/"+string(ses.ID)+"/prompt", in)
	asked := st.Until("permission.asked")
	req := apptest.Payload[rule.Request](s, asked[len(asked)-1])
	st.Close()
	return func() {
		t.Helper()
		if a := s.Do("POST", "/api/permission/"+string(req.ID)+"/reply", map[string]any{"response": "once"}); a.Status != 204 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
}

// TestInboxIsListedChangedAndDelivered: what waits can be seen, changed and taken
// back; the immediate ones join the running turn at its next step, the deferred
// ones follow one at a time in the order of their admission.
func TestInboxIsListedChangedAndDelivered(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		o.Config = `{"permission": {"edit": "ask"}}`
		s := apptest.Start(t, o)
		ses := s.Session("")
		path := "/api/session/" + string(ses.ID) + "/inbox"
		if got := inbox(s, ses); len(got) != 0 {
			t.Fatalf("%v", got)
		}
		release := hold(t, s, ses)
		waiting(t, s, ses, "deferred", "a", "b")
		waiting(t, s, ses, "immediate", "c")
		waiting(t, s, ses, "deferred", "d", "e")
		if got := inbox(s, ses); !slices.Equal(got, []string{"a 1 deferred", "b 2 deferred", "c 3 immediate", "d 4 deferred", "e 5 deferred"}) {
			t.Fatalf("%v", got)
		}
		st := s.Events("?types=session.inbox.*")
		defer st.Close()
		got := apptest.Data[session.Queued](s, "PATCH", path+"/msg_d", map[string]any{"delivery": "immediate"})
		if got.Delivery != session.Immediate || got.Position != 4 || !strings.Contains(string(got.Prompt), "say:d") {
			t.Fatalf("%+v", got)
		}
		updated := st.Until("session.inbox.updated")
		if p := apptest.Payload[session.InboxItem](s, updated[len(updated)-1]); p.MessageID != "msg_d" || p.Delivery != session.Immediate {
			t.Fatalf("%+v", p)
		}
		if a := s.Do("DELETE", path+"/msg_b", nil); a.Status != 204 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		removed := st.Until("session.inbox.removed")
		if p := apptest.Payload[session.InboxRemoved](s, removed[len(removed)-1]); p.MessageID != "msg_b" || p.Reason != "cancelled" {
			t.Fatalf("%+v", p)
		}
		for id, code := range map[string]string{"msg_b": "message_not_found", "msg_none": "message_not_found", "x": "message_not_found", "msg_first": "already_delivered"} {
			if a := s.Do("DELETE", path+"/"+id, nil); a.Code() != code {
				t.Errorf("DELETE %s: %d %s, want %s", id, a.Status, a.Code(), code)
			}
			if a := s.Do("PATCH", path+"/"+id, map[string]any{"delivery": "deferred"}); a.Code() != code {
				t.Errorf("PATCH %s: %d %s, want %s", id, a.Status, a.Code(), code)
			}
		}
		in := map[string]any{"messageID": "msg_b", "delivery": "deferred", "prompt": map[string]any{"text": "say:b"}}
		if got := apptest.Data[apptest.Prompted](s, "POST", "/api/session/"+string(ses.ID)+"/prompt", in); got.State != "cancelled" {
			t.Errorf("a withdrawn prompt sent again: %+v", got)
		}
		release()
		if got := s.Wait(ses); got.Outcome != "completed" {
			t.Fatalf("%+v", got)
		}
		if got := turns(s, ses); !slices.Equal(got, []string{"first c d", "a", "e"}) {
			t.Errorf("turns %q", got)
		}
		if got := inbox(s, ses); len(got) != 0 {
			t.Errorf("left: %v", got)
		}
	})
}

// TestAnInterruptParksTheInbox: nothing that waits starts until the next prompt,
// or until one of the waiting is made immediate.
func TestAnInterruptParksTheInbox(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		s := apptest.Start(t, o)
		for name, c := range map[string]struct {
			revive func(ses session.Session)
			turns  []string
		}{
			"prompt": {func(ses session.Session) {
				in := map[string]any{"messageID": "msg_new", "prompt": map[string]any{"text": "say:new"}}
				if got := apptest.Data[apptest.Prompted](s, "POST", "/api/session/"+string(ses.ID)+"/prompt", in); got.State != "delivered" {
					t.Errorf("%+v", got)
				}
			}, []string{"first", "new", "a", "b"}},
			"update": {func(ses session.Session) {
				got := apptest.Data[session.Queued](s, "PATCH", "/api/session/"+string(ses.ID)+"/inbox/msg_b", map[string]any{"delivery": "immediate"})
				if got.Position != 0 || got.Delivery != session.Immediate {
					t.Errorf("%+v", got)
				}
			}, []string{"first", "b", "a"}},
		} {
			ses := s.Session("")
			path := "/api/session/" + string(ses.ID)
			in := map[string]any{"messageID": "msg_first", "prompt": map[string]any{"text": "hang"}}
			apptest.Data[apptest.Prompted](s, "POST", path+"/prompt", in)
			waiting(t, s, ses, "deferred", "a", "b")
			if a := s.Do("POST", path+"/interrupt", nil); a.Status != 204 {
				t.Fatalf("%s: %d %s", name, a.Status, a.Body)
			}
			if got := s.Wait(ses); got.Outcome != "cancelled" || got.Status.Type != "idle" {
				t.Fatalf("%s: %+v", name, got)
			}
			apptest.Data[session.Queued](s, "PATCH", path+"/inbox/msg_a", map[string]any{"delivery": "deferred"})
			if got := inbox(s, ses); !slices.Equal(got, []string{"a 1 deferred", "b 2 deferred"}) {
				t.Fatalf("%s: %v", name, got)
			}
			c.revive(ses)
			if got := s.Wait(ses); got.Outcome != "completed" {
				t.Fatalf("%s: %+v", name, got)
			}
			if got := turns(s, ses); !slices.Equal(got, c.turns) {
				t.Errorf("%s: turns %q, want %q", name, got, c.turns)
			}
		}
	})
}

func TestAFullInboxSaysWhenToTryAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		s := apptest.Start(t, o)
		ses := s.Session("")
		path := "/api/session/" + string(ses.ID)
		s.Prompt(ses, "hang")
		// More than there is room for, at once: the bound holds.
		var mu sync.Mutex
		status := map[int]int{}
		var wg sync.WaitGroup
		for worker := range 8 {
			wg.Go(func() {
				for n := range 10 {
					in := map[string]any{"messageID": fmt.Sprintf("msg_%d_%d", worker, n), "delivery": "deferred", "prompt": map[string]any{"text": "say:x"}}
					a := s.Do("POST", path+"/prompt", in)
					mu.Lock()
					status[a.Status]++
					mu.Unlock()
					if a.Status == 429 && (a.Code() != "queue_full" || a.Header.Get("Retry-After") != "5") {
						t.Errorf("%s %q", a.Body, a.Header.Get("Retry-After"))
					}
				}
			})
		}
		wg.Wait()
		if status[200] != session.MaxQueued || status[429] != 80-session.MaxQueued {
			t.Fatalf("%v", status)
		}
		items := inbox(s, ses)
		if len(items) != session.MaxQueued {
			t.Fatalf("%d wait", len(items))
		}
		name, _, _ := strings.Cut(items[0], " ")
		if a := s.Do("DELETE", path+"/inbox/msg_"+name, nil); a.Status != 204 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		waiting(t, s, ses, "deferred", "room")
	})
}
