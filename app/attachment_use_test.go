package app_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/app"
	"github.com/switchyard-dev/switchyard/app/apptest"
	"github.com/switchyard-dev/switchyard/attachment"
	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/session"
)

func TestAnUploadIsNamedByPrompts(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		o.Images = true
		s := apptest.Start(t, o)
		content := noise(t, 20, 10, 4)
		first := upload(s, content, "text/plain")
		if first.Mime != "image/png" || first.Width != 20 || first.Height != 10 || first.Size != int64(len(content)) {
			t.Fatalf("%+v", first)
		}
		if again := upload(s, content, "image/png"); again != first {
			t.Fatalf("%+v, then %+v", first, again)
		}
		one, two := s.Session(""), s.Session("")
		path := "/api/session/" + string(one.ID) + "/attachment/" + first.ID
		if a := s.Do("GET", path, nil); a.Code() != "attachment_not_found" {
			t.Fatalf("before it is referred to: %d", a.Status)
		}
		if a := promptWith(s, one, "say:seen", map[string]any{"uri": "attachment:" + first.ID}); a.Status != 200 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		s.Wait(one)
		part := fileParts(s, one)[0]
		if part.URL != path || part.Name != "a.bin" || part.Mime != "image/png" {
			t.Fatalf("%+v", part)
		}
		if got := sent(s)["image/png"]; len(got) != 1 || got[0] != base64.StdEncoding.EncodeToString(content) {
			t.Fatalf("the model got %d images", len(got))
		}
		// A part's URL works in another session's prompt.
		if a := promptWith(s, two, "say:seen", map[string]any{"uri": path, "name": "b.png"}); a.Status != 200 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		s.Wait(two)
		if part := fileParts(s, two)[0]; part.URL != "/api/session/"+string(two.ID)+"/attachment/"+first.ID || part.Name != "b.png" {
			t.Fatalf("%+v", part)
		}
	})
}

func TestAttachmentsAreServedForCaches(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	ses := s.Session("")
	content := noise(t, 60, 60, 5)
	promptWith(s, ses, "say:x", map[string]any{"uri": dataURL("", content), "name": "a b.png"}, map[string]any{"uri": "data:,<script>", "name": "x.html"})
	s.Wait(ses)
	parts := fileParts(s, ses)
	url := parts[0].URL
	a := s.Do("GET", url, nil)
	tag := a.Header.Get("ETag")
	for name, want := range map[string]string{
		"Content-Type": "image/png", "Cache-Control": "private, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff",
		"Content-Disposition": `inline; filename="a b.png"`, "Accept-Ranges": "bytes",
	} {
		if got := a.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if !bytes.Equal(a.Body, content) || len(tag) != 66 || tag[0] != '"' {
		t.Fatalf("%d bytes, tag %s", len(a.Body), tag)
	}
	if a := s.Do("GET", url, nil, "If-None-Match", tag); a.Status != 304 || len(a.Body) != 0 {
		t.Errorf("known: %d", a.Status)
	}
	if a := s.Do("GET", url, nil, "If-None-Match", `"other"`); a.Status != 200 {
		t.Errorf("another tag: %d", a.Status)
	}
	if a := s.Do("GET", url, nil, "Range", "bytes=10-19"); a.Status != 206 || !bytes.Equal(a.Body, content[10:20]) {
		t.Errorf("a range: %d, %d bytes", a.Status, len(a.Body))
	}
	if a := s.Do("GET", url, nil, "Range", "bytes=99999999-"); a.Status != 416 || a.Code() != "range_invalid" {
		t.Errorf("a range outside: %d %s", a.Status, a.Body)
	}
	if a := s.Do("HEAD", url, nil); a.Status != 200 || a.Header.Get("Content-Length") != fmt.Sprint(len(content)) {
		t.Errorf("HEAD: %d %v", a.Status, a.Header)
	}
	page := s.Do("GET", parts[1].URL, nil)
	if got := page.Header.Get("Content-Disposition"); got != "attachment; filename=x.html" || page.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("a text: %q %q", got, page.Header.Get("Content-Type"))
	}
	other := strings.Replace(url, string(ses.ID), string(s.Session("").ID), 1)
	if a := s.Do("GET", other, nil); a.Status != 404 || a.Code() != "attachment_not_found" {
		t.Errorf("another session: %d %s", a.Status, a.Code())
	}
}

func TestFilesOfPromptsAndTools(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		o.Images = true
		s := apptest.Start(t, o)
		dir := apptest.Dir(t)
		content := noise(t, 40, 40, 6)
		for name, data := range map[string][]byte{"x.png": content, "a.txt": []byte("text of a"), "x.pdf": []byte("%PDF-1.4 x"), "x.tiff": {'I', 'I', '*', 0}} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		ses := s.Session(dir)
		stream := s.Events(apptest.Query("directory", dir))
		a := promptWith(s, ses, `tool:read:{"path":"x.png"}`, map[string]any{"uri": "x.png"}, map[string]any{"uri": "a.txt"},
			map[string]any{"uri": "file://" + dir + "/x.pdf"}, map[string]any{"uri": "file:x.tiff"})
		if a.Status != 200 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		s.Wait(ses)
		parts := fileParts(s, ses)
		if parts[0].Mime != "image/png" || parts[0].Name != "x.png" || parts[1].URL != "a.txt" || parts[2].Mime != "application/pdf" || parts[3].URL != "file:x.tiff" {
			t.Fatalf("%+v", parts)
		}
		for _, e := range stream.Until("session.idle") {
			if bytes.Contains(e.Payload, []byte("base64")) {
				t.Errorf("%s holds the content of a file", e.Type)
			}
		}
		var result apptest.Part
		for _, m := range s.Messages(ses) {
			for _, p := range m.Parts {
				if p.Type == "tool" {
					result = p.State.Attachments[0]
				}
			}
		}
		if got := s.Do("GET", result.URL, nil); got.Status != 200 || !bytes.Equal(got.Body, content) {
			t.Errorf("the tool's image at %q: %d", result.URL, got.Status)
		}
		if n := stored(t, s); n != 2 {
			t.Errorf("%d files are kept, want the image and the PDF", n)
		}
		requests := s.Model.Requests()
		if got := inline.FindAllString(string(requests[len(requests)-1].Body), -1); len(got) < 2 {
			t.Errorf("the model got %d files after the call", len(got))
		}
		if text := strings.Join(requests[0].UserTexts(), "\n"); !strings.Contains(text, "text of a") || !strings.Contains(text, "x.tiff, which is binary") {
			t.Errorf("%q", text)
		}
	})
}

func TestAFileThatIsGoneDoesNotStopTheSession(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{Images: true})
	ses := s.Session("")
	promptWith(s, ses, "say:x", map[string]any{"uri": dataURL("", noise(t, 5, 5, 8)), "name": "gone.png"})
	s.Wait(ses)
	if err := os.RemoveAll(filepath.Join(s.State, "attachments")); err != nil {
		t.Fatal(err)
	}
	s.Prompt(ses, "say:ok")
	if got := s.Wait(ses); got.Outcome != "completed" {
		t.Fatalf("%+v", got)
	}
	requests := s.Model.Requests()
	if last := requests[len(requests)-1]; !strings.Contains(string(last.Body), "gone.png was left out") {
		t.Errorf("%s", last.Body)
	}
	if a := s.Do("GET", fileParts(s, ses)[0].URL, nil); a.Code() != "attachment_not_found" {
		t.Errorf("%d %s", a.Status, a.Code())
	}
}

func TestDeletingASessionFreesItsFiles(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		o.Change = func(c *app.Config) {
			c.Attachments = attachment.Options{Unused: 3 * time.Second, Every: 100 * time.Millisecond}
		}
		s := apptest.Start(t, o)
		keep, drop := s.Session(""), s.Session("")
		shared, own := dataURL("", noise(t, 5, 5, 9)), dataURL("", noise(t, 6, 6, 10))
		for _, c := range []struct {
			ses session.Session
			uri string
		}{{keep, shared}, {drop, shared}, {drop, own}} {
			if a := promptWith(s, c.ses, "say:x", map[string]any{"uri": c.uri}); a.Status != 200 {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
			s.Wait(c.ses)
		}
		if a := s.Do("DELETE", "/api/session/"+string(drop.ID), nil); a.Status != 204 {
			t.Fatal(a.Status)
		}
		for deadline := time.Now().Add(30 * time.Second); stored(t, s) != 1; {
			if time.Now().After(deadline) {
				t.Fatalf("%d files are kept", stored(t, s))
			}
			if err := clock.Sleep(t.Context(), 50*time.Millisecond); err != nil {
				t.Fatal(err)
			}
		}
		if a := s.Do("GET", fileParts(s, keep)[0].URL, nil); a.Status != 200 {
			t.Fatalf("the other session's file: %d", a.Status)
		}
	})
}
