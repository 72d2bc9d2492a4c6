package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/session"
)

// client is a user of the event stream, with what it knows from it alone.
type client struct {
	close func()
	wg    sync.WaitGroup

	mu     sync.Mutex // protects what follows
	came   *sync.Cond
	cursor string
	last   event.Position
	// from is where its unbroken knowledge begins; seen are the durable events
	// since.
	from  event.Position
	seen  []int64
	texts map[id.Part]string
	wrong error
}

func newClient() *client {
	c := &client{texts: map[id.Part]string{}}
	c.came = sync.NewCond(&c.mu)
	return c
}

// connect opens a stream from the last event that the client has seen.
func (c *client) connect(ctx context.Context, bus *event.Bus) error {
	c.disconnect()
	sub, err := bus.Subscribe(context.WithoutCancel(ctx), event.Options{Cursor: c.cursor, Filter: event.Filter{All: true}})
	if err != nil {
		return fmt.Errorf("subscribing: %w", err)
	}
	c.close = sub.Close
	c.wg.Go(func() {
		for {
			f, err := sub.Next(context.WithoutCancel(ctx))
			if err != nil {
				return
			}
			c.take(f)
		}
	})
	return nil
}

func (c *client) disconnect() {
	if c.close != nil {
		c.close()
		c.wg.Wait()
		c.close = nil
	}
}

// take applies one frame as a client would.
func (c *client) take(f *event.Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.came.Broadcast()
	p := f.Position
	switch f.Type {
	case "server.connected":
		if c.cursor == "" {
			c.from = p
		} else if p.Compare(c.last) != 0 {
			c.fail("resumed at %s instead of %s", p, c.last)
		}
		c.last, c.cursor = p, p.String()
		return
	case "server.resync":
		c.from, c.last, c.cursor = p, p, p.String()
		c.seen, c.texts = nil, map[id.Part]string{}
		return
	}
	if p.Compare(c.last) <= 0 {
		c.fail("%s %s after %s", f.Type, p, c.last)
	}
	c.last, c.cursor = p, p.String()
	if p.Sub == 0 {
		c.seen = append(c.seen, p.Seq)
	}
	if err := c.apply(f); err != nil {
		c.fail("%s: %v", f.Type, err)
	}
}

func (c *client) fail(format string, args ...any) {
	if c.wrong == nil {
		c.wrong = fmt.Errorf("a client: "+format, args...)
	}
}

// apply keeps the texts of parts: an update replaces, a delta has an offset.
func (c *client) apply(f *event.Frame) error {
	switch f.Type {
	case "message.part.updated":
		var p struct {
			Part json.RawMessage `json:"part"`
		}
		if err := json.Unmarshal(f.Payload(), &p); err != nil {
			return err
		}
		part, err := chat.DecodePart(p.Part)
		if text, ok := part.(*chat.TextPart); ok && err == nil {
			c.texts[text.ID] = text.Text
		}
		return err
	case "message.part.delta":
		var d session.PartDelta
		if err := json.Unmarshal(f.Payload(), &d); err != nil {
			return err
		}
		if d.Field != "text" {
			return nil
		}
		have, known := c.texts[d.PartID]
		if !known || int(d.Offset) > len(have) {
			return fmt.Errorf("a delta at %d of a text with %d bytes", d.Offset, len(have))
		}
		c.texts[d.PartID] = have[:d.Offset] + d.Delta
	}
	return nil
}

// catchUp waits until the client has seen everything up to head.
func (c *client) catchUp(ctx context.Context, head int64) error {
	stop := context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.came.Broadcast()
	})
	defer stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.last.Seq < head && c.wrong == nil {
		if ctx.Err() != nil {
			return fmt.Errorf("a client never got from %d to %d", c.last.Seq, head)
		}
		c.came.Wait()
	}
	return c.wrong
}
