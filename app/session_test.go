package app_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/app/apptest"
	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/session"
)

// walk pages through a list to its end, forwards.
func walk(s *apptest.Server, path string) (pages [][]session.Session) {
	cursor := ""
	for range 200 {
		page := apptest.List[session.Session](s, path+cursor)
		pages = append(pages, page.Data)
		if page.Cursor.Next == "" {
			return pages
		}
		cursor = "&cursor=" + page.Cursor.Next
	}
	return pages
}

func sessionIDs(pages [][]session.Session) map[string]bool {
	out := map[string]bool{}
	for _, page := range pages {
		for _, ses := range page {
			out[string(ses.ID)] = true
		}
	}
	return out
}

// family seeds roots with children through the store's own service.
func family(t *testing.T, s *apptest.Server, dir string, roots, children, archived int) {
	t.Helper()
	first := s.Session(dir)
	svc := s.App.Host().Sessions
	create := func(parent *session.Session, n int) session.Session {
		in := session.CreateInput{ProjectID: first.ProjectID, Context: first.Context(), Title: fmt.Sprintf("Session %d", n)}
		if parent != nil {
			in.ParentID = parent.ID
		}
		ses, err := svc.Create(t.Context(), in)
		if err != nil {
			t.Error(err)
		}
		return ses
	}
	var wg sync.WaitGroup
	for worker := range 16 {
		wg.Go(func() {
			for n := worker; n < roots; n += 16 {
				root := create(nil, n)
				for c := range children {
					create(&root, c)
				}
				if n < archived {
					when := int64(1)
					if _, err := svc.Update(t.Context(), root.ID, session.Change{Archived: &when}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if a := s.Do(http.MethodDelete, "/api/session/"+string(first.ID), nil); a.Status != 204 {
		t.Fatal(a.Status)
	}
}

func TestSC15_SessionListAtSize(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		s := apptest.Start(t, o)
		a, b := apptest.Dir(t), apptest.Dir(t)
		const children = 4
		roots, archived, others := 1000, 100, 500
		if o.Database != "" { // each seeding write costs a round trip and a sync there
			roots, archived, others = 200, 20, 50
		}
		family(t, s, a, roots, children, archived)
		family(t, s, b, others, 0, 0)
		in := func(more string) string { return "/api/session" + apptest.Query("directory", a) + more }

		pages := walk(s, in("&roots=true&limit=100"))
		if got := len(sessionIDs(pages)); got != roots-archived || len(pages) != (roots-archived+99)/100 {
			t.Fatalf("%d roots in %d pages", got, len(pages))
		}
		if got := len(sessionIDs(walk(s, in("&limit=150")))); got != roots*(children+1)-archived {
			t.Fatalf("%d sessions", got)
		}
		if got := len(sessionIDs(walk(s, in("&limit=150&archived=include")))); got != roots*(children+1) {
			t.Fatalf("%d with archived", got)
		}
		if page := apptest.List[session.Session](s, in("&limit=5000&archived=only")); len(page.Data) != archived || *page.Total != archived {
			t.Fatalf("%d archived, total %v", len(page.Data), *page.Total)
		}
		if page := apptest.List[session.Session](s, in("&limit=5000")); len(page.Data) != session.MaxLimit {
			t.Fatalf("a limit over the maximum gave %d", len(page.Data))
		}
		if page := apptest.List[session.Session](s, in("&search=SESSION+19")); len(page.Data) == 0 || page.Total != nil {
			t.Fatalf("search: %d, total %v", len(page.Data), page.Total)
		}
		stablePaging(t, s, a, in)
	})
}

// stablePaging: a session made between two pages moves nothing, and a cursor is
// good both ways and for equal filters only.
func stablePaging(t *testing.T, s *apptest.Server, dir string, in func(string) string) {
	t.Helper()
	one := apptest.List[session.Session](s, in("&limit=30"))
	s.Session(dir)
	two := apptest.List[session.Session](s, in("&limit=30&cursor="+one.Cursor.Next))
	back := apptest.List[session.Session](s, in("&limit=30&cursor="+two.Cursor.Previous))
	same := func(x, y session.Session) bool { return x.ID == y.ID }
	if !slices.EqualFunc(one.Data, back.Data, same) || slices.ContainsFunc(two.Data, func(x session.Session) bool { return same(x, one.Data[29]) }) {
		t.Fatal("the pages moved")
	}
	asc := apptest.List[session.Session](s, in("&limit=30&order=asc"))
	if asc.Data[0].Time.Created > asc.Data[29].Time.Created || asc.Cursor.Previous != "" {
		t.Fatal("ascending order is wrong")
	}
	if got := s.Do("GET", in("&roots=true&cursor="+one.Cursor.Next), nil); got.Code() != "cursor_invalid" {
		t.Fatalf("a cursor with other filters: %d %s", got.Status, got.Code())
	}
	spelled := "/api/session" + apptest.Query("directory", dir+"/../"+dir[strings.LastIndex(dir, "/")+1:]+"/") + "&limit=30&cursor=" + one.Cursor.Next
	if got := apptest.List[session.Session](s, spelled); !slices.EqualFunc(got.Data, two.Data, same) {
		t.Fatal("another spelling of the directory gives another page")
	}
}

func TestSessionListByPathAndScope(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	repo := repoWith(t, "pkg/a", "pkgs")
	other := apptest.Dir(t)
	top, below, beside := s.Session(repo), s.Session(repo+"/pkg/a"), s.Session(repo+"/pkgs")
	s.Session(other)
	if below.Path != "pkg/a" || top.Path != "" || top.ProjectID != below.ProjectID {
		t.Fatalf("paths %q %q", top.Path, below.Path)
	}
	for query, want := range map[string][]session.Session{
		apptest.Query("directory", repo):                                     {top},
		apptest.Query("directory", repo, "path", "pkg"):                      {below},
		apptest.Query("directory", repo, "path", repo+"/pkg/a"):              {below},
		apptest.Query("directory", repo, "scope", "project", "order", "asc"): {top, below, beside},
	} {
		got := apptest.List[session.Session](s, "/api/session"+query).Data
		if !slices.EqualFunc(got, want, func(x, y session.Session) bool { return x.ID == y.ID }) {
			t.Errorf("%s: %d sessions, want %d", query, len(got), len(want))
		}
	}
	if got := apptest.List[session.Session](s, "/api/session?scope=server"); len(got.Data) != 4 {
		t.Errorf("scope=server: %d", len(got.Data))
	}
	if a := s.Do("GET", "/api/session"+apptest.Query("directory", repo, "path", "../x"), nil); a.Code() != "path_outside" {
		t.Errorf("path outside: %d %s", a.Status, a.Code())
	}
}

func TestSC16_MessagePaging(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		s := apptest.Start(t, o)
		ses := s.Session("")
		turns := 2500 // 5,000 messages
		if o.Database != "" {
			turns = 130
		}
		seedTurns(t, s, ses, turns)
		list := "/api/session/" + string(ses.ID) + "/message"
		page := apptest.List[apptest.Message](s, list)
		if len(page.Data) != session.DefaultLimit || *page.Total != 2*turns || *page.StartIndex != 2*turns-session.DefaultLimit {
			t.Fatalf("%d of %d from %d", len(page.Data), *page.Total, *page.StartIndex)
		}
		if got := len(apptest.List[apptest.Message](s, list+"?limit=1000000").Data); got != session.MaxLimit {
			t.Fatalf("a limit over the maximum gave %d", got)
		}
		var forward []string
		for cursor := ""; ; {
			page := apptest.List[apptest.Message](s, list+"?order=asc&limit=33"+cursor)
			for _, m := range page.Data {
				forward = append(forward, m.Info.ID)
			}
			if page.Cursor.Next == "" {
				break
			}
			cursor = "&cursor=" + page.Cursor.Next
		}
		if len(forward) != 2*turns || len(slices.Compact(slices.Sorted(slices.Values(forward)))) != 2*turns {
			t.Fatalf("%d messages in a walk", len(forward))
		}
		middle := apptest.List[apptest.Message](s, list+"?order=asc&limit=11&around="+forward[100])
		if middle.Data[5].Info.ID != forward[100] || *middle.StartIndex != 95 {
			t.Fatalf("around starts at %d", *middle.StartIndex)
		}
		index := apptest.List[apptest.Message](s, list+"?limit=10&index=40")
		if *index.StartIndex != 40 || index.Data[9].Info.ID != forward[40] || index.Data[0].Info.ID != forward[49] {
			t.Fatalf("index starts at %d", *index.StartIndex)
		}
		back := apptest.List[apptest.Message](s, list+"?order=asc&limit=11&cursor="+middle.Cursor.Previous)
		if back.Data[10].Info.ID != forward[94] {
			t.Fatal("the previous page does not end before this one")
		}
	})
}

// seedTurns writes turns of two messages through the store's own services.
func seedTurns(t *testing.T, s *apptest.Server, ses session.Session, turns int) {
	t.Helper()
	svc, ids := s.App.Host().Sessions, id.NewSource(time.Now, nil)
	for n := range turns {
		in, err := svc.Admit(t.Context(), session.Admission{
			SessionID: ses.ID, Prompt: session.Prompt{Text: fmt.Sprint(n)}, Delivery: session.Immediate, Agent: "build", Owner: "seed", Generation: 1,
			Model: chat.ModelRef{ProviderID: "fake", ModelID: "scripted"},
		})
		if err != nil {
			t.Fatal(err)
		}
		msg := chat.NewAssistant(chat.MessageHead{ID: id.New[id.Message](ids), SessionID: ses.ID}, 1)
		msg.ParentID, msg.TurnID, msg.Time.Completed = in.MessageID, in.TurnID, 2
		first := chat.NewStepStart(chat.PartHead{ID: id.New[id.Part](ids), SessionID: ses.ID, MessageID: msg.ID})
		if _, err := svc.BeginStep(t.Context(), *in.Started, session.StepInput{Ord: 1, Message: msg, First: first}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := svc.End(t.Context(), *in.Started, session.EndInput{Outcome: session.Completed}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMessagePageEndsEarlyWhenHeavy(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	ses := s.Session("")
	for range 4 {
		s.Prompt(ses, "say:x\n"+strings.Repeat("padding ", 25_000))
		s.Wait(ses)
	}
	page := apptest.List[apptest.Message](s, "/api/session/"+string(ses.ID)+"/message")
	if len(page.Data) >= 8 || page.Cursor.Next == "" {
		t.Fatalf("%d messages, next %q", len(page.Data), page.Cursor.Next)
	}
}

func TestSC18_Wait(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		s := apptest.Start(t, o)
		ses := s.Session("")
		if got := s.Wait(ses); got.Outcome != "none" || got.Status.Type != "idle" {
			t.Fatalf("idle: %+v", got)
		}
		for script, want := range map[string]string{"say:ok": "completed", "http:401": "failed"} {
			turn := s.Prompt(ses, script)
			if got := s.Wait(ses); got.Outcome != want || got.TurnID != turn.TurnID {
				t.Fatalf("%s: %+v", script, got)
			}
			byTurn := apptest.Data[apptest.Waited](s, "POST", "/api/session/"+string(ses.ID)+"/wait", map[string]any{"turnID": turn.TurnID})
			if byTurn.Outcome != want {
				t.Fatalf("%s by turn: %+v", script, byTurn)
			}
		}
		s.Prompt(ses, "hang")
		start := time.Now()
		got := apptest.Data[apptest.Waited](s, "POST", "/api/session/"+string(ses.ID)+"/wait", map[string]any{"timeout": 300})
		if got.Outcome != "timeout" || got.Status.Type != "busy" || time.Since(start) < 300*time.Millisecond {
			t.Fatalf("%+v after %v", got, time.Since(start))
		}
		done := make(chan apptest.Waited, 1)
		go func() { done <- s.Wait(ses) }()
		if a := s.Do("POST", "/api/session/"+string(ses.ID)+"/interrupt", nil); a.Status != 204 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		if got := <-done; got.Outcome != "cancelled" {
			t.Fatalf("%+v", got)
		}
		if a := s.Do("POST", "/api/session/"+string(ses.ID)+"/wait", map[string]any{"turnID": "trn_00000000000000000000000000"}); a.Code() != "turn_not_found" {
			t.Fatalf("%d %s", a.Status, a.Code())
		}
	})
}

func TestSC19_ArchiveAndDelete(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		s := apptest.Start(t, o)
		root := s.Session("")
		path := "/api/session/" + string(root.ID)
		st := s.Events("")
		got := apptest.Data[session.Session](s, "PATCH", path, map[string]any{"archived": 12345})
		if got.Time.Archived != 12345 || len(apptest.List[session.Session](s, "/api/session").Data) != 0 {
			t.Fatalf("%+v", got.Time)
		}
		for _, back := range []any{0, nil} {
			if got := apptest.Data[session.Session](s, "PATCH", path, map[string]any{"archived": back}); got.Time.Archived != 0 {
				t.Fatalf("archived %v: %+v", back, got.Time)
			}
			if len(apptest.List[session.Session](s, "/api/session").Data) != 1 {
				t.Fatal("the session is not back")
			}
		}
		ids := []string{string(root.ID)}
		for range 3 {
			child := apptest.Data[session.Session](s, "POST", "/api/session", map[string]any{"parentID": root.ID})
			if child.ParentID != root.ID || child.RootSessionID != root.ID {
				t.Fatalf("%+v", child)
			}
			ids = append(ids, string(child.ID))
		}
		if children := apptest.Data[[]session.Session](s, "GET", path+"/children", nil); len(children) != 3 {
			t.Fatalf("%d children", len(children))
		}
		var wg sync.WaitGroup
		for n := range 20 {
			wg.Go(func() {
				if a := s.Do("DELETE", "/api/session/"+ids[n%len(ids)], nil); a.Status != 204 && a.Status != 404 {
					t.Errorf("delete: %d %s", a.Status, a.Body)
				}
			})
		}
		wg.Wait()
		deleted := map[string]int{}
		for _, e := range st.Rest(300 * time.Millisecond) {
			if e.Type == "session.deleted" {
				deleted[string(apptest.Payload[session.Info](s, e).SessionID)]++
			}
		}
		for _, id := range ids {
			if deleted[id] != 1 {
				t.Errorf("%s: %d deleted events", id, deleted[id])
			}
			if a := s.Do("GET", "/api/session/"+id, nil); a.Code() != "session_not_found" {
				t.Errorf("%s is still there: %d", id, a.Status)
			}
		}
	})
}

func TestSC27_NoCredentials(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	ses := s.Session("")
	body := map[string]any{"prompt": map[string]any{"text": "hi"}, "model": map[string]any{"providerID": "openai", "modelID": "gpt-4o"}}
	a := s.Do("POST", "/api/session/"+string(ses.ID)+"/prompt", body)
	if a.Status != 409 || a.Code() != "model_unavailable" || !strings.Contains(string(a.Body), `"providerID":"openai"`) {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if active := apptest.Data[map[string]session.Status](s, "GET", "/api/session/active", nil); len(active) != 0 {
		t.Fatalf("%v", active)
	}
	s.Model.RequireKey("another")
	s.Prompt(ses, "say:x")
	if got := s.Wait(ses); got.Outcome != "failed" || got.Error == nil || got.Error.Name != "ProviderAuthError" || got.Error.Data.ProviderID != "fake" {
		t.Fatalf("%+v", got.Error)
	}
}
