package access

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// BindOptions are the circumstances of a listener.
type BindOptions struct {
	// TLS means that the listener itself speaks TLS; BehindProxy that a proxy
	// in front of it does.
	TLS, BehindProxy bool
	// NoAuthFlag is --insecure-no-auth and NoAuthEnv its twin
	// SWITCHYARD_INSECURE_NO_AUTH=1. Either alone is a mistake.
	NoAuthFlag, NoAuthEnv bool
}

// NoAuth reports whether callers need no token.
func (o BindOptions) NoAuth() bool { return o.NoAuthFlag && o.NoAuthEnv }

// CheckBind decides whether the server may listen on addr ("host:port"; an
// empty host is every interface). The error is one line for the user.
func CheckBind(addr string, o BindOptions) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("listen address %q is not host:port", addr)
	}
	if o.NoAuthFlag && !o.NoAuthEnv {
		return errors.New("--insecure-no-auth works only together with SWITCHYARD_INSECURE_NO_AUTH=1")
	}
	if o.NoAuthEnv && !o.NoAuthFlag {
		return errors.New("SWITCHYARD_INSECURE_NO_AUTH=1 works only together with --insecure-no-auth")
	}
	if isLoopback(host) {
		return nil
	}
	if o.NoAuth() {
		return fmt.Errorf("refusing to listen on %s without authentication: --insecure-no-auth is for loopback addresses only", addr)
	}
	if !o.TLS && !o.BehindProxy {
		return fmt.Errorf("refusing to listen on %s without TLS: give a certificate, or --behind-proxy when a proxy in front speaks TLS", addr)
	}
	return nil
}

// isLoopback tells loopback addresses and the one name that always means them;
// other names are not looked up.
func isLoopback(host string) bool {
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
