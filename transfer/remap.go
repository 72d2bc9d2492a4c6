package transfer

import (
	"maps"
	"slices"
	"strings"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/id"
)

// remap gives everything of a session a name of its own in a copy.
type remap struct {
	ids      *id.Source
	from, to id.Session
	messages map[id.Message]id.Message
	turns    map[id.Turn]id.Turn
	parts    map[id.Part]id.Part
}

func newRemap(ids *id.Source, from, to id.Session) *remap {
	return &remap{
		ids: ids, from: from, to: to, messages: map[id.Message]id.Message{}, turns: map[id.Turn]id.Turn{}, parts: map[id.Part]id.Part{},
	}
}

// renamed gives the new name of an id, the same one each time; none stays none.
func renamed[T interface {
	~string
	comparable
}](ids *id.Source, names map[T]T, old T) T {
	if old == "" {
		return ""
	}
	name, ok := names[old]
	if !ok {
		name = id.New[T](ids)
		names[old] = name
	}
	return name
}

// item renames all in a message. Names of tool calls are the model's and stay.
func (r *remap) item(item chat.Item) {
	head := item.Info.Head()
	head.ID, head.SessionID = renamed(r.ids, r.messages, head.ID), r.to
	turn := turnOf(item.Info)
	*turn = renamed(r.ids, r.turns, *turn)
	if answer, ok := item.Info.(*chat.AssistantMessage); ok {
		answer.ParentID = renamed(r.ids, r.messages, answer.ParentID)
	}
	for _, p := range item.Parts {
		r.part(p)
	}
}

func (r *remap) part(p chat.Part) {
	// Neither callback gives an error.
	_ = eachHead("", p, func(_ string, h *chat.PartHead) error {
		h.ID, h.SessionID = renamed(r.ids, r.parts, h.ID), r.to
		h.MessageID = renamed(r.ids, r.messages, h.MessageID)
		return nil
	})
	_ = eachFile("", p, func(_ string, f *chat.FilePart) error {
		f.URL = r.url(f.URL)
		return nil
	})
	switch v := p.(type) {
	case *chat.TextPart:
		r.members(v.Metadata)
	case *chat.CompactionPart:
		v.TailStartID = renamed(r.ids, r.messages, v.TailStartID)
	case *chat.ToolPart:
		r.members(v.Metadata)
		switch state := v.State.(type) {
		case *chat.ToolCompleted:
			r.members(state.Metadata)
		case *chat.ToolError:
			r.members(state.Metadata)
		}
	}
}

func (r *remap) url(url string) string {
	if rest, ok := strings.CutPrefix(url, urlPrefix+string(r.from)+"/"); ok {
		return urlPrefix + string(r.to) + "/" + rest
	}
	return url
}

// members renames in what tools and the server keep with a part. A member that
// names another session, such as the child that a call started, is dropped: it
// is not the copy's.
func (r *remap) members(m map[string]any) {
	for _, key := range slices.Collect(maps.Keys(m)) {
		value, keep := r.value(m[key])
		if !keep {
			delete(m, key)
			continue
		}
		m[key] = value
	}
}

func (r *remap) value(v any) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		r.members(v)
	case []any:
		kept := v[:0]
		for _, item := range v {
			if item, keep := r.value(item); keep {
				kept = append(kept, item)
			}
		}
		return kept, true
	case string:
		return r.text(v)
	}
	return v, true
}

func (r *remap) text(s string) (string, bool) {
	if s == string(r.from) {
		return string(r.to), true
	}
	if _, other := id.Parse[id.Session](s); other {
		return "", false
	}
	if name, ok := r.messages[id.Message(s)]; ok {
		return string(name), true
	}
	if name, ok := r.parts[id.Part(s)]; ok {
		return string(name), true
	}
	if name, ok := r.turns[id.Turn(s)]; ok {
		return string(name), true
	}
	return r.url(s), true
}
