package lease_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/lease"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// onBoth runs a test on both engines.
func onBoth(t *testing.T, test func(t *testing.T, db *store.DB)) {
	t.Helper()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			url := filepath.Join(t.TempDir(), "s.db")
			if engine == "postgres" {
				url = testkit.Postgres(t)
			}
			d, err := store.Open(t.Context(), store.Config{URL: url, Owner: "test"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			})
			test(t, d)
		})
	}
}

func keep(t *testing.T, d *store.DB, ttl time.Duration) *lease.Keeper {
	t.Helper()
	k, err := lease.Keep(t.Context(), lease.Config{Store: d, Owner: "a", Boot: 1, TTL: ttl, Renew: ttl / 5, Margin: ttl / 5})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return k
}

func live(t *testing.T, d *store.DB) []db.Server {
	t.Helper()
	var out []db.Server
	err := d.Read(t.Context(), func(ctx context.Context, r store.Reader) error {
		now, err := r.DatabaseTime(ctx)
		if err == nil {
			out, err = r.ServerLive(ctx, db.ServerLiveParams{Now: now})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestALeaseIsRenewedAndGivenUp(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *store.DB) {
		k := keep(t, d, 2*time.Second)
		term := k.Term()
		first := live(t, d)
		if !k.Held() || len(first) != 1 || first[0].Owner != "a" || first[0].Boot != 1 {
			t.Fatalf("held %v, %+v", k.Held(), first)
		}
		for end := time.Now().Add(20 * time.Second); ; <-time.After(20 * time.Millisecond) {
			if now := live(t, d); len(now) == 1 && now[0].Expires > first[0].Expires+2000 {
				break // later than one lease: it was renewed more than once
			}
			if time.Now().After(end) {
				t.Fatal("the lease is not renewed")
			}
		}
		select {
		case <-term:
			t.Fatal("the lease was lost")
		default:
		}
		if err := k.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(live(t, d)) != 0 || k.Held() {
			t.Error("the lease was not given up")
		}
		<-term
	})
}

// TestALeaseThatWasTakenEndsItsTerm expires the row behind the keeper's back: the
// term ends once, and a new one begins.
func TestALeaseThatWasTakenEndsItsTerm(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *store.DB) {
		k := keep(t, d, time.Second)
		term := k.Term()
		err := d.Write(t.Context(), store.Durable, func(ctx context.Context, tx *store.Tx) error {
			return tx.ServerDelete(ctx, db.ServerDeleteParams{Owner: "a"})
		})
		if err != nil {
			t.Fatal(err)
		}
		<-term
		for end := time.Now().Add(20 * time.Second); !k.Held() || len(live(t, d)) != 1; <-time.After(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("no new term")
			}
		}
		if k.Term() == term {
			t.Error("the new term is the old one")
		}
	})
}
