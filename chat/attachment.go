package chat

import (
	"strings"

	"github.com/switchyard-dev/switchyard/id"
)

const (
	sessionPrefix    = "/api/session/"
	attachmentPrefix = "/attachment/"
)

// AttachmentURL is where a session's attachment is served. Parts carry it in
// place of the bytes, so that messages and events stay small.
func AttachmentURL(ses id.Session, att id.Attachment) string {
	return sessionPrefix + string(ses) + attachmentPrefix + string(att)
}

// ParseAttachmentURL reads a URL that AttachmentURL made.
func ParseAttachmentURL(url string) (id.Session, id.Attachment, bool) {
	rest, ok := strings.CutPrefix(url, sessionPrefix)
	if !ok {
		return "", "", false
	}
	first, second, ok := strings.Cut(rest, attachmentPrefix)
	if !ok {
		return "", "", false
	}
	ses, sessionOK := id.Parse[id.Session](first)
	att, attachmentOK := id.Parse[id.Attachment](second)
	return ses, att, sessionOK && attachmentOK
}
