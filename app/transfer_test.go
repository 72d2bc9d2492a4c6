package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/app/apptest"
	"github.com/switchyard-dev/switchyard/session"
)

// exported is a document as clients see it.
type exported struct {
	Format      string            `json:"format"`
	Version     int               `json:"version"`
	Sessions    []exportedSession `json:"sessions"`
	Attachments []map[string]any  `json:"attachments"`
}

type exportedSession struct {
	Info     map[string]any   `json:"info"`
	Messages []map[string]any `json:"messages"`
	Todos    []any            `json:"todos"`
}

type imported struct {
	Sessions []session.Session `json:"sessions"`
	Imported int               `json:"imported"`
}

func export(t *testing.T, s *apptest.Server, ses string) exported {
	t.Helper()
	a := s.Do("GET", "/api/session/"+ses+"/export", nil)
	if a.Status != 200 || a.Header.Get("Content-Type") != "application/json" || !strings.Contains(a.Header.Get("Content-Disposition"), "attachment") {
		t.Fatalf("%d %v %.500s", a.Status, a.Header, a.Body)
	}
	var doc exported
	if err := json.Unmarshal(a.Body, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func importInto(s *apptest.Server, dir string, doc any) apptest.Answer {
	return s.Do("POST", "/api/session/import"+apptest.Query("directory", dir), doc)
}

func mustImport(t *testing.T, s *apptest.Server, dir string, doc any) imported {
	t.Helper()
	return apptest.Data[imported](s, "POST", "/api/session/import"+apptest.Query("directory", dir), doc)
}

func infoOf(m map[string]any) map[string]any { return m["info"].(map[string]any) }

func idsOf(messages []map[string]any) (ids []string) {
	for _, m := range messages {
		ids = append(ids, infoOf(m)["id"].(string))
	}
	return ids
}

func decoded(t *testing.T, v any) map[string]any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// tree makes a root with two children, each with turns and files of their own,
// and gives its document.
func tree(t *testing.T, o apptest.Options) exported {
	t.Helper()
	s := apptest.Start(t, o)
	dir := apptest.Dir(t)
	root := apptest.Data[session.Session](s, "POST", "/api/session"+apptest.Query("directory", dir), map[string]any{
		"title": "The root", "metadata": map[string]any{"color": "red"},
		"permission": []any{map[string]any{"permission": "bash", "pattern": "rm *", "action": "deny"}},
	})
	turn := func(ses session.Session, text string, files ...map[string]any) {
		t.Helper()
		if len(files) == 0 {
			s.Prompt(ses, text)
		} else if a := promptWith(s, ses, text, files...); a.Status != 200 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		if w := s.Wait(ses); w.Outcome != "completed" {
			t.Fatalf("%q: %+v", text, w)
		}
	}
	turn(root, "say:the oldest answer")
	turn(root, `tool:todowrite:{"todos":[{"content":"one","status":"pending","priority":"high"}]}`)
	turn(root, "say:a picture", map[string]any{"uri": dataURL("image/png", noise(t, 8, 8, 1)), "name": "p.png"})
	turn(root, `tool:write:{"path":"a.txt","content":"text"}`)
	for i := range 2 {
		child := apptest.Data[session.Session](s, "POST", "/api/session"+apptest.Query("directory", dir), map[string]any{
			"title": fmt.Sprintf("Child %d", i), "parentID": root.ID,
		})
		turn(child, fmt.Sprintf("say:answer of child %d", i))
	}
	children := apptest.Data[[]session.Session](s, "GET", "/api/session/"+string(root.ID)+"/children", nil)
	if len(children) != 2 || children[0].Title != "Child 0" || children[1].ParentID != root.ID {
		t.Fatalf("children %+v", children)
	}
	return export(t, s, string(root.ID))
}

// insertCompaction puts a compaction into a conversation behind its first messages: the
// mark, and the summary in place of what is before it.
func insertCompaction(doc *exported, behind int) {
	ses := &doc.Sessions[0]
	was := ses.Messages[behind-1]
	head := func(name string, more map[string]any) map[string]any {
		out := map[string]any{"id": name, "sessionID": ses.Info["id"], "turnID": infoOf(was)["turnID"], "time": map[string]any{"created": 7, "completed": 8}}
		for k, v := range more {
			out[k] = v
		}
		return out
	}
	part := func(name, message string, more map[string]any) map[string]any {
		more["id"], more["sessionID"], more["messageID"] = name, ses.Info["id"], message
		return more
	}
	model := ses.Info["model"].(map[string]any)
	mark := map[string]any{
		"info":  head("msg_mark", map[string]any{"role": "user", "agent": "build", "model": model}),
		"parts": []any{part("part_01K3ZZZZZZZZZZZZZZZZZZZZZ1", "msg_mark", map[string]any{"type": "compaction", "auto": true})},
	}
	summary := map[string]any{
		"info": head("msg_summary", map[string]any{
			"role": "assistant", "parentID": "msg_mark", "modelID": model["modelID"], "providerID": model["providerID"], "mode": "build", "agent": "build",
			"path": map[string]any{"cwd": "/", "root": "/"}, "summary": true, "cost": 0, "finish": "stop",
			"tokens": map[string]any{"input": 1, "output": 1, "reasoning": 0, "cache": map[string]any{"read": 0, "write": 0}},
		}),
		"parts": []any{part("part_01K3ZZZZZZZZZZZZZZZZZZZZZ2", "msg_summary", map[string]any{"type": "text", "text": "the summary of it all"})},
	}
	ses.Messages = slices.Insert(ses.Messages, behind, mark, summary)
}

// strangers finds ids in a JSON text that are not among the known ones.
func strangers(text []byte, known func(string) bool) []string {
	var out []string
	for _, name := range regexp.MustCompile(`\b(ses|msg|part|trn)_[A-Za-z0-9_-]+`).FindAllString(string(text), -1) {
		if !known(name) {
			out = append(out, name)
		}
	}
	return out
}

func TestSC17_TheWholeTreeMovesToAnotherServer(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		doc := tree(t, apptest.Options{Images: true})
		if len(doc.Sessions) != 3 || doc.Format != "switchyard.session" || doc.Version != 1 || len(doc.Attachments) != 1 {
			t.Fatalf("%s %d, %d sessions, %d attachments", doc.Format, doc.Version, len(doc.Sessions), len(doc.Attachments))
		}
		insertCompaction(&doc, 4)
		o.Images = true
		s := apptest.Start(t, o)
		dir := apptest.Dir(t)
		stream := s.Events(apptest.Query("directory", dir))
		got := mustImport(t, s, dir, doc)
		if got.Imported != 3 || len(got.Sessions) != 3 {
			t.Fatalf("%+v", got)
		}
		for _, ses := range got.Sessions {
			e := stream.Until("session.created")
			if info := apptest.Payload[session.Info](s, e[len(e)-1]); !reflect.DeepEqual(info.Info, ses) {
				t.Errorf("event %+v, answer %+v", info.Info, ses)
			}
		}
		root := got.Sessions[0]
		if root.Directory != dir || root.Title != "The root" || string(root.Metadata) != `{"color":"red"}` || len(root.Permission) != 1 {
			t.Fatalf("%+v", root)
		}
		again := export(t, s, string(root.ID))
		for i, ses := range again.Sessions {
			if !slices.Equal(idsOf(ses.Messages), idsOf(doc.Sessions[i].Messages)) || !reflect.DeepEqual(ses.Todos, doc.Sessions[i].Todos) {
				t.Errorf("session %d: messages %v, were %v", i, idsOf(ses.Messages), idsOf(doc.Sessions[i].Messages))
			}
			for _, same := range []string{"id", "parentID", "rootSessionID", "title", "cost", "tokens", "time"} {
				if !reflect.DeepEqual(ses.Info[same], doc.Sessions[i].Info[same]) {
					t.Errorf("session %d: %s is %v, was %v", i, same, ses.Info[same], doc.Sessions[i].Info[same])
				}
			}
		}
		if len(again.Attachments) != 1 || again.Attachments[0]["data"] != doc.Attachments[0]["data"] {
			t.Errorf("attachments %.200v", again.Attachments)
		}
		context := idsOf(apptest.Data[[]map[string]any](s, "GET", "/api/session/"+string(root.ID)+"/context", nil))
		if want := idsOf(doc.Sessions[0].Messages)[4:]; !slices.Equal(context, want) {
			t.Errorf("context %v, want %v", context, want)
		}
		if children := apptest.Data[[]session.Session](s, "GET", "/api/session/"+string(root.ID)+"/children", nil); len(children) != 2 {
			t.Errorf("children %+v", children)
		}
		importTwice(t, s, dir, doc, again)
	})
}

// importTwice checks that importing again stores nothing, and a changed document
// is refused.
func importTwice(t *testing.T, s *apptest.Server, dir string, docs ...exported) {
	t.Helper()
	cursor := func() string { return s.Do("GET", "/api/session?scope=server", nil).Header.Get("X-Event-Cursor") }
	before, files := cursor(), stored(t, s)
	for _, doc := range docs {
		for _, at := range []string{dir, apptest.Dir(t)} {
			if got := mustImport(t, s, at, doc); got.Imported != 0 || len(got.Sessions) != 3 || got.Sessions[0].Directory != dir {
				t.Errorf("again: %d imported, %+v", got.Imported, got.Sessions)
			}
		}
	}
	other := docs[0]
	other.Sessions = slices.Clone(other.Sessions)
	other.Sessions[2].Messages = other.Sessions[2].Messages[:1]
	if a := importInto(s, dir, other); a.Code() != "import_conflict" || a.Status != 409 || !bytes.Contains(a.Body, []byte(other.Sessions[2].Info["id"].(string))) {
		t.Errorf("other content: %d %s", a.Status, a.Body)
	}
	if after := cursor(); after != before || stored(t, s) != files {
		t.Errorf("importing again moved the log from %s to %s, files %d to %d", before, after, files, stored(t, s))
	}
}

func TestSC17_AForkLeadsNowhereButIntoItself(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		doc := tree(t, apptest.Options{Images: true})
		insertCompaction(&doc, 4)
		o.Images = true
		s := apptest.Start(t, o)
		root := mustImport(t, s, apptest.Dir(t), doc).Sessions[0]
		names := idsOf(doc.Sessions[0].Messages)
		fork := apptest.Data[session.Session](s, "POST", "/api/session/"+string(root.ID)+"/fork", map[string]any{"messageID": names[len(names)-1]})
		if fork.ParentID != "" || fork.RootSessionID != fork.ID || fork.Title != "The root (fork)" || fork.Directory != root.Directory {
			t.Fatalf("%+v", fork)
		}
		meta := decoded(t, map[string]any{"m": fork.Metadata})["m"].(map[string]any)
		if origin := meta["forkedFrom"].(map[string]any); origin["sessionID"] != string(root.ID) || origin["messageID"] != names[len(names)-1] || meta["color"] != "red" {
			t.Errorf("metadata %v", meta)
		}
		whole := export(t, s, string(fork.ID))
		if got := whole.Sessions[0].Messages; len(got) != len(names)-1 || len(whole.Attachments) != 1 || len(whole.Sessions[0].Todos) != 1 {
			t.Fatalf("%d messages, %d attachments, todos %v", len(got), len(whole.Attachments), whole.Sessions[0].Todos)
		}
		text, _ := json.Marshal(whole.Sessions[0].Messages)
		fresh := idsOf(whole.Sessions[0].Messages)
		if odd := strangers(text, func(name string) bool {
			return name == string(fork.ID) || slices.Contains(fresh, name) || !bytes.Contains(encoded(doc), []byte(name))
		}); len(odd) > 0 {
			t.Errorf("the fork names %v", odd)
		}
		if a := s.Do("GET", fileURL(t, whole), nil); a.Status != 200 || a.Header.Get("Content-Type") != "image/png" {
			t.Errorf("its picture: %d %s", a.Status, a.Body)
		}
		s.Prompt(fork, "say:further")
		if w := s.Wait(fork); w.Outcome != "completed" {
			t.Fatalf("%+v", w)
		}
		requests := s.Model.Requests()
		body := string(requests[len(requests)-1].Body)
		if strings.Contains(body, "the oldest answer") || !strings.Contains(body, "the summary of it all") || !strings.Contains(body, "a picture") {
			t.Errorf("the fork's first prompt sends %s", body)
		}
		second := apptest.Data[session.Session](s, "POST", "/api/session/"+string(fork.ID)+"/fork", map[string]any{})
		if second.Title != "The root (fork 2)" || len(s.Messages(second)) != len(s.Messages(fork)) {
			t.Errorf("a fork of the fork: %+v", second)
		}
		// Before the compaction the conversation is what it was.
		early := apptest.Data[session.Session](s, "POST", "/api/session/"+string(root.ID)+"/fork", map[string]any{"messageID": "msg_summary"})
		if got := s.Messages(early); len(got) != 4 {
			t.Errorf("before the summary: %d messages", len(got))
		}
		for _, bad := range []string{"msg_none", "nonsense"} {
			if a := s.Do("POST", "/api/session/"+string(root.ID)+"/fork", map[string]any{"messageID": bad}); a.Code() != "message_not_found" {
				t.Errorf("%s: %d %s", bad, a.Status, a.Body)
			}
		}
	})
}

func encoded(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

func fileURL(t *testing.T, doc exported) string {
	t.Helper()
	m := regexp.MustCompile(`/api/session/[^"]+/attachment/[^"]+`).Find(encoded(doc.Sessions[0].Messages))
	if m == nil {
		t.Fatal("no attachment is named")
	}
	return string(m)
}

func TestSC17_ARunningSessionCanBeForkedAndExported(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		s := apptest.Start(t, o)
		ses := s.Session("")
		s.Prompt(ses, "tool:bash:{\"command\":\"sleep 60\"}")
		stream := s.Events(apptest.Query("session", string(ses.ID)))
		for {
			if e := stream.Until("message.part.updated"); bytes.Contains(e[len(e)-1].Payload, []byte(`"status":"running"`)) {
				break
			}
		}
		doc := export(t, s, string(ses.ID))
		fork := apptest.Data[session.Session](s, "POST", "/api/session/"+string(ses.ID)+"/fork", map[string]any{})
		got := s.Messages(fork)
		if len(got) != 2 || got[1].Info.Error == nil || got[1].Info.Time.Completed == 0 {
			t.Fatalf("%+v", got)
		}
		last := toolPart(t, got[1])
		if last.State.Status != "error" || last.State.Metadata["reason"] != "aborted" {
			t.Errorf("the call is %+v", last.State)
		}
		if w := s.Wait(fork); w.Outcome != "interrupted" {
			t.Errorf("the fork: %+v", w)
		}
		s.Prompt(fork, "say:and on")
		if w := s.Wait(fork); w.Outcome != "completed" || !strings.HasSuffix(s.Text(fork), "and on") {
			t.Errorf("%+v %q", w, s.Text(fork))
		}
		s.Do("POST", "/api/session/"+string(ses.ID)+"/interrupt", nil)
		s.Wait(ses)
		// What ran when it was exported is closed where it comes in.
		to := apptest.Start(t, apptest.Options{})
		in := mustImport(t, to, to.Directory, doc).Sessions[0]
		if last := toolPart(t, to.Messages(in)[1]); last.State.Status != "error" || last.State.Metadata["reason"] != "interrupted" {
			t.Errorf("imported: %+v", last.State)
		}
		if got := mustImport(t, to, to.Directory, doc); got.Imported != 0 {
			t.Errorf("again: %+v", got)
		}
	})
}

func toolPart(t *testing.T, m apptest.Message) apptest.Part {
	t.Helper()
	i := slices.IndexFunc(m.Parts, func(p apptest.Part) bool { return p.Type == "tool" })
	if i < 0 {
		t.Fatalf("no call in %+v", m)
	}
	return m.Parts[i]
}

func TestSC17_AsMarkdownItCanBeRead(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{Images: true})
	root := mustImport(t, s, apptest.Dir(t), tree(t, apptest.Options{Images: true})).Sessions[0]
	a := s.Do("GET", "/api/session/"+string(root.ID)+"/export?format=markdown", nil)
	text := string(a.Body)
	if a.Status != 200 || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/markdown") || !strings.Contains(a.Header.Get("Content-Disposition"), ".md") {
		t.Fatalf("%d %v", a.Status, a.Header)
	}
	last := 0
	for _, piece := range []string{"# The root", "## User", "the oldest answer", "<summary>todowrite", "p.png (image/png)", "<summary>write", "```json", "## Plan", "# Child session: Child 0", "answer of child 0", "# Child session: Child 1"} {
		n := strings.Index(text[last:], piece)
		if n < 0 {
			t.Fatalf("no %q behind byte %d of\n%s", piece, last, text)
		}
		last += n
	}
}
