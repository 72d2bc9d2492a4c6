package session

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

const (
	// pageBytes ends a page of messages early (api.md 20).
	pageBytes = 512 << 10
	// chunk is how many messages are read at once while a page fills.
	chunk = 50
)

// MessageListInput selects a page of messages.
type MessageListInput struct {
	SessionID id.Session
	Limit     int
	Ascending bool
	Cursor    string
	// Index starts the page at a position in the order of creation; Around puts
	// a message in the middle. At most one of Cursor, Index and Around is given.
	Index  *int64
	Around id.Message
}

type messageAnchor struct {
	Seq  int64 `json:"s"`
	Asc  bool  `json:"a,omitempty"`
	Back bool  `json:"b,omitempty"`
}

// MessageList gives a page of messages as their stored JSON, with what running
// turns have not stored yet. Total counts the session's messages; StartIndex is
// the place of the page's oldest message in the order of creation.
func (s *Service) MessageList(ctx context.Context, in MessageListInput) (Page[json.RawMessage], error) {
	return store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) (Page[json.RawMessage], error) {
		page, err := s.messagePage(ctx, r, in)
		if err != nil {
			return page, fmt.Errorf("listing the messages of %s: %w", in.SessionID, err)
		}
		return page, nil
	})
}

func (s *Service) messagePage(ctx context.Context, r store.Reader, in MessageListInput) (Page[json.RawMessage], error) {
	none := Page[json.RawMessage]{}
	ses, err := read(ctx, r, in.SessionID)
	if err != nil {
		return none, err
	}
	limit := Limit(in.Limit)
	from, err := startOf(ctx, r, in, limit)
	if err != nil {
		return none, err
	}
	ascending := from.Asc != from.Back
	items, more, err := s.fill(ctx, r, in.SessionID, from.Seq, ascending, limit)
	if err != nil {
		return none, err
	}
	page := Page[json.RawMessage]{Items: make([]json.RawMessage, 0, len(items)), Total: &ses.row.MessageCount}
	if len(items) > 0 {
		if more {
			page.set(from.Back, encodeCursor(messageAnchor{Seq: items[len(items)-1].seq, Asc: from.Asc, Back: from.Back}))
		}
		page.set(!from.Back, s.behind(ctx, r, in.SessionID, items[0].seq, from))
	}
	if from.Back {
		slices.Reverse(items)
	}
	oldest := int64(math.MaxInt64)
	for _, item := range items {
		page.Items = append(page.Items, item.json)
		oldest = min(oldest, item.seq)
	}
	var start int64
	if len(items) > 0 {
		start, err = r.MessageCountBefore(ctx, db.MessageCountBeforeParams{SessionID: string(in.SessionID), Seq: oldest})
	}
	page.StartIndex = &start
	return page, err
}

// startOf finds where the page begins: the anchor's message is not part of it.
func startOf(ctx context.Context, r store.Reader, in MessageListInput, limit int) (messageAnchor, error) {
	from := messageAnchor{Asc: in.Ascending, Seq: math.MaxInt64}
	if in.Ascending {
		from.Seq = 0
	}
	switch {
	case in.Cursor != "":
		if !decodeCursor(in.Cursor, &from) || from.Asc != in.Ascending {
			return from, fault.New(fault.CursorInvalid, "the cursor does not belong to this list")
		}
	case in.Around != "":
		row, err := r.MessageByID(ctx, db.MessageByIDParams{SessionID: string(in.SessionID), ID: string(in.Around)})
		if store.IsNoRows(err) {
			return from, messageNotFound(in.SessionID, in.Around)
		}
		if err != nil {
			return from, err
		}
		before, err := r.MessageCountBefore(ctx, db.MessageCountBeforeParams{SessionID: string(in.SessionID), Seq: row.Seq})
		if err != nil {
			return from, err
		}
		return fromIndex(ctx, r, in.SessionID, max(0, before-int64(limit/2)), from, limit)
	case in.Index != nil:
		return fromIndex(ctx, r, in.SessionID, max(0, *in.Index), from, limit)
	}
	return from, nil
}

// fromIndex anchors a page that covers [index, index+limit) in either order.
func fromIndex(ctx context.Context, r store.Reader, ses id.Session, index int64, from messageAnchor, limit int) (messageAnchor, error) {
	at := index
	if !from.Asc {
		at = index + int64(limit)
	}
	seq, err := r.MessageAtIndex(ctx, db.MessageAtIndexParams{SessionID: string(ses), Skip: at})
	if store.IsNoRows(err) {
		from.Seq = math.MaxInt64 // beyond the newest
		return from, nil
	}
	from.Seq = seq
	if from.Asc {
		from.Seq = seq - 1
	}
	return from, err
}

// behind gives the cursor back from a page's first message, if anything is there.
func (s *Service) behind(ctx context.Context, r store.Reader, ses id.Session, seq int64, from messageAnchor) string {
	ascending := from.Asc == from.Back // the other way
	rows, err := pageRows(ctx, r, ses, seq, ascending, 1)
	if err != nil || len(rows) == 0 {
		return ""
	}
	return encodeCursor(messageAnchor{Seq: seq, Asc: from.Asc, Back: !from.Back})
}

type messageJSON struct {
	seq  int64
	json json.RawMessage
}

func pageRows(ctx context.Context, r store.Reader, ses id.Session, seq int64, ascending bool, n int) ([]db.Message, error) {
	if ascending {
		return r.MessagePageAsc(ctx, db.MessagePageAscParams{SessionID: string(ses), AfterSeq: seq, MaxRows: int64(n)})
	}
	return r.MessagePageDesc(ctx, db.MessagePageDescParams{SessionID: string(ses), BeforeSeq: seq, MaxRows: int64(n)})
}

// fill reads messages in chunks until the page is full or heavy enough; more
// tells whether there are others behind it.
func (s *Service) fill(ctx context.Context, r store.Reader, ses id.Session, seq int64, ascending bool, limit int) (out []messageJSON, more bool, err error) {
	size := 0
	for {
		n := min(chunk, limit-len(out)) + 1
		rows, err := pageRows(ctx, r, ses, seq, ascending, n)
		if err != nil {
			return nil, false, err
		}
		more = len(rows) == n
		if more {
			rows = rows[:n-1]
		}
		items, err := s.join(ctx, r, ses, rows)
		if err != nil {
			return nil, false, err
		}
		for i, item := range items {
			if len(out) > 0 && size+len(item.json) > pageBytes {
				return out, true, nil
			}
			out, size = append(out, item), size+len(item.json)
			seq = rows[i].Seq
		}
		if !more || len(out) >= limit {
			return out, more, nil
		}
	}
}

// join puts messages and their parts together from their stored text, without
// decoding either.
func (s *Service) join(ctx context.Context, r store.Reader, ses id.Session, rows []db.Message) ([]messageJSON, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	low, high := rows[0].Seq, rows[len(rows)-1].Seq
	if low > high {
		low, high = high, low
	}
	parts, err := r.PartRange(ctx, db.PartRangeParams{SessionID: string(ses), FromSeq: low, ToSeq: high})
	if err != nil {
		return nil, err
	}
	bySeq := make(map[int64][]db.PartRangeRow, len(rows))
	for _, p := range parts {
		bySeq[p.MessageSeq] = append(bySeq[p.MessageSeq], p)
	}
	live := s.live.overlay(ses)
	out := make([]messageJSON, 0, len(rows))
	for _, row := range rows {
		out = append(out, messageJSON{seq: row.Seq, json: joinOne(row, bySeq[row.Seq], live)})
	}
	return out, nil
}

func joinOne(row db.Message, parts []db.PartRangeRow, live map[id.Part]json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	b.WriteString(`{"info":`)
	b.Write(row.Info)
	b.WriteString(`,"parts":[`)
	for i, p := range parts {
		if i > 0 {
			b.WriteByte(',')
		}
		if text, ok := live[id.Part(p.ID)]; ok {
			b.Write(text)
		} else {
			b.Write(p.Data)
		}
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

func messageNotFound(ses id.Session, msg id.Message) error {
	return fault.New(fault.MessageNotFound, "session %s has no message %q", ses, msg).With("sessionID", ses).With("messageID", msg)
}

// MessageGet reads one message as its stored JSON.
func (s *Service) MessageGet(ctx context.Context, ses id.Session, msg id.Message) (json.RawMessage, error) {
	return store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) (json.RawMessage, error) {
		row, err := r.MessageByID(ctx, db.MessageByIDParams{SessionID: string(ses), ID: string(msg)})
		if store.IsNoRows(err) {
			return nil, messageNotFound(ses, msg)
		}
		if err != nil {
			return nil, fmt.Errorf("reading message %s: %w", msg, err)
		}
		items, err := s.join(ctx, r, ses, []db.Message{row})
		if err != nil {
			return nil, fmt.Errorf("reading message %s: %w", msg, err)
		}
		return items[0].json, nil
	})
}

// Items decodes messages that Context or MessageList gave.
func Items(raw []json.RawMessage) ([]chat.Item, error) {
	out := make([]chat.Item, 0, len(raw))
	for _, r := range raw {
		var item struct {
			Info  json.RawMessage   `json:"info"`
			Parts []json.RawMessage `json:"parts"`
		}
		if err := json.Unmarshal(r, &item); err != nil {
			return nil, fmt.Errorf("reading a message: %w", err)
		}
		info, err := chat.DecodeMessage(item.Info)
		if err != nil {
			return nil, err
		}
		parts := make([]chat.Part, 0, len(item.Parts))
		for _, p := range item.Parts {
			part, err := chat.DecodePart(p)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
		}
		out = append(out, chat.Item{Info: info, Parts: parts})
	}
	return out, nil
}

// LastAnswer gives the head of the newest assistant message of a turn; nil when
// it has none, or when no turn is named.
func (s *Service) LastAnswer(ctx context.Context, ses id.Session, turn id.Turn) (*chat.AssistantMessage, error) {
	if turn == "" {
		return nil, nil // no turn has no answer, which is no error
	}
	rows, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) ([]db.Message, error) {
		return r.MessageByTurn(ctx, db.MessageByTurnParams{SessionID: string(ses), TurnID: string(turn)})
	})
	if err != nil {
		return nil, fmt.Errorf("reading the answers of %s: %w", turn, err)
	}
	for _, row := range slices.Backward(rows) {
		info, err := chat.DecodeMessage(row.Info)
		if err != nil {
			return nil, err
		}
		if answer, ok := info.(*chat.AssistantMessage); ok {
			return answer, nil
		}
	}
	return nil, nil // the turn ended before its first answer
}
