package attachment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/switchyard-dev/switchyard/fault"
)

// The types of attachments.
const (
	TypePNG  = "image/png"
	TypeJPEG = "image/jpeg"
	TypeGIF  = "image/gif"
	TypeWebP = "image/webp"
	TypePDF  = "application/pdf"
	TypeText = "text/plain"
)

// Types lists what is accepted.
func Types() []string {
	return []string{TypePNG, TypeJPEG, TypeGIF, TypeWebP, TypePDF, TypeText}
}

// SniffLen is how many bytes Sniff wants to see.
const SniffLen = 32

// Sniff knows images and PDFs by their first bytes; "" for anything else.
func Sniff(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		return TypePNG
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")):
		return TypeJPEG
	case bytes.HasPrefix(head, []byte("GIF87a")), bytes.HasPrefix(head, []byte("GIF89a")):
		return TypeGIF
	case len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		return TypeWebP
	case bytes.HasPrefix(head, []byte("%PDF-")):
		return TypePDF
	}
	return ""
}

// kind is what a content was found to be.
type kind struct {
	mime          string
	width, height int
}

// inspect tells what a content is. It reads an image's header, and all of a text.
func inspect(r io.ReaderAt, size int64) (kind, error) {
	if size == 0 {
		return kind{}, fault.New(fault.ValidationFailed, "the attachment is empty").At("body", "empty")
	}
	head := make([]byte, SniffLen)
	n, err := r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return kind{}, fmt.Errorf("reading an attachment: %w", err)
	}
	head = head[:n]
	switch mime := Sniff(head); {
	case strings.HasPrefix(mime, "image/"):
		return inspectImage(mime, head, io.NewSectionReader(r, 0, size), size)
	case mime != "":
		return kind{mime: mime}, nil
	}
	ok, err := isText(io.NewSectionReader(r, 0, size))
	if err != nil {
		return kind{}, fmt.Errorf("reading an attachment: %w", err)
	}
	if !ok {
		return kind{}, fault.New(fault.UnsupportedMediaType,
			"the content is none of what is accepted: %s (UTF-8)", strings.Join(Types(), ", ")).With("accepted", Types())
	}
	return kind{mime: TypeText}, nil
}

func inspectImage(mime string, head []byte, r io.Reader, size int64) (kind, error) {
	if size > MaxImage {
		return kind{}, fault.New(fault.BodyTooLarge, "the image has %d bytes, at most %d are accepted", size, MaxImage).With("limit", MaxImage)
	}
	var c image.Config
	var err error
	switch mime {
	case TypePNG:
		c, err = png.DecodeConfig(r)
	case TypeJPEG:
		c, err = jpeg.DecodeConfig(r)
	case TypeGIF:
		c, err = gif.DecodeConfig(r)
	default:
		c, err = webpConfig(head)
	}
	if err != nil || c.Width <= 0 || c.Height <= 0 {
		return kind{}, fault.New(fault.ValidationFailed, "the %s has a damaged header", mime).At("body", "damaged %s", mime)
	}
	if pixels := int64(c.Width) * int64(c.Height); pixels > MaxPixels {
		return kind{}, fault.New(fault.ValidationFailed, "the image has %d × %d pixels, at most %d in all are accepted", c.Width, c.Height, MaxPixels).
			At("body", "too many pixels").With("limit", MaxPixels)
	}
	return kind{mime: mime, width: c.Width, height: c.Height}, nil
}

var errWebP = errors.New("damaged webp header")

// webpConfig reads the size from the first chunk: of a lossy image, a lossless
// one, or the canvas of the extended format.
func webpConfig(head []byte) (image.Config, error) {
	if len(head) < 30 {
		return image.Config{}, errWebP
	}
	le := binary.LittleEndian
	data := head[20:]
	switch string(head[12:16]) {
	case "VP8 ":
		if data[0]&1 != 0 || !bytes.Equal(data[3:6], []byte{0x9d, 0x01, 0x2a}) {
			return image.Config{}, errWebP
		}
		return image.Config{Width: int(le.Uint16(data[6:]) & 0x3fff), Height: int(le.Uint16(data[8:]) & 0x3fff)}, nil
	case "VP8L":
		if data[0] != 0x2f {
			return image.Config{}, errWebP
		}
		bits := le.Uint32(data[1:])
		return image.Config{Width: int(bits&0x3fff) + 1, Height: int(bits>>14&0x3fff) + 1}, nil
	case "VP8X":
		return image.Config{Width: uint24(data[4:]) + 1, Height: uint24(data[7:]) + 1}, nil
	}
	return image.Config{}, errWebP
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

// isText tells whether all of r is UTF-8 without NUL. Memory stays small.
func isText(r io.Reader) (bool, error) {
	buf := make([]byte, 64<<10)
	rest := 0 // bytes of a character that the last block cut
	for {
		n, err := r.Read(buf[rest:])
		block := buf[:rest+n]
		if bytes.IndexByte(block[rest:], 0) >= 0 {
			return false, nil
		}
		whole := len(block)
		if err == nil {
			whole = wholeRunes(block)
		}
		if !utf8.Valid(block[:whole]) {
			return false, nil
		}
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		rest = copy(buf, block[whole:])
	}
}

// wholeRunes is the length of b without a character that may go on behind it.
func wholeRunes(b []byte) int {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		c := b[len(b)-i]
		if !utf8.RuneStart(c) {
			continue
		}
		if !utf8.FullRune(b[len(b)-i:]) {
			return len(b) - i
		}
		break
	}
	return len(b)
}
