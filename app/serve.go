package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/switchyard-dev/switchyard/api"
	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/store"
)

// waitForStore is how long a start waits before it looks again for a database
// that is away.
const waitForStore = time.Second

// The times of an orderly stop: all of it is over within 5 s (design E12).
const (
	turnTime  = 3500 * time.Millisecond
	drainTime = 500 * time.Millisecond
	stopTime  = 4500 * time.Millisecond
)

// Serve is New, Run and Close for a program. A PostgreSQL that is away at the
// start is waited for: meanwhile the server lives, says that it is not ready, and
// answers everything else with store_unavailable.
func Serve(ctx context.Context, c Config, listening func(net.Addr)) error {
	a, err := New(ctx, c)
	if err == nil {
		return errors.Join(a.Run(ctx, listening), a.Close())
	}
	if !store.IsPostgres(c.Database) || !fault.Is(err, fault.StoreUnavailable) {
		return err
	}
	if c.Log != nil {
		c.Log.Error("the database is away; the server waits for it", "error", err)
	}
	d, err := openDoor(ctx, c)
	if err != nil {
		return err
	}
	d.set(api.Unready(func(context.Context) error {
		return fault.New(fault.StoreUnavailable, "the server waits for its database").With("retryAfter", 1)
	}))
	d.serve()
	listening(d.addr())
	for {
		if clock.Sleep(ctx, waitForStore) != nil {
			return d.close()
		}
		if a, err = New(ctx, c); !fault.Is(err, fault.StoreUnavailable) {
			break
		}
	}
	if err != nil {
		return errors.Join(err, d.close())
	}
	return errors.Join(a.runAt(ctx, d, func(net.Addr) {}), a.Close())
}

// Run listens and serves until ctx ends, then stops in order: streams are told,
// turns end as interrupted, connections are closed. listening is called once the
// port is open.
func (a *App) Run(ctx context.Context, listening func(net.Addr)) error {
	d, err := openDoor(ctx, a.config)
	if err != nil {
		return err
	}
	return a.runAt(ctx, d, listening)
}

func (a *App) runAt(ctx context.Context, d *door, listening func(net.Addr)) error {
	handler, err := a.Handler(d.addr().String())
	if err != nil {
		return errors.Join(err, d.close())
	}
	d.set(handler)
	d.serve()
	listening(d.addr())
	select {
	case err := <-d.failed:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	return a.stop(context.WithoutCancel(ctx), d.server)
}

func (a *App) stop(ctx context.Context, server *http.Server) error {
	a.log.Info("stopping")
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	go a.workspaces.Close() // Close waits for it, too
	// Turns first, so that streams still tell how they ended.
	ended := make(chan error, 1)
	go func() { ended <- a.engine.Close() }()
	var err error
	select {
	case err = <-ended:
	case <-time.After(turnTime):
		err = errors.New("turns were still running after the time to stop")
	}
	err = errors.Join(err, a.bus.Stop(ctx))
	drain, cancelDrain := context.WithTimeout(ctx, drainTime)
	defer cancelDrain()
	if server.Shutdown(drain) != nil {
		err = errors.Join(err, server.Close())
	}
	return err
}

// door is the open port. What answers behind it can be changed.
type door struct {
	listener  net.Listener
	server    *http.Server
	cert, key string
	handler   atomic.Pointer[http.Handler]
	once      sync.Once
	failed    chan error // holds the error of serving
}

// openDoor opens the port; nobody answers yet.
func openDoor(ctx context.Context, c Config) (*door, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Addr)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", c.Addr, err)
	}
	log := c.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	d := &door{listener: l, cert: c.TLSCert, key: c.TLSKey, failed: make(chan error, 1)}
	d.server = &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*d.handler.Load()).ServeHTTP(w, r) }),
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: headerLimit,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	return d, nil
}

func (d *door) addr() net.Addr { return d.listener.Addr() }

// set changes who answers the requests from now on.
func (d *door) set(h http.Handler) { d.handler.Store(&h) }

// serve lets requests in; it may be called again.
func (d *door) serve() {
	d.once.Do(func() {
		go func() {
			if d.cert != "" {
				d.failed <- d.server.ServeTLS(d.listener, d.cert, d.key)
				return
			}
			d.failed <- d.server.Serve(d.listener)
		}()
	})
}

func (d *door) close() error { return errors.Join(d.server.Close(), ignoreClosed(d.listener.Close())) }

// ignoreClosed: the server closes the listener that it serves.
func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
