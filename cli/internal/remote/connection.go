package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	iofs "io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/switchyard-dev/switchyard/access"
)

// probeTime bounds the question whether a server is alive.
const probeTime = 2 * time.Second

// Connection says how the user wants the server to be found.
//
// The zero value means the server that runs with an empty state directory: Flags
// sets the defaults.
type Connection struct {
	Server, State, TokenFile string
}

// Flags adds the flags that fill c in.
func (c *Connection) Flags(f *pflag.FlagSet) {
	f.StringVar(&c.Server, "server", "", "`URL` of the server (or set SWITCHYARD_URL; default: the one running here)")
	f.StringVar(&c.State, "state", DefaultState(), "the server's state `directory`")
	f.StringVar(&c.TokenFile, "token-file", "", "`file` that holds the token (or set SWITCHYARD_TOKEN)")
}

// ErrNoServer means that no server is named and none runs here.
var ErrNoServer = errors.New("no server is running here: start one with `switchyard serve`, or name one with --server URL")

// Find gives a client of the server that is named, or else of the one that runs
// here. Where there is none the error is ErrNoServer with the code of an
// unreachable server.
func (c *Connection) Find(ctx context.Context, p Program) (*Client, error) {
	base := cmp.Or(c.Server, os.Getenv("SWITCHYARD_URL"))
	if base != "" {
		u, err := parseServer(base)
		if err != nil {
			return nil, err
		}
		token, err := c.token(isLoopback(u.Hostname()))
		if err != nil {
			return nil, err
		}
		return NewClient(p, u.String(), token), nil
	}
	r, state, err := probe(ctx, c.State)
	switch {
	case err != nil:
		return nil, err
	case state == stateSilent:
		return nil, Exitf(ExitUnreachable, "the server at %s (pid %d) does not answer", r.URL, r.PID)
	case state != stateRunning:
		return nil, &Exit{Code: ExitUnreachable, Err: ErrNoServer}
	}
	token, err := c.token(true)
	if err != nil {
		return nil, err
	}
	return NewClient(p, r.URL, token), nil
}

func parseServer(base string) (*url.URL, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, Usagef("%q is not the URL of a server, such as http://127.0.0.1:%d", base, DefaultPort)
	}
	if u.User != nil {
		return nil, Usagef("give the token by --token-file or SWITCHYARD_TOKEN, not in the URL")
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimSuffix(u.Path, "/")}, nil
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// token gives the secret to show to the server; "" for none. The one in the
// state directory opens the server of this machine: it is sent to no other.
func (c *Connection) token(here bool) (string, error) {
	src := access.TokenSource{File: c.TokenFile, Env: os.Getenv("SWITCHYARD_TOKEN")}
	if src.File == "" && src.Env == "" {
		if !here {
			return "", nil
		}
		src.StateDir = c.State
		// Loading would make one, which is the server's business.
		if _, err := os.Stat(filepath.Join(c.State, TokenFile)); errors.Is(err, iofs.ErrNotExist) {
			return "", nil
		}
	}
	t, err := access.LoadToken(src)
	if err != nil {
		return "", err
	}
	return t.Reveal(), nil
}

// serverState says what is known of the server of a state directory.
type serverState int

const (
	stateNone    serverState = iota // it left no runtime file
	stateStale                      // its process is gone
	stateSilent                     // its process lives, and does not answer
	stateRunning                    // it answers
)

// probe looks for the server that runs with a state directory.
func probe(ctx context.Context, state string) (Runtime, serverState, error) {
	path := filepath.Join(state, RuntimeFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, iofs.ErrNotExist) {
		return Runtime{}, stateNone, nil
	}
	if err != nil {
		return Runtime{}, stateNone, fmt.Errorf("looking for the server: %w", err)
	}
	var r Runtime
	if json.Unmarshal(data, &r) != nil || r.PID <= 0 {
		return Runtime{}, stateStale, nil //nolint:nilerr // what cannot be read is left over from something
	}
	u, err := parseServer(r.URL)
	if err != nil {
		return Runtime{}, stateStale, nil //nolint:nilerr // as above
	}
	r.URL = reachable(u).String()
	switch {
	case !lives(r.PID):
		return r, stateStale, nil
	case !answers(ctx, r.URL):
		return r, stateSilent, nil
	}
	return r, stateRunning, nil
}

// reachable turns the address that a server listens on into one to call it by:
// "every interface" is no name that it answers to.
func reachable(u *url.URL) *url.URL {
	ip, err := netip.ParseAddr(u.Hostname())
	if err != nil || !ip.IsUnspecified() {
		return u
	}
	host := "127.0.0.1"
	if ip.Is6() {
		host = "::1"
	}
	out := *u
	out.Host = net.JoinHostPort(host, u.Port())
	return &out
}

// lives reports whether a process exists, also one of another user.
func lives(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	err = p.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, iofs.ErrPermission)
}

func answers(ctx context.Context, base string) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/livez", nil)
	if err != nil {
		return false
	}
	t := newTransport()
	defer t.CloseIdleConnections()
	res, err := t.RoundTrip(req)
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}
