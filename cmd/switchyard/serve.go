package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/switchyard-dev/switchyard/access"
	"github.com/switchyard-dev/switchyard/app"
	"github.com/switchyard-dev/switchyard/cli"
	"github.com/switchyard-dev/switchyard/config"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/op/openapi"
	"github.com/switchyard-dev/switchyard/operations"
)

// apiVersion is the version of the contract, which the committed document tells.
const apiVersion = "0.1.0"

// serveFlags are the flags of serve, as they were given.
type serveFlags struct {
	host, directory, state, database, tokenFile string
	basePath, tlsCert, tlsKey, logLevel         string
	port                                        int
	hosts, origins, roots                       []string
	demo, insecure, behindProxy                 bool
	leaseTTL                                    time.Duration
}

func serveCommand() *cobra.Command {
	f := &serveFlags{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: "Run the server until it gets an interrupt. It prints one line with its address and how\n" +
			"to get the token; with --port 0 that line is JSON. Nobody gets in without the token.",
		Example: "  switchyard serve\n  switchyard serve --port 0\n  switchyard serve --database postgres://localhost/switchyard",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.host, "host", "127.0.0.1", "address to listen on")
	flags.IntVar(&f.port, "port", cli.DefaultPort, "port to listen on; 0 takes any free one")
	flags.StringVar(&f.directory, "directory", ".", "default directory of requests that name none")
	flags.StringVar(&f.state, "state", cli.DefaultState(), "directory of what the server keeps")
	flags.StringVar(&f.database, "database", "", "SQLite file or postgres:// URL (default: a file in the state directory)")
	flags.StringVar(&f.tokenFile, "token-file", "", "file that holds the token (or set SWITCHYARD_TOKEN)")
	flags.StringVar(&f.basePath, "base-path", "", "path prefix that a proxy adds, such as /agents")
	flags.StringVar(&f.tlsCert, "tls-cert", "", "certificate file for TLS")
	flags.StringVar(&f.tlsKey, "tls-key", "", "key file for TLS")
	flags.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringSliceVar(&f.hosts, "allow-host", nil, "further Host names to answer to")
	flags.StringSliceVar(&f.origins, "allow-origin", nil, "web origins whose pages may call the server")
	flags.StringSliceVar(&f.roots, "root", nil, "serve only directories below this one; may repeat")
	flags.BoolVar(&f.demo, "demo", false, "offer the built-in demo model even beside real providers")
	flags.BoolVar(&f.behindProxy, "behind-proxy", false, "a proxy in front speaks TLS: allow listening beyond loopback")
	flags.BoolVar(&f.insecure, "insecure-no-auth", false, "no token; needs SWITCHYARD_INSECURE_NO_AUTH=1 and a loopback address")
	flags.DurationVar(&f.leaseTTL, "lease-ttl", 15*time.Second,
		"with PostgreSQL: how long after the end of a server others take its turns over")
	return cmd
}

func serve(ctx context.Context, f *serveFlags, out, errOut io.Writer) error {
	c, err := f.config(errOut)
	if err != nil {
		return err
	}
	info, written := filepath.Join(c.State, cli.RuntimeFile), false
	err = app.Serve(ctx, c, func(addr net.Addr) {
		at := f.address(addr, c)
		line, err := json.Marshal(at)
		if err == nil {
			// Beside its place, so that a crash leaves nothing elsewhere.
			err = renameio.WriteFile(info, append(line, '\n'), 0o600, renameio.WithTempDir(c.State))
		}
		if written = err == nil; !written {
			c.Log.Warn("writing the runtime file", "error", err)
		}
		// Who reads the line may look for the file at once.
		f.announce(out, at, c.NoAuth)
	})
	if written { // else it may be another server's
		_ = os.Remove(info)
	}
	return err
}

func (f *serveFlags) config(errOut io.Writer) (app.Config, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return app.Config{}, fmt.Errorf("--log-level: %w", err)
	}
	addr := net.JoinHostPort(f.host, fmt.Sprint(f.port))
	bind := access.BindOptions{
		TLS: f.tlsCert != "", BehindProxy: f.behindProxy, NoAuthFlag: f.insecure, NoAuthEnv: os.Getenv("SWITCHYARD_INSECURE_NO_AUTH") == "1",
	}
	if err := access.CheckBind(addr, bind); err != nil {
		return app.Config{}, err
	}
	directory, err := filepath.Abs(f.directory)
	if err != nil {
		return app.Config{}, fmt.Errorf("--directory: %w", err)
	}
	c := app.Config{
		Directory: directory, Addr: addr, Database: f.database, State: f.state, ConfigFiles: config.DefaultOptions(), Roots: f.roots,
		NoAuth: bind.NoAuth(), Hosts: f.hosts, Origins: f.origins, BasePath: f.basePath, TLSCert: f.tlsCert, TLSKey: f.tlsKey,
		Demo: f.demo, Version: version(), Log: slog.New(slog.NewTextHandler(errOut, &slog.HandlerOptions{Level: level})),
	}
	if f.leaseTTL < time.Second {
		return c, errors.New("--lease-ttl: at least 1s")
	}
	c.Lease.TTL, c.Lease.Renew, c.Lease.Margin = f.leaseTTL, f.leaseTTL/3, f.leaseTTL/5
	if c.NoAuth {
		return c, nil
	}
	token, err := access.LoadToken(access.TokenSource{File: f.tokenFile, Env: os.Getenv("SWITCHYARD_TOKEN"), StateDir: f.state})
	c.Verifier = token
	return c, err
}

// address says where the server is.
func (f *serveFlags) address(addr net.Addr, c app.Config) cli.Runtime {
	scheme := "http"
	if c.TLSCert != "" {
		scheme = "https"
	}
	return cli.Runtime{URL: scheme + "://" + addr.String() + strings.TrimSuffix(c.BasePath, "/"), PID: os.Getpid(), Version: c.Version}
}

// announce tells people where the server is, or programs when it chose its port.
func (f *serveFlags) announce(out io.Writer, at cli.Runtime, open bool) {
	if f.port == 0 {
		_ = json.NewEncoder(out).Encode(at) // whoever started the server may have gone
		return
	}
	how := "get the token with: switchyard token"
	if open {
		how = "no token is needed (--insecure-no-auth)"
	}
	fmt.Fprintf(out, "Switchyard listens on %s – %s\n", at.URL, how)
}

func tokenCommand() *cobra.Command {
	state := cli.DefaultState()
	cmd := &cobra.Command{
		Use: "token", Short: "Print the server's token", Args: cobra.NoArgs,
		Long:    "Print the token that the server asks for. It is made at first use and kept in the state directory.",
		Example: "  curl -H \"Authorization: Bearer $(switchyard token)\" http://127.0.0.1:4700/api/session",
		RunE: func(cmd *cobra.Command, _ []string) error {
			token, err := access.LoadToken(access.TokenSource{Env: os.Getenv("SWITCHYARD_TOKEN"), StateDir: state})
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), token.Reveal())
			return nil
		},
	}
	cmd.Flags().StringVar(&state, "state", state, "directory of what the server keeps")
	return cmd
}

func openAPICommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "openapi", Short: "Print the OpenAPI document", Args: cobra.NoArgs,
		Example: "  switchyard openapi > openapi.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := openapi.New(app.Document(apiVersion))
			render := d.YAML
			if asJSON {
				render = d.JSON
			}
			text, err := render()
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "JSON instead of YAML")
	return cmd
}

func operationsAll() []op.Any { return operations.All() }
