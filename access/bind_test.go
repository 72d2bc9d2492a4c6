package access_test

import (
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/access"
)

func TestSC60_BindPolicy(t *testing.T) {
	t.Parallel()
	plain := access.BindOptions{}
	tls := access.BindOptions{TLS: true}
	proxy := access.BindOptions{BehindProxy: true}
	open := access.BindOptions{NoAuthFlag: true, NoAuthEnv: true}
	tests := []struct {
		addr string
		o    access.BindOptions
		err  string // "" for allowed
	}{
		{"127.0.0.1:4700", plain, ""},
		{"127.8.8.8:4700", plain, ""},
		{"[::1]:4700", plain, ""},
		{"[::ffff:127.0.0.1]:4700", plain, ""},
		{"localhost:0", plain, ""},
		{"0.0.0.0:4700", plain, "without TLS"},
		{":4700", plain, "without TLS"},
		{"[::]:4700", plain, "without TLS"},
		{"192.168.1.2:4700", plain, "without TLS"},
		{"[fe80::1%eth0]:4700", plain, "without TLS"},
		{"host.example:4700", plain, "without TLS"},
		{"127.1:4700", plain, "without TLS"},
		{"localhost.evil.test:4700", plain, "without TLS"},
		{"0.0.0.0:4700", tls, ""},
		{"[::]:4700", proxy, ""},
		{"192.168.1.2:4700", tls, ""},
		{"127.0.0.1:4700", open, ""},
		{"0.0.0.0:4700", open, "without authentication"},
		{"0.0.0.0:4700", access.BindOptions{TLS: true, NoAuthFlag: true, NoAuthEnv: true}, "without authentication"},
		{"127.0.0.1:4700", access.BindOptions{NoAuthFlag: true}, "SWITCHYARD_INSECURE_NO_AUTH=1"},
		{"127.0.0.1:4700", access.BindOptions{NoAuthEnv: true}, "--insecure-no-auth"},
		{"127.0.0.1", plain, "host:port"},
	}
	for _, tt := range tests {
		err := access.CheckBind(tt.addr, tt.o)
		switch {
		case tt.err == "" && err != nil:
			t.Errorf("%s %+v: %v", tt.addr, tt.o, err)
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s %+v: %v, want %q in one line", tt.addr, tt.o, err, tt.err)
		}
	}
	if plain.NoAuth() || (access.BindOptions{NoAuthFlag: true}).NoAuth() || !open.NoAuth() {
		t.Error("NoAuth wants both twins")
	}
}
