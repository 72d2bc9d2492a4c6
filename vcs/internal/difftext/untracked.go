package difftext

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1" //nolint:gosec // git names objects by it
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	iofs "io/fs"
	"strings"

	"github.com/switchyard-dev/switchyard/env"
)

// linker is a set of files that can read links.
type linker interface {
	Readlink(path string) (string, error)
}

// ErrNotShown says that a path is no file whose content a diff shows.
var ErrNotShown = errors.New("not a file")

// Untracked is an untracked file with what its diff needs to know beforehand.
type Untracked struct {
	files env.Files
	Path  string
	Mode  string // as git writes it
	Size  int64  // bytes
	link  string // the content of a link
}

// OpenUntracked looks at an untracked path: ErrNotShown for what is no file by
// now, or a repository of its own.
func OpenUntracked(files env.Files, path string) (Untracked, error) {
	u := Untracked{files: files, Path: path}
	if strings.HasSuffix(path, "/") {
		return u, ErrNotShown
	}
	info, err := files.Lstat(path)
	if err != nil {
		return u, ErrNotShown
	}
	u.Size = info.Size()
	switch {
	case info.Mode().Type() == iofs.ModeSymlink:
		l, ok := files.(linker)
		if !ok {
			return u, ErrNotShown
		}
		u.Mode = "120000"
		if u.link, err = l.Readlink(path); err != nil {
			return u, ErrNotShown
		}
		u.Size = int64(len(u.link))
	case !info.Mode().IsRegular():
		return u, ErrNotShown
	case info.Mode()&0o100 != 0:
		u.Mode = "100755"
	default:
		u.Mode = "100644"
	}
	return u, nil
}

// Open opens the content.
func (u Untracked) Open() (io.ReadCloser, error) {
	if u.Mode == "120000" {
		return io.NopCloser(strings.NewReader(u.link)), nil
	}
	f, err := u.files.Open(u.Path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", u.Path, err)
	}
	return f, nil
}

// Facts are what a file's content is like.
type Facts struct {
	Lines    int
	Binary   bool
	complete bool // ends in a line break, or is empty
	oid      string
}

// binaryHead is how much of a file git looks at to call it binary.
const binaryHead = 8000

// Scan reads a file once, in pieces.
func (u Untracked) Scan(ctx context.Context, sum hash.Hash) (Facts, error) {
	r, err := u.Open()
	if err != nil {
		return Facts{}, err
	}
	defer r.Close()
	if sum != nil {
		fmt.Fprintf(sum, "blob %d\x00", u.Size)
	}
	f := Facts{complete: true}
	buf := make([]byte, 64<<10)
	read, last := 0, byte('\n')
	for {
		n, err := r.Read(buf)
		if n > 0 {
			piece := buf[:n]
			if read < binaryHead && bytes.IndexByte(piece[:min(n, binaryHead-read)], 0) >= 0 {
				f.Binary = true
			}
			f.Lines += bytes.Count(piece, []byte{'\n'})
			last = piece[n-1]
			read += n
			if sum != nil {
				sum.Write(piece)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return f, fmt.Errorf("reading %s: %w", u.Path, err)
		}
		if ctx.Err() != nil {
			return f, context.Cause(ctx)
		}
	}
	if last != '\n' {
		f.Lines, f.complete = f.Lines+1, false
	}
	if sum != nil {
		f.oid = hex.EncodeToString(sum.Sum(nil))
	}
	return f, nil
}

// Diff gives the diff of an untracked file, with as many lines as the budget of
// bytes allows.
func (u Untracked) Diff(ctx context.Context, budget *Budget) (FileDiff, error) {
	d := FileDiff{Status: "added", NewMode: u.Mode}
	f, err := u.Scan(ctx, nil)
	if err != nil {
		if ctx.Err() != nil {
			return d, err
		}
		d.Truncated = true // unreadable
		return d, nil
	}
	if f.Binary {
		d.Binary = true
		return d, nil
	}
	d.Additions = f.Lines
	if f.Lines == 0 {
		return d, nil
	}
	r, err := u.Open()
	if err != nil {
		d.Truncated = true
		return d, nil // gone by now
	}
	defer r.Close()
	lines := bufio.NewReaderSize(r, 64<<10)
	h := Hunk{NewStart: 1, NewLines: f.Lines, Lines: []string{}}
	budget.Open()
	for range f.Lines {
		line, err := readLine(lines)
		if err != nil && len(line) == 0 {
			break
		}
		if !budget.Take(len(line)) {
			d.Truncated = true
			break
		}
		h.Lines = append(h.Lines, "+"+Text(line))
	}
	if !f.complete && !d.Truncated {
		h.Lines = append(h.Lines, NoNewline)
	}
	d.Hunks = append(d.Hunks, h)
	return d, nil
}

// Write writes the diff of an untracked file as git would write it for one that
// was added.
func (u Untracked) Write(ctx context.Context, w io.Writer, oidLength int) error {
	sum := sha1.New() //nolint:gosec // git names objects by it
	if oidLength == sha256.Size*2 {
		sum = sha256.New()
	}
	f, err := u.Scan(ctx, sum)
	if err != nil {
		return err
	}
	a, b := Quote("a/"+u.Path), Quote("b/"+u.Path)
	out := bufio.NewWriterSize(w, 64<<10)
	fmt.Fprintf(out, "diff --git %s %s\nnew file mode %s\nindex %s..%s\n", a, b, u.Mode, strings.Repeat("0", len(f.oid)), f.oid)
	switch {
	case f.Binary:
		err = u.writeBinary(out)
	case f.Lines > 0:
		// A name with a space ends in a tab, so that nothing takes the rest for a date.
		if strings.Contains(u.Path, " ") && !strings.HasPrefix(b, `"`) {
			b += "\t"
		}
		fmt.Fprintf(out, "--- /dev/null\n+++ %s\n%s\n", b, hunkHeader(f.Lines))
		err = u.writeLines(out, f)
	}
	if err != nil {
		return err
	}
	return out.Flush()
}

func hunkHeader(lines int) string {
	if lines == 1 {
		return "@@ -0,0 +1 @@"
	}
	return fmt.Sprintf("@@ -0,0 +1,%d @@", lines)
}

var errChanged = errors.New("a file changed while it was read")

func (u Untracked) writeLines(out *bufio.Writer, f Facts) error {
	r, err := u.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	in := bufio.NewReaderSize(r, 64<<10)
	for lines, begun := 0, false; lines < f.Lines; {
		piece, err := in.ReadSlice('\n')
		if len(piece) > 0 && !begun {
			_ = out.WriteByte('+') // errors stay with the writer
		}
		if _, err := out.Write(piece); err != nil {
			return err
		}
		begun = true
		switch {
		case err == nil:
			lines, begun = lines+1, false
		case errors.Is(err, io.EOF) && lines == f.Lines-1 && !f.complete:
			_, err := out.WriteString("\n" + NoNewline + "\n")
			return err
		case !errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("reading %s: %w", u.Path, errors.Join(err, errChanged))
		}
	}
	return nil
}

// writeBinary writes a binary patch: the content, compressed, in lines of up to
// 52 bytes.
func (u Untracked) writeBinary(out *bufio.Writer) error {
	r, err := u.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	fmt.Fprintf(out, "GIT binary patch\nliteral %d\n", u.Size)
	lines := &lines85{w: out}
	packed := zlib.NewWriter(lines)
	n, err := io.Copy(packed, r)
	if err == nil && n != u.Size {
		err = errChanged
	}
	if err = errors.Join(err, packed.Close(), lines.flush()); err != nil {
		return fmt.Errorf("reading %s: %w", u.Path, err)
	}
	_, err = out.WriteString("\nliteral 0\nHcmV?d00001\n\n")
	return err
}

// lines85 writes bytes in git's base 85, in lines that begin with their length.
type lines85 struct {
	w    *bufio.Writer
	held []byte
}

const (
	perLine    = 52
	alphabet85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
)

// Write implements io.Writer.
func (l *lines85) Write(p []byte) (int, error) {
	l.held = append(l.held, p...)
	for len(l.held) >= perLine {
		if err := l.line(l.held[:perLine]); err != nil {
			return 0, err
		}
		l.held = append(l.held[:0], l.held[perLine:]...)
	}
	return len(p), nil
}

func (l *lines85) flush() error {
	if len(l.held) == 0 {
		return nil
	}
	return l.line(l.held)
}

func (l *lines85) line(data []byte) error {
	length := byte('A' + len(data) - 1)
	if len(data) > 26 {
		length = byte('a' + len(data) - 27)
	}
	line := []byte{length}
	for i := 0; i < len(data); i += 4 {
		var four [4]byte
		copy(four[:], data[i:])
		v := uint32(four[0])<<24 | uint32(four[1])<<16 | uint32(four[2])<<8 | uint32(four[3])
		var five [5]byte
		for j := range five {
			five[4-j] = alphabet85[v%85]
			v /= 85
		}
		line = append(line, five[:]...)
	}
	_, err := l.w.Write(append(line, '\n'))
	return err
}
