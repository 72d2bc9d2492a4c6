package transfer

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// originKey is the member of a fork's metadata that tells what it was copied
// from: {sessionID, messageID?}.
const originKey = "forkedFrom"

// ForkInput says what is copied.
type ForkInput struct {
	SessionID id.Session
	// Before is the first message that is not copied; empty copies all.
	Before id.Message
	// ID is chosen by who must be able to fork once; empty for a new one. When
	// there is a session of this id already it is the fork.
	ID id.Session
}

// Fork copies the messages of a session, or those before one of them, into a new
// root session in the same place. Every id in the copy is new and every reference
// leads into it. What a running turn had left open is closed as aborted in the
// copy; the turn itself is not touched. Children are not copied.
//
// An unknown session is session_not_found, an unknown message message_not_found.
func (s *Service) Fork(ctx context.Context, in ForkInput) (session.Session, error) {
	if in.ID != "" {
		made, err := s.sessions.Get(ctx, in.ID)
		if err == nil || !fault.Is(err, fault.SessionNotFound) {
			return made.Session, err
		}
	} else {
		in.ID = id.New[id.Session](s.ids)
	}
	source, err := s.sessions.Get(ctx, in.SessionID)
	if err != nil {
		return session.Session{}, err
	}
	var fork session.Session
	err = s.store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) (err error) {
		fork, err = s.fork(ctx, tx, source, in)
		return err
	})
	if err != nil {
		return session.Session{}, fmt.Errorf("forking %s: %w", in.SessionID, err)
	}
	return fork, nil
}

func (s *Service) fork(ctx context.Context, tx *store.Tx, source session.Row, in ForkInput) (session.Session, error) {
	fork, err := head(ctx, tx, source, in)
	if err != nil {
		return fork, err
	}
	end, err := endOf(ctx, tx, source.ID, in.Before)
	if err != nil {
		return fork, err
	}
	w := &scribe{tx: tx, ses: fork, titleSource: titleManual}
	if source.HasDefaultTitle() {
		w.titleSource = titleDefault
	}
	if err := w.begin(ctx); err != nil {
		return fork, err
	}
	if err := copyItems(ctx, w, newRemap(s.ids, source.ID, fork.ID), end); err != nil {
		return fork, err
	}
	todos, err := todosOf(ctx, tx.Reader, source.ID)
	if err != nil {
		return fork, err
	}
	w.ses.Cost, w.ses.Tokens = w.cost, w.usage
	return w.ses, w.end(ctx, todos)
}

// copyItems copies the messages before a sequence. A mark of a compaction is
// copied with its summary only: alone it would replace nothing.
func copyItems(ctx context.Context, w *scribe, to *remap, end int64) error {
	var held *chat.Item
	now := clock.Now()
	return eachItem(ctx, w.tx.Reader, to.from, end, func(item chat.Item) error {
		settle(item, now, "aborted")
		to.item(item)
		if held != nil {
			if err := w.put(ctx, *held); err != nil {
				return err
			}
			held = nil
		}
		if marks(item) {
			held = &item
			return nil
		}
		return w.put(ctx, item)
	})
}

// head makes the fork's session of its source's.
func head(ctx context.Context, tx *store.Tx, source session.Row, in ForkInput) (session.Session, error) {
	if _, err := tx.SessionGet(ctx, db.SessionGetParams{ID: string(source.ID)}); store.IsNoRows(err) {
		return session.Session{}, fault.New(fault.SessionNotFound, "there is no session %q", source.ID).With("sessionID", source.ID)
	} else if err != nil {
		return session.Session{}, err
	}
	base := forkBase(source.Title)
	taken, err := tx.SessionTitles(ctx, db.SessionTitlesParams{
		Directory: source.Directory, WorkspaceID: string(source.WorkspaceID), Beginning: base,
	})
	if err != nil {
		return session.Session{}, err
	}
	fork, now := source.Session, clock.Now()
	fork.ID, fork.ParentID = in.ID, ""
	fork.RootSessionID, fork.Title = fork.ID, forkTitle(base, taken)
	fork.Time = session.Time{Created: now, Updated: now}
	fork.Metadata, err = withOrigin(source.Metadata, source.ID, in.Before)
	return fork, err
}

func withOrigin(metadata json.RawMessage, ses id.Session, before id.Message) (json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if len(metadata) > 0 {
		if err := json.Unmarshal(metadata, &members); err != nil {
			return nil, fmt.Errorf("reading the metadata of %s: %w", ses, err)
		}
	}
	members[originKey] = encode(struct {
		SessionID id.Session `json:"sessionID"`
		MessageID id.Message `json:"messageID,omitempty"`
	}{ses, before})
	return encode(members), nil
}

// endOf gives the sequence that a copy ends before.
func endOf(ctx context.Context, tx *store.Tx, ses id.Session, before id.Message) (int64, error) {
	if before == "" {
		return math.MaxInt64, nil
	}
	row, err := tx.MessageByID(ctx, db.MessageByIDParams{SessionID: string(ses), ID: string(before)})
	if store.IsNoRows(err) {
		return 0, fault.New(fault.MessageNotFound, "session %s has no message %q", ses, before).With("sessionID", ses).With("messageID", before)
	}
	return row.Seq, err
}

const forkMark = " (fork"

// forkBase is a title without what a fork of it has behind it: a fork of a fork
// counts on.
func forkBase(title string) string {
	at := strings.LastIndex(title, forkMark)
	if at < 0 {
		return title
	}
	number, ok := strings.CutSuffix(title[at+len(forkMark):], ")")
	if _, err := strconv.Atoi(strings.TrimPrefix(number, " ")); ok && (number == "" || err == nil) {
		return title[:at]
	}
	return title
}

// forkTitle is the first title for a fork that is not taken.
func forkTitle(base string, taken []string) string {
	title := base + forkMark + ")"
	for n := 2; slices.Contains(taken, title); n++ {
		title = fmt.Sprintf("%s%s %d)", base, forkMark, n)
	}
	return title
}
