package event

import (
	"context"
	"testing"
)

type emptyLog struct{}

func (emptyLog) Events(context.Context, int64, int64, int) ([]Record, error) { return nil, nil }

func (emptyLog) EventBounds(context.Context) (oldest, head int64, err error) { return 0, 0, nil }

// TestNumbersRunOut shows what happens when so many deltas follow one durable
// event that there are no positions left: streams get the open parts whole as
// soon as there are again.
func TestNumbersRunOut(t *testing.T) {
	t.Parallel()
	type payload struct {
		Text string `json:"text"`
	}
	delta := Define[payload]("message.part.delta", Ephemeral)
	whole := Define[payload](partUpdated)
	b := NewBus(t.Context(), Config{Log: emptyLog{}})
	defer b.Close()
	s, err := b.Subscribe(t.Context(), Options{Filter: Filter{All: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	next := func(want string) {
		t.Helper()
		f, err := s.Next(t.Context())
		if err != nil || f.Type != want {
			t.Fatalf("got %v, %v; want %s", f, err, want)
		}
	}
	next("server.connected")
	defer b.OpenPart(Origin{}, "p", func() (Draft, error) { return whole.Draft(Origin{}, payload{Text: "all"}) })()
	publish := func() {
		d, err := delta.Draft(Origin{}, payload{})
		if err != nil {
			t.Fatal(err)
		}
		b.Publish(d)
	}
	b.mu.Lock()
	b.counter = maxCounter - 1<<20 - 1
	b.mu.Unlock()
	publish()
	publish() // no number left
	publish()
	next("message.part.delta")
	b.Commit([]Record{{Seq: 1, Type: "session.created", Payload: []byte("{}")}})
	next(partUpdated)
	publish()
	next("message.part.delta")
}
