package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/failpoint"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// The kinds of inbox rows. One that compacts stays queued until the summary is
// stored, so that it outlives a crash in between.
const (
	kindPrompt  = "prompt"
	kindCompact = "compact"
)

// ErrWithdrawn says that the wish to compact was taken back while the summary was
// made.
var ErrWithdrawn = errors.New("session: the wish to compact was taken back")

// CompactWish is a waiting wish to compact. MessageID is reserved for the
// message that marks the compaction.
type CompactWish struct {
	MessageID id.Message
	ord       int64
}

// AdmitCompact stores the wish to compact a session. On an idle session it
// starts a turn for it (Delivered, Started); a running turn obeys at its next
// step boundary. A wish that waits already is given again. A full inbox is
// queue_full. Owner and generation are of the server that runs the turn.
func (s *Service) AdmitCompact(ctx context.Context, ses id.Session, owner string, generation int64) (Admitted, error) {
	var out Admitted
	err := s.store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) error {
		out = Admitted{Delivery: Immediate}
		ord, err := tx.SessionNextInbox(ctx, db.SessionNextInboxParams{ID: string(ses)})
		if err != nil {
			return orAbsent(err, ses)
		}
		turn, err := tx.TurnOpen(ctx, db.TurnOpenParams{SessionID: string(ses)})
		if err != nil && !store.IsNoRows(err) {
			return err
		}
		out.TurnID = id.Turn(turn.ID)
		queued, err := tx.InboxQueued(ctx, db.InboxQueuedParams{SessionID: string(ses)})
		if err != nil {
			return err
		}
		wish, waits := db.Inbox{}, false
		for _, row := range queued {
			if row.Kind == kindCompact {
				wish, waits = row, true
			}
		}
		if waits {
			out.MessageID, out.Delivered, out.Replayed = id.Message(wish.MessageID), turn.MessageID == wish.MessageID, true
		} else if wish, err = s.addWish(ctx, tx, ses, ord, len(queued)); err != nil {
			return err
		}
		out.MessageID = id.Message(wish.MessageID)
		if turn.ID != "" {
			return nil
		}
		row, err := read(ctx, tx.Reader, ses)
		if err != nil {
			return err
		}
		run, err := s.startTurn(ctx, tx, row, wish, owner, generation)
		out.Delivered, out.TurnID, out.Started = true, run.TurnID, &run
		return err
	})
	if err != nil {
		return Admitted{}, fmt.Errorf("admitting a compaction of %s: %w", ses, err)
	}
	return out, nil
}

func orAbsent(err error, ses id.Session) error {
	if store.IsNoRows(err) {
		return notFound(ses)
	}
	return err
}

func (s *Service) addWish(ctx context.Context, tx *store.Tx, ses id.Session, ord int64, queued int) (db.Inbox, error) {
	if queued >= MaxQueued {
		return db.Inbox{}, fault.New(fault.QueueFull, "%d prompts wait already", queued).With("sessionID", ses).With("retryAfter", 5)
	}
	row, err := read(ctx, tx.Reader, ses)
	if err != nil {
		return db.Inbox{}, err
	}
	msg := id.New[id.Message](s.ids)
	wish := db.Inbox{SessionID: string(ses), Ord: ord, MessageID: string(msg), Kind: kindCompact, Delivery: string(Immediate), Created: clock.Now()}
	err = tx.InboxInsert(ctx, db.InboxInsertParams{
		SessionID: wish.SessionID, Ord: ord, MessageID: wish.MessageID, Kind: wish.Kind, Delivery: wish.Delivery, State: "queued",
		Prompt: mustJSON(stored{}), Created: wish.Created,
	})
	if err != nil {
		return wish, err
	}
	item := InboxItem{
		MessageID: msg, SessionID: ses, Delivery: Immediate, Kind: kindCompact, Prompt: mustJSON(Prompt{}), Time: InboxTime{Created: wish.Created},
	}
	return wish, InboxAdded.Append(tx, row.Origin(), item)
}

// BeginCompacting marks a session whose conversation is being summarised.
func (s *Service) BeginCompacting(ctx context.Context, run Run) error {
	now := clock.Now()
	return s.Own(ctx, store.Relaxed, run, func(ctx context.Context, tx *store.Tx) error {
		return setCompacting(ctx, tx, run.Origin, run.SessionID, &now)
	})
}

// DropCompaction takes the mark of a compaction that did not come about away,
// and the wish that wanted it, if there is one.
func (s *Service) DropCompaction(ctx context.Context, run Run, wish *CompactWish) error {
	return s.Own(ctx, store.Durable, run, func(ctx context.Context, tx *store.Tx) error {
		ses, err := read(ctx, tx.Reader, run.SessionID)
		if err != nil {
			return err
		}
		if err := clearCompacting(ctx, tx, run.Origin, ses.row); err != nil {
			return err
		}
		if err := settleWish(ctx, tx, run, wish, "cancelled"); !errors.Is(err, ErrWithdrawn) {
			return err
		}
		return nil
	})
}

func setCompacting(ctx context.Context, tx *store.Tx, origin event.Origin, ses id.Session, since *int64) error {
	row, err := tx.SessionSetCompacting(ctx, db.SessionSetCompactingParams{ID: string(ses), Compacting: since})
	if err != nil {
		return orAbsent(err, ses)
	}
	return publishRow(tx, origin, row)
}

// clearCompacting takes the mark away that a compaction left which is over or
// whose process died.
func clearCompacting(ctx context.Context, tx *store.Tx, origin event.Origin, row db.Session) error {
	if row.Compacting == nil {
		return nil
	}
	return setCompacting(ctx, tx, origin, id.Session(row.ID), nil)
}

func publishRow(tx *store.Tx, origin event.Origin, row db.Session) error {
	after, err := fromRow(row)
	if err != nil {
		return err
	}
	return Updated.Append(tx, origin, Info{SessionID: after.ID, Info: after.Session})
}

func settleWish(ctx context.Context, tx *store.Tx, run Run, wish *CompactWish, state string) error {
	if wish == nil {
		return nil
	}
	n, err := tx.InboxSettle(ctx, db.InboxSettleParams{SessionID: string(run.SessionID), Ord: wish.ord, State: state, TurnID: string(run.TurnID)})
	if err != nil {
		return err
	}
	if n == 0 {
		return ErrWithdrawn
	}
	return InboxGone.Append(tx, run.Origin, InboxRemoved{SessionID: run.SessionID, MessageID: wish.MessageID, Reason: state})
}

// CompactionInput is a compaction that is whole.
type CompactionInput struct {
	// Mark and MarkPart are the user message that stands where the older
	// conversation was; the part names the first message that stays.
	Mark     *chat.UserMessage
	MarkPart *chat.CompactionPart
	// Summary is the answer with its parts.
	Summary *chat.AssistantMessage
	Parts   []chat.Part
	// Wish is what asked for it, nil when it came by itself.
	Wish  *CompactWish
	Cost  float64
	Usage chat.Usage
}

// PutCompaction stores a summary and makes it the beginning of what the model
// sees. All of it is one write: until then the old conversation is valid. A wish
// that was taken back is ErrWithdrawn, and nothing is stored.
func (s *Service) PutCompaction(ctx context.Context, run Run, in CompactionInput) error {
	failpoint.Before(failpoint.Compact)
	err := s.Own(ctx, store.Durable, run, func(ctx context.Context, tx *store.Tx) error {
		seq, err := s.insertMessage(ctx, tx, run, in.Mark)
		if err != nil {
			return err
		}
		if err := s.putPart(ctx, tx, run, PartWrite{Seq: seq, Part: in.MarkPart, Event: true}); err != nil {
			return err
		}
		answer, err := s.insertMessage(ctx, tx, run, in.Summary)
		if err != nil {
			return err
		}
		for i, part := range in.Parts {
			if err := s.putPart(ctx, tx, run, PartWrite{Seq: answer, Ord: int64(i), Part: part, Event: true}); err != nil {
				return err
			}
		}
		row, err := tx.SessionSetContext(ctx, db.SessionSetContextParams{ID: string(run.SessionID), ContextSeq: seq, Updated: clock.Now()})
		if err != nil {
			return err
		}
		if err := publishRow(tx, run.Origin, row); err != nil {
			return err
		}
		if err := s.addUsage(ctx, tx, run, in.Cost, in.Usage); err != nil {
			return err
		}
		if err := settleWish(ctx, tx, run, in.Wish, "delivered"); err != nil {
			return err
		}
		return Compacted.Append(tx, run.Origin, CompactedPayload{SessionID: run.SessionID, MessageID: in.Summary.ID})
	})
	failpoint.After(failpoint.Compact)
	if err != nil {
		return fmt.Errorf("storing a compaction: %w", err)
	}
	return nil
}

// Context gives the messages that the model sees, oldest first, as their stored
// JSON: all of them, or the last compaction (the message that marks it and its
// summary), the messages that stayed beside the summary, and what came since.
func (s *Service) Context(ctx context.Context, ses id.Session) ([]json.RawMessage, error) {
	return store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) ([]json.RawMessage, error) {
		row, err := read(ctx, r, ses)
		if err != nil {
			return nil, err
		}
		items, err := s.context(ctx, r, row)
		if err != nil {
			return nil, fmt.Errorf("reading the context of %s: %w", ses, err)
		}
		out := make([]json.RawMessage, 0, len(items))
		for _, item := range items {
			out = append(out, item.json)
		}
		return out, nil
	})
}

func (s *Service) context(ctx context.Context, r store.Reader, row Row) ([]messageJSON, error) {
	since, err := s.between(ctx, r, row.ID, row.ContextSeq(), math.MaxInt64)
	if err != nil || row.ContextSeq() == 0 || len(since) < 2 {
		return since, err
	}
	var mark compacted
	if err := json.Unmarshal(since[0].json, &mark); err != nil || mark.tailStart() == "" {
		return since, err
	}
	first, err := r.MessageByID(ctx, db.MessageByIDParams{SessionID: string(row.ID), ID: string(mark.tailStart())})
	if store.IsNoRows(err) {
		return since, nil // removed since
	}
	if err != nil {
		return nil, err
	}
	tail, err := s.between(ctx, r, row.ID, first.Seq, row.ContextSeq())
	if err != nil {
		return nil, err
	}
	out := since[:2:2]
	for _, item := range tail {
		var m compacted
		if err := json.Unmarshal(item.json, &m); err != nil {
			return nil, err
		}
		if string(m.Info.Summary) != "true" && !m.marks() {
			out = append(out, item)
		}
	}
	return append(out, since[2:]...), nil
}

// between reads the messages of [from, before), oldest first.
func (s *Service) between(ctx context.Context, r store.Reader, ses id.Session, from, before int64) ([]messageJSON, error) {
	var out []messageJSON
	for seq := from - 1; ; {
		rows, err := pageRows(ctx, r, ses, seq, true, chunk)
		if err != nil {
			return nil, err
		}
		last := len(rows) < chunk
		for i, row := range rows {
			if row.Seq >= before {
				rows, last = rows[:i], true
				break
			}
		}
		items, err := s.join(ctx, r, ses, rows)
		if err != nil {
			return nil, err
		}
		out = append(out, items...)
		if last {
			return out, nil
		}
		seq = items[len(items)-1].seq
	}
}

// compacted reads of a message what a compaction left in it.
type compacted struct {
	Info struct {
		// Summary is true for a summary; in user messages it is an object.
		Summary json.RawMessage `json:"summary"`
	} `json:"info"`
	Parts []struct {
		Type      string     `json:"type"`
		TailStart id.Message `json:"tail_start_id"`
	} `json:"parts"`
}

func (c compacted) marks() bool {
	for _, p := range c.Parts {
		if p.Type == "compaction" {
			return true
		}
	}
	return false
}

func (c compacted) tailStart() id.Message {
	for _, p := range c.Parts {
		if p.Type == "compaction" {
			return p.TailStart
		}
	}
	return ""
}
