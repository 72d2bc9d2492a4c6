package integrity

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

func messageRules() []Rule {
	return []Rule{
		{"message-seq", "a session's messages are numbered 1, 2, 3 … and counted on its row", messageSeq},
		{"message-data", "a message can be read and is what its columns say", messageData},
		{"answer-open", "an answer of a turn that is over is completed", answerOpen},
		{"part-data", "a part can be read, is what its columns say, and has no NUL", partData},
		{"part-twice", "a part is there once", partTwice},
	}
}

// messageSeq mends counters. A hole in the numbers stays: parts and positions
// name them.
func messageSeq(ctx context.Context, p *pass) error {
	rows, err := p.IntegrityMessageCounts(ctx, db.IntegrityMessageCountsParams{MaxRows: p.rows()})
	return each(p, rows, err, func(r db.IntegrityMessageCountsRow) (Finding, mend) {
		f := Finding{SessionID: r.ID, Subject: r.ID}
		if r.Found > 0 && (r.Lowest != 1 || r.Highest != r.Found) {
			f.Detail = fmt.Sprintf("its %d messages are numbered %d to %d", r.Found, r.Lowest, r.Highest)
			return f, nil
		}
		f.Detail = fmt.Sprintf("it has %d messages, its row says %d and counts to %d", r.Found, r.MessageCount, r.MessageSeq)
		return f, one((*store.Tx).MendCounts, db.MendCountsParams{ID: r.ID, MessageSeq: r.Highest, MessageCount: r.Found})
	})
}

// eachMessage reads all messages in pages.
func eachMessage(ctx context.Context, p *pass, look func(db.IntegrityMessagesRow)) error {
	at := db.IntegrityMessagesParams{MaxRows: pageRows}
	for !p.full() {
		rows, err := p.IntegrityMessages(ctx, at)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, r := range rows {
			look(r)
			at.AfterSession, at.AfterSeq = r.SessionID, r.Seq
		}
	}
	return nil
}

func messageData(ctx context.Context, p *pass) error {
	return eachMessage(ctx, p, func(r db.IntegrityMessagesRow) {
		f := Finding{SessionID: r.SessionID, TurnID: r.TurnID, Subject: r.ID}
		info, err := chat.DecodeMessage(r.Info)
		switch {
		case err != nil:
			f.Detail = fmt.Sprintf("its head cannot be read: %v", err)
			p.add(f, remake(r))
		case string(info.Head().ID) != r.ID || string(info.Head().SessionID) != r.SessionID || role(info) != r.Role:
			f.Detail = fmt.Sprintf("its head is that of the %s message %s of %s", role(info), info.Head().ID, info.Head().SessionID)
			info.Head().ID, info.Head().SessionID = id.Message(r.ID), id.Session(r.SessionID)
			if role(info) != r.Role {
				p.add(f, remake(r))
				return
			}
			p.add(f, putMessage(r, info))
		}
	})
}

func role(m chat.Message) string {
	if _, ok := m.(*chat.UserMessage); ok {
		return "user"
	}
	return "assistant"
}

// remake puts an empty head in the place of one that is lost, so that the session
// can be read again. An answer gets an error that says so.
func remake(r db.IntegrityMessagesRow) mend {
	head := chat.MessageHead{ID: id.Message(r.ID), SessionID: id.Session(r.SessionID)}
	if r.Role == "user" {
		msg := chat.NewUser(head, "", chat.ModelRef{}, 0)
		msg.TurnID = id.Turn(r.TurnID)
		return putMessage(r, msg)
	}
	msg := chat.NewAssistant(head, 0)
	msg.TurnID, msg.Time.Completed = id.Turn(r.TurnID), 1
	msg.Error = chat.NewError(chat.ErrUnknown, "what was stored of this answer could not be read")
	return putMessage(r, msg)
}

func putMessage(r db.IntegrityMessagesRow, m chat.Message) mend {
	return func(ctx context.Context, tx *store.Tx) error {
		data, err := json.Marshal(m)
		if err != nil {
			return err
		}
		_, err = tx.MessageUpdate(ctx, db.MessageUpdateParams{SessionID: r.SessionID, Seq: r.Seq, Info: data})
		return err
	}
}

func answerOpen(ctx context.Context, p *pass) error {
	return eachMessage(ctx, p, func(r db.IntegrityMessagesRow) {
		if r.TurnEnded == nil || r.Role != "assistant" {
			return
		}
		info, err := chat.DecodeMessage(r.Info)
		answer, ok := info.(*chat.AssistantMessage)
		if err != nil || !ok || answer.Time.Completed != 0 {
			return // message-data tells of what is no answer
		}
		answer.Time.Completed = *r.TurnEnded
		if answer.Error == nil && answer.Finish == "" {
			answer.Error = chat.NewError(chat.ErrAborted, "the server stopped while the model answered")
		}
		f := Finding{SessionID: r.SessionID, TurnID: r.TurnID, Subject: r.ID, Detail: "the turn is over and the answer is not completed"}
		p.add(f, putMessage(r, answer))
	})
}

func partData(ctx context.Context, p *pass) error {
	at := db.IntegrityPartsParams{MaxRows: pageRows}
	for !p.full() {
		rows, err := p.IntegrityParts(ctx, at)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, r := range rows {
			p.part(r)
			at.AfterSession, at.AfterSeq, at.AfterOrd = r.SessionID, r.MessageSeq, r.Ord
		}
	}
	return nil
}

// part looks at one part. One that cannot be read would keep the whole session
// from being read: a text takes its place.
func (p *pass) part(r db.IntegrityPartsRow) {
	f := Finding{SessionID: r.SessionID, TurnID: r.TurnID, Subject: r.ID}
	head := chat.PartHead{ID: id.Part(r.ID), SessionID: id.Session(r.SessionID), MessageID: id.Message(r.MessageID)}
	part, err := chat.DecodePart(r.Data)
	if tool, ok := part.(*chat.ToolPart); err == nil && ok && tool.State == nil {
		err = fmt.Errorf("the call has no state")
	}
	if err != nil {
		f.Detail = fmt.Sprintf("it cannot be read: %v", err)
		text := chat.NewText(head, "What was stored here could not be read.")
		text.Synthetic = true
		p.add(f, putPart(r.SessionID, r.MessageSeq, r.Ord, text))
		return
	}
	kind, state := chat.PartType(part), partState(part)
	clean, found := replaceNUL(r.Data)
	switch {
	case *part.Head() != head:
		f.Detail = fmt.Sprintf("it says that it is %s of %s in %s", part.Head().ID, part.Head().MessageID, part.Head().SessionID)
		*part.Head() = head
		p.add(f, putPart(r.SessionID, r.MessageSeq, r.Ord, part))
	case kind != r.Type || state != r.State:
		f.Detail = fmt.Sprintf("its columns say %q %q, it is %q %q", r.Type, r.State, kind, state)
		p.add(f, putPart(r.SessionID, r.MessageSeq, r.Ord, part))
	case found:
		f.Detail = "it holds a NUL"
		p.add(f, one((*store.Tx).MendPart, db.MendPartParams{
			SessionID: r.SessionID, MessageSeq: r.MessageSeq, Ord: r.Ord, Type: kind, State: state, Data: clean,
		}))
	}
}

// replaceNUL gives JSON text with U+FFFD in place of the escapes that stand for
// NUL. JSON cannot hold the byte itself.
func replaceNUL(data []byte) (clean []byte, found bool) {
	const escape = 6 // bytes of \u0000
	clean = data
	for i := 0; i+1 < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		if i+escape <= len(data) && string(data[i:i+escape]) == `\u0000` {
			if !found {
				clean, found = append([]byte{}, data...), true
			}
			copy(clean[i:], `\ufffd`)
		}
		i++ // what follows a backslash begins no escape
	}
	return clean, found
}

func partTwice(ctx context.Context, p *pass) error {
	rows, err := p.IntegrityPartsTwice(ctx, db.IntegrityPartsTwiceParams{MaxRows: p.rows()})
	return each(p, rows, err, func(r db.IntegrityPartsTwiceRow) (Finding, mend) {
		return Finding{SessionID: r.SessionID, Subject: r.ID, Detail: fmt.Sprintf("%d parts have this id", r.Copies)}, nil
	})
}
