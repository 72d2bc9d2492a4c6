package event_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchyard-dev/switchyard/event"
)

func TestAwait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := event.NewWakeups()
		var value atomic.Int64
		look := func(context.Context) (int64, bool, error) { return value.Load(), value.Load() == 2, nil }
		go func() {
			time.Sleep(time.Second) //nolint:forbidigo // the bubble's clock
			value.Store(2)
			w.Wake("other") // wakes nobody who waits for "k"
			w.Wake("k")
		}()
		start := time.Now()
		got, err := event.Await(t.Context(), w, "k", look)
		if got != 2 || err != nil || time.Since(start) != time.Second {
			t.Fatalf("%d, %v after %v", got, err, time.Since(start))
		}
	})
}

func TestAwaitLooksThoughNobodyWakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		_, err := event.Await(t.Context(), event.NewWakeups(), "k", func(context.Context) (int, bool, error) {
			looks++
			return 0, looks == 3, nil
		})
		if err != nil || looks != 3 {
			t.Fatalf("%d looks, %v", looks, err)
		}
	})
}

func TestAwaitEndsWithContextAndError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(stop)
		never := func(context.Context) (int, bool, error) { return 0, false, nil }
		if _, err := event.Await(ctx, event.NewWakeups(), "k", never); !errors.Is(err, stop) {
			t.Fatalf("err %v", err)
		}
		broken := func(context.Context) (int, bool, error) { return 0, false, stop }
		if _, err := event.Await(t.Context(), event.NewWakeups(), "k", broken); !errors.Is(err, stop) {
			t.Fatalf("err %v", err)
		}
	})
}
