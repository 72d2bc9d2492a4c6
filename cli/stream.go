package cli

import (
	"context"
	"errors"
	"io"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/switchyard-dev/switchyard/clock"
)

const (
	// frameLimit is the largest event that is read, in bytes: one may hold a whole
	// prompt.
	frameLimit = 64 << 20
	// silence is how long a stream may give no sign of life; the server gives one
	// every ten seconds.
	silence = 45 * time.Second

	firstWait   = 250 * time.Millisecond
	longestWait = 5 * time.Second
)

// frame is an event as the stream has it: its position and its envelope.
type frame struct {
	id   string
	data string
}

// errBrokeOff says that a stream ended where the server would not end it.
var errBrokeOff error = &Exit{Code: exitUnreachable, Err: errors.New("the connection to the server broke off")}

// frames reads the events of one answer. A clean end ends the sequence, anything
// else is its last element.
func frames(body io.ReadCloser) iter.Seq2[frame, error] {
	return func(yield func(frame, error) bool) {
		w := &watched{body: body}
		w.timer = time.AfterFunc(silence, func() { _ = body.Close() })
		defer w.timer.Stop()
		for e, err := range sse.Read(w, &sse.ReadConfig{MaxEventSize: frameLimit}) {
			if err != nil {
				yield(frame{}, errBrokeOff)
				return
			}
			if e.Data != "" && !yield(frame{id: e.LastEventID, data: e.Data}, nil) {
				return
			}
		}
	}
}

// watched is a body that is closed when it stays silent for too long: a
// connection whose other end has vanished says nothing.
type watched struct {
	body  io.Reader
	timer *time.Timer
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.body.Read(p)
	w.timer.Reset(silence)
	return n, err
}

// follower follows the event stream and comes back when the connection is lost,
// from where it was.
type follower struct {
	client *client
	// filter are the arguments of event.subscribe.
	filter arguments
	// lost, when set, hears why a connection ended and when the next is tried.
	lost func(err error, wait time.Duration)
	// patience bounds the time without a connection; 0 is no bound.
	patience time.Duration
}

// follow calls each for every event until it gives an error, which is returned.
// A server that cannot be reached at first, or that refuses, ends it too.
func (f *follower) follow(ctx context.Context, each func(frame) error) error {
	last, begun, wait, since := "", false, firstWait, time.Now()
	for {
		err := f.once(ctx, last, func(e frame) error {
			last, begun, wait, since = e.id, true, firstWait, time.Now()
			if err := each(e); err != nil {
				return &enough{err}
			}
			return nil
		})
		var stop *enough
		switch {
		case errors.As(err, &stop):
			return stop.err
		case ctx.Err() != nil:
			return interrupted()
		case !begun, final(err), f.patience > 0 && time.Since(since) > f.patience:
			return err
		}
		pause := wait/2 + rand.N(wait/2)
		if f.lost != nil {
			f.lost(err, pause)
		}
		if clock.Sleep(ctx, pause) != nil {
			return interrupted()
		}
		wait = min(2*wait, longestWait)
	}
}

// enough is an error of the one who is told of the events.
type enough struct{ err error }

// Error implements error.
func (e *enough) Error() string { return e.err.Error() }

// final reports whether trying again is useless.
func final(err error) bool {
	var p *problem
	return errors.As(err, &p) && !p.temporary()
}

// once reads the stream until it ends. It never ends without an error.
func (f *follower) once(ctx context.Context, last string, each func(frame) error) error {
	filter := f.filter
	if last != "" {
		filter.values = map[string]any{"Last-Event-ID": last}
		for name, v := range f.filter.values {
			if name != "after" {
				filter.values[name] = v
			}
		}
	}
	res, err := f.client.open(ctx, "event.subscribe", filter)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	for e, err := range frames(res.Body) {
		if err == nil {
			err = each(e)
		}
		if err != nil {
			return err
		}
	}
	return errBrokeOff
}
