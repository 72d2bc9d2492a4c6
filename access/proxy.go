package access

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
)

// ParseProxies reads addresses and CIDR prefixes of proxies whose forwarded
// headers are believed. An empty list gives the loopback networks, for a proxy
// on the same host.
func ParseProxies(list []string) ([]netip.Prefix, error) {
	if len(list) == 0 {
		list = []string{"127.0.0.0/8", "::1/128"}
	}
	out := make([]netip.Prefix, 0, len(list))
	for _, s := range list {
		if ip, err := netip.ParseAddr(s); err == nil {
			out = append(out, netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, fmt.Errorf("trusted proxy %q is neither an address nor a CIDR prefix", s)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

// arrival is what a client sent, seen through trusted proxies.
type arrival struct {
	host   string     // as in the Host header
	source netip.Addr // the client; invalid when unknown
}

func (g *Guard) arrivalOf(r *http.Request) arrival {
	a := arrival{host: r.Host}
	if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		a.source = peer.Addr().Unmap()
	}
	if !g.trusts(a.source) {
		return a
	}
	// The last value is the one that our own proxy wrote.
	if hosts := r.Header.Values("X-Forwarded-Host"); len(hosts) > 0 {
		a.host = lastItem(hosts[len(hosts)-1])
	}
	a.source = g.client(r.Header.Values("X-Forwarded-For"), a.source)
	return a
}

// client walks back from the nearest proxy to the first address that is not a
// trusted one; what stands before it may be forged.
func (g *Guard) client(forwarded []string, peer netip.Addr) netip.Addr {
	chain := strings.Split(strings.Join(forwarded, ","), ",")
	for i := len(chain) - 1; i >= 0; i-- {
		ip, err := netip.ParseAddr(strings.TrimSpace(chain[i]))
		if err != nil {
			return peer
		}
		peer = ip.Unmap()
		if !g.trusts(peer) {
			return peer
		}
	}
	return peer
}

func (g *Guard) trusts(peer netip.Addr) bool {
	for _, p := range g.proxies {
		if p.Contains(peer) {
			return true
		}
	}
	return false
}

func lastItem(list string) string {
	return strings.TrimSpace(list[strings.LastIndexByte(list, ',')+1:])
}
