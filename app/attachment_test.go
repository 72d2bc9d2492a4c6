package app_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/app"
	"github.com/switchyard-dev/switchyard/app/apptest"
	"github.com/switchyard-dev/switchyard/attachment"
	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/session"
)

// noise is a PNG that does not get smaller by packing.
func noise(t *testing.T, w, h int, seed uint64) []byte {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = r.Read(img.Pix)
	for i := 3; i < len(img.Pix); i += 4 {
		img.Pix[i] = 255
	}
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func dataURL(mime string, content []byte) string {
	return "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(content)
}

// promptWith sends a prompt with files.
func promptWith(s *apptest.Server, ses session.Session, text string, files ...map[string]any) apptest.Answer {
	return s.Do("POST", "/api/session/"+string(ses.ID)+"/prompt", map[string]any{"prompt": map[string]any{"text": text, "files": files}})
}

type uploaded struct {
	ID            string
	Mime          string
	Size          int64
	Width, Height int
}

func upload(s *apptest.Server, content []byte, mediaType string) uploaded {
	return apptest.Data[uploaded](s, "POST", "/api/attachment?name=a.bin", content, "Content-Type", mediaType)
}

// stored counts the files that the server keeps, those that came by halves too.
func stored(t *testing.T, s *apptest.Server) int {
	t.Helper()
	n := 0
	err := filepath.WalkDir(filepath.Join(s.State, "attachments"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// fileParts gives the file parts of a session's prompts.
func fileParts(s *apptest.Server, ses session.Session) []apptest.Part {
	var out []apptest.Part
	for _, m := range s.Messages(ses) {
		for _, p := range m.Parts {
			if p.Type == "file" {
				out = append(out, p)
			}
		}
	}
	return out
}

var inline = regexp.MustCompile(`data:([a-z]+/[a-z]+);base64,([A-Za-z0-9+/=]+)`)

// sent gives the files in the model's requests, as base64, by their type.
func sent(s *apptest.Server) map[string][]string {
	out := map[string][]string{}
	for _, r := range s.Model.Requests() {
		for _, m := range inline.FindAllSubmatch(r.Body, -1) {
			out[string(m[1])] = append(out[string(m[1])], string(m[2]))
		}
	}
	return out
}

func TestSC16_MessagePagingWithImages(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		s := apptest.Start(t, o)
		ses := s.Session("")
		images, turns := 50, 300
		if o.Database != "" {
			images, turns = 8, 20
		}
		content := map[string][]byte{}
		for n := range images {
			name := fmt.Sprintf("%d.png", n)
			content[name] = noise(t, 370, 370, uint64(n))
			file := map[string]any{"uri": dataURL("image/png", content[name]), "name": name, "mime": "image/png"}
			if a := promptWith(s, ses, "say:ok", file); a.Status != 200 {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
			s.Wait(ses)
			seedTurns(t, s, ses, turns/images)
		}
		forward := walkMessages(t, s, ses, "asc", content)
		back := walkMessages(t, s, ses, "desc", content)
		slices.Reverse(back)
		if want := 2 * (images + turns/images*images); len(forward) != want || !slices.Equal(forward, back) {
			t.Fatalf("%d messages forwards, %d backwards, want %d", len(forward), len(back), want)
		}
		if n := stored(t, s); n != images {
			t.Errorf("%d files are kept", n)
		}
	})
}

// walkMessages pages through a session, checks each page and each image on it,
// and gives the ids.
func walkMessages(t *testing.T, s *apptest.Server, ses session.Session, order string, content map[string][]byte) []string {
	t.Helper()
	var ids []string
	seen := 0
	for cursor := ""; ; {
		path := "/api/session/" + string(ses.ID) + "/message?order=" + order + cursor
		if a := s.Do("GET", path, nil); len(a.Body) > 512<<10 || bytes.Contains(a.Body, []byte(`"data:`)) {
			t.Fatalf("a page of %d bytes, or with content in it", len(a.Body))
		}
		page := apptest.List[apptest.Message](s, path)
		if len(page.Data) > session.DefaultLimit {
			t.Fatalf("%d messages on a page", len(page.Data))
		}
		for _, m := range page.Data {
			ids = append(ids, m.Info.ID)
			for _, p := range m.Parts {
				if p.Type != "file" {
					continue
				}
				if a := s.Do("GET", p.URL, nil); a.Status != 200 || !bytes.Equal(a.Body, content[p.Name]) {
					t.Fatalf("%s: %d, %d bytes", p.Name, a.Status, len(a.Body))
				}
				seen++
			}
		}
		if page.Cursor.Next == "" {
			break
		}
		cursor = "&cursor=" + page.Cursor.Next
	}
	if seen != len(content) {
		t.Fatalf("%d images on the way", seen)
	}
	return ids
}

func TestSC23_Attachments(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o apptest.Options) {
		o.Images = true
		s := apptest.Start(t, o)
		large := noise(t, 1450, 1450, 1)
		if len(large) < 6_000_000 {
			t.Fatal(len(large))
		}
		small, long := noise(t, 3000, 10, 2), noise(t, 9000, 10, 3)
		tiff := []byte("II*\x00\x08\x00\x00\x00\x00\x00\x00\x00")
		for name, c := range map[string]struct {
			uri, mime string
			status    int
			code      string
			stored    string // mime of the part
			told      string // what the model is told in place of the file
		}{
			"6 MB":          {dataURL("image/png", large), "image/png", 200, "", "image/png", "was left out: it has"},
			"tiff":          {dataURL("image/tiff", tiff), "image/tiff", 415, "unsupported_media_type", "", ""},
			"a text as png": {dataURL("image/png", []byte("I am a text")), "image/png", 200, "", "text/plain", "I am a text"},
			"3,000 × 10":    {dataURL("image/png", small), "image/png", 200, "", "image/png", ""},
			"9,000 × 10":    {dataURL("image/png", long), "", 200, "", "image/png", "9000 × 10 pixels"},
			"damaged":       {dataURL("image/png", large[:20]), "image/png", 422, "validation_failed", "", ""},
			"no base64":     {"data:image/png;base64,%%%", "", 422, "validation_failed", "", ""},
			"another URI":   {"https://example.org/x.png", "", 422, "validation_failed", "", ""},
			"unknown":       {"attachment:att_01K3ZZZZZZZZZZZZZZZZZZZZZZ", "", 404, "attachment_not_found", "", ""},
			"no id":         {"attachment:x", "", 404, "attachment_not_found", "", ""},
			"missing file":  {"file:///nowhere/x.png", "", 400, "path_outside", "", ""},
			"40 MB":         {"data:image/png;base64," + strings.Repeat("A", 40<<20), "", 413, "body_too_large", "", ""},
		} {
			t.Run(name, func(t *testing.T) {
				ses, before := s.Session(""), stored(t, s)
				a := promptWith(s, ses, "say:seen", map[string]any{"uri": c.uri, "mime": c.mime, "name": name})
				if a.Status != c.status || a.Code() != c.code {
					t.Fatalf("%d %s", a.Status, a.Body)
				}
				if c.status != 200 {
					if n := len(s.Messages(ses)); n != 0 || stored(t, s) != before {
						t.Errorf("%d messages, %d files in place of %d", n, stored(t, s), before)
					}
				} else {
					accepted(t, s, ses, c.stored, c.told)
				}
				s.Prompt(ses, "say:ok")
				if got := s.Wait(ses); got.Outcome != "completed" || !strings.HasSuffix(s.Text(ses), "ok") {
					t.Fatalf("%+v, %q", got, s.Text(ses))
				}
			})
		}
		images := sent(s)["image/png"]
		for _, b64 := range images {
			if len(b64) > 5<<20 || b64 == base64.StdEncoding.EncodeToString(long) {
				t.Errorf("the model got an image of %d bytes", len(b64))
			}
		}
		if !slices.Contains(images, base64.StdEncoding.EncodeToString(small)) {
			t.Error("the model did not get the image that it takes")
		}
	})
}

// accepted checks how a prompt's file is stored and what the model was told.
func accepted(t *testing.T, s *apptest.Server, ses session.Session, mime, told string) {
	t.Helper()
	if got := s.Wait(ses); got.Outcome != "completed" {
		t.Fatalf("%+v", got)
	}
	parts := fileParts(s, ses)
	if len(parts) != 1 || parts[0].Mime != mime || !strings.HasPrefix(parts[0].URL, "/api/session/"+string(ses.ID)+"/attachment/att_") {
		t.Fatalf("%+v", parts)
	}
	requests := s.Model.Requests()
	if last := strings.Join(requests[len(requests)-1].UserTexts(), "\n"); !strings.Contains(last, told) {
		t.Errorf("the model was told %q", last)
	}
}

func TestSC23_UploadsOverTheLimitStoreNothing(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	big := make([]byte, 40<<20)
	if a := s.Do("POST", "/api/attachment", big, "Content-Type", "image/png"); a.Status != 413 || a.Code() != "body_too_large" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	// Without an announced length the limit is met on the way.
	a := send(t, s, io.MultiReader(strings.NewReader(strings.Repeat("x", 33<<20))))
	if a.Status != 413 || a.Code() != "body_too_large" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	for name, content := range map[string][]byte{"unsupported_media_type": {'a', 0}, "validation_failed": {}} {
		if a := s.Do("POST", "/api/attachment", content, "Content-Type", "image/png"); a.Code() != name {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
	}
	if n := stored(t, s); n != 0 {
		t.Errorf("%d files are left", n)
	}
}

// send uploads what comes out of a reader, as it comes.
func send(t *testing.T, s *apptest.Server, from io.Reader) apptest.Answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/api/attachment", from)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+apptest.Token)
	res, err := s.Plain.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return apptest.Answer{Status: res.StatusCode, Header: res.Header, Body: body}
}

func TestSC23_ASlowUploadIsNotCut(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.Options{})
	content := noise(t, 460, 460, 7) // over 600 KB
	out, in := io.Pipe()
	go func() {
		for piece := range slices.Chunk(content, 10_000) {
			if _, err := in.Write(piece); err != nil {
				return
			}
			if clock.Sleep(t.Context(), 100*time.Millisecond) != nil {
				break
			}
		}
		_ = in.Close()
	}()
	begun := time.Now()
	a := send(t, s, out)
	if a.Status != 200 || !bytes.Contains(a.Body, []byte(fmt.Sprintf(`"size":%d`, len(content)))) {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if took := time.Since(begun); took < 5*time.Second {
		t.Fatalf("the upload took %v only", took)
	}
}

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
