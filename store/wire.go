package store

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/store/pgdb"
)

const (
	// channel is where servers on one database tell each other that there is
	// something to look at.
	channel = "switchyard"
	// wireLook is how often a server looks although nobody told it anything: what
	// is told outside of the transactions may get lost.
	wireLook = 2 * time.Second
	// topicsMax keeps a notification below PostgreSQL's 8,000 bytes.
	topicsMax = 64
)

// wire connects the servers that share a PostgreSQL database. What it carries are
// hints outside of the transactions, so that no commit waits for them; whoever
// gets one looks at the rows.
type wire struct {
	pool  *pgxpool.Pool
	owner string
	log   *slog.Logger
	stop  context.CancelFunc
	wg    sync.WaitGroup
	send  chan struct{} // something waits to be told

	mu      sync.Mutex // protects what follows
	topics  []string
	onHead  func(int64)
	onTopic func(string)
}

// hint is the payload of a notification.
type hint struct {
	Owner  string   `json:"owner"`
	Topics []string `json:"topics,omitempty"`
}

func newWire(ctx context.Context, pool *pgxpool.Pool, owner string, log *slog.Logger) *wire {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	w := &wire{pool: pool, owner: owner, log: log, stop: stop, send: make(chan struct{}, 1)}
	w.wg.Go(func() { w.listen(ctx) })
	w.wg.Go(func() { w.tell(ctx) })
	return w
}

func (w *wire) close() {
	w.stop()
	w.wg.Wait()
}

// committed notes that there are new events.
func (w *wire) committed() {
	select {
	case w.send <- struct{}{}:
	default: // the next notification stands for this commit too
	}
}

func (w *wire) topic(name string) {
	w.mu.Lock()
	w.topics = append(w.topics, name)
	w.mu.Unlock()
	w.committed()
}

// tell sends notifications, one for all that came while the last was under way.
func (w *wire) tell(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.send:
		}
		w.mu.Lock()
		n := min(len(w.topics), topicsMax)
		h := hint{Owner: w.owner, Topics: append([]string(nil), w.topics[:n]...)}
		w.topics = w.topics[n:]
		more := len(w.topics) > 0
		w.mu.Unlock()
		if more {
			w.committed()
		}
		payload, err := json.Marshal(h)
		if err == nil {
			_, err = w.pool.Exec(ctx, "SELECT pg_notify($1, $2)", channel, string(payload))
		}
		if err != nil && ctx.Err() == nil {
			w.log.Debug("telling the other servers", "error", err) // they look by themselves soon
		}
	}
}

// listen follows the others' notifications over a connection of its own, which
// it makes anew when it breaks.
func (w *wire) listen(ctx context.Context) {
	for ctx.Err() == nil {
		if err := w.follow(ctx); err != nil && ctx.Err() == nil {
			w.log.Debug("listening to the other servers", "error", err)
			if clock.Sleep(ctx, wireLook) != nil {
				return
			}
		}
	}
}

func (w *wire) follow(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, w.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	for {
		if err := w.look(ctx, conn); err != nil {
			return err
		}
		wait, cancel := context.WithTimeout(ctx, wireLook)
		n, err := conn.WaitForNotification(wait)
		cancel()
		if ctx.Err() != nil || err != nil && wait.Err() == nil {
			return err
		}
		if n != nil {
			w.take(n.Payload)
		}
	}
}

// look tells how far the log has come.
func (w *wire) look(ctx context.Context, conn *pgx.Conn) error {
	head, err := pgdb.New(conn).EventHead(ctx)
	if err != nil {
		return fmt.Errorf("reading the head: %w", err)
	}
	w.mu.Lock()
	onHead := w.onHead
	w.mu.Unlock()
	if onHead != nil {
		onHead(head.Seq)
	}
	return nil
}

func (w *wire) take(payload string) {
	var h hint
	if json.Unmarshal([]byte(payload), &h) != nil || h.Owner == w.owner {
		return
	}
	w.mu.Lock()
	onTopic := w.onTopic
	w.mu.Unlock()
	for _, topic := range h.Topics {
		if onTopic != nil {
			onTopic(topic)
		}
	}
}

// OnHead names the function that is told from time to time, and soon after
// commits of other servers, how far the event log has come. Only a store that
// servers share calls it.
func (d *DB) OnHead(fn func(seq int64)) {
	if p, ok := d.engine.(*postgres); ok {
		p.wire.mu.Lock()
		defer p.wire.mu.Unlock()
		p.wire.onHead = fn
	}
}

// OnTopic names the function that gets what other servers Tell.
func (d *DB) OnTopic(fn func(topic string)) {
	if p, ok := d.engine.(*postgres); ok {
		p.wire.mu.Lock()
		defer p.wire.mu.Unlock()
		p.wire.onTopic = fn
	}
}

// Tell gives the other servers on this store a hint to look at something. It may
// get lost: whoever needs it for more than speed must look by himself too.
func (d *DB) Tell(topic string) {
	if p, ok := d.engine.(*postgres); ok {
		p.wire.topic(topic)
	}
}
