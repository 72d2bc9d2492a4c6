package fs

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/fault"
)

const (
	// MaxContent is the most content of a file that one answer holds, in bytes;
	// the rest is read by ranges or raw.
	MaxContent = 1 << 20
	// sniff is how much of a file decides whether it is text.
	sniff = 8 << 10
)

// Unit is what the offset and limit of a read count.
type Unit string

// The units of a read.
const (
	Bytes Unit = "bytes"
	Lines Unit = "lines"
)

// ReadInput selects a file and, perhaps, a part of it.
type ReadInput struct {
	In
	// Offset is where to begin and Limit how much to read, in Unit, both from 0;
	// a Limit of 0 reads as much as one answer holds.
	Offset, Limit int64
	// Unit "" is Bytes.
	Unit Unit
}

// File is a file with (a part of) its content.
type File struct {
	PathName
	Type      string `json:"type" enum:"text,binary"`
	Encoding  string `json:"encoding" enum:"utf-8,base64"`
	Mime      string `json:"mime"`
	Size      int64  `json:"size" doc:"Bytes of the whole file."`
	ETag      string `json:"etag" doc:"Changes whenever the file does."`
	Content   string `json:"content"`
	Offset    int64  `json:"offset" doc:"Where the content begins, in the unit asked for."`
	Truncated bool   `json:"truncated" doc:"There is more behind the content."`
}

// Read reads a file. Text keeps its exact bytes, byte order mark and line ends
// included; what is not UTF-8 is base64. A directory, FIFO or device is a
// not_a_file fault.
func (s *Service) Read(ctx context.Context, in ReadInput) (out File, err error) {
	f, info, name, err := s.open(in.In)
	if err != nil {
		return File{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	head, err := peek(f)
	if err != nil {
		return File{}, fmt.Errorf("reading %s: %w", name, err)
	}
	out = File{PathName: nameOf(name), Mime: mimeOf(name, head), Size: info.Size(), ETag: etagOf(info), Offset: in.Offset}
	text := isText(head, int64(len(head)) == info.Size())
	var data []byte
	if in.Unit == Lines && text {
		data, out.Truncated, err = readLines(ctx, f, in.Offset, in.Limit)
	} else {
		data, out.Truncated, err = readBytes(f, in.Offset, in.Limit, info.Size())
	}
	if err != nil {
		return File{}, fmt.Errorf("reading %s: %w", name, err)
	}
	if text && out.Truncated {
		data = wholeRunes(data)
	}
	if text && utf8.Valid(data) {
		out.Type, out.Encoding, out.Content = "text", "utf-8", string(data)
		return out, nil
	}
	out.Type, out.Encoding, out.Content = "binary", "base64", base64.StdEncoding.EncodeToString(data)
	return out, nil
}

// Raw is a file for serving its bytes. The caller closes it.
type Raw struct {
	io.ReadSeekCloser
	Mime    string
	ETag    string
	ModTime time.Time
}

// Raw opens a file for serving its bytes.
func (s *Service) Raw(in In) (Raw, error) {
	f, info, name, err := s.open(in)
	if err != nil {
		return Raw{}, err
	}
	head, err := peek(f)
	if err != nil {
		return Raw{}, errors.Join(fmt.Errorf("reading %s: %w", name, err), f.Close())
	}
	return Raw{ReadSeekCloser: f, Mime: mimeOf(name, head), ETag: etagOf(info), ModTime: info.ModTime()}, nil
}

func (s *Service) open(in In) (env.File, iofs.FileInfo, string, error) {
	name, err := s.resolve(in)
	if err != nil {
		return nil, nil, "", err
	}
	f, err := s.files.Open(name)
	if err != nil {
		return nil, nil, "", err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, "", errors.Join(fmt.Errorf("reading %s: %w", name, err), f.Close())
	}
	return f, info, name, nil
}

// peek gives the beginning of a file and leaves it at its start.
func peek(f env.File) ([]byte, error) {
	head := make([]byte, sniff)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return head[:n], nil
}

// isText: no NUL and valid UTF-8; a rune that the peek cut in two is no sign of
// anything.
func isText(head []byte, whole bool) bool {
	if strings.ContainsRune(string(head), 0) {
		return false
	}
	if !whole {
		head = wholeRunes(head)
	}
	return utf8.Valid(head)
}

// wholeRunes takes an incomplete rune off the end.
func wholeRunes(data []byte) []byte {
	for i := 1; i <= utf8.UTFMax && i <= len(data); i++ {
		last := data[len(data)-i:]
		if utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return data[:len(data)-i]
			}
			break
		}
	}
	return data
}

func readBytes(f env.File, offset, limit, size int64) ([]byte, bool, error) {
	if limit <= 0 || limit > MaxContent {
		limit = MaxContent
	}
	n := max(0, min(limit, size-offset))
	data := make([]byte, n)
	got, err := f.ReadAt(data, offset)
	if errors.Is(err, io.EOF) {
		err = nil // the file became shorter meanwhile
	}
	return data[:got], offset+int64(got) < size, err
}

// readLines reads limit lines from the line offset on. It goes through what is
// before them without keeping it.
func readLines(ctx context.Context, f env.File, offset, limit int64) (data []byte, more bool, err error) {
	r := bufio.NewReaderSize(f, 256<<10)
	for line, lines := int64(0), int64(0); ; {
		piece, err := r.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, false, err
		}
		if ctx.Err() != nil {
			return nil, false, context.Cause(ctx)
		}
		ended := err == nil || errors.Is(err, io.EOF) && len(piece) > 0
		if line >= offset && len(piece) > 0 {
			if limit > 0 && lines >= limit {
				return data, true, nil
			}
			if room := MaxContent - len(data); len(piece) > room {
				return append(data, piece[:room]...), true, nil
			}
			data = append(data, piece...)
			if ended {
				lines++
			}
		}
		if ended {
			line++
		}
		if errors.Is(err, io.EOF) {
			return data, false, nil
		}
	}
}

func mimeOf(name string, head []byte) string {
	if m := mime.TypeByExtension(path.Ext(name)); m != "" {
		return m
	}
	return http.DetectContentType(head)
}

// etagOf changes with size, time of change or the file behind the name.
func etagOf(info iofs.FileInfo) string {
	inode := uint64(0)
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = st.Ino
	}
	return fmt.Sprintf("%x-%x-%x", info.Size(), info.ModTime().UnixNano(), inode)
}

// errPattern says where a pattern is wrong.
func errPattern(pattern string, position int, why string) error {
	return fault.New(fault.PatternInvalid, "the pattern is not valid: %s", why).With("position", position).With("pattern", pattern)
}
