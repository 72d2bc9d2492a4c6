package transfer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/session"
)

// Format is a form of an export.
type Format string

// The forms of an export.
const (
	JSON     Format = "json"
	Markdown Format = "markdown"
)

// Export writes a session with all its children, parents before children and
// messages in the order of their creation. It holds one page of messages in
// memory, however long the conversation is.
//
// As JSON it is what Import reads: {format, version, sessions: [{info, messages:
// [{info, parts}], todos}], attachments: [{id, mime, name?, data}]}, with data in
// base64. The session becomes the root of the document. An attachment whose file
// is lost is left out. Answers that are being written are told as they are.
//
// An unknown session is session_not_found, before anything is written; one that
// is deleted meanwhile ends the writing with it.
func (s *Service) Export(ctx context.Context, ses id.Session, format Format, to io.Writer) error {
	top, err := s.sessions.Get(ctx, ses)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(to, 64<<10)
	if format == Markdown {
		err = s.exportMarkdown(ctx, top.Session, w)
	} else {
		err = s.exportJSON(ctx, top.Session, w)
	}
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		return fmt.Errorf("exporting %s: %w", ses, err)
	}
	return nil
}

// eachSession calls fn with a session and all below it, parents first.
func (s *Service) eachSession(ctx context.Context, top session.Session, fn func(ses session.Session, depth int) error) error {
	type found struct {
		ses   session.Session
		depth int
	}
	for waiting := []found{{top, 0}}; len(waiting) > 0; {
		next := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		if err := fn(next.ses, next.depth); err != nil {
			return err
		}
		children, err := s.sessions.Children(ctx, next.ses.ID)
		if err != nil {
			return err
		}
		for _, child := range slices.Backward(children) {
			waiting = append(waiting, found{child, next.depth + 1})
		}
	}
	return nil
}

// eachMessage calls fn with the messages of a session as their stored JSON,
// oldest first.
func (s *Service) eachMessage(ctx context.Context, ses id.Session, fn func(json.RawMessage) error) error {
	for in := (session.MessageListInput{SessionID: ses, Limit: chunk, Ascending: true}); ; {
		page, err := s.sessions.MessageList(ctx, in)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			if err := fn(item); err != nil {
				return err
			}
		}
		if page.Next == "" {
			return nil
		}
		in.Cursor = page.Next
	}
}

// document writes an export as JSON. The first error of the writer comes out of
// its Flush, so that writes need no check each.
type document struct {
	*bufio.Writer
	top session.Session
	// files are the attachments that the sessions name, in the order they come.
	files []id.Attachment
	known map[id.Attachment]bool
}

func (s *Service) exportJSON(ctx context.Context, top session.Session, w *bufio.Writer) error {
	d := &document{Writer: w, top: top, known: map[id.Attachment]bool{}}
	fmt.Fprintf(d, `{"format":%q,"version":%d,"sessions":[`, FormatName, FormatVersion)
	first := true
	err := s.eachSession(ctx, top, func(ses session.Session, _ int) error {
		d.comma(&first)
		return s.exportSession(ctx, d, ses)
	})
	if err != nil {
		return err
	}
	d.text(`],"attachments":[`)
	first = true
	for _, att := range d.files {
		if err := s.exportFile(ctx, d, att, &first); err != nil {
			return err
		}
	}
	d.text("]}\n")
	return nil
}

func (d *document) text(s string) { fmt.Fprint(d, s) }

func (d *document) comma(first *bool) {
	if !*first {
		d.text(",")
	}
	*first = false
	d.text("\n")
}

func (s *Service) exportSession(ctx context.Context, d *document, ses session.Session) error {
	todos, err := s.sessions.Todos(ctx, ses.ID)
	if err != nil {
		return err
	}
	ses.RootSessionID = d.top.ID
	if ses.ID == d.top.ID {
		ses.ParentID = ""
	}
	fmt.Fprintf(d, `{"info":%s,"messages":[`, encode(ses))
	first := true
	err = s.eachMessage(ctx, ses.ID, func(item json.RawMessage) error {
		d.comma(&first)
		if _, err := d.Write(item); err != nil {
			return err
		}
		return d.note(ses.ID, item)
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(d, `],"todos":%s}`, encode(todos))
	return nil
}

// note remembers the attachments that a message names.
func (d *document) note(ses id.Session, raw json.RawMessage) error {
	if !bytes.Contains(raw, []byte(urlPrefix+string(ses))) {
		return nil // most messages need not be decoded
	}
	items, err := session.Items([]json.RawMessage{raw})
	if err != nil {
		return err
	}
	for _, p := range items[0].Parts {
		// The callback gives no error.
		_ = eachFile("", p, func(_ string, f *chat.FilePart) error {
			if of, att, ok := chat.ParseAttachmentURL(f.URL); ok && of == ses && !d.known[att] {
				d.known[att] = true
				d.files = append(d.files, att)
			}
			return nil
		})
	}
	return nil
}

func (s *Service) exportFile(ctx context.Context, d *document, att id.Attachment, first *bool) error {
	a, err := s.files.Get(ctx, att)
	if fault.Is(err, fault.AttachmentNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	content, err := s.files.Open(a)
	if fault.Is(err, fault.AttachmentNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer content.Close()
	d.comma(first)
	fmt.Fprintf(d, `{"id":%s,"mime":%s,`, encode(a.ID), encode(a.Mime))
	if a.Name != "" {
		fmt.Fprintf(d, `"name":%s,`, encode(a.Name))
	}
	d.text(`"data":"`)
	encoder := base64.NewEncoder(base64.StdEncoding, d)
	if _, err := io.Copy(encoder, content); err != nil {
		return fmt.Errorf("reading attachment %s: %w", att, err)
	}
	if err := encoder.Close(); err != nil {
		return err
	}
	d.text(`"}`)
	return nil
}
