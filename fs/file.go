package fs

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/switchyard-dev/switchyard/env"
)

const (
	// MaxContent is the most content of a file that one answer holds, in bytes;
	// the rest is read by ranges or raw.
	MaxContent = 1 << 20
	// lineBuffer is how much of a file is in memory while lines are counted.
	lineBuffer = 256 << 10
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
	// a Limit of 0 reads as much as one answer holds. An Offset behind the end
	// gives no content.
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
// included; what is not UTF-8 is base64. A range of a text never cuts a
// character in two: it begins at the character that Offset is in, which the
// answer's Offset tells, and ends where Limit allows, but holds one character at
// least. A directory, FIFO, socket or device is a not_a_file fault.
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
	in.Offset = max(in.Offset, 0)
	out = File{PathName: nameOf(name), Mime: mimeOf(name, head), Size: info.Size(), ETag: etagOf(info), Offset: in.Offset}
	var data []byte
	switch text := isText(head); {
	case in.Unit == Lines:
		data, out.Truncated, err = readLines(ctx, f, in.Offset, in.Limit)
		if text && out.Truncated {
			data = data[:lastWhole(data)]
		}
	case text:
		data, out.Offset, err = readRunes(f, in.Offset, in.Limit)
		out.Truncated = out.Offset+int64(len(data)) < info.Size()
	default:
		data, err = readBytes(f, in.Offset, limitBytes(in.Limit))
		out.Truncated = out.Offset+int64(len(data)) < info.Size()
	}
	if err != nil {
		return File{}, fmt.Errorf("reading %s: %w", name, err)
	}
	if isText(head) && utf8.Valid(data) {
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
	Size    int64 // bytes
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
	return Raw{
		ReadSeekCloser: f, Mime: mimeOf(name, head), Size: info.Size(), ETag: etagOf(info), ModTime: info.ModTime(),
	}, nil
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

// etagOf changes with size, time of change or the file behind the name. It is
// taken before the content is read, so that a change meanwhile shows next time.
func etagOf(info iofs.FileInfo) string {
	inode := uint64(0)
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = st.Ino
	}
	return fmt.Sprintf("%x-%x-%x", info.Size(), info.ModTime().UnixNano(), inode)
}

// limitBytes bounds what one answer holds.
func limitBytes(limit int64) int64 {
	if limit <= 0 || limit > MaxContent {
		return MaxContent
	}
	return limit
}

// readBytes reads up to limit bytes from offset on.
func readBytes(f env.File, offset, limit int64) ([]byte, error) {
	data := make([]byte, limit)
	n, err := f.ReadAt(data, offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return data[:n], err
}

// readRunes is readBytes for text: it reads a little more on both sides to find
// the characters that the range cuts. It gives where the data begins.
func readRunes(f env.File, offset, limit int64) ([]byte, int64, error) {
	lead := min(offset, utf8.UTFMax-1)
	limit = limitBytes(limit)
	data, err := readBytes(f, offset-lead, lead+limit+utf8.UTFMax)
	if err != nil || int64(len(data)) <= lead {
		return nil, offset, err
	}
	start := runeStart(data, int(lead))
	end := len(data)
	if want := int(lead + limit); want < end {
		end = runeStart(data, want)
		if end <= start { // one character is longer than the limit
			_, size := utf8.DecodeRune(data[start:])
			end = start + size
		}
	}
	return data[start:end], offset - lead + int64(start), nil
}

// readLines reads limit lines from the line offset on, 0 for as many as one
// answer holds. It goes through what is before them without keeping it.
func readLines(ctx context.Context, f env.File, offset, limit int64) (data []byte, more bool, err error) {
	r := bufio.NewReaderSize(f, lineBuffer)
	for line := int64(0); ; {
		piece, err := r.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, false, err
		}
		if ctx.Err() != nil {
			return nil, false, context.Cause(ctx)
		}
		if line >= offset && len(piece) > 0 {
			if limit > 0 && line-offset >= limit {
				return data, true, nil
			}
			if room := MaxContent - len(data); len(piece) > room {
				return append(data, piece[:room]...), true, nil
			}
			data = append(data, piece...)
		}
		if errors.Is(err, io.EOF) {
			return data, false, nil
		}
		if err == nil { // the line has ended; a full buffer is only a piece of it
			line++
		}
	}
}
