package store_test

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/switchyard-dev/switchyard/internal/testkit"
)

// wire is a line to a database that can be cut.
type wire struct {
	url    string // of the database, through the wire
	server string // host and port of the real one

	wait     sync.WaitGroup
	mu       sync.Mutex // protects the fields below
	listener net.Listener
	address  string
	conns    map[net.Conn]bool
}

func newWire(t *testing.T) *wire {
	t.Helper()
	address, err := url.Parse(testkit.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{server: address.Host, address: "127.0.0.1:0", conns: map[net.Conn]bool{}}
	w.mend(t)
	address.Host = w.address
	w.url = address.String()
	t.Cleanup(func() {
		w.cut()
		w.wait.Wait()
	})
	return w
}

// mend lets connections through, on the same port as before.
func (w *wire) mend(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	listener, err := net.Listen("tcp", w.address)
	if err != nil {
		t.Fatal(err)
	}
	w.listener, w.address = listener, listener.Addr().String()
	w.wait.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			w.wait.Go(func() { w.forward(conn) })
		}
	})
}

// cut ends all connections and refuses new ones.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.listener.Close()
	for conn := range w.conns {
		_ = conn.Close()
	}
}

func (w *wire) forward(client net.Conn) {
	server, err := net.Dial("tcp", w.server)
	if err != nil {
		_ = client.Close()
		return
	}
	w.mu.Lock()
	w.conns[client], w.conns[server] = true, true
	w.mu.Unlock()
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			_, _ = io.Copy(pair[0], pair[1])
			_, _ = pair[0].Close(), pair[1].Close()
		})
	}
	both.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, client)
	delete(w.conns, server)
}
