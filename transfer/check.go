package transfer

import (
	"bytes"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/id"
)

// checker holds the references of a document against each other: everything that
// is named is in the document, before what names it.
type checker struct {
	doc *incoming
	// order is the place of each session.
	order map[id.Session]int
	// turns tells which session a turn is of.
	turns map[id.Turn]id.Session
	files map[id.Attachment]bool
}

// check tells the first reference that leads nowhere, id that stands twice, or
// thing that stands before what it depends on, as a validation_failed fault that
// names its place.
func (d *incoming) check() error {
	c := &checker{doc: d, order: map[id.Session]int{}, turns: map[id.Turn]id.Session{}, files: map[id.Attachment]bool{}}
	for i, f := range d.files {
		at := member(element("/attachments", i), "id")
		if !canonical(f.ID) {
			return invalid(at, "not the id of an attachment")
		}
		if c.files[f.ID] {
			return invalid(at, "the id stands twice")
		}
		c.files[f.ID] = true
	}
	for i, in := range d.sessions {
		at := member(element("/sessions", i), "info")
		if !canonical(in.info.ID) {
			return invalid(member(at, "id"), "not the id of a session")
		}
		if _, twice := c.order[in.info.ID]; twice {
			return invalid(member(at, "id"), "the id stands twice")
		}
		c.order[in.info.ID] = i
	}
	for i, in := range d.sessions {
		at := element("/sessions", i)
		if err := c.tree(member(at, "info"), i, in); err != nil {
			return err
		}
		if err := c.session(member(at, "messages"), in); err != nil {
			return err
		}
	}
	return nil
}

// canonical tells whether an id is spelled as the server spells it.
func canonical[T ~string](v T) bool {
	parsed, ok := id.Parse[T](string(v))
	return ok && parsed == v
}

// tree checks where a session stands among the others. That parents come first
// also means that no session is its own ancestor.
func (c *checker) tree(at string, i int, in *incomingSession) error {
	root := in.info.ID
	if in.info.ParentID != "" {
		parent, known := c.order[in.info.ParentID]
		if !known {
			return invalid(member(at, "parentID"), "there is no session %q in the document", in.info.ParentID)
		}
		if parent >= i {
			return invalid(member(at, "parentID"), "a parent stands before its children, and no session is its own ancestor")
		}
		root = c.doc.sessions[parent].info.RootSessionID
	}
	if m := bytes.TrimSpace(in.info.Metadata); len(m) > 0 && m[0] != '{' {
		return invalid(member(at, "metadata"), "expected an object")
	}
	if in.info.RootSessionID != root {
		return invalid(member(at, "rootSessionID"), "the root of this session is %q", root)
	}
	return nil
}

// before are the messages of a session so far, by role, and its parts.
type before struct {
	prompts map[id.Message]bool
	all     map[id.Message]bool
	parts   map[id.Part]bool
}

func (c *checker) session(at string, in *incomingSession) error {
	b := before{prompts: map[id.Message]bool{}, all: map[id.Message]bool{}, parts: map[id.Part]bool{}}
	for i, item := range in.items {
		at := element(at, i)
		if err := c.message(member(at, "info"), in, item.Info, b); err != nil {
			return err
		}
		for j, p := range item.Parts {
			if err := c.part(element(member(at, "parts"), j), in, item.Info.Head().ID, p, b); err != nil {
				return err
			}
		}
		name := item.Info.Head().ID
		b.all[name] = true
		if _, user := item.Info.(*chat.UserMessage); user {
			b.prompts[name] = true
		}
	}
	return nil
}

func (c *checker) message(at string, in *incomingSession, m chat.Message, b before) error {
	head := m.Head()
	switch {
	case !canonical(head.ID):
		return invalid(member(at, "id"), "not the id of a message")
	case b.all[head.ID]:
		return invalid(member(at, "id"), "the id stands twice")
	case head.SessionID != in.info.ID:
		return invalid(member(at, "sessionID"), "the message is of the session %q", in.info.ID)
	}
	if answer, ok := m.(*chat.AssistantMessage); ok && answer.ParentID != "" && !b.prompts[answer.ParentID] {
		return invalid(member(at, "parentID"), "no message of a user before this one has the id %q", answer.ParentID)
	}
	turn := *turnOf(m)
	if turn == "" {
		return nil
	}
	if !canonical(turn) {
		return invalid(member(at, "turnID"), "not the id of a turn")
	}
	if of, known := c.turns[turn]; known && of != in.info.ID {
		return invalid(member(at, "turnID"), "the turn is of another session")
	}
	c.turns[turn] = in.info.ID
	return nil
}

func (c *checker) part(at string, in *incomingSession, of id.Message, p chat.Part, b before) error {
	err := eachHead(at, p, func(at string, h *chat.PartHead) error {
		switch {
		case !canonical(h.ID):
			return invalid(member(at, "id"), "not the id of a part")
		case b.parts[h.ID]:
			return invalid(member(at, "id"), "the id stands twice")
		case h.SessionID != in.info.ID:
			return invalid(member(at, "sessionID"), "the part is of the session %q", in.info.ID)
		case h.MessageID != of:
			return invalid(member(at, "messageID"), "the part is of the message %q", of)
		}
		b.parts[h.ID] = true
		return nil
	})
	if err != nil {
		return err
	}
	if mark, ok := p.(*chat.CompactionPart); ok && mark.TailStartID != "" && !b.all[mark.TailStartID] {
		return invalid(member(at, "tail_start_id"), "no message before this one has the id %q", mark.TailStartID)
	}
	return eachFile(at, p, func(at string, f *chat.FilePart) error {
		ses, _, ok := chat.ParseAttachmentURL(f.URL)
		if ownURL(f.URL) && (!ok || ses != in.info.ID) {
			return invalid(member(at, "url"), "not the URL of an attachment of the session %q", in.info.ID)
		}
		return nil
	})
}
