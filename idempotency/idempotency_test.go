package idempotency_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/idempotency"
	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// bundle is a store with as many servers as a test starts.
type bundle struct {
	t     *testing.T
	store *store.DB
	ids   *id.Source
}

func onBoth(t *testing.T, fn func(*bundle)) {
	t.Helper()
	run := func(url func(t *testing.T) string) func(*testing.T) {
		return func(t *testing.T) {
			t.Parallel()
			d, err := store.Open(t.Context(), store.Config{URL: url(t), Owner: "test"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			})
			fn(&bundle{t: t, store: d, ids: id.NewSource(time.Now, nil)})
		}
	}
	t.Run("sqlite", run(func(t *testing.T) string { return filepath.Join(t.TempDir(), "s.db") }))
	t.Run("postgres", run(func(t *testing.T) string { return testkit.Postgres(t) }))
}

// server is a start of a server.
func (b *bundle) server(owner string) *idempotency.Service {
	return idempotency.NewService(idempotency.Config{Store: b.store, IDs: b.ids, Owner: owner})
}

func request(key string) idempotency.Request {
	return idempotency.Request{Scope: "tok", Key: key, Operation: "a.b", Target: "/a", Hash: "h"}
}

func repeatable(key string) idempotency.Request {
	r := request(key)
	r.Repeatable = true
	return r
}

func (b *bundle) first(s *idempotency.Service, r idempotency.Request) *idempotency.Claim {
	b.t.Helper()
	c, answer, err := s.Begin(b.t.Context(), r)
	if err != nil || answer != nil || c == nil {
		b.t.Fatalf("%v %+v %v", c, answer, err)
	}
	return c
}

func (b *bundle) answered(s *idempotency.Service, r idempotency.Request) idempotency.Answer {
	b.t.Helper()
	c, answer, err := s.Begin(b.t.Context(), r)
	if err != nil || c != nil || answer == nil {
		b.t.Fatalf("%v %+v %v", c, answer, err)
	}
	return *answer
}

func (b *bundle) refused(s *idempotency.Service, r idempotency.Request) {
	b.t.Helper()
	c, answer, err := s.Begin(b.t.Context(), r)
	if !fault.Is(err, fault.IdempotencyConflict) {
		b.t.Errorf("%v %+v %v", c, answer, err)
	}
}

func TestOneRunsAndTheOthersWaitForItsAnswer(t *testing.T) {
	t.Parallel()
	onBoth(t, func(b *bundle) {
		s := b.server("one")
		c := b.first(s, request("k"))
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if a := b.answered(s, request("k")); a.Status != 200 || string(a.Body) != "body\x00" || a.Header["X"] != "y" {
					b.t.Errorf("%+v", a)
				}
			})
		}
		b.first(s, request("another")).Release(b.t.Context(), true) // is not held up
		c.Keep(b.t.Context(), idempotency.Answer{Status: 200, Header: map[string]string{"X": "y"}, Body: []byte("body\x00")})
		c.Release(b.t.Context(), true) // too late
		wg.Wait()
		other := request("k")
		other.Scope = "another caller"
		b.first(s, other).Release(b.t.Context(), false)
		for _, change := range []func(*idempotency.Request){
			func(r *idempotency.Request) { r.Operation = "x" }, func(r *idempotency.Request) { r.Target = "x" }, func(r *idempotency.Request) { r.Hash = "x" },
		} {
			r := request("k")
			change(&r)
			b.refused(s, r)
		}
	})
}

func TestAWaiterMayLeave(t *testing.T) {
	t.Parallel()
	onBoth(t, func(b *bundle) {
		s := b.server("one")
		c := b.first(s, request("k"))
		ctx, cancel := context.WithCancel(b.t.Context())
		done := make(chan error, 1)
		go func() {
			_, _, err := s.Begin(ctx, request("k"))
			done <- err
		}()
		cancel()
		if err := <-done; err == nil || fault.Is(err, fault.IdempotencyConflict) {
			b.t.Errorf("%v", err)
		}
		c.Release(b.t.Context(), true)
	})
}

func TestAReleasedRequestRunsAgainWithItsSession(t *testing.T) {
	t.Parallel()
	onBoth(t, func(b *bundle) {
		s := b.server("one")
		c := b.first(s, request("k"))
		ses := c.Session()
		if _, ok := id.Parse[id.Session](string(ses)); !ok {
			b.t.Fatalf("session %q", ses)
		}
		c.Release(b.t.Context(), true)
		again := b.first(s, request("k"))
		if again.Session() != ses {
			b.t.Errorf("session %s, then %s", ses, again.Session())
		}
		again.Release(b.t.Context(), false) // it may have done something before
		other := request("k")
		other.Hash = "x"
		b.refused(s, other)

		b.first(s, request("free")).Release(b.t.Context(), false)
		other = request("free")
		other.Hash = "x"
		b.first(s, other).Keep(b.t.Context(), idempotency.Answer{Status: 204})
		if a := b.answered(s, other); a.Status != 204 || len(a.Body) != 0 {
			b.t.Errorf("%+v", a)
		}
	})
}

// TestADeadServersRequests: the next server runs again what may run again, for
// the same session, and says of the rest that the outcome is not known.
func TestADeadServersRequests(t *testing.T) {
	t.Parallel()
	onBoth(t, func(b *bundle) {
		dead := b.server("dead")
		ses := b.first(dead, repeatable("again")).Session()
		b.first(dead, request("once"))
		s := b.server("next")
		c := b.first(s, repeatable("again"))
		if c.Session() != ses {
			b.t.Errorf("session %s, then %s", ses, c.Session())
		}
		c.Keep(b.t.Context(), idempotency.Answer{Status: 200, Body: []byte("x")})
		b.answered(s, repeatable("again"))
		b.refused(s, request("once"))
	})
}

func TestALivingServersRequestIsWaitedFor(t *testing.T) {
	t.Parallel()
	onBoth(t, func(b *bundle) {
		one, two := b.server("one"), b.server("two")
		err := b.store.Write(b.t.Context(), store.Durable, func(ctx context.Context, tx *store.Tx) error {
			now, err := tx.DatabaseTime(ctx)
			if err != nil {
				return err
			}
			return tx.ServerInsert(ctx, db.ServerInsertParams{Owner: "one", Boot: 1, Renewed: now, Expires: now + time.Hour.Milliseconds()})
		})
		if err != nil {
			b.t.Fatal(err)
		}
		c := b.first(one, repeatable("k"))
		got := make(chan idempotency.Answer, 1)
		go func() {
			_, a, err := two.Begin(b.t.Context(), repeatable("k"))
			if err != nil || a == nil {
				b.t.Errorf("%+v %v", a, err)
				a = &idempotency.Answer{}
			}
			got <- *a
		}()
		if err := clock.Sleep(b.t.Context(), 50*time.Millisecond); err != nil {
			b.t.Fatal(err)
		}
		c.Keep(b.t.Context(), idempotency.Answer{Status: 200, Body: []byte("x")})
		if a := <-got; string(a.Body) != "x" {
			b.t.Errorf("%+v", a)
		}
	})
}

func TestALargeAnswerIsOnlyRemembered(t *testing.T) {
	t.Parallel()
	onBoth(t, func(b *bundle) {
		s := b.server("one")
		body := bytes.Repeat([]byte("x"), idempotency.MaxAnswer+1)
		b.first(s, request("k")).Keep(b.t.Context(), idempotency.Answer{Status: 200, Body: body})
		b.refused(s, request("k"))
		b.first(s, repeatable("r")).Keep(b.t.Context(), idempotency.Answer{Status: 200, Body: body})
		b.first(s, repeatable("r")).Keep(b.t.Context(), idempotency.Answer{Status: 200, Body: body[1:]})
		if a := b.answered(s, repeatable("r")); len(a.Body) != idempotency.MaxAnswer {
			b.t.Errorf("%d bytes", len(a.Body))
		}
	})
}

func TestOldKeysAreForgotten(t *testing.T) {
	t.Parallel()
	onBoth(t, func(b *bundle) {
		s := b.server("one")
		old := clock.Now() - (24*time.Hour + time.Minute).Milliseconds()
		err := b.store.Write(b.t.Context(), store.Relaxed, func(ctx context.Context, tx *store.Tx) error {
			for n := range 20 {
				_, err := tx.IdempotencyReserve(ctx, db.IdempotencyReserveParams{
					Scope: "tok", Key: fmt.Sprintf("old%02d", n), Operation: "a.b", Target: "/a", BodyHash: "h", Owner: "dead", Object: "ses_x",
					Header: []byte("{}"), Answer: []byte{}, Created: old + int64(n),
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.t.Fatal(err)
		}
		left := func() int {
			rows, err := store.Get(b.t.Context(), b.store, func(ctx context.Context, r store.Reader) ([]db.IdempotencyOldRow, error) {
				return r.IdempotencyOld(ctx, db.IdempotencyOldParams{Before: clock.Now() - (24 * time.Hour).Milliseconds(), MaxRows: 100})
			})
			if err != nil {
				b.t.Fatal(err)
			}
			return len(rows)
		}
		for n, want := range []int{12, 4, 0} {
			b.first(s, request(fmt.Sprint(n))).Keep(b.t.Context(), idempotency.Answer{Status: 200})
			if got := left(); got != want {
				b.t.Errorf("%d old keys are left, want %d", got, want)
			}
		}
		b.first(s, request("old00")).Release(b.t.Context(), false) // as if it was never used
	})
}
