package idempotency

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// settleLimit bounds the write that settles a key, which outlives its request.
const settleLimit = 10 * time.Second

// errTaken says that another server took a request over, as if this one were dead.
var errTaken = errors.New("idempotency: the key was taken over")

// Claim is the right to run the request of a key. It ends with Keep or Release;
// it is not for concurrent use.
type Claim struct {
	service *Service
	request Request
	session id.Session
	// fresh tells that the request never ran before.
	fresh bool
	ended bool
}

// Session is the id of the session that the request makes, if it makes one. It is
// the same in every attempt, so that the store holds the session at most once.
func (c *Claim) Session() id.Session { return c.session }

// Keep stores the answer for those who send the request again. Of a larger one
// than MaxAnswer only that it was given is kept, or nothing where the request may
// run again.
func (c *Claim) Keep(ctx context.Context, a Answer) {
	state := done
	if len(a.Body) > MaxAnswer {
		if c.request.Repeatable {
			c.Release(ctx, true)
			return
		}
		state, a.Body, a.Header = large, nil, nil
	}
	c.end(ctx, func(ctx context.Context) error { return c.settle(ctx, state, a) })
}

// Release lets the request run again when it is repeated. began false tells that
// it had not begun to do anything: the key is then as if it was never used.
func (c *Claim) Release(ctx context.Context, began bool) {
	if began || !c.fresh {
		c.end(ctx, func(ctx context.Context) error { return c.settle(ctx, released, Answer{}) })
		return
	}
	c.end(ctx, func(ctx context.Context) error {
		return c.service.Store.Write(ctx, store.Relaxed, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.IdempotencyDelete(ctx, db.IdempotencyDeleteParams{Scope: c.request.Scope, Key: c.request.Key, Before: math.MaxInt64})
			return err
		})
	})
}

// end writes how the request ended, once. What cannot be written is told in the
// log only: the request is done, and its caller must hear of that.
func (c *Claim) end(ctx context.Context, write func(context.Context) error) {
	if c.ended {
		return
	}
	c.ended = true
	defer c.service.leave(c.request.name())
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleLimit)
	defer cancel()
	if err := write(ctx); err != nil {
		c.service.Log.Error("settling an idempotency key", "operation", c.request.Operation, "error", err)
	}
}

func (c *Claim) settle(ctx context.Context, state string, a Answer) error {
	if a.Header == nil {
		a.Header = map[string]string{}
	}
	if a.Body == nil {
		a.Body = []byte{}
	}
	header, err := json.Marshal(a.Header)
	if err != nil {
		return fmt.Errorf("encoding a header: %w", err)
	}
	return c.service.Store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) error {
		n, err := tx.IdempotencySettle(ctx, db.IdempotencySettleParams{
			Scope: c.request.Scope, Key: c.request.Key, Owner: c.service.Owner, State: state, Status: int64(a.Status), Header: header, Answer: a.Body,
		})
		if err == nil && n == 0 {
			return errTaken
		}
		return err
	})
}
