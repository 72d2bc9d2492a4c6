package attachment_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/attachment"
	"github.com/switchyard-dev/switchyard/fault"
)

// webp puts the header of a chunk around data, with room behind it.
func webp(chunk string, data []byte) []byte {
	out := append([]byte("RIFF\x40\x00\x00\x00WEBP"+chunk+"\x30\x00\x00\x00"), data...)
	return append(out, make([]byte, 30)...)
}

// pngHeader is a PNG that says how large it is and holds nothing.
func pngHeader(w, h uint32) []byte {
	ihdr := binary.BigEndian.AppendUint32([]byte("IHDR"), w)
	ihdr = append(binary.BigEndian.AppendUint32(ihdr, h), 8, 6, 0, 0, 0)
	out := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), ihdr...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(ihdr))
}

func TestTheTypeIsThatOfTheContent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	// A two-byte character lies across the border of the blocks that are read.
	long := strings.Repeat("a", 64<<10-1) + "é" + strings.Repeat("b", 70_000)
	for name, c := range map[string]struct {
		content []byte
		want    attachment.Attachment
	}{
		"png":           {encoded(t, attachment.TypePNG, 30, 20), attachment.Attachment{Mime: attachment.TypePNG, Width: 30, Height: 20}},
		"jpeg":          {encoded(t, attachment.TypeJPEG, 31, 21), attachment.Attachment{Mime: attachment.TypeJPEG, Width: 31, Height: 21}},
		"gif":           {encoded(t, attachment.TypeGIF, 32, 22), attachment.Attachment{Mime: attachment.TypeGIF, Width: 32, Height: 22}},
		"webp lossy":    {webp("VP8 ", []byte{0, 0, 0, 0x9d, 0x01, 0x2a, 0x40, 0x41, 0x10, 0x80}), attachment.Attachment{Mime: attachment.TypeWebP, Width: 320, Height: 16}},
		"webp lossless": {webp("VP8L", []byte{0x2f, 0x3f, 0xc1, 0x01, 0x00}), attachment.Attachment{Mime: attachment.TypeWebP, Width: 320, Height: 8}},
		"webp extended": {webp("VP8X", []byte{0, 0, 0, 0, 0xe7, 0x03, 0, 0x09, 0, 0}), attachment.Attachment{Mime: attachment.TypeWebP, Width: 1000, Height: 10}},
		"pdf":           {[]byte("%PDF-1.7\n\x00\xff"), attachment.Attachment{Mime: attachment.TypePDF}},
		"text":          {[]byte("a claim.png is no image\n"), attachment.Attachment{Mime: attachment.TypeText}},
		"long text":     {[]byte(long), attachment.Attachment{Mime: attachment.TypeText}},
		"short":         {[]byte("é"), attachment.Attachment{Mime: attachment.TypeText}},
	} {
		got := b.keep("", c.content, name)
		if got.Mime != c.want.Mime || got.Width != c.want.Width || got.Height != c.want.Height || got.Size != int64(len(c.content)) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestWhatIsRefusedLeavesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, c := range map[string]struct {
		content []byte
		want    fault.Code
	}{
		"empty":         {nil, fault.ValidationFailed},
		"tiff":          {[]byte("II*\x00\x08\x00\x00\x00\x00\x00"), fault.UnsupportedMediaType},
		"latin-1":       {[]byte("caf\xe9"), fault.UnsupportedMediaType},
		"cut character": {[]byte("caf\xc3"), fault.UnsupportedMediaType},
		"NUL":           {[]byte("a\x00b"), fault.UnsupportedMediaType},
		"damaged png":   {[]byte("\x89PNG\r\n\x1a\nnothing of the kind"), fault.ValidationFailed},
		"damaged webp":  {webp("VP9 ", make([]byte, 10)), fault.ValidationFailed},
		"short webp":    {[]byte("RIFF\x04\x00\x00\x00WEBP"), fault.ValidationFailed},
		"bomb":          {pngHeader(20_000, 20_000), fault.ValidationFailed},
		"large image":   {append(pngHeader(10, 10), make([]byte, attachment.MaxImage)...), fault.BodyTooLarge},
		"large text":    {bytes.Repeat([]byte("x"), attachment.MaxSize+1), fault.BodyTooLarge},
	} {
		if _, err := b.Stage(bytes.NewReader(c.content), name); !fault.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left := b.files(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	_, err := b.Stage(strings.NewReader("\x00"), "x")
	if f, ok := fault.As(err); !ok || !strings.Contains(f.Detail, "image/webp") {
		t.Errorf("the refusal does not say what is accepted: %v", err)
	}
}

func TestAnImageAtTheLimitOfPixelsIsAccepted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if got := b.keep("", pngHeader(10_000, 10_000), ""); got.Width != 10_000 {
		t.Fatalf("%+v", got)
	}
}
