package operations

import (
	"context"
	"sync"
	"time"

	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/runtime"
)

// rejoinEvery is how often a stream looks for contexts that were missing.
const rejoinEvery = 5 * time.Second

// rejoin lets contexts join a stream when they appear. It does nothing where all
// are there; the returned function ends it and waits.
func rejoin(ctx context.Context, host *runtime.Host, sub *event.Subscription, hints []runtime.Hint, requested []event.Requested) (stop func()) {
	var missing []runtime.Hint
	for i, r := range requested {
		if r.Error != "" && i < len(hints) {
			missing = append(missing, hints[i])
		}
	}
	if len(missing) == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(rejoinEvery)
		defer tick.Stop()
		for len(missing) > 0 {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			var found []event.Context
			missing, found = joinFound(ctx, host, sub, missing)
			defer host.Follow(found...)()
		}
		<-ctx.Done()
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

func joinFound(ctx context.Context, host *runtime.Host, sub *event.Subscription, missing []runtime.Hint) (still []runtime.Hint, found []event.Context) {
	for _, hint := range missing {
		if where, err := host.Resolve(ctx, hint); err == nil {
			found = append(found, where)
			sub.Join(where)
		} else {
			still = append(still, hint)
		}
	}
	return still, found
}
