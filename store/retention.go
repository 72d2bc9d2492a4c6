package store

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/switchyard-dev/switchyard/store/db"
)

// Retention bounds the event log, whichever bound is reached first.
type Retention struct {
	Age   time.Duration // default 7 days
	Rows  int64         // default 1,000,000
	Bytes int64         // default 1 GiB of payload
}

const (
	// trimEvery is how many events are written between two looks at the log's
	// size; trimRows bounds what one look deletes, so that no write waits long.
	trimEvery = 512
	trimRows  = 2048
)

type retention struct {
	Retention
	written atomic.Int64
}

func newRetention(r Retention) *retention {
	if r.Age <= 0 {
		r.Age = 7 * 24 * time.Hour
	}
	if r.Rows <= 0 {
		r.Rows = 1_000_000
	}
	if r.Bytes <= 0 {
		r.Bytes = 1 << 30
	}
	return &retention{Retention: r}
}

// trimAfter lets trimming ride on the writes.
func (d *DB) trimAfter(ctx context.Context, n int) {
	now := d.retention.written.Add(int64(n))
	if now/trimEvery == (now-int64(n))/trimEvery {
		return
	}
	if _, err := d.Trim(context.WithoutCancel(ctx)); err != nil {
		d.log.Warn("trimming the event log", "error", err)
	}
}

// Trim deletes the oldest events beyond the retention, a bounded number at a
// time, and tells how many went.
func (d *DB) Trim(ctx context.Context) (deleted int64, err error) {
	// A look first: mostly there is nothing to do, and nothing is written then.
	over, err := d.overdue(ctx, d.engine.reader())
	if err != nil || over.rows == 0 {
		return 0, d.readFault(err)
	}
	err = d.Write(ctx, Relaxed, func(ctx context.Context, tx *Tx) error {
		deleted = 0
		// The head row is the lock that keeps two servers from counting the same
		// rows off twice.
		if _, err := tx.EventHeadAdvance(ctx, db.EventHeadAdvanceParams{}); err != nil {
			return err
		}
		over, err := d.overdue(ctx, tx.Reader)
		if err != nil || over.rows == 0 {
			return err
		}
		if deleted, err = tx.EventDeleteUpTo(ctx, db.EventDeleteUpToParams{Seq: over.upTo}); err != nil {
			return err
		}
		_, err = tx.EventHeadAdvance(ctx, db.EventHeadAdvanceParams{AddedRows: -over.rows, AddedBytes: -over.bytes})
		return err
	})
	return deleted, err
}

// oldRows are events at the beginning of the log.
type oldRows struct{ upTo, rows, bytes int64 }

// overdue finds the events that must go, at most trimRows of them.
func (d *DB) overdue(ctx context.Context, r Reader) (oldRows, error) {
	head, err := r.EventHead(ctx)
	if err != nil {
		return oldRows{}, err
	}
	oldest, err := r.EventOldestRows(ctx, db.EventOldestRowsParams{MaxRows: trimRows})
	if err != nil {
		return oldRows{}, err
	}
	cutoff := time.Now().Add(-d.retention.Age).UnixMilli()
	var over oldRows
	for _, row := range oldest {
		keep := head.TotalRows-over.rows <= d.retention.Rows && head.TotalBytes-over.bytes <= d.retention.Bytes
		if keep && row.Time >= cutoff {
			break
		}
		over = oldRows{upTo: row.Seq, rows: over.rows + 1, bytes: over.bytes + row.Size}
	}
	return over, nil
}
