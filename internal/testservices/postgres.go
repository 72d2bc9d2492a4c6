package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// readyLimit is how long a started server may take to answer; readyEvery is the
// time between two tries.
const (
	readyLimit = 60 * time.Second
	readyEvery = 20 * time.Millisecond
)

// settings trade safety for speed: the data is thrown away anyway. No socket file
// is made, since its directory may not be ours.
var settings = []string{
	"fsync=off", "full_page_writes=off", "synchronous_commit=off", "shared_buffers=128MB",
	"max_connections=300", "max_wal_size=2GB", "unix_socket_directories=", "listen_addresses=127.0.0.1",
	"log_min_messages=warning",
}

// postgres is a running throw-away server.
type postgres struct {
	url     string // of its first database, for a user who may do all
	dir     string
	process *process
}

// account is who the server runs as: PostgreSQL refuses to run as root.
type account struct{ uid, gid int }

// startPostgres makes and starts a server of its own on 127.0.0.1, installing
// PostgreSQL first where it is missing.
func startPostgres(ctx context.Context) (_ *postgres, err error) {
	if err := ensure(ctx, "postgres"); err != nil {
		return nil, fmt.Errorf("%w, or set %s to the URL of a server", err, postgresEnv)
	}
	began := time.Now()
	who, err := serverAccount()
	if err != nil {
		return nil, err
	}
	s := &postgres{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "switchyard-postgres-*"); err != nil {
		return nil, fmt.Errorf("making the server's directory: %w", err)
	}
	if err := s.initialise(ctx, findPostgres(), who); err != nil {
		return nil, err
	}
	say("PostgreSQL ready after %v", time.Since(began).Round(10*time.Millisecond))
	return s, nil
}

// initialise fills s: the data directory, the server, its URL.
func (s *postgres) initialise(ctx context.Context, bin string, who account) error {
	password := rand.Text()
	secret := filepath.Join(s.dir, "password")
	if err := os.WriteFile(secret, []byte(password+"\n"), 0o600); err != nil {
		return fmt.Errorf("writing the server's password: %w", err)
	}
	if err := errors.Join(os.Chown(s.dir, who.uid, who.gid), os.Chown(secret, who.uid, who.gid)); err != nil {
		return fmt.Errorf("giving the server its directory: %w", err)
	}
	args := []string{
		"--pgdata=" + s.data(), "--username=switchyard", "--pwfile=" + secret,
		"--auth=password", "--encoding=UTF8", "--locale=C", "--no-sync",
	}
	initdb := s.command(ctx, who, filepath.Join(bin, "initdb"), append(args, collation(ctx, bin)...)...)
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("running initdb: %w\n%s", err, out)
	}
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	at := url.URL{
		Scheme: "postgres", User: url.UserPassword("switchyard", password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Path: "/postgres", RawQuery: "sslmode=disable",
	}
	s.url = at.String()
	return s.serve(ctx, who, bin, port)
}

// serve starts the server and waits until it answers.
func (s *postgres) serve(ctx context.Context, who account, bin string, port int) error {
	args := []string{"-D", s.data(), "-p", strconv.Itoa(port)}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	log, err := os.Create(filepath.Join(s.dir, "server.log"))
	if err != nil {
		return fmt.Errorf("making the server's log: %w", err)
	}
	defer log.Close() // the child has its own handle
	// The server ends by stop, in order, not with ctx.
	cmd := s.command(context.WithoutCancel(ctx), who, filepath.Join(bin, "postgres"), args...)
	cmd.Stdout, cmd.Stderr = log, log
	if s.process, err = start(cmd); err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		text, _ := os.ReadFile(log.Name()) // the error below is the one to tell
		return fmt.Errorf("waiting for PostgreSQL: %w\n%s", err, text)
	}
	return nil
}

// ready waits until the server takes a connection.
func (s *postgres) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	again := time.NewTicker(readyEvery)
	defer again.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.url)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-again.C:
		case <-s.process.done:
			return errors.Join(errors.New("the server ended"), s.process.err)
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// stop ends the server and removes its data.
func (s *postgres) stop() error {
	if s.process != nil {
		s.process.end(syscall.SIGINT) // PostgreSQL's fast shutdown
	}
	if s.dir == "" {
		return nil
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("removing the server's directory: %w", err)
	}
	return nil
}

func (s *postgres) data() string { return filepath.Join(s.dir, "data") }

// command prepares a program of PostgreSQL's to run as who, in a directory that
// who may enter.
func (s *postgres) command(ctx context.Context, who account, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "HOME="+s.dir, "LC_ALL=C")
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(who.uid), Gid: uint32(who.gid)}}
	}
	return cmd
}

// serverAccount gives this process's own account, or for root that of the package's user.
func serverAccount() (account, error) {
	if uid := os.Geteuid(); uid != 0 {
		return account{uid, os.Getegid()}, nil
	}
	var failed error
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			failed = err
			continue
		}
		uid, err := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		return account{uid, gid}, errors.Join(err, err2)
	}
	return account{}, fmt.Errorf("finding a user to run PostgreSQL as: %w", failed)
}

// collation makes the server sort as people do, where its version can, so that a
// text column without the collation that the store needs is found out by tests.
func collation(ctx context.Context, bin string) []string {
	help, err := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "--help").Output()
	if err != nil || !strings.Contains(string(help), "--icu-locale") {
		return nil
	}
	return []string{"--locale-provider=icu", "--icu-locale=en-US"}
}

// freePort asks the system for a port that nobody listens on.
func freePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}
