package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// eachItem calls fn with the stored messages of a session before a sequence,
// oldest first, a chunk in memory at a time.
func eachItem(ctx context.Context, r store.Reader, ses id.Session, before int64, fn func(chat.Item) error) error {
	for after := int64(0); ; {
		rows, err := r.MessagePageAsc(ctx, db.MessagePageAscParams{SessionID: string(ses), AfterSeq: after, MaxRows: chunk})
		if err != nil {
			return err
		}
		parts, err := partsOf(ctx, r, ses, rows)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if row.Seq >= before {
				return nil
			}
			info, err := chat.DecodeMessage(row.Info)
			if err != nil {
				return err
			}
			item := chat.Item{Info: info, Parts: append([]chat.Part{}, parts[row.Seq]...)}
			if err := fn(item); err != nil {
				return err
			}
			after = row.Seq
		}
		if len(rows) < chunk {
			return nil
		}
	}
}

func partsOf(ctx context.Context, r store.Reader, ses id.Session, rows []db.Message) (map[int64][]chat.Part, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	found, err := r.PartRange(ctx, db.PartRangeParams{SessionID: string(ses), FromSeq: rows[0].Seq, ToSeq: rows[len(rows)-1].Seq})
	if err != nil {
		return nil, err
	}
	out := make(map[int64][]chat.Part, len(rows))
	for _, p := range found {
		part, err := chat.DecodePart(p.Data)
		if err != nil {
			return nil, err
		}
		out[p.MessageSeq] = append(out[p.MessageSeq], part)
	}
	return out, nil
}

// todosOf reads a session's plan; none is empty.
func todosOf(ctx context.Context, r store.Reader, ses id.Session) ([]chat.Todo, error) {
	todos := []chat.Todo{}
	data, err := r.TodoGet(ctx, db.TodoGetParams{SessionID: string(ses)})
	if store.IsNoRows(err) {
		return todos, nil
	}
	if err != nil {
		return nil, err
	}
	return todos, json.Unmarshal(data, &todos)
}

// errDiffers ends a comparison early.
var errDiffers = errors.New("transfer: the contents differ")

// equal compares values by their JSON.
func equal(a, b any) bool { return bytes.Equal(encode(a), encode(b)) }

// rawOf gives a stored document, nil for null.
func rawOf(data []byte) json.RawMessage {
	if string(data) == "null" {
		return nil
	}
	return data
}

func decodeInto(data []byte, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("reading a session: %w", err)
	}
	return nil
}
