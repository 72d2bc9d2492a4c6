// Package idempotency remembers the answers to requests with an Idempotency-Key,
// so that a request that is sent again is answered and not run again.
//
// A key is reserved in the store before its request runs, by an insert that only
// one can win, and settled with the answer before that is sent. Between the two
// lies the effect, in transactions of its own. A server that dies there leaves a
// reserved key behind: an operation that may run again does so, and makes the same
// object, whose id was chosen with the reservation; the outcome of any other is
// told to be unknown.
package idempotency

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

const (
	// MaxAnswer is the largest body in bytes that is kept.
	MaxAnswer = 256 << 10
	// retention is how long a key is remembered.
	retention = 24 * time.Hour
	// trimRows is how many old keys go with each new one: they cannot pile up, and
	// no request waits long for it.
	trimRows = 8
	// waitLimit is how long a repetition waits for the first request.
	waitLimit = 30 * time.Second
	// A request that another server runs is looked at after pollFirst, then less and
	// less often.
	pollFirst = 20 * time.Millisecond
	pollLast  = time.Second
)

// The states of a key.
const (
	reserved = "reserved" // its request runs, or ran on a server that is gone
	released = "released" // its request failed in a way that may pass
	done     = "done"     // its answer is kept
	large    = "large"    // its request is done, with an answer too large to keep
)

// Config wires a Service.
type Config struct {
	Store *store.DB
	IDs   *id.Source
	// Owner names this start of this server, as no other ever does.
	Owner string
	// Log is nil for none.
	Log *slog.Logger
}

// Service keeps keys. It is safe for concurrent use.
type Service struct {
	Config

	mu      sync.Mutex // protects running
	running map[name]chan struct{}
}

// name is what a key is found by.
type name struct{ scope, key string }

// NewService makes a Service.
func NewService(c Config) *Service {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{Config: c, running: map[name]chan struct{}{}}
}

// Request is a request with a key.
type Request struct {
	// Scope names the caller: keys of different callers are different.
	Scope, Key string
	// Operation, Target (its path) and Hash (of all else that it says) must be
	// equal in a repetition.
	Operation, Target, Hash string
	// Repeatable requests may run again when it is not known how the first ended:
	// they only read or set something, or make the session that Claim.Session names.
	Repeatable bool
}

func (r Request) name() name { return name{r.Scope, r.Key} }

// Answer is an answer as it is kept. Body is at most MaxAnswer bytes.
type Answer struct {
	Status int
	Header map[string]string
	Body   []byte
}

// errWaited ends the waiting for the first request.
var errWaited = errors.New("the first request takes too long")

// Begin decides about a request: it is the first of its key and runs, with the
// Claim, which must be settled; or there is an answer. While the first request
// runs, a repetition waits for it, for 30 s. A key that was used for another
// request, one whose outcome is unknown, and one whose answer does not come in
// time are idempotency_conflict faults.
func (s *Service) Begin(ctx context.Context, r Request) (*Claim, *Answer, error) {
	bounded, cancel := context.WithTimeoutCause(ctx, waitLimit, errWaited)
	defer cancel()
	c, answer, err := s.begin(bounded, r)
	if err != nil && errors.Is(context.Cause(bounded), errWaited) {
		return nil, nil, conflict(r, "the first request with this key is still running").With("retryAfter", 5)
	}
	return c, answer, err
}

func (s *Service) begin(ctx context.Context, r Request) (*Claim, *Answer, error) {
	if err := s.enter(ctx, r.name()); err != nil {
		return nil, nil, err
	}
	entered := true
	defer func() {
		if entered {
			s.leave(r.name())
		}
	}()
	for wait := pollFirst; ; wait = min(2*wait, pollLast) {
		row, first, err := s.reserve(ctx, r)
		if err != nil {
			return nil, nil, err
		}
		if first || row.State == done {
			entered = !first
			return s.settled(r, row, first)
		}
		taken, err := s.take(ctx, r, row)
		if err != nil {
			return nil, nil, err
		}
		if taken {
			entered = false
			return &Claim{service: s, request: r, session: id.Session(row.Object)}, nil, nil
		}
		if err := clock.Sleep(ctx, wait); err != nil {
			return nil, nil, err
		}
	}
}

// settled gives the claim of a first request, or the answer of one that is done.
func (s *Service) settled(r Request, row db.Idempotency, first bool) (*Claim, *Answer, error) {
	if first {
		return &Claim{service: s, request: r, session: id.Session(row.Object), fresh: true}, nil, nil
	}
	a := &Answer{Status: int(row.Status), Body: row.Answer}
	if err := json.Unmarshal(row.Header, &a.Header); err != nil {
		return nil, nil, fmt.Errorf("reading a kept answer: %w", err)
	}
	return nil, a, nil
}

// enter waits until no other request of this process has the key.
func (s *Service) enter(ctx context.Context, n name) error {
	for {
		s.mu.Lock()
		other, busy := s.running[n]
		if !busy {
			s.running[n] = make(chan struct{})
		}
		s.mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-other:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (s *Service) leave(n name) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.running[n])
	delete(s.running, n)
}

// reserve inserts the key, or reads what is there. It need not be on the disk
// before the request runs: whatever that writes durably comes after it in the log.
func (s *Service) reserve(ctx context.Context, r Request) (row db.Idempotency, first bool, err error) {
	fresh := string(id.New[id.Session](s.IDs))
	err = s.Store.Write(ctx, store.Relaxed, func(ctx context.Context, tx *store.Tx) error {
		now := clock.Now()
		if err := trim(ctx, tx, now-retention.Milliseconds()); err != nil {
			return err
		}
		n, err := tx.IdempotencyReserve(ctx, db.IdempotencyReserveParams{
			Scope: r.Scope, Key: r.Key, Operation: r.Operation, Target: r.Target, BodyHash: r.Hash, Owner: s.Owner, Object: fresh,
			Header: []byte("{}"), Answer: []byte{}, Created: now,
		})
		if err != nil {
			return err
		}
		first = n == 1
		row, err = tx.IdempotencyGet(ctx, db.IdempotencyGetParams{Scope: r.Scope, Key: r.Key})
		return err
	})
	if err != nil {
		return row, false, fmt.Errorf("reserving a key: %w", err)
	}
	if row.Operation != r.Operation || row.Target != r.Target || row.BodyHash != r.Hash {
		return row, false, conflict(r, "the key was used before for another request")
	}
	return row, first, nil
}

// trim forgets the oldest keys.
func trim(ctx context.Context, tx *store.Tx, before int64) error {
	old, err := tx.IdempotencyOld(ctx, db.IdempotencyOldParams{Before: before, MaxRows: trimRows})
	if err != nil {
		return err
	}
	for _, row := range old {
		_, err := tx.IdempotencyDelete(ctx, db.IdempotencyDeleteParams{Scope: row.Scope, Key: row.Key, Before: before})
		if err != nil {
			return err
		}
	}
	return nil
}

// take lets the next attempt of a request run whose last one has no answer. It is
// false while another server runs it.
func (s *Service) take(ctx context.Context, r Request, row db.Idempotency) (bool, error) {
	if row.State == large {
		return false, conflict(r, "the first request was answered with status %d; the answer was too large to be kept", row.Status)
	}
	var n int64
	err := s.Store.Write(ctx, store.Relaxed, func(ctx context.Context, tx *store.Tx) error {
		n = 0
		if row.State == reserved {
			runs, err := s.runs(ctx, tx, row.Owner)
			if err != nil || runs {
				return err
			}
			if !r.Repeatable {
				return conflict(r, "the server stopped while the first request ran, and what it did is not known: look before sending it with a new key")
			}
		}
		var err error
		n, err = tx.IdempotencyTake(ctx, db.IdempotencyTakeParams{
			Scope: r.Scope, Key: r.Key, Owner: s.Owner, FromState: row.State, FromOwner: row.Owner,
		})
		return err
	})
	if err != nil {
		return false, fmt.Errorf("taking a key over: %w", err)
	}
	return n == 1, nil
}

// runs tells whether another server may be running what it reserved. A reserved
// key of our own is nobody's: whoever runs a request here has entered.
func (s *Service) runs(ctx context.Context, tx *store.Tx, owner string) (bool, error) {
	if owner == s.Owner {
		return false, nil
	}
	now, err := tx.DatabaseTime(ctx)
	if err != nil {
		return false, err
	}
	live, err := tx.ServerLive(ctx, db.ServerLiveParams{Now: now})
	return slices.ContainsFunc(live, func(v db.Server) bool { return v.Owner == owner }), err
}

func conflict(r Request, format string, args ...any) *fault.Error {
	return fault.New(fault.IdempotencyConflict, format, args...).With("idempotencyKey", r.Key)
}
