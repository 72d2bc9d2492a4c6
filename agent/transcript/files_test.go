package transcript_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/agent/transcript"
	"github.com/switchyard-dev/switchyard/attachment"
	"github.com/switchyard-dev/switchyard/catalog"
	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/llm"
)

// shelf holds attachments by URL. A nil content is a file that is gone.
type shelf struct {
	ids  *id.Source
	ses  id.Session
	rows map[string]attachment.Attachment
	data map[id.Attachment][]byte
}

func setup() *shelf {
	ids := id.NewSource(time.Now, nil)
	return &shelf{ids: ids, ses: id.New[id.Session](ids), rows: map[string]attachment.Attachment{}, data: map[id.Attachment][]byte{}}
}

func (s *shelf) Find(_ context.Context, url string) (attachment.Attachment, error) {
	a, ok := s.rows[url]
	if !ok {
		return a, attachment.NotFound("")
	}
	return a, nil
}

func (s *shelf) Read(a attachment.Attachment) ([]byte, error) {
	if s.data[a.ID] == nil {
		return nil, errors.New("gone")
	}
	return s.data[a.ID], nil
}

// put makes a part that names an attachment.
func (s *shelf) put(name string, a attachment.Attachment, data []byte) *chat.FilePart {
	a.ID = id.New[id.Attachment](s.ids)
	if a.Size == 0 {
		a.Size = int64(len(data))
	}
	url := chat.AttachmentURL(s.ses, a.ID)
	s.rows[url], s.data[a.ID] = a, data
	return chat.NewFile(chat.PartHead{}, a.Mime, name, url)
}

func user(parts ...chat.Part) chat.Item {
	return chat.Item{Info: &chat.UserMessage{}, Parts: parts}
}

// told joins what the model is sent: a file as its name and size.
func told(messages []llm.Message) string {
	var out []string
	file := func(f llm.File) string { return fmt.Sprintf("[%s %s %d]", f.Name, f.Mime, len(f.Data)) }
	for _, m := range messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Text:
				out = append(out, p.Text)
			case llm.File:
				out = append(out, file(p))
			case llm.ToolResult:
				out = append(out, p.Output)
				for _, f := range p.Files {
					out = append(out, file(f))
				}
			}
		}
	}
	return strings.Join(out, "\n")
}

func wide() catalog.Intake {
	return catalog.Intake{Image: true, PDF: true, ImageBytes: 1000, ImageSide: 100, Files: 10, Bytes: 10_000}
}

func TestFilesAreSentOrToldInWords(t *testing.T) {
	t.Parallel()
	s := setup()
	png := attachment.Attachment{Mime: attachment.TypePNG, Width: 10, Height: 10}
	long := png
	long.Width = 101
	pdf, text := attachment.Attachment{Mime: attachment.TypePDF}, attachment.Attachment{Mime: attachment.TypeText}
	for name, c := range map[string]struct {
		part   *chat.FilePart
		change func(*catalog.Intake)
		want   string
	}{
		"an image":            {s.put("a.png", png, make([]byte, 5)), nil, "[a.png image/png 5]"},
		"a PDF":               {s.put("a.pdf", pdf, make([]byte, 5)), nil, "[a.pdf application/pdf 5]"},
		"a text":              {s.put("a.txt", text, []byte("hi")), nil, "[a.txt text/plain 2]"},
		"content in the part": {chat.NewFile(chat.PartHead{}, "image/png", "b.png", "data:image/png;base64,AAAA"), nil, "[b.png image/png 3]"},
		"a pointer":           {chat.NewFile(chat.PartHead{}, "text/plain", "", "file:///x.go"), nil, "The user points to the file file:///x.go."},
		"no images":           {s.put("a.png", png, make([]byte, 5)), func(i *catalog.Intake) { i.Image = false }, "(the image a.png was left out: the model takes no images)"},
		"no PDF":              {s.put("", pdf, make([]byte, 5)), func(i *catalog.Intake) { i.PDF = false }, "(the PDF was left out: the model takes no PDF)"},
		"heavy":               {s.put("a.png", png, make([]byte, 1001)), nil, "(the image a.png was left out: it has 1001 bytes, the model takes 1000)"},
		"wide":                {s.put("a.png", long, make([]byte, 5)), nil, "(the image a.png was left out: it has 101 × 10 pixels, the model takes 100 a side)"},
		"gone from the disk":  {s.put("a.png", png, nil), nil, "(the image a.png was left out: its file cannot be read)"},
		"unknown": {
			chat.NewFile(chat.PartHead{}, "image/png", "a.png", chat.AttachmentURL(s.ses, id.New[id.Attachment](s.ids))), nil,
			"(the image a.png was left out: it is not there any more)",
		},
		"too many": {s.put("a.png", png, make([]byte, 5)), func(i *catalog.Intake) { i.Files = 0 }, "(the image a.png was left out: newer files fill the request)"},
	} {
		intake := wide()
		if c.change != nil {
			c.change(&intake)
		}
		r := transcript.Reader{Files: s, Intake: intake}
		if got := told(r.Messages(t.Context(), []chat.Item{user(c.part)})); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	part := s.put("a.png", png, make([]byte, 5))
	if got := told(transcript.Messages([]chat.Item{user(part)})); got != "(the image a.png was left out: files are not shown here)" {
		t.Errorf("without a reader: %q", got)
	}
	if got := told(transcript.Reader{Intake: wide()}.Messages(t.Context(), []chat.Item{user(part)})); !strings.Contains(got, "not there any more") {
		t.Errorf("without files: %q", got)
	}
}

func TestTheNewestFilesStay(t *testing.T) {
	t.Parallel()
	s := setup()
	png := attachment.Attachment{Mime: attachment.TypePNG}
	items := []chat.Item{
		user(s.put("1", png, make([]byte, 400))),
		user(s.put("2", png, make([]byte, 400)), s.put("3", png, make([]byte, 400))),
	}
	intake := wide()
	intake.Bytes = 1000
	const out = "(the image 1 was left out: newer files fill the request)"
	want := out + "\n[2 image/png 400]\n[3 image/png 400]"
	if got := told(transcript.Reader{Files: s, Intake: intake}.Messages(t.Context(), items)); got != want {
		t.Errorf("by bytes: %q", got)
	}
	intake = wide()
	intake.Files = 2
	if got := told(transcript.Reader{Files: s, Intake: intake}.Messages(t.Context(), items)); got != want {
		t.Errorf("by number: %q", got)
	}
}

func TestFilesOfToolsAreSentWithTheResult(t *testing.T) {
	t.Parallel()
	s := setup()
	png := attachment.Attachment{Mime: attachment.TypePNG}
	result := func(files ...*chat.FilePart) *chat.ToolCompleted {
		done := chat.Completed(nil, "", "seen", nil, chat.PartTime{})
		done.Attachments = files
		return done
	}
	item := func(state chat.ToolState) []chat.Item {
		part := chat.NewTool(chat.PartHead{}, "call", "read")
		part.State = state
		return []chat.Item{{Info: &chat.AssistantMessage{}, Parts: []chat.Part{part}}}
	}
	r := transcript.Reader{Files: s, Intake: wide()}
	state := result(s.put("a.png", png, make([]byte, 5)), s.put("b.png", png, make([]byte, 2000)))
	want := "seen\n(the image b.png was left out: it has 2000 bytes, the model takes 1000)\n[a.png image/png 5]"
	if got := told(r.Messages(t.Context(), item(state))); got != want {
		t.Errorf("%q", got)
	}
	state.Time.Compacted = 1
	if got := told(r.Messages(t.Context(), item(state))); got != "(the output was removed to save room)" {
		t.Errorf("a removed output: %q", got)
	}
}

func TestLongTextsAreCutAtACharacter(t *testing.T) {
	t.Parallel()
	s := setup()
	intake := wide()
	intake.Bytes = 1 << 20
	part := s.put("a.txt", attachment.Attachment{Mime: attachment.TypeText}, []byte("a"+strings.Repeat("é", 200<<10)))
	messages := transcript.Reader{Files: s, Intake: intake}.Messages(t.Context(), []chat.Item{user(part)})
	file, ok := messages[0].Parts[0].(llm.File)
	if !ok || strings.ToValidUTF8(string(file.Data), "?") != string(file.Data) || !strings.HasSuffix(string(file.Data), "é\n(the text is longer)") {
		t.Fatalf("%T of %d bytes", messages[0].Parts[0], len(file.Data))
	}
}
