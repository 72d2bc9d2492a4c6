package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchyard-dev/switchyard/clock"
)

func TestSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := clock.Sleep(t.Context(), time.Hour); err != nil || time.Since(start) != time.Hour {
			t.Fatalf("err %v after %v", err, time.Since(start))
		}
		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			_ = clock.Sleep(t.Context(), time.Minute)
			cancel(stop)
		}()
		start = time.Now()
		if err := clock.Sleep(ctx, time.Hour); !errors.Is(err, stop) || time.Since(start) != time.Minute {
			t.Fatalf("err %v after %v", err, time.Since(start))
		}
		if err := clock.Sleep(ctx, 0); !errors.Is(err, stop) {
			t.Fatalf("a wait of nothing hides the end: %v", err)
		}
	})
}
