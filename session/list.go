package session

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// The page sizes of lists (api.md 20).
const (
	DefaultLimit = 50
	MaxLimit     = 200
)

// Page is a piece of a list with the cursors to its neighbours; a cursor is
// empty when there is nothing there.
type Page[T any] struct {
	Items          []T
	Previous, Next string
	Total          *int64
	StartIndex     *int64
}

// Limit clamps a page size.
func Limit(n int) int {
	if n <= 0 {
		return DefaultLimit
	}
	return min(n, MaxLimit)
}

// ListInput selects a page of sessions.
type ListInput struct {
	// Filter says what is listed; its After and Limit are set from the rest.
	Filter store.SessionFilter
	Cursor string
	Limit  int
	// Count asks for the total.
	Count bool
}

// anchor is what a session cursor holds. The filters are kept as a hash: a
// cursor belongs to the list that it came from.
type anchor struct {
	Updated int64  `json:"u,omitempty"`
	Ord     int64  `json:"o"`
	Back    bool   `json:"b,omitempty"`
	Of      string `json:"f"`
}

// List gives a page of sessions. A cursor of another list is a cursor_invalid
// fault.
func (s *Service) List(ctx context.Context, in ListInput) (Page[Session], error) {
	f := in.Filter
	f.Search = fold(f.Search)
	of := filterHash(f)
	var from *anchor
	if in.Cursor != "" {
		from = &anchor{}
		if !decodeCursor(in.Cursor, from) || from.Of != of {
			return Page[Session]{}, fault.New(fault.CursorInvalid, "the cursor does not belong to this list")
		}
		f.After = &store.SessionPosition{Updated: from.Updated, Ord: from.Ord}
	}
	return store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) (Page[Session], error) {
		page, err := listPage(ctx, r, f, from, of, Limit(in.Limit))
		if err != nil || !in.Count {
			return page, err
		}
		total, err := r.SessionCount(ctx, in.Filter)
		page.Total = &total
		return page, err
	})
}

func listPage(ctx context.Context, r store.Reader, f store.SessionFilter, from *anchor, of string, limit int) (Page[Session], error) {
	back := from != nil && from.Back
	f.Ascending = f.Ascending != back
	f.Limit = limit + 1
	rows, err := r.SessionList(ctx, f)
	if err != nil {
		return Page[Session]{}, fmt.Errorf("listing sessions: %w", err)
	}
	more := len(rows) > limit
	rows = rows[:min(limit, len(rows))]
	page := Page[Session]{}
	if len(rows) > 0 {
		ahead, behind := edge(rows[len(rows)-1], back, of), edge(rows[0], !back, of)
		if more {
			page.set(back, ahead)
		}
		if from != nil {
			page.set(!back, behind)
		}
	}
	if back {
		for i, k := 0, len(rows)-1; i < k; i, k = i+1, k-1 {
			rows[i], rows[k] = rows[k], rows[i]
		}
	}
	page.Items, err = sessions(rows)
	return page, err
}

func (p *Page[T]) set(back bool, cursor string) {
	if back {
		p.Previous = cursor
	} else {
		p.Next = cursor
	}
}

func edge(row db.Session, back bool, of string) string {
	return encodeCursor(anchor{Updated: row.Updated, Ord: row.Ord, Back: back, Of: of})
}

func filterHash(f store.SessionFilter) string {
	f.After, f.Limit = nil, 0
	sum := sha256.Sum256(mustJSON(f))
	return hex.EncodeToString(sum[:6])
}

func encodeCursor(v any) string { return base64.RawURLEncoding.EncodeToString(mustJSON(v)) }

func decodeCursor(s string, v any) bool {
	data, err := base64.RawURLEncoding.DecodeString(s)
	return err == nil && json.Unmarshal(data, v) == nil
}

// bodyHash identifies the content of an admission.
func bodyHash(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))
}
