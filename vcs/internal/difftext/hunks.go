package difftext

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// The bounds of a diff in JSON, in bytes of lines.
const (
	maxDiffFile = 512 << 10
	maxDiffAll  = 8 << 20
	maxLine     = 64 << 10 // of one line; the rest of it is dropped
)

// Budget counts down what a diff may still hold.
type Budget struct{ all, one, file int }

// NewBudget is the budget of a diff in JSON.
func NewBudget() *Budget { return &Budget{all: maxDiffAll, one: maxDiffFile} }

// Unbounded is a budget that does not end.
func Unbounded() *Budget { return &Budget{all: math.MaxInt, one: math.MaxInt} }

// Open begins a file.
func (b *Budget) Open() { b.file = min(b.one, b.all) }

// Take asks for n bytes. Once it says no it goes on saying no for the file.
func (b *Budget) Take(n int) bool {
	n++ // an empty line costs something too
	if n > b.file {
		b.file = 0
		return false
	}
	b.file -= n
	b.all -= n
	return true
}

// record is one line of git diff --raw.
type record struct {
	oldMode, newMode string
	status           byte
	from, path       string
}

// section is the diff of one file while it is read.
type section struct {
	*FileDiff
	hunk *Hunk
}

// Read reads what git diff --raw -z --patch prints: all records, then the
// patches in their order. Of stat-only changes there are records and bare
// headers, which are left out.
func Read(r *bufio.Reader, limits *Budget) ([]FileDiff, error) {
	records, err := readRecords(r)
	if err != nil {
		return nil, err
	}
	d := &diffReader{records: records, limits: limits}
	for {
		line, err := readLine(r)
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return d.result(), nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if err := d.line(line); err != nil {
			return nil, err
		}
	}
}

func readRecords(r *bufio.Reader) ([]record, error) {
	var records []record
	for {
		meta, err := r.ReadString(0)
		if errors.Is(err, io.EOF) && meta == "" || err == nil && meta == "\x00" {
			return records, nil
		}
		if err != nil {
			return nil, err
		}
		fields := strings.Fields(strings.TrimRight(meta, "\x00"))
		if len(fields) != 5 || fields[0][0] != ':' {
			return nil, fmt.Errorf("git diff --raw has the record %q", meta)
		}
		rec := record{oldMode: fields[0][1:], newMode: fields[1], status: fields[4][0]}
		if rec.path, err = r.ReadString(0); err != nil {
			return nil, err
		}
		if rec.status == 'R' || rec.status == 'C' {
			rec.from = rec.path
			if rec.path, err = r.ReadString(0); err != nil {
				return nil, err
			}
		}
		rec.from, rec.path = strings.TrimRight(rec.from, "\x00"), strings.TrimRight(rec.path, "\x00")
		records = append(records, rec)
	}
}

// diffReader takes the patches of known records, line by line.
type diffReader struct {
	records []record
	limits  *Budget
	next    int // record
	out     []FileDiff
	at      *section
	touched bool // the section has more than its first line
}

var (
	gitHeader    = []byte("diff --git ")
	binaryHeader = []byte("Binary files ")
	hunkStart    = []byte("@@ -")
)

func (d *diffReader) line(line []byte) error {
	if bytes.HasPrefix(line, gitHeader) {
		return d.begin(string(line))
	}
	if d.at == nil || len(line) == 0 {
		return nil // "* Unmerged path" and the like
	}
	switch {
	case bytes.HasPrefix(line, hunkStart):
		d.touched = true
		return d.beginHunk(string(line))
	case d.at.hunk != nil:
		d.addLine(line)
		return nil
	case bytes.HasPrefix(line, binaryHeader):
		d.at.Binary = true
	}
	d.touched = true
	return nil
}

// begin finds the record that a patch belongs to. A change of type has two
// patches, a conflict a record without one.
func (d *diffReader) begin(header string) error {
	d.drop()
	for i := max(d.next-1, 0); i < len(d.records); i++ {
		rec := d.records[i]
		if rec.status == 'U' || header != headerOf(rec) {
			continue
		}
		d.touched = false
		if i == d.next-1 {
			d.at.hunk, d.touched = nil, true
			return nil
		}
		d.next = i + 1
		d.limits.Open()
		d.out = append(d.out, rec.diff())
		d.at = &section{FileDiff: &d.out[len(d.out)-1]}
		return nil
	}
	return fmt.Errorf("git diff has the patch %q of no record", header)
}

// drop forgets a file of which nothing was said.
func (d *diffReader) drop() {
	if d.at != nil && !d.touched {
		d.out = d.out[:len(d.out)-1]
		d.at, d.touched = nil, true
	}
}

func (d *diffReader) result() []FileDiff {
	d.drop()
	if d.out == nil {
		return []FileDiff{}
	}
	return d.out
}

func (d *diffReader) beginHunk(line string) error {
	h, err := ParseHunk(line)
	if err != nil {
		return err
	}
	if d.limits.file <= 0 {
		d.at.Truncated, d.at.hunk = true, &h // counted, but not kept
		return nil
	}
	d.at.Hunks = append(d.at.Hunks, h)
	d.at.hunk = &d.at.Hunks[len(d.at.Hunks)-1]
	return nil
}

func (d *diffReader) addLine(line []byte) {
	switch line[0] {
	case '+':
		d.at.Additions++
	case '-':
		d.at.Deletions++
	}
	if d.at.Truncated {
		return
	}
	if !d.limits.Take(len(line)) {
		d.at.Truncated = true
		return
	}
	d.at.hunk.Lines = append(d.at.hunk.Lines, Text(line))
}

func (r record) diff() FileDiff {
	d := FileDiff{Path: r.path, Status: "modified", OldFile: r.from}
	switch r.status {
	case 'A':
		d.Status, d.NewMode = "added", r.newMode
		return d
	case 'D':
		d.Status, d.OldMode = "deleted", r.oldMode
		return d
	case 'R':
		d.Status = "renamed"
	}
	if r.oldMode != r.newMode {
		d.OldMode, d.NewMode = r.oldMode, r.newMode
	}
	return d
}

func headerOf(r record) string {
	from := r.from
	if from == "" {
		from = r.path
	}
	return "diff --git " + Quote("a/"+from) + " " + Quote("b/"+r.path)
}

// Quote writes a name as git does in a patch.
func Quote(name string) string {
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c >= 7 && c <= 13:
			b.WriteByte('\\')
			b.WriteByte("abtnvfr"[c-7])
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	if b.Len() == len(name) {
		return name
	}
	return `"` + b.String() + `"`
}

// ParseHunk reads the numbers of "@@ -1,2 +3 @@ section".
func ParseHunk(line string) (Hunk, error) {
	h := Hunk{OldLines: 1, NewLines: 1, Lines: []string{}}
	ranges, section, ok := strings.Cut(strings.TrimPrefix(line, "@@ -"), " @@")
	before, after, both := strings.Cut(ranges, " +")
	if !ok || !both || !parseRange(before, &h.OldStart, &h.OldLines) || !parseRange(after, &h.NewStart, &h.NewLines) {
		return h, fmt.Errorf("git diff has the hunk %q", line)
	}
	h.Section = Text([]byte(strings.TrimPrefix(section, " ")))
	return h, nil
}

func parseRange(s string, start, lines *int) bool {
	first, count, ok := strings.Cut(s, ",")
	if _, err := fmt.Sscan(first, start); err != nil {
		return false
	}
	if !ok {
		return true
	}
	_, err := fmt.Sscan(count, lines)
	return err == nil
}

// readLine reads a line without its break. Of a very long one the end is dropped.
// What it gives is valid until the next read, unless the line was longer than the
// reader's buffer.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return bytes.TrimSuffix(line, []byte{'\n'}), err
	}
	long := bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = r.ReadSlice('\n')
		if room := maxLine - len(long); room > 0 {
			long = append(long, line[:min(room, len(line))]...)
		}
	}
	return bytes.TrimSuffix(long, []byte{'\n'}), err
}

// Copy copies a patch without the bare headers of files that only look
// changed.
func Copy(w io.Writer, r *bufio.Reader) error {
	out := bufio.NewWriterSize(w, 64<<10)
	var held []byte
	for start := true; ; {
		line, err := r.ReadSlice('\n')
		if len(line) > 0 {
			header := start && bytes.HasPrefix(line, gitHeader)
			if !header {
				_, _ = out.Write(held) // errors stay with the writer
				held = held[:0]
			}
			if header {
				held = append(held[:0], line...)
			} else if _, err := out.Write(line); err != nil {
				return err
			}
		}
		start = err == nil // not within a long line
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}
