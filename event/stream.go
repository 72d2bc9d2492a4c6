package event

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/switchyard-dev/switchyard/sse"
)

// Stream sends the subscription as the answer of an HTTP request, and closes it.
// The server's own write timeout must be off and nothing may compress.
//
// It returns only after a clean end (Filter.UntilIdle). In all other cases, the
// client's leaving included, it aborts the response by panicking as sse.Abort
// tells, after what was sent is flushed: generated clients resume after an error
// and stop for good after an end. A client that is so slow that a flush takes
// longer than Config.WriteTimeout sees the abort alone, as server.lagged cannot
// reach it any more.
func (s *Subscription) Stream(ctx context.Context, w http.ResponseWriter) {
	err := s.stream(ctx, w)
	s.Close()
	if !errors.Is(err, io.EOF) {
		sse.Abort()
	}
}

func (s *Subscription) stream(ctx context.Context, w http.ResponseWriter) error {
	cfg := &s.bus.cfg
	out := sse.NewWriter(w, cfg.WriteTimeout)
	out.Start()
	beat := time.NewTimer(cfg.Heartbeat)
	defer beat.Stop()
	var parts [][]byte
	for {
		frames, err := s.step(ctx, beat.C)
		if err != nil {
			return err
		}
		if len(frames) == 0 {
			parts = nil
			err = out.Comment("heartbeat")
		} else {
			parts = parts[:0]
			for _, f := range frames {
				parts = append(parts, f.bytes)
			}
			err = out.Send(parts...)
			clear(parts)
		}
		if err != nil {
			return err
		}
		beat.Reset(cfg.Heartbeat)
	}
}
