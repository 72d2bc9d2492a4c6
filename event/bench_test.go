package event_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/switchyard-dev/switchyard/event"
)

// BenchmarkFanOut publishes deltas that each of n streams reads.
func BenchmarkFanOut(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := setup(b, nil)
			draft, err := partDelta.Draft(ses1, deltaPayload{PartID: "p", Field: "text", Delta: "hello"})
			if err != nil {
				b.Fatal(err)
			}
			var readers sync.WaitGroup
			for range n {
				s := subscribe(w, event.Options{Filter: event.Filter{Contexts: []event.Context{contextA}}})
				readers.Go(func() { readAll(b, s) })
			}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				w.bus.Publish(draft)
			}
			commit(w, wentIdle, ses1, idlePayload{})
			readers.Wait()
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/delivery")
		})
	}
}

func readAll(b *testing.B, s *event.Subscription) {
	for {
		f, err := s.Next(context.Background())
		if err != nil {
			b.Error(err)
			return
		}
		if f.Type == wentIdle.Name() {
			return
		}
	}
}

// BenchmarkPublish publishes deltas while 5,000 streams follow other contexts.
func BenchmarkPublish(b *testing.B) {
	w := setup(b, nil)
	for i := range 5000 {
		at := event.Context{Directory: fmt.Sprintf("/%d", i)}
		subscribe(w, event.Options{Filter: event.Filter{Contexts: []event.Context{at}}})
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		publish(w, partDelta, ses1, deltaPayload{PartID: "p", Field: "text", Delta: "hello"})
	}
}

// BenchmarkReplay reads a page of 100 events from the log.
func BenchmarkReplay(b *testing.B) {
	w := setup(b, func(c *event.Config) { c.RingBytes = 1 })
	cursor := w.bus.Head().String()
	for n := range 100 {
		commit(w, noted, ses1, notePayload{N: n})
	}
	b.ReportAllocs()
	for b.Loop() {
		take(b, subscribe(w, event.Options{Cursor: cursor, Filter: everything}), 101)
	}
}
