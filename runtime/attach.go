package runtime

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/session"
)

// What a file given with a prompt may weigh. Text is put into the conversation,
// so its bound is that of a read; images travel whole.
const (
	maxPromptText  = 256 << 10
	maxPromptImage = 5 << 20
	maxPromptDir   = 1000
)

// Attach reads the files of a prompt, so that the model gets them as they were
// when the prompt was sent: text and directory listings as further texts, images
// inline. It gives the prompt as it is to be stored. A file that is missing or
// outside the root is refused by its path.
func (p *Parts) Attach(_ context.Context, in session.Prompt) (session.Prompt, error) {
	out := in
	out.Files = make([]session.PromptFile, len(in.Files))
	for i, f := range in.Files {
		attached, text, err := p.attach(f)
		if err != nil {
			return in, err
		}
		out.Files[i] = attached
		if text != "" {
			out.Synthetic = append(out.Synthetic, text)
		}
	}
	return out, nil
}

func (p *Parts) attach(f session.PromptFile) (session.PromptFile, string, error) {
	scheme, rest, ok := strings.Cut(f.URI, ":")
	if !ok || strings.Contains(scheme, "/") {
		scheme, rest = "file", f.URI
	}
	switch scheme {
	case "data":
		if len(f.URI) > maxPromptImage*4/3 {
			return f, "", fault.New(fault.BodyTooLarge, "the attachment %q is over %d bytes", f.Name, maxPromptImage)
		}
		if f.Mime == "" {
			f.Mime, _, _ = strings.Cut(rest, ";")
		}
		return f, "", nil
	case "file":
		name, err := url.PathUnescape(strings.TrimPrefix(rest, "//"))
		if err != nil {
			name = rest
		}
		return p.attachFile(f, name)
	}
	return f, "", fault.New(fault.ValidationFailed, "files may be data: or file: URIs, not %s:", scheme).At("body.prompt.files", "scheme %q", scheme)
}

func (p *Parts) attachFile(f session.PromptFile, name string) (session.PromptFile, string, error) {
	if !path.IsAbs(name) {
		name = path.Join(p.location.Directory, name)
	}
	files := p.Env.Files()
	info, err := files.Stat(name)
	if err != nil {
		return f, "", err
	}
	if info.IsDir() {
		text, err := listing(files, name)
		f.Mime = "application/x-directory"
		return f, text, err
	}
	data, err := readUpTo(files, name, maxPromptImage)
	if err != nil {
		return f, "", err
	}
	if f.Mime == "" {
		f.Mime = mime.TypeByExtension(path.Ext(name))
	}
	if kind := http.DetectContentType(data); strings.HasPrefix(kind, "image/") || kind == "application/pdf" {
		f.Mime = kind
		f.URI = "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(data)
		return f, "", nil
	}
	if !utf8.Valid(data) {
		return f, fmt.Sprintf("The user points to the file %s, which is binary (%d bytes).", name, info.Size()), nil
	}
	if f.Mime == "" {
		f.Mime = "text/plain"
	}
	return f, fileText(name, data), nil
}

func fileText(name string, data []byte) string {
	note := ""
	if len(data) > maxPromptText {
		data = data[:maxPromptText]
		for len(data) > 0 && !utf8.Valid(data) {
			data = data[:len(data)-1]
		}
		note = "\n(the file is longer; read it for the rest)"
	}
	return fmt.Sprintf("The user points to the file %s. Its content is:\n<file>\n%s\n</file>%s", name, data, note)
}

func readUpTo(files env.Files, name string, limit int64) (data []byte, err error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data, err = io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if int64(len(data)) > limit {
		data = data[:limit]
	}
	return data, nil
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
