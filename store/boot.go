package store

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/store/db"
)

const metaEpoch = "epoch"

// start counts a new start: it raises the event head by BootGap and remembers
// the gap, in one durable transaction.
func (d *DB) start(ctx context.Context) (Boot, error) {
	fresh, err := newEpoch()
	if err != nil {
		return Boot{}, err
	}
	var boot Boot
	_, err = d.engine.write(ctx, Durable, func(ctx context.Context, tx *Tx) error {
		boot = Boot{}
		// The head row first: it is the lock that makes two servers that start
		// at once on PostgreSQL take turns.
		head, err := tx.EventHeadAdvance(ctx, db.EventHeadAdvanceParams{Numbers: BootGap})
		if err != nil {
			return err
		}
		boot.Head = head
		if boot.Number, err = tx.BootLast(ctx); err != nil {
			return err
		}
		boot.Number++
		gap := Gap{From: head - BootGap + 1, To: head}
		err = tx.BootInsert(ctx, db.BootInsertParams{Number: boot.Number, GapFrom: gap.From, GapTo: gap.To, Owner: d.owner, Started: clock.Now()})
		if err != nil {
			return err
		}
		if err := tx.MetaInsert(ctx, db.MetaInsertParams{Name: metaEpoch, Value: fresh}); err != nil {
			return err
		}
		if boot.Epoch, err = readEpoch(ctx, tx.Reader); err != nil {
			return err
		}
		boot.Gaps, err = readGaps(ctx, tx.Reader)
		return err
	})
	return boot, err
}

func newEpoch() (string, error) {
	var b [4]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("making an epoch: %w", err)
	}
	return strconv.FormatUint(uint64(binary.BigEndian.Uint32(b[:])&^(1<<31)), 16), nil
}

func readEpoch(ctx context.Context, r Reader) (uint32, error) {
	s, err := r.MetaGet(ctx, db.MetaGetParams{Name: metaEpoch})
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(s, 16, 31)
	if err != nil {
		return 0, fmt.Errorf("the store's epoch %q: %w", s, err)
	}
	return uint32(n), nil
}

func readGaps(ctx context.Context, r Reader) ([]Gap, error) {
	rows, err := r.BootList(ctx)
	if err != nil {
		return nil, err
	}
	gaps := make([]Gap, 0, len(rows))
	for _, row := range rows {
		gaps = append(gaps, Gap{From: row.GapFrom, To: row.GapTo})
	}
	return gaps, nil
}

// insertEvents numbers a transaction's events and stores them. It is the last
// thing that a transaction does: the head row is locked until the commit.
func insertEvents(ctx context.Context, tx *Tx, events []Event) error {
	if len(events) == 0 {
		return nil
	}
	var size int64
	for i := range events {
		size += int64(len(events[i].Payload))
	}
	n := int64(len(events))
	head, err := tx.EventHeadAdvance(ctx, db.EventHeadAdvanceParams{Numbers: n, AddedRows: n, AddedBytes: size})
	if err != nil {
		return err
	}
	for i := range events {
		events[i].Seq = head - n + int64(i) + 1
	}
	for len(events) > 0 {
		m := min(len(events), maxRowsPerInsert)
		if err := insertRows(ctx, tx.raw, events[:m]); err != nil {
			return err
		}
		events = events[m:]
	}
	return nil
}

const eventColumns = 9

// maxRowsPerInsert keeps one statement below both engines' parameter limits.
const maxRowsPerInsert = 500

func insertRows(ctx context.Context, r raw, events []Event) error {
	var sql strings.Builder
	sql.WriteString("INSERT INTO event (seq, type, time, directory, workspace_id, session_id, root_session_id, size, payload) VALUES ")
	args := make([]any, 0, eventColumns*len(events))
	for i, e := range events {
		if i > 0 {
			sql.WriteByte(',')
		}
		sql.WriteByte('(')
		for k := range eventColumns {
			if k > 0 {
				sql.WriteByte(',')
			}
			sql.WriteString(r.placeholder(len(args) + k + 1))
		}
		sql.WriteByte(')')
		args = append(args, e.Seq, e.Type, e.Time, e.Directory, e.WorkspaceID, e.SessionID, e.RootSessionID, len(e.Payload), string(e.Payload))
	}
	return r.exec(ctx, sql.String(), args)
}

// Events reads durable events after a number, up to another, oldest first.
func (d *DB) Events(ctx context.Context, after, upTo int64, limit int) ([]Event, error) {
	rows, err := d.engine.reader().EventAfter(ctx, db.EventAfterParams{After: after, UpTo: upTo, MaxRows: int64(limit)})
	if err != nil {
		return nil, d.readFault(err)
	}
	out := make([]Event, 0, len(rows))
	for _, r := range rows {
		out = append(out, Event{
			Seq: r.Seq, Type: r.Type, Time: r.Time, Directory: r.Directory, WorkspaceID: r.WorkspaceID,
			SessionID: r.SessionID, RootSessionID: r.RootSessionID, Payload: r.Payload,
		})
	}
	return out, nil
}

// EventBounds gives the number of the oldest event kept (0 for none) and the
// newest number given.
func (d *DB) EventBounds(ctx context.Context) (oldest, head int64, err error) {
	r := d.engine.reader()
	if oldest, err = r.EventOldest(ctx); err != nil {
		return 0, 0, d.readFault(err)
	}
	row, err := r.EventHead(ctx)
	return oldest, row.Seq, d.readFault(err)
}
