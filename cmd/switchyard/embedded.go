package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"

	"github.com/switchyard-dev/switchyard/access"
	"github.com/switchyard-dev/switchyard/app"
	"github.com/switchyard-dev/switchyard/config"
)

// embedded runs a server inside this process on a free loopback port, for client
// commands that find none running.
func embedded(ctx context.Context, state string) (url, secret string, stop func() error, err error) {
	token, err := access.LoadToken(access.TokenSource{Env: os.Getenv("SWITCHYARD_TOKEN"), StateDir: state})
	if err != nil {
		return "", "", nil, err
	}
	directory, err := os.Getwd()
	if err != nil {
		return "", "", nil, err
	}
	a, err := app.New(ctx, app.Config{
		Directory: directory, Addr: "127.0.0.1:0", State: state, ConfigFiles: config.DefaultOptions(), Verifier: token,
		Version: version(), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		return "", "", nil, err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	at := make(chan net.Addr, 1)
	ended := make(chan error, 1)
	go func() { ended <- a.Run(run, func(addr net.Addr) { at <- addr }) }()
	select {
	case addr := <-at:
		return "http://" + addr.String(), token.Reveal(), func() error {
			cancel()
			return errors.Join(<-ended, a.Close())
		}, nil
	case err := <-ended:
		cancel()
		return "", "", nil, errors.Join(err, a.Close())
	}
}
