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
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/app/apptest"
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
