package tool

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/tool/input"
	"github.com/switchyard-dev/switchyard/tool/output"
)

//go:embed read.md
var readDoc string

const (
	sniffed    = 8192     // bytes that tell text from binary
	maxLine    = 2000     // bytes of a line that are shown
	maxImage   = 5 << 20  // bytes; providers refuse more
	maxTracked = 16 << 20 // bytes of a file that is hashed whole after a page of it was read
)

type readInput struct {
	Path   string `json:"path" alias:"filePath,file_path" doc:"File or directory, relative to the working directory or absolute."`
	Offset int    `json:"offset,omitempty" min:"1" doc:"First line (or entry) to show, counted from 1."`
	Limit  int    `json:"limit,omitempty" min:"1" max:"2000" doc:"Most lines (or entries) to show; 2000 without it."`
}

type readTool struct{ info Info }

func newRead() Tool {
	return readTool{Info{
		Name: "read", Description: readDoc, Schema: input.Schema[readInput](), Class: Read, Permission: permRead,
	}}
}

func (t readTool) Info() Info { return t.info }

func (t readTool) Plan(_ context.Context, c *Call) (Plan, error) {
	_, at, err := t.input(c)
	if err != nil {
		return Plan{}, err
	}
	return Plan{Asks: at.ask(permRead, []string{at.name}, map[string]any{filePathName: at.abs})}, nil
}

func (t readTool) input(c *Call) (readInput, target, error) {
	in, err := input.Decode[readInput](c.Input)
	if err != nil {
		return in, target{}, err
	}
	in.Offset, in.Limit = max(in.Offset, 1), cmp.Or(in.Limit, output.DefaultLines)
	at, err := c.locate(in.Path, true)
	return in, at, err
}

func (t readTool) Run(ctx context.Context, c *Call) (Result, error) {
	in, at, err := t.input(c)
	if err != nil {
		return Result{}, err
	}
	files, done, err := c.open(at)
	if err != nil {
		return Result{}, c.explain(at, err)
	}
	defer done()
	info, err := files.Stat(at.abs)
	if errors.Is(err, iofs.ErrNotExist) {
		return Result{}, missing(c, files, at)
	}
	if err != nil {
		return Result{}, c.explain(at, err)
	}
	var res Result
	if info.IsDir() {
		res, err = readDir(files, at, in, c.Limits.OrDefault())
	} else {
		res, err = readFile(ctx, c, files, at, in)
	}
	res.Title = c.show(at.abs)
	return res, c.explain(at, err)
}

// missing tells what else a name could have meant.
func missing(c *Call, files env.Files, at target) error {
	e := fault.New(fault.FileNotFound, "There is no file %s.", c.show(at.abs))
	dir, base := path.Split(at.abs)
	entries, err := files.ReadDir(path.Clean(dir), 1000)
	if err != nil {
		return e
	}
	var near []string
	for _, entry := range entries {
		a, b := strings.ToLower(entry.Name()), strings.ToLower(base)
		if len(near) < 3 && (strings.Contains(a, b) || strings.Contains(b, a)) {
			near = append(near, c.show(path.Join(dir, entry.Name())))
		}
	}
	if len(near) > 0 {
		slices.Sort(near)
		e.Detail += " Did you mean " + strings.Join(near, " or ") + "?"
	}
	return e
}

// readDir lists one directory, directories first.
func readDir(files env.Files, at target, in readInput, l Limits) (Result, error) {
	entries, err := files.ReadDir(at.abs, 0)
	if err != nil {
		return Result{}, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		name := e.Name()
		switch {
		case e.IsDir():
			name += "/"
		case e.Type() == iofs.ModeSymlink:
			name += "@"
		}
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		dirA, dirB := strings.HasSuffix(a, "/"), strings.HasSuffix(b, "/")
		switch {
		case dirA == dirB:
			return strings.Compare(a, b)
		case dirA:
			return -1
		}
		return 1
	})
	total := len(names)
	if in.Offset > max(total, 1) {
		return Result{}, fault.New(fault.RangeInvalid, "The offset %d is beyond the end: the directory has %d entries.", in.Offset, total)
	}
	var b strings.Builder
	shown := 0
	for _, name := range names[min(in.Offset-1, total):] {
		if shown == min(in.Limit, l.Lines) || b.Len()+len(name) >= l.Bytes && shown > 0 {
			break
		}
		b.WriteString(strings.ToValidUTF8(name, "\uFFFD") + "\n")
		shown++
	}
	next := in.Offset + shown
	res := Result{Bounded: true, Metadata: map[string]any{"entries": total, "truncated": next <= total}}
	switch {
	case total == 0:
		b.WriteString("(The directory is empty.)\n")
	case next <= total:
		res.Metadata["next"] = next
		fmt.Fprintf(&b, "(%d entries of %d. Go on with offset %d.)\n", shown, total, next)
	}
	res.Output = b.String()
	return res, nil
}

func readFile(ctx context.Context, c *Call, files env.Files, at target, in readInput) (Result, error) {
	f, err := files.Open(at.abs)
	if err != nil {
		return Result{}, err
	}
	defer f.Close()
	sum := sha256.New()
	r := bufio.NewReaderSize(io.TeeReader(f, sum), sniffed)
	head, err := r.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return Result{}, fmt.Errorf("reading %s: %w", at.abs, err)
	}
	if mime := imageType(head); mime != "" {
		return readImage(r, at, mime)
	}
	if binary(head) || bytes.HasPrefix(head, []byte("%PDF-")) {
		return Result{}, fault.New(fault.NotAFile, "%s is a binary file and cannot be shown as text.", c.show(at.abs))
	}
	p := page{in: in, limits: c.Limits.OrDefault()}
	if err := p.read(ctx, r); err != nil {
		return Result{}, err
	}
	if info, err := f.Stat(); err == nil && info.Size() <= maxTracked {
		if _, err := io.Copy(io.Discard, r); err == nil {
			c.saw(at.abs, hex.EncodeToString(sum.Sum(nil)))
		}
	}
	return p.result()
}

// imageType knows the images that models take by their first bytes.
func imageType(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(head, []byte("GIF87a")), bytes.HasPrefix(head, []byte("GIF89a")):
		return "image/gif"
	case len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}

func readImage(r io.Reader, at target, mime string) (Result, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxImage+1))
	if err != nil {
		return Result{}, fmt.Errorf("reading %s: %w", at.abs, err)
	}
	if len(data) > maxImage {
		return Result{}, fault.New(fault.BodyTooLarge, "The image is larger than %d MiB and cannot be shown.", maxImage>>20)
	}
	url := "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(data)
	return Result{
		Output:      fmt.Sprintf("The image (%s, %d bytes) is attached.", mime, len(data)),
		Metadata:    map[string]any{"mime": mime, "truncated": false},
		Attachments: []*chat.FilePart{chat.NewFile(chat.PartHead{}, mime, path.Base(at.abs), url)},
	}, nil
}

// page is a range of lines of a text.
type page struct {
	in     readInput
	limits Limits

	b     strings.Builder
	line  int  // lines begun
	shown int  // lines written
	more  bool // the text goes on after the page
	cut   bool // a line was too long
	bad   bool // bytes that are not UTF-8
}

// read takes lines until the page is full. Memory stays small whatever the
// lines are.
func (p *page) read(ctx context.Context, r *bufio.Reader) error {
	for {
		line, long, err := readLine(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading a line: %w", err)
		}
		if p.line++; p.line%1000 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if p.line < p.in.Offset {
			continue
		}
		text := p.render(line, long)
		if p.shown == min(p.in.Limit, p.limits.Lines) || p.b.Len()+len(text) > p.limits.Bytes && p.shown > 0 {
			p.more = true
			return nil
		}
		p.b.WriteString(text)
		p.shown++
	}
}

func (p *page) render(line []byte, long bool) string {
	if p.line == 1 {
		line = bytes.TrimPrefix(line, []byte(bom))
	}
	if p.bad = p.bad || !long && !utf8.Valid(line); p.bad {
		line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
	}
	text := strings.ToValidUTF8(string(line), "")
	if long {
		p.cut = true
		text += "…"
	}
	return fmt.Sprintf("%d\t%s\n", p.line, text)
}

// readLine reads one line without its end, and at most maxLine bytes of it.
func readLine(r *bufio.Reader) (line []byte, long bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(part) == 0 && err != nil {
			if len(line) > 0 && errors.Is(err, io.EOF) {
				return line, long, nil
			}
			return nil, false, err
		}
		ended := err == nil
		part = bytes.TrimSuffix(bytes.TrimSuffix(part, []byte("\n")), []byte("\r"))
		take := min(len(part), maxLine-len(line))
		line, long = append(line, part[:take]...), long || take < len(part)
		if ended || errors.Is(err, io.EOF) {
			return line, long, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, false, err
		}
	}
}

func (p *page) result() (Result, error) {
	if p.shown == 0 && p.in.Offset > 1 {
		return Result{}, fault.New(fault.RangeInvalid, "The offset %d is beyond the end: the file has %d lines.", p.in.Offset, p.line)
	}
	res := Result{Bounded: true, Metadata: map[string]any{"truncated": p.more || p.cut, "lines": p.shown}}
	var notes []string
	if p.shown == 0 {
		notes = append(notes, "The file is empty.")
	}
	if p.more {
		res.Metadata["next"] = p.in.Offset + p.shown
		notes = append(notes, fmt.Sprintf("The file goes on. Continue with offset %d.", p.in.Offset+p.shown))
	}
	if p.cut {
		notes = append(notes, fmt.Sprintf("Lines longer than %d bytes are cut.", maxLine))
	}
	if p.bad {
		notes = append(notes, "Bytes that are not UTF-8 are shown as \uFFFD.")
	}
	if len(notes) > 0 {
		p.b.WriteString("(" + strings.Join(notes, " ") + ")\n")
	}
	res.Output = p.b.String()
	return res, nil
}
