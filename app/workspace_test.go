package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/app/apptest"
	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/operations"
	"github.com/switchyard-dev/switchyard/project"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/workspace"
)

// committed makes a git repository with files in one commit.
func committed(t *testing.T, files map[string]string) string {
	t.Helper()
	repo := repoWith(t)
	for path, text := range files {
		write(t, filepath.Join(repo, path), []byte(text))
	}
	testkit.Git(t, repo, "add", "-A")
	testkit.Git(t, repo, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-m", "first")
	return repo
}

// ready waits until a workspace is made, by naming it in a request.
func ready(s *apptest.Server, w workspace.Workspace) workspace.Workspace {
	apptest.Data[operations.Location](s, "GET", "/api/location?workspace="+string(w.ID), nil)
	return apptest.Data[workspace.Workspace](s, "GET", "/api/workspace/"+string(w.ID), nil)
}

func newTree(s *apptest.Server, repo, name string) workspace.Workspace {
	return ready(s, apptest.Data[workspace.Workspace](s, "POST", "/api/workspace", map[string]any{"type": "worktree", "directory": repo, "name": name}))
}

func TestProjectsAreListedAndChanged(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	one, two := committed(t, map[string]string{"a": "a"}), committed(t, map[string]string{"a": "a"})
	first := s.Session(one)
	s.Session(two)
	testkit.Eventually(t, 5*time.Second, "both are known", func() bool {
		return len(apptest.Data[[]project.Project](s, "GET", "/api/project", nil)) == 2
	})
	all := apptest.Data[[]project.Project](s, "GET", "/api/project", nil)
	if all[0].Worktree != two || all[1].Worktree != one || all[1].ID != first.ProjectID || all[1].VCS != "git" {
		t.Errorf("%+v", all)
	}
	st := s.Events("?types=project.*")
	path := "/api/project/" + string(first.ProjectID)
	p := apptest.Data[project.Project](s, "PATCH", path, map[string]any{
		"name": "One", "icon": "🚂", "commands": []map[string]string{{"name": "start", "command": "make"}},
	})
	if p.Name != "One" || p.Icon != "🚂" || len(p.Commands) != 1 {
		t.Errorf("%+v", p)
	}
	for e := st.Next(); e.Type != "project.updated"; e = st.Next() {
		if !strings.HasPrefix(e.Type, "server.") {
			t.Fatal(e.Type)
		}
	}
	p = apptest.Data[project.Project](s, "PATCH", path, map[string]any{"icon": nil, "commands": nil})
	if p.Name != "One" || p.Icon != "" || len(p.Commands) != 0 || p.Commands == nil {
		t.Errorf("%+v", p)
	}
	wantAnswers(t, []answered{
		{"of nothing", s.Do("GET", "/api/project/prj_none", nil), 404, "project_not_found"},
		{"no command", s.Do("PATCH", path, map[string]any{"commands": []map[string]string{{"name": "x", "command": ""}}}), 422, "validation_failed"},
		{"a long name", s.Do("PATCH", path, map[string]any{"name": strings.Repeat("x", 201)}), 422, "validation_failed"},
		{"a hint", s.Do("GET", "/api/project?directory=/", nil), 400, "context_not_accepted"},
	})
	known := apptest.Data[[]project.Known](s, "GET", path+"/directory", nil)
	if len(known) != 1 || known[0].Directory != one || !known[0].Exists || !known[0].Main {
		t.Errorf("%+v", known)
	}
}

// TestSC50_Identity: what is a project of its own, and what is not.
func TestSC50_Identity(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	a := committed(t, map[string]string{"f": "f"})
	parent := apptest.Dir(t)
	clone := filepath.Join(parent, "clone")
	testkit.Git(t, parent, "clone", "-q", a, clone)
	empty, empty2 := repoWith(t), repoWith(t)
	testkit.Git(t, a, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", clone, "sub")
	for _, name := range []string{"x", "y"} {
		testkit.Git(t, parent, "clone", "-q", "--bare", a, filepath.Join(parent, name+".git"))
		testkit.Git(t, filepath.Join(parent, name+".git"), "worktree", "add", "-q", filepath.Join(parent, name))
	}
	testkit.Git(t, a, "worktree", "add", "-q", filepath.Join(parent, "linked"))
	seen := map[string]string{}
	for _, dir := range []string{a, clone, empty, empty2, a + "/sub", parent + "/x", parent + "/y"} {
		ses := s.Session(dir)
		if other, again := seen[string(ses.ProjectID)]; again {
			t.Errorf("%s and %s are one project", dir, other)
		}
		seen[string(ses.ProjectID)] = dir
		if page := apptest.List[session.Session](s, "/api/session"+apptest.Query("directory", dir, "scope", "project")); len(page.Data) != 1 || page.Data[0].ID != ses.ID {
			t.Errorf("%s lists %+v", dir, page.Data)
		}
	}
	linked := s.Session(parent + "/linked")
	if seen[string(linked.ProjectID)] != a {
		t.Error("a linked work tree is of another project")
	}
	s = s.Restart(apptest.Options{})
	if again := s.Session(clone); seen[string(again.ProjectID)] != clone {
		t.Error("a project's id did not outlive a restart")
	}
	// Deleting a workspace of one leaves the others' files alone.
	w := newTree(s, a, "gone")
	before := testkit.Git(t, clone, "status", "--porcelain") + testkit.Git(t, clone, "rev-parse", "HEAD")
	if got := s.Do("DELETE", "/api/workspace/"+string(w.ID), nil); got.Status != 204 {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	if after := testkit.Git(t, clone, "status", "--porcelain") + testkit.Git(t, clone, "rev-parse", "HEAD"); after != before {
		t.Errorf("the clone was %q and is %q", before, after)
	}
}

func TestAWorktreeIsMadeUsedAndRemoved(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	repo := committed(t, map[string]string{"f.txt": "one\n", "sub/g.txt": "two\n", ".gitattributes": "*.txt filter=evil\n"})
	testkit.Git(t, repo, "config", "filter.evil.smudge", "touch "+repo+"/evil; cat")
	write(t, repo+"/.git/hooks/post-checkout", []byte("#!/bin/sh\ntouch "+repo+"/evil\n"))
	if err := os.Chmod(repo+"/.git/hooks/post-checkout", 0o755); err != nil {
		t.Fatal(err)
	}
	first := s.Session(repo)
	apptest.Data[project.Project](s, "PATCH", "/api/project/"+string(first.ProjectID), map[string]any{
		"commands": []map[string]string{{"name": "start", "command": "echo preparing; cp f.txt prepared"}},
	})
	st := s.Events("?types=workspace.*")
	made := apptest.Data[workspace.Workspace](s, "POST", "/api/workspace", map[string]any{
		"type": "worktree", "projectID": first.ProjectID, "name": "Try It!", "metadata": map[string]any{"branch": "feature/x", "ticket": 7},
	})
	if made.Status != workspace.Creating || made.Branch != "feature/x" || made.ProjectID != first.ProjectID {
		t.Fatalf("%+v", made)
	}
	w := ready(s, made)
	if w.Status != workspace.Ready || content(t, w.Directory+"/prepared") != "one\n" || w.Metadata["ticket"] != float64(7) {
		t.Fatalf("%+v", w)
	}
	if _, err := os.Stat(repo + "/evil"); err == nil {
		t.Error("the repository ran something of its own")
	}
	if head := testkit.Git(t, w.Directory, "symbolic-ref", "--short", "HEAD"); strings.TrimSpace(head) != "feature/x" {
		t.Errorf("on branch %q", head)
	}
	var told []string
	for len(told) == 0 || told[len(told)-1] != "workspace.ready" {
		if e := st.Next(); !strings.HasPrefix(e.Type, "server.") {
			told = append(told, e.Type)
		}
	}
	if told[0] != "workspace.created" || !slices.Contains(told, "workspace.progress") {
		t.Errorf("%q", told)
	}

	in := "?workspace=" + string(w.ID)
	ses := apptest.Data[session.Session](s, "POST", "/api/session"+in, map[string]any{})
	if ses.WorkspaceID != w.ID || ses.Directory != w.Directory || ses.ProjectID != first.ProjectID {
		t.Errorf("%+v", ses)
	}
	here := apptest.Data[operations.Location](s, "GET", "/api/location"+apptest.Query("directory", w.Directory+"/sub"), nil)
	if here.WorkspaceID != "" || here.Workspace == nil || here.Workspace.ID != w.ID {
		t.Errorf("%+v", here)
	}
	below := apptest.Data[operations.Location](s, "GET", "/api/location"+apptest.Query("directory", w.Directory+"/sub", "workspace", string(w.ID)), nil)
	if below.WorkspaceID != w.ID || below.Directory != w.Directory+"/sub" {
		t.Errorf("%+v", below)
	}
	page := apptest.List[session.Session](s, "/api/session"+in+"&scope=workspace")
	if len(page.Data) != 1 || page.Data[0].ID != ses.ID {
		t.Errorf("%+v", page.Data)
	}
	states := apptest.Data[[]workspace.State](s, "GET", "/api/workspace/status", nil)
	if len(states) != 1 || states[0].Sessions != 1 || states[0].Status != "ready" || states[0].Time.Used == 0 {
		t.Errorf("%+v", states)
	}
	path := "/api/workspace/" + string(w.ID)
	wantAnswers(t, []answered{
		{"outside of it", s.Do("GET", "/api/location"+apptest.Query("directory", repo, "workspace", string(w.ID)), nil), 400, "directory_outside_workspace"},
		{"of none", s.Do("GET", "/api/location?workspace=ws_none", nil), 404, "workspace_not_found"},
		{"of an empty name", s.Do("GET", "/api/location?workspace=", nil), 404, "workspace_not_found"},
		{"with changes", s.Do("DELETE", path, nil), 409, "workspace_dirty"},
		{"with force", s.Do("DELETE", path+"?force=true", nil), 204, ""},
		{"again", s.Do("DELETE", path, nil), 204, ""},
		{"its session", s.Do("GET", "/api/session/"+string(ses.ID), nil), 200, ""},
		{"a prompt there", s.Do("POST", "/api/session/"+string(ses.ID)+"/prompt", map[string]any{"prompt": map[string]any{"text": "say:x"}}), 409, "directory_missing"},
	})
	if _, err := os.Stat(w.Directory); !os.IsNotExist(err) {
		t.Errorf("the tree is still there: %v", err)
	}
	if branch := testkit.Git(t, repo, "branch", "--list", "feature/x"); branch == "" {
		t.Error("the branch is gone")
	}
	for e := st.Next(); ; e = st.Next() {
		if e.Type == "workspace.deleted" {
			if gone := apptest.Payload[workspace.Removed](s, e); !slices.Equal(gone.Leftovers, []string{"branch:feature/x"}) {
				t.Errorf("%+v", gone)
			}
			break
		}
	}
}

func TestAWorkspaceThatCannotBeMade(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	repo, plain := committed(t, map[string]string{"f": "f"}), apptest.Dir(t)
	first := s.Session(repo)
	create := func(body map[string]any) apptest.Answer { return s.Do("POST", "/api/workspace", body) }
	wantAnswers(t, []answered{
		{"an unknown type", create(map[string]any{"type": "cloud", "directory": repo}), 422, "validation_failed"},
		{"no source", create(map[string]any{"type": "worktree"}), 422, "validation_failed"},
		{"no repository", create(map[string]any{"type": "worktree", "directory": plain}), 422, "validation_failed"},
		{"no directory", create(map[string]any{"type": "directory", "directory": plain + "/none"}), 404, "directory_not_found"},
		{"another project", create(map[string]any{"type": "worktree", "directory": plain, "projectID": first.ProjectID}), 422, "validation_failed"},
		{"a directory", create(map[string]any{"type": "local", "directory": plain}), 200, ""},
		{"twice", create(map[string]any{"type": "directory", "directory": plain}), 409, "workspace_exists"},
	})
	for what, body := range map[string]map[string]any{
		"a wrong base":          {"metadata": map[string]any{"base": "nowhere"}},
		"a wrong branch":        {"metadata": map[string]any{"branch": "a..b"}},
		"an option as branch":   {"metadata": map[string]any{"branch": "--detach"}},
		"a branch in use":       {"metadata": map[string]any{"branch": strings.TrimSpace(testkit.Git(t, repo, "symbolic-ref", "--short", "HEAD"))}},
		"a start command fails": {"name": "fails"},
	} {
		command := "true"
		if what == "a start command fails" {
			command = "touch half; exit 3"
		}
		apptest.Data[project.Project](s, "PATCH", "/api/project/"+string(first.ProjectID), map[string]any{
			"commands": []map[string]string{{"name": "start", "command": command}},
		})
		body["type"], body["directory"] = "worktree", repo
		w := apptest.Data[workspace.Workspace](s, "POST", "/api/workspace", body)
		if a := s.Do("GET", "/api/location?workspace="+string(w.ID), nil); a.Code() != "workspace_not_ready" {
			t.Errorf("%s: %d %s", what, a.Status, a.Body)
		}
		w = apptest.Data[workspace.Workspace](s, "GET", "/api/workspace/"+string(w.ID), nil)
		if _, err := os.Stat(w.Directory); w.Status != workspace.Failed || w.Reason == "" || !os.IsNotExist(err) {
			t.Errorf("%s: %+v, %v", what, w, err)
		}
	}
	if trees := testkit.Git(t, repo, "worktree", "list", "--porcelain"); strings.Count(trees, "worktree ") != 1 {
		t.Errorf("left behind:\n%s", trees)
	}
}

func TestSyncFindsWhatWasDoneByHand(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	repo := committed(t, map[string]string{"f": "f"})
	s.Session(repo)
	tree := filepath.Join(apptest.Dir(t), "by-hand")
	testkit.Git(t, repo, "worktree", "add", "-q", "-b", "hand", tree)
	sync := func() workspace.Synced {
		return apptest.Data[workspace.Synced](s, "POST", "/api/workspace/sync", map[string]any{})
	}
	first := sync()
	if len(first.Added) != 1 || len(first.Missing)+len(first.Updated) != 0 {
		t.Fatalf("%+v", first)
	}
	get := func() workspace.Workspace {
		return apptest.Data[workspace.Workspace](s, "GET", "/api/workspace/"+string(first.Added[0]), nil)
	}
	if w := get(); w.Directory != tree || w.Branch != "hand" || w.Type != "worktree" || w.Status != workspace.Ready {
		t.Errorf("%+v", w)
	}
	testkit.Git(t, tree, "switch", "-q", "-c", "other")
	if again := sync(); len(again.Updated) != 1 || len(again.Added) != 0 || get().Branch != "other" {
		t.Errorf("%+v", again)
	}
	if err := os.RemoveAll(tree); err != nil {
		t.Fatal(err)
	}
	if w := get(); w.Status != workspace.Missing || w.Reason == "" {
		t.Errorf("%+v", w)
	}
	if again := sync(); len(again.Missing) != 1 || len(again.Added) != 0 {
		t.Errorf("%+v", again)
	}
	if again := sync(); len(again.Missing)+len(again.Added)+len(again.Updated) != 0 {
		t.Errorf("a second look changed something: %+v", again)
	}
	// A tree that others made is never removed by us.
	testkit.Git(t, repo, "worktree", "prune")
	testkit.Git(t, repo, "worktree", "add", "-q", tree, "hand")
	if again := sync(); len(again.Updated) != 1 {
		t.Errorf("%+v", again)
	}
	if a := s.Do("DELETE", "/api/workspace/"+string(first.Added[0])+"?force=true", nil); a.Status != http.StatusNoContent {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if content(t, tree+"/f") != "f" {
		t.Error("a tree that somebody else made was removed")
	}
}

// TestAStopEndsWhatIsBeingMade stops the server while a start command runs: the
// work tree is gone and the workspace says why.
func TestAStopEndsWhatIsBeingMade(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	repo := committed(t, map[string]string{"f": "f"})
	first := s.Session(repo)
	apptest.Data[project.Project](s, "PATCH", "/api/project/"+string(first.ProjectID), map[string]any{
		"commands": []map[string]string{{"name": "start", "command": "touch started; sleep 300"}},
	})
	w := apptest.Data[workspace.Workspace](s, "POST", "/api/workspace", map[string]any{"type": "worktree", "directory": repo})
	testkit.Eventually(t, 10*time.Second, "the start command", func() bool {
		_, err := os.Stat(w.Directory + "/started")
		return err == nil
	})
	s = s.Restart(apptest.Options{})
	now := apptest.Data[workspace.Workspace](s, "GET", "/api/workspace/"+string(w.ID), nil)
	if _, err := os.Stat(w.Directory); now.Status != workspace.Failed || !strings.Contains(now.Reason, "server") || !os.IsNotExist(err) {
		t.Errorf("%+v, %v", now, err)
	}
}
