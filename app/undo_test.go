package app_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/app"
	"github.com/switchyard-dev/switchyard/app/apptest"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/snapshot"
	"github.com/switchyard-dev/switchyard/undo"
)

const allowAll = `{"permission": {"*": "allow"}}`

// call is a line of a prompt that lets the scripted model call a tool.
func call(t *testing.T, name string, input map[string]any) string {
	t.Helper()
	data, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("tool:%s:%s", name, data)
}

func bash(t *testing.T, command string) string {
	return call(t, "bash", map[string]any{"command": command})
}

// does runs a turn, allows what it asks for (commands with redirections always do), and gives the id of its prompt.
func does(t *testing.T, s *apptest.Server, ses session.Session, lines ...string) id.Message {
	t.Helper()
	p := s.Prompt(ses, strings.Join(append(lines, "say:done"), "\n"))
	for range 100 {
		for _, asked := range apptest.Data[[]rule.Request](s, "GET", "/api/permission?scope=server", nil) {
			s.Do("POST", "/api/permission/"+string(asked.ID)+"/reply", map[string]any{"response": "once"})
		}
		got := apptest.Data[apptest.Waited](s, "POST", sessionPath(ses)+"/wait", map[string]any{"timeout": 200})
		if got.Outcome == "completed" {
			return id.Message(p.MessageID)
		}
		if got.Outcome != "timeout" {
			t.Fatalf("the turn ended %+v", got)
		}
	}
	t.Fatal("the turn does not end")
	return ""
}

func sessionPath(ses session.Session) string { return "/api/session/" + string(ses.ID) }

func diffOf(s *apptest.Server, ses session.Session, query string) []snapshot.FileDiff {
	return apptest.Data[[]snapshot.FileDiff](s, "GET", sessionPath(ses)+"/diff"+query, nil)
}

func revert(s *apptest.Server, ses session.Session, msg id.Message) undo.Result {
	return apptest.Data[undo.Result](s, "POST", sessionPath(ses)+"/revert", map[string]any{"messageID": msg})
}

func unrevert(s *apptest.Server, ses session.Session) undo.Result {
	return apptest.Data[undo.Result](s, "POST", sessionPath(ses)+"/unrevert", map[string]any{})
}

// words tells diffs in short.
func words(diffs []snapshot.FileDiff) string {
	var out []string
	for _, d := range diffs {
		w := fmt.Sprintf("%s %s +%d -%d", d.Status, d.File, d.Additions, d.Deletions)
		if d.Uncovered != "" {
			w += " " + d.Uncovered
		}
		out = append(out, w)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// gitFiles gives git's own bytes of a repository that an undoing must not change.
func gitFiles(t *testing.T, repo string) string {
	t.Helper()
	return content(t, repo+"/.git/HEAD") + content(t, repo+"/.git/index") + testkit.Git(t, repo, "rev-parse", "HEAD")
}

// TestSC25_UndoSafety undoes a turn after the user went on working, from a context
// below the top of the repository.
func TestSC25_UndoSafety(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{Config: allowAll})
	repo := committed(t, map[string]string{"a": "a\n", "b": "b\n", "c": "c\n", "sub/x": "x\n"})
	big, err := os.Create(repo + "/big")
	if err != nil {
		t.Fatal(err)
	}
	if err := big.Truncate(2 << 30); err != nil {
		t.Fatal(err)
	}
	_ = big.Close()
	ses := s.Session(repo + "/sub")
	msg := does(t, s, ses,
		call(t, "edit", map[string]any{"path": repo + "/a", "oldString": "a", "newString": "agent"}),
		bash(t, "echo agent >> ../c; echo new > made"))
	if got := words(diffOf(s, ses, "")); got != "added made +1 -0, modified ../a +1 -1, modified ../c +1 -0" {
		t.Errorf("diff: %s", got)
	}
	// The user goes on.
	write(t, repo+"/b", []byte("user\n"))
	testkit.Git(t, repo, "add", "b")
	testkit.Git(t, repo, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "user")
	write(t, repo+"/a", []byte("agent and user\n"))
	before := gitFiles(t, repo)

	got := revert(s, ses, msg)
	slices.Sort(got.Reverted)
	if !slices.Equal(got.Reverted, []string{repo + "/c", repo + "/sub/made"}) {
		t.Errorf("reverted %q", got.Reverted)
	}
	if len(got.Skipped) != 1 || got.Skipped[0] != (snapshot.Skipped{File: repo + "/a", Reason: "conflict"}) {
		t.Errorf("skipped %+v", got.Skipped)
	}
	if content(t, repo+"/a") != "agent and user\n" || content(t, repo+"/b") != "user\n" || content(t, repo+"/c") != "c\n" {
		t.Error("the files are not as they should be")
	}
	if _, err := os.Stat(repo + "/sub/made"); !os.IsNotExist(err) {
		t.Errorf("made: %v", err)
	}
	if after := gitFiles(t, repo); after != before {
		t.Error("something of git's was changed")
	}
	if got.Session.Revert == nil || got.Session.Revert.MessageID != msg || len(got.Session.Revert.Files) != 2 {
		t.Errorf("%+v", got.Session.Revert)
	}
	kept := int64(0)
	err = filepath.WalkDir(filepath.Join(s.State, "snapshots"), func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			info, _ := d.Info()
			kept += info.Size()
		}
		return err
	})
	if err != nil || kept > 1<<20 {
		t.Errorf("%d bytes are kept, %v", kept, err)
	}
	back := unrevert(s, ses)
	if len(back.Reverted) != 2 || back.Session.Revert != nil || content(t, repo+"/c") != "c\nagent\n" || content(t, repo+"/sub/made") != "new\n" {
		t.Errorf("%+v", back)
	}
}

// TestUndoOfEveryKindOfChange does, undoes and does again, with and without git.
func TestUndoOfEveryKindOfChange(t *testing.T) {
	t.Parallel()
	for _, git := range []bool{true, false} {
		t.Run(fmt.Sprintf("git %v", git), func(t *testing.T) {
			t.Parallel()
			s := apptest.Start(t, apptest.Options{Config: allowAll})
			files := map[string]string{"mod": "one\ntwo\n", "del": "gone\n", "run": "#!/bin/sh\n", "bin": "\x00\x01", "dirty": "v1\n", "mv": "moved\n", "same": "s\n"}
			dir := apptest.Dir(t)
			if git {
				dir = committed(t, files)
			} else {
				for name, text := range files {
					write(t, filepath.Join(dir, name), []byte(text))
				}
			}
			write(t, dir+"/dirty", []byte("v2\n"))
			write(t, dir+"/untracked", []byte("mine\n"))
			for _, name := range []string{"run", "mod", "del", "bin", "mv", "same", "dirty", "untracked"} {
				if err := os.Chmod(filepath.Join(dir, name), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			before := filesOf(t, dir)
			ses := s.Session(dir)
			command := "sed -i s/two/2/ mod; rm del; chmod +x run; printf '\\0\\2' > bin; echo v3 > dirty; echo more >> untracked; mv mv moved; mkdir -p d/e; echo new > d/e/f; touch same"
			if git {
				command += "; git add -A; git -c user.name=t -c user.email=t@example.org commit -qm agent"
			}
			msg := does(t, s, ses, bash(t, command))
			want := "added d/e/f +1 -0, added moved +1 -0, deleted del +0 -1, deleted mv +0 -1, modified bin +0 -0, modified dirty +1 -1, modified mod +1 -1, modified run +0 -0, modified untracked +1 -0"
			if got := words(diffOf(s, ses, "")); got != want {
				t.Errorf("diff:\n got %s\nwant %s", got, want)
			}
			after := filesOf(t, dir)
			got := revert(s, ses, msg)
			if len(got.Skipped) != 0 || len(got.Reverted) != 9 {
				t.Errorf("%+v", got)
			}
			if now := filesOf(t, dir); now != before {
				t.Errorf("undone:\n%s\nwas:\n%s", now, before)
			}
			if again := revert(s, ses, msg); len(again.Skipped) != 0 || filesOf(t, dir) != before {
				t.Errorf("undoing again: %+v", again)
			}
			if back := unrevert(s, ses); len(back.Skipped) != 0 || filesOf(t, dir) != after {
				t.Errorf("brought back: %+v\n%s", back, filesOf(t, dir))
			}
		})
	}
}

// filesOf tells the files below a directory with their modes and contents, git's own
// left out.
func filesOf(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Name() == ".git" {
			if d != nil && d.IsDir() {
				return filepath.SkipDir
			}
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().IsRegular() {
			rel, _ := filepath.Rel(dir, path)
			fmt.Fprintf(&out, "%s %v %q\n", rel, info.Mode(), content(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestUndoFromAPointOn undoes the later of two turns, then both; the next prompt
// keeps what is undone and its model is told.
func TestUndoFromAPointOn(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{Config: allowAll})
	dir := s.Directory
	ses := s.Session("")
	st := s.Events("?types=session.diff,session.updated")
	first := does(t, s, ses, call(t, "write", map[string]any{"path": "f", "content": "1\n"}))
	second := does(t, s, ses, call(t, "write", map[string]any{"path": "f", "content": "2\n"}), call(t, "write", map[string]any{"path": "g", "content": "2\n"}))
	if got := words(diffOf(s, ses, "?messageID="+string(second))); got != "added g +1 -0, modified f +1 -1" {
		t.Errorf("of the second turn: %s", got)
	}
	if got := diffOf(s, ses, "?patch=true"); len(got) != 2 || !strings.Contains(got[0].Patch, "+2") {
		t.Errorf("with patches: %+v", got)
	}
	for e := st.Next(); e.Type != "session.diff"; e = st.Next() {
	}
	now := apptest.Data[session.Session](s, "GET", sessionPath(ses), nil)
	if now.Summary == nil || *now.Summary != (session.Summary{Additions: 2, Files: 2}) {
		t.Errorf("%+v", now.Summary)
	}
	if got := revert(s, ses, second); len(got.Reverted) != 2 || content(t, dir+"/f") != "1\n" {
		t.Errorf("%+v", got)
	}
	if got := revert(s, ses, first); len(got.Reverted) != 2 || len(got.Skipped) != 0 {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(dir + "/f"); !os.IsNotExist(err) {
		t.Errorf("f: %v", err)
	}
	if got := revert(s, ses, second); len(got.Reverted) != 2 || content(t, dir+"/f") != "1\n" {
		t.Errorf("moved back: %+v", got)
	}
	does(t, s, ses)
	req := last(s)
	told := req.Messages[len(req.Messages)-1].Texts
	if !strings.Contains(strings.Join(told, "\n"), "undone your changes") || !strings.Contains(strings.Join(told, "\n"), dir+"/g") {
		t.Errorf("the model was told %q", told)
	}
	if got := unrevert(s, ses); len(got.Reverted) != 0 || content(t, dir+"/f") != "1\n" {
		t.Errorf("after a prompt: %+v", got)
	}
	s.Prompt(ses, "hang")
	if err := s.Model.WaitHanging(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	wantAnswers(t, []answered{
		{"while it works", s.Do("POST", sessionPath(ses)+"/revert", map[string]any{"messageID": first}), 409, "session_busy"},
		{"of no message", s.Do("POST", sessionPath(ses)+"/revert", map[string]any{"messageID": "msg_none"}), 404, "message_not_found"},
		{"a diff of none", s.Do("GET", sessionPath(ses)+"/diff?messageID=msg_none", nil), 404, "message_not_found"},
	})
}

// TestTheServersOwnFilesAreNobodysWork: a session may stand where the server keeps
// its own files.
func TestTheServersOwnFilesAreNobodysWork(t *testing.T) {
	t.Parallel()
	for _, git := range []bool{true, false} {
		dir := apptest.Dir(t)
		if git {
			dir = committed(t, map[string]string{"f": "f\n"})
		}
		s := apptest.Start(t, apptest.Options{Config: allowAll, State: dir + "/state", Change: func(c *app.Config) { c.Directory = dir }})
		ses := s.Session(dir)
		does(t, s, ses, bash(t, "echo x > f2"))
		does(t, s, ses, bash(t, "echo y > f2"))
		if got := words(diffOf(s, ses, "")); got != "added f2 +1 -0" {
			t.Errorf("git %v: %s", git, got)
		}
	}
}

func TestSnapshotsCanBeTurnedOff(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{Config: `{"permission": {"*": "allow"}, "snapshot": false}`})
	ses := s.Session("")
	msg := does(t, s, ses, call(t, "write", map[string]any{"path": "f", "content": "1\n"}))
	if got := diffOf(s, ses, ""); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if got := revert(s, ses, msg); len(got.Reverted)+len(got.Skipped) != 0 || content(t, s.Directory+"/f") != "1\n" {
		t.Errorf("%+v", got)
	}
}

// TestWhatIsNotCoveredSaysSo: a file over the limit is neither kept nor touched.
func TestWhatIsNotCoveredSaysSo(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{Config: allowAll})
	repo := committed(t, map[string]string{".gitignore": "ignored\n", "a": "a\n"})
	ses := s.Session(repo)
	msg := does(t, s, ses, bash(t, "head -c 11000000 /dev/zero > large; echo x > ignored; ln -s a link; echo b > a"))
	if got := words(diffOf(s, ses, "")); got != "modified a +1 -1, modified large +0 -0 too_large, modified link +0 -0 not_a_file" {
		t.Errorf("diff: %s", got)
	}
	got := revert(s, ses, msg)
	if len(got.Reverted) != 1 || len(got.Skipped) != 2 || got.Skipped[0].Reason+got.Skipped[1].Reason != "too_largenot_a_file" {
		t.Errorf("%+v", got)
	}
	if info, err := os.Stat(repo + "/large"); err != nil || info.Size() != 11000000 || content(t, repo+"/ignored") != "x\n" {
		t.Errorf("something that is not covered was touched: %v", err)
	}
}
