package transcript

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/switchyard-dev/switchyard/attachment"
	"github.com/switchyard-dev/switchyard/catalog"
	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/llm"
)

// maxText bounds what the model is shown of a text that is attached.
const maxText = 256 << 10

// Files finds what parts refer to; *attachment.Service is one.
type Files interface {
	// Find finds the attachment that a part's URL names.
	Find(ctx context.Context, url string) (attachment.Attachment, error)
	// Read gives its content.
	Read(a attachment.Attachment) ([]byte, error)
}

// Reader turns conversations with files into what one model is sent.
type Reader struct {
	// Files nil finds nothing.
	Files  Files
	Intake catalog.Intake
}

// Messages is the function Messages with the files of the conversation. What the
// model does not take, by kind, size or number, and what cannot be read, is told
// in words in its place, so that no file can make the provider refuse the
// conversation. Where there is too much in all, the newest files stay.
func (r Reader) Messages(ctx context.Context, items []chat.Item) []llm.Message {
	v := view{files: map[*chat.FilePart]llm.Part{}}
	left := r.Intake
	for _, item := range slices.Backward(items) {
		for _, f := range slices.Backward(filesOf(item.Parts)) {
			if part := r.file(ctx, f, &left); part != nil {
				v.files[f] = part
			}
		}
	}
	return v.messages(items)
}

// filesOf gives the files of a message, those of tool results among them.
func filesOf(parts []chat.Part) []*chat.FilePart {
	var out []*chat.FilePart
	for _, p := range parts {
		switch v := p.(type) {
		case *chat.FilePart:
			out = append(out, v)
		case *chat.ToolPart:
			if done, ok := v.State.(*chat.ToolCompleted); ok && done.Time.Compacted == 0 {
				out = append(out, done.Attachments...)
			}
		}
	}
	return out
}

// file gives what the model is sent for a file; nil when its URL names no
// content.
func (r Reader) file(ctx context.Context, f *chat.FilePart, left *catalog.Intake) llm.Part {
	var a attachment.Attachment
	data, mime, inline := DataURL(f.URL)
	switch {
	case inline:
		a = attachment.Attachment{Mime: mime, Size: int64(len(data))}
	case !names(f):
		return nil
	default:
		var ok bool
		if a, ok = r.find(ctx, f.URL); !ok {
			return leftOut(f, "it is not there any more")
		}
	}
	if why := refuse(a, left); why != "" {
		return leftOut(f, why)
	}
	if !inline {
		var err error
		if data, err = r.Files.Read(a); err != nil {
			return leftOut(f, "its file cannot be read")
		}
	}
	if a.Mime == attachment.TypeText {
		data = shorten(data)
	}
	left.Files--
	left.Bytes -= int64(len(data))
	return llm.File{Name: f.Filename, Mime: a.Mime, Data: data}
}

func names(f *chat.FilePart) bool {
	_, _, ok := chat.ParseAttachmentURL(f.URL)
	return ok
}

func (r Reader) find(ctx context.Context, url string) (attachment.Attachment, bool) {
	if r.Files == nil {
		return attachment.Attachment{}, false
	}
	a, err := r.Files.Find(ctx, url)
	return a, err == nil
}

// refuse says why the model cannot be sent a file, with what is left of its
// intake; "" when it can.
func refuse(a attachment.Attachment, left *catalog.Intake) string {
	size := a.Size
	switch image := strings.HasPrefix(a.Mime, "image/"); {
	case image && !left.Image:
		return "the model takes no images"
	case a.Mime == attachment.TypePDF && !left.PDF:
		return "the model takes no PDF"
	case image && a.Size > left.ImageBytes:
		return fmt.Sprintf("it has %d bytes, the model takes %d", a.Size, left.ImageBytes)
	case image && max(a.Width, a.Height) > left.ImageSide:
		return fmt.Sprintf("it has %d × %d pixels, the model takes %d a side", a.Width, a.Height, left.ImageSide)
	case a.Mime == attachment.TypeText:
		size = min(size, maxText)
	}
	if left.Files <= 0 || size > left.Bytes {
		return "newer files fill the request"
	}
	return ""
}

// leftOut is what the model is told in place of a file.
func leftOut(f *chat.FilePart, why string) llm.Text {
	what := "file"
	switch {
	case strings.HasPrefix(f.Mime, "image/"):
		what = "image"
	case f.Mime == attachment.TypePDF:
		what = "PDF"
	}
	if f.Filename != "" {
		what += " " + f.Filename
	}
	return llm.Text{Text: fmt.Sprintf("(the %s was left out: %s)", what, why)}
}

// shorten cuts a text at a character's boundary.
func shorten(data []byte) []byte {
	if len(data) <= maxText {
		return data
	}
	end := maxText
	for end > 0 && !utf8.RuneStart(data[end]) {
		end--
	}
	return append(data[:end:end], "\n(the text is longer)"...)
}
