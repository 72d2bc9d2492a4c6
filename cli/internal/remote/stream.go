package remote

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

// Frame is an event as the stream has it: its position and its envelope, a JSON
// text.
type Frame struct {
	ID   string
	Data string
}

// ErrBrokeOff says that a stream ended where the server would not end it.
var ErrBrokeOff error = &Exit{Code: ExitUnreachable, Err: errors.New("the connection to the server broke off")}

// Frames reads the events of one answer. A clean end ends the sequence, anything
// else is its last element.
func Frames(body io.ReadCloser) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		w := &watched{body: body}
		w.timer = time.AfterFunc(silence, func() { _ = body.Close() })
		defer w.timer.Stop()
		for e, err := range sse.Read(w, &sse.ReadConfig{MaxEventSize: frameLimit}) {
			if err != nil {
				yield(Frame{}, ErrBrokeOff)
				return
			}
			if e.Data != "" && !yield(Frame{ID: e.LastEventID, Data: e.Data}, nil) {
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

// Follower follows the event stream and comes back when the connection is lost,
// from where it was.
type Follower struct {
	Client *Client
	// Filter are the arguments of event.subscribe.
	Filter Arguments
	// Lost, when set, hears why a connection ended and when the next is tried.
	Lost func(err error, wait time.Duration)
	// Patience bounds the time without a connection; 0 is no bound.
	Patience time.Duration
}

// Follow calls each for every event until it gives an error, which is returned.
// A server that cannot be reached at first, or that refuses, ends it too.
func (f *Follower) Follow(ctx context.Context, each func(Frame) error) error {
	last, begun, wait, since := "", false, firstWait, time.Now()
	for {
		err := f.once(ctx, last, func(e Frame) error {
			last, begun, wait, since = e.ID, true, firstWait, time.Now()
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
			return Interrupted()
		case !begun, final(err), f.Patience > 0 && time.Since(since) > f.Patience:
			return err
		}
		pause := wait/2 + rand.N(wait/2)
		if f.Lost != nil {
			f.Lost(err, pause)
		}
		if clock.Sleep(ctx, pause) != nil {
			return Interrupted()
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
func (f *Follower) once(ctx context.Context, last string, each func(Frame) error) error {
	filter := f.Filter
	if last != "" {
		filter.Values = map[string]any{"Last-Event-ID": last}
		for name, v := range f.Filter.Values {
			if name != "after" {
				filter.Values[name] = v
			}
		}
	}
	res, err := f.Client.Open(ctx, "event.subscribe", filter)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	for e, err := range Frames(res.Body) {
		if err == nil {
			err = each(e)
		}
		if err != nil {
			return err
		}
	}
	return ErrBrokeOff
}
