package access

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// authority is a host name or address with an optional port, in one spelling.
type authority struct {
	name string     // lower case, no trailing dot, no brackets
	ip   netip.Addr // valid when name is an address
	port string     // "" when none was given
}

func parseAuthority(s string) (authority, bool) {
	name, port := s, ""
	if rest, ok := strings.CutPrefix(s, "["); ok {
		inner, after, closed := strings.Cut(rest, "]")
		if !closed || (after != "" && after[0] != ':') {
			return authority{}, false
		}
		name, port = inner, strings.TrimPrefix(after, ":")
		if ip, err := netip.ParseAddr(name); err != nil || !ip.Is6() {
			return authority{}, false
		}
	} else if i := strings.IndexByte(s, ':'); i >= 0 {
		name, port = s[:i], s[i+1:]
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if name == "" || !validPort(port) {
		return authority{}, false
	}
	a := authority{name: name, port: port}
	if ip, err := netip.ParseAddr(name); err == nil {
		a.ip = ip.Unmap()
		a.name = a.ip.String()
	}
	return a, true
}

func validPort(p string) bool {
	if p == "" {
		return true
	}
	_, err := strconv.ParseUint(p, 10, 16)
	return err == nil
}

// hostList knows the names under which this server may be reached. Other names
// could point here by DNS without the owner's wish (rebinding), and then a
// foreign page would be of the same origin.
type hostList struct {
	names map[authority]bool
}

func newHostList(bound string, extra []string) (hostList, error) {
	l := hostList{names: map[authority]bool{}}
	for _, builtin := range []string{"localhost", "127.0.0.1", "[::1]"} {
		a, _ := parseAuthority(builtin)
		l.names[a] = true
	}
	for _, h := range extra {
		a, ok := parseAuthority(h)
		if !ok || strings.ContainsAny(h, "*/ ") {
			return hostList{}, fmt.Errorf("allowed host %q is not a host name or host:port", h)
		}
		l.names[a] = true
	}
	if bound == "" {
		return l, nil
	}
	host, _, err := net.SplitHostPort(bound)
	if err != nil {
		return hostList{}, fmt.Errorf("bound address %q is not host:port", bound)
	}
	// An unspecified address stands for no name: check looks at the
	// connection's own address instead.
	if a, ok := parseAuthority(bracket(host)); ok && !a.ip.IsUnspecified() {
		l.names[authority{name: a.name, ip: a.ip}] = true
	}
	return l, nil
}

// bracket makes a bare IPv6 address an authority.
func bracket(host string) string {
	if strings.Contains(host, ":") {
		host, _, _ = strings.Cut(host, "%")
		return "[" + host + "]"
	}
	return host
}

// allows reports whether a may be asked for: a listed name, with any port unless
// the list names one, or the very address that the connection arrived at.
func (l hostList) allows(a authority, r *http.Request) bool {
	if l.names[authority{name: a.name, ip: a.ip}] || l.names[a] {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || !a.ip.IsValid() {
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	return err == nil && at.Addr().Unmap().WithZone("") == a.ip
}
