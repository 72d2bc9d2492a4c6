package app_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/app/apptest"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/workspace"
)

// warpTo asks for a move; "" is out of every workspace.
func warpTo(s *apptest.Server, ses session.Session, w workspace.Workspace, copyChanges bool) apptest.Answer {
	body := map[string]any{"sessionID": ses.ID, "copyChanges": copyChanges, "workspaceID": nil}
	if w.ID != "" {
		body["workspaceID"] = w.ID
	}
	return s.Do("POST", "/api/workspace/warp", body)
}

func pinned(s *apptest.Server, ses session.Session) event.Context {
	got := apptest.Data[session.Session](s, "GET", "/api/session/"+string(ses.ID), nil)
	return event.Context{Directory: got.Directory, WorkspaceID: got.WorkspaceID}
}

// TestSC54_WarpWithChanges moves a session with what is in no commit.
func TestSC54_WarpWithChanges(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	repo := committed(t, map[string]string{"mod.txt": "one\n", "del.txt": "gone\n", "run.sh": "#!/bin/sh\n", "old name": "a long text that is moved\n", "d/x": "x\n", ".gitignore": "ignored\n"})
	w2 := newTree(s, repo, "w2")
	ses := s.Session(repo + "/d")
	write(t, repo+"/mod.txt", []byte("two\n"))
	write(t, repo+"/new ü.txt", []byte("new\n"))
	write(t, repo+"/ignored", []byte("stays\n"))
	write(t, repo+"/bin", []byte{0, 1, 2, 255})
	if err := os.Remove(repo + "/del.txt"); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(repo+"/run.sh", 0o755); err != nil {
		t.Fatal(err)
	}
	testkit.Git(t, repo, "mv", "old name", "new name")
	before := testkit.Git(t, repo, "status", "--porcelain=v2")
	local, there := s.Events(apptest.Query("directory", repo+"/d", "types", "session.moved")), s.Events(apptest.Query("directory", w2.Directory+"/d", "workspace", string(w2.ID), "types", "session.moved"))

	moved := warpTo(s, ses, w2, true)
	if moved.Status != 200 {
		t.Fatalf("%d %s", moved.Status, moved.Body)
	}
	to := event.Context{Directory: w2.Directory + "/d", WorkspaceID: w2.ID}
	if at := pinned(s, ses); at != to {
		t.Errorf("pinned to %+v", at)
	}
	for path, want := range map[string]string{"mod.txt": "two\n", "new ü.txt": "new\n", "bin": "\x00\x01\x02\xff", "new name": "a long text that is moved\n"} {
		if got := content(t, filepath.Join(w2.Directory, path)); got != want {
			t.Errorf("%s is %q", path, got)
		}
	}
	for _, path := range []string{"del.txt", "ignored", "old name"} {
		if _, err := os.Stat(filepath.Join(w2.Directory, path)); !os.IsNotExist(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if info, err := os.Stat(w2.Directory + "/run.sh"); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("run.sh: %v %v", info, err)
	}
	if after := testkit.Git(t, repo, "status", "--porcelain=v2"); after != before {
		t.Errorf("the source changed:\n%s", after)
	}
	for name, st := range map[string]*apptest.Stream{"source": local, "target": there} {
		e := st.Next()
		for strings.HasPrefix(e.Type, "server.") {
			e = st.Next()
		}
		p := apptest.Payload[session.MovedPayload](s, e)
		if e.Type != "session.moved" || p.From.Directory != repo+"/d" || p.To != to || p.Info.WorkspaceID != w2.ID {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if a := warpTo(s, ses, w2, true); a.Status != 200 {
		t.Errorf("to where it is: %d %s", a.Status, a.Body)
	}
	s.Prompt(ses, "say:works here")
	if got := s.Wait(ses); got.Outcome != "completed" {
		t.Errorf("%+v", got)
	}
	if a := warpTo(s, ses, workspace.Workspace{}, false); a.Status != 200 || pinned(s, ses) != (event.Context{Directory: repo + "/d"}) {
		t.Errorf("back: %d %s", a.Status, a.Body)
	}
}

// TestSC54_AConflictMovesNothing: what differs at the target too stops it all.
func TestSC54_AConflictMovesNothing(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	repo := committed(t, map[string]string{"a.txt": "a\n", "b.txt": "b\n", "c.txt": "c\n"})
	w := newTree(s, repo, "w")
	ses := s.Session(repo)
	for path, text := range map[string]string{"a.txt": "mine\n", "b.txt": "same\n", "c.txt": "c2\n", "untracked": "mine\n"} {
		write(t, filepath.Join(repo, path), []byte(text))
	}
	for path, text := range map[string]string{"a.txt": "theirs\n", "b.txt": "same\n", "untracked": "theirs\n"} {
		write(t, filepath.Join(w.Directory, path), []byte(text))
	}
	a := warpTo(s, ses, w, true)
	if a.Status != 409 || a.Code() != "warp_conflict" || !bytes.Contains(a.Body, []byte(`"files":["a.txt","untracked"]`)) {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if content(t, w.Directory+"/a.txt") != "theirs\n" || content(t, w.Directory+"/c.txt") != "c\n" {
		t.Error("the target was changed")
	}
	if at := pinned(s, ses); at.WorkspaceID != "" || at.Directory != repo {
		t.Errorf("moved to %+v", at)
	}
	// Another commit at the target is a difference, too.
	testkit.Git(t, w.Directory, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qam", "theirs")
	if a := warpTo(s, ses, w, true); a.Code() != "warp_conflict" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if a := warpTo(s, ses, w, false); a.Status != 200 || pinned(s, ses).WorkspaceID != w.ID {
		t.Errorf("without changes: %d %s", a.Status, a.Body)
	}
}

func TestWarpsThatAreRefused(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	repo, plain := committed(t, map[string]string{"f": "f\n"}), apptest.Dir(t)
	w := newTree(s, repo, "w")
	other := apptest.Data[workspace.Workspace](s, "POST", "/api/workspace", map[string]any{"type": "directory", "directory": plain})
	ses := s.Session(repo)
	s.Prompt(ses, "hang")
	if err := s.Model.WaitHanging(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	busy := warpTo(s, ses, w, false)
	apptest.Data[any](s, "POST", "/api/session/"+string(ses.ID)+"/interrupt", map[string]any{})
	s.Wait(ses)
	wantAnswers(t, []answered{
		{"while it works", busy, 409, "session_busy"},
		{"to none", warpTo(s, ses, workspace.Workspace{ID: "ws_none"}, false), 404, "workspace_not_found"},
		{"changes to another repository", warpTo(s, ses, other, true), 422, "validation_failed"},
		{"without a word on changes", s.Do("POST", "/api/workspace/warp", map[string]any{"sessionID": ses.ID}), 422, "validation_failed"},
		{"of no session", s.Do("POST", "/api/workspace/warp", map[string]any{"sessionID": "ses_none", "copyChanges": false}), 404, "session_not_found"},
		{"to another repository", warpTo(s, ses, other, false), 200, ""},
	})
	if at := pinned(s, ses); at.Directory != plain || at.WorkspaceID != other.ID {
		t.Errorf("%+v", at)
	}
}

// TestSC51_DirectoryDisappears: a session outlives its directory, can be read, says
// why it cannot run, and runs again when the directory is back or it was moved.
func TestSC51_DirectoryDisappears(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	repo := committed(t, map[string]string{"f": "f\n"})
	w := newTree(s, repo, "w")
	ses := apptest.Data[session.Session](s, "POST", "/api/session?workspace="+string(w.ID), map[string]any{})
	s.Prompt(ses, "say:hello")
	s.Wait(ses)
	if err := os.RemoveAll(w.Directory); err != nil {
		t.Fatal(err)
	}
	path := "/api/session/" + string(ses.ID)
	prompt := func() apptest.Answer {
		return s.Do("POST", path+"/prompt", map[string]any{"prompt": map[string]any{"text": "say:again"}})
	}
	refused := prompt()
	wantAnswers(t, []answered{
		{"get", s.Do("GET", path, nil), 200, ""},
		{"messages", s.Do("GET", path+"/message", nil), 200, ""},
		{"prompt", refused, 409, "directory_missing"},
		{"a hint", s.Do("GET", "/api/location?workspace="+string(w.ID), nil), 404, "directory_not_found"},
	})
	if !bytes.Contains(refused.Body, []byte(w.Directory)) {
		t.Errorf("it does not name the directory: %s", refused.Body)
	}
	states := apptest.Data[[]workspace.State](s, "GET", "/api/workspace/status", nil)
	if i := slices.IndexFunc(states, func(st workspace.State) bool { return st.WorkspaceID == w.ID }); i < 0 || states[i].Status != "missing" {
		t.Errorf("%+v", states)
	}
	if a := warpTo(s, ses, workspace.Workspace{}, false); a.Status != 200 || pinned(s, ses).Directory != repo {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if a := prompt(); a.Status != 200 || s.Wait(ses).Outcome != "completed" {
		t.Errorf("after moving: %d %s", a.Status, a.Body)
	}
	for range 2 {
		if a := s.Do("DELETE", "/api/workspace/"+string(w.ID), nil); a.Status != 204 {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
	if trees := testkit.Git(t, repo, "worktree", "list"); strings.Contains(trees, w.Directory) {
		t.Errorf("git still knows the tree:\n%s", trees)
	}

	local := committed(t, map[string]string{"f": "f\n"})
	ses = s.Session(local)
	path = "/api/session/" + string(ses.ID)
	aside := local + ".aside"
	if err := os.Rename(local, aside); err != nil {
		t.Fatal(err)
	}
	if a := prompt(); a.Code() != "directory_missing" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if err := os.Rename(aside, local); err != nil {
		t.Fatal(err)
	}
	if a := prompt(); a.Status != 200 || s.Wait(ses).Outcome != "completed" {
		t.Errorf("after it came back: %d %s", a.Status, a.Body)
	}
}

// TestSC04_WorkspacesAreContextsOfTheirOwn: the same directory with and without its
// workspace are two contexts, and their events stay apart.
func TestSC04_WorkspacesAreContextsOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	repo := committed(t, map[string]string{"f": "f\n"})
	w := newTree(s, repo, "w")
	inside, beside := s.Events("?workspace="+string(w.ID)+"&types=session.*"), s.Events(apptest.Query("directory", w.Directory, "types", "session.*"))
	one := apptest.Data[session.Session](s, "POST", "/api/session?workspace="+string(w.ID), map[string]any{})
	two := s.Session(w.Directory)
	for _, c := range []struct {
		st   *apptest.Stream
		want session.Session
	}{{inside, one}, {beside, two}} {
		for {
			e := c.st.Next()
			if strings.HasPrefix(e.Type, "server.") {
				continue
			}
			if p := apptest.Payload[session.Info](s, e); p.SessionID != c.want.ID || e.Context.WorkspaceID != string(c.want.WorkspaceID) {
				t.Errorf("%+v on the stream of %q", p, c.want.WorkspaceID)
			}
			break
		}
	}
}
