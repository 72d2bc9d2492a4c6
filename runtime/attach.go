package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/switchyard-dev/switchyard/attachment"
	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/session"
)

// What a file given with a prompt may weigh. Text of files is put into the
// conversation, so its bound is that of a read; the rest becomes attachments.
const (
	maxPromptText = 256 << 10
	maxPromptDir  = 1000
)

// Attach reads the files of a prompt for a session, so that the model gets them
// as they were when the prompt was sent: text and directory listings of the work
// tree as further texts, everything else as attachments of the session. It gives
// the prompt as it is to be stored, without any content in its URIs. Nothing is
// kept unless every file is acceptable: one that is missing, outside the root,
// too large or of a type that is not accepted refuses the prompt.
func (p *Parts) Attach(ctx context.Context, ses id.Session, in session.Prompt) (session.Prompt, error) {
	a := attaching{parts: p, session: ses, out: in}
	a.out.Files = make([]session.PromptFile, len(in.Files))
	defer a.discard()
	for i, f := range in.Files {
		if err := a.read(ctx, i, f); err != nil {
			return in, at(err, i, f.Name)
		}
	}
	if err := a.keep(ctx); err != nil {
		return in, err
	}
	return a.out, nil
}

// at says in a fault which of the files it is about.
func at(err error, i int, name string) error {
	f, ok := fault.As(err)
	if !ok {
		return err
	}
	told := *f
	told.Detail = fmt.Sprintf("file %d of the prompt: %s", i+1, f.Detail)
	if name != "" {
		told.Detail = fmt.Sprintf("file %d of the prompt (%s): %s", i+1, name, f.Detail)
	}
	if len(f.Items) > 0 {
		told.Items = nil
		return told.At(fmt.Sprintf("body.prompt.files[%d]", i), "%s", f.Items[0].Message)
	}
	return &told
}

// attaching is a prompt whose files are being read.
type attaching struct {
	parts   *Parts
	session id.Session
	out     session.Prompt
	staged  []*attachment.Staged
	places  []int // of the staged files, among the prompt's
}

func (a *attaching) discard() {
	for _, f := range a.staged {
		f.Discard()
	}
}

// keep makes the staged files permanent.
func (a *attaching) keep(ctx context.Context) error {
	if len(a.staged) == 0 {
		return nil
	}
	// The session refers to them once the prompt is admitted, in that write.
	kept, err := a.parts.attachments.Keep(ctx, "", a.staged...)
	if err != nil {
		return err
	}
	for i, k := range kept {
		a.name(a.places[i], k)
	}
	return nil
}

// name lets a file of the prompt name an attachment.
func (a *attaching) name(i int, k attachment.Attachment) {
	f := &a.out.Files[i]
	f.URI, f.Mime = chat.AttachmentURL(a.session, k.ID), k.Mime
	if f.Name == "" {
		f.Name = k.Name
	}
}

func (a *attaching) stage(i int, staged *attachment.Staged, err error) error {
	if err != nil {
		return err
	}
	a.staged, a.places = append(a.staged, staged), append(a.places, i)
	return nil
}

func (a *attaching) read(ctx context.Context, i int, f session.PromptFile) error {
	a.out.Files[i] = f
	if attachment.IsData(f.URI) {
		staged, err := a.parts.attachments.StageData(f.URI, f.Name)
		return a.stage(i, staged, err)
	}
	if _, att, ok := chat.ParseAttachmentURL(f.URI); ok {
		return a.known(ctx, i, att)
	}
	scheme, rest, ok := strings.Cut(f.URI, ":")
	if !ok || strings.Contains(scheme, "/") {
		scheme, rest = "file", f.URI
	}
	switch scheme {
	case "attachment":
		att, ok := id.Parse[id.Attachment](rest)
		if !ok {
			return attachment.NotFound(id.Attachment(rest))
		}
		return a.known(ctx, i, att)
	case "file":
		name, err := url.PathUnescape(strings.TrimPrefix(rest, "//"))
		if err != nil {
			name = rest
		}
		return a.file(i, name)
	}
	return fault.New(fault.ValidationFailed, "files may be data:, file: or attachment: URIs, not %s:", scheme).At("uri", "scheme %q", scheme)
}

// known names an attachment that is there already.
func (a *attaching) known(ctx context.Context, i int, att id.Attachment) error {
	k, err := a.parts.attachments.Get(ctx, att)
	if err != nil {
		return err
	}
	a.name(i, k)
	return nil
}

// file reads a file or directory of the work tree.
func (a *attaching) file(i int, name string) (err error) {
	if !path.IsAbs(name) {
		name = path.Join(a.parts.location.Directory, name)
	}
	files := a.parts.Env.Files()
	info, err := files.Stat(name)
	if err != nil {
		return err
	}
	to := &a.out.Files[i]
	if info.IsDir() {
		text, err := listing(files, name)
		to.Mime = "application/x-directory"
		a.out.Synthetic = append(a.out.Synthetic, text)
		return err
	}
	f, err := files.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	head := make([]byte, attachment.SniffLen)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	if attachment.Sniff(head[:n]) != "" {
		if to.Name == "" {
			to.Name = path.Base(name)
		}
		staged, err := a.parts.attachments.Stage(f, to.Name)
		return a.stage(i, staged, err)
	}
	text, err := a.text(i, f, name, info.Size())
	a.out.Synthetic = append(a.out.Synthetic, text)
	return err
}

// text gives the text that stands for a file which is neither image nor PDF.
func (a *attaching) text(i int, f io.Reader, name string, size int64) (string, error) {
	data, err := io.ReadAll(io.LimitReader(f, maxPromptText+1))
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", name, err)
	}
	whole := len(data) <= maxPromptText
	if !whole {
		data = cut(data[:maxPromptText])
	}
	to := &a.out.Files[i]
	if to.Mime == "" {
		to.Mime = mime.TypeByExtension(path.Ext(name))
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return fmt.Sprintf("The user points to the file %s, which is binary (%d bytes).", name, size), nil
	}
	if to.Mime == "" {
		to.Mime = "text/plain"
	}
	return fileText(name, data, whole), nil
}

// cut takes off the beginning of a character at the end of data.
func cut(data []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(data); i++ {
		if utf8.RuneStart(data[len(data)-i]) {
			if !utf8.FullRune(data[len(data)-i:]) {
				return data[:len(data)-i]
			}
			break
		}
	}
	return data
}

func fileText(name string, data []byte, whole bool) string {
	note := ""
	if !whole {
		note = "\n(the file is longer; read it for the rest)"
	}
	return fmt.Sprintf("The user points to the file %s. Its content is:\n<file>\n%s\n</file>%s", name, data, note)
}

func listing(files env.Files, name string) (string, error) {
	entries, err := files.ReadDir(name, maxPromptDir)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "The user points to the directory %s. It holds:\n", name)
	for _, e := range entries {
		b.WriteString(e.Name())
		if e.IsDir() {
			b.WriteByte('/')
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}
