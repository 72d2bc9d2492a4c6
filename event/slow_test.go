package event_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/switchyard-dev/switchyard/event"
)

// rawStream asks for a stream on a connection of its own.
func rawStream(t testing.TB, server *httptest.Server, query string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "GET /api/event?%s HTTP/1.1\r\nHost: x\r\n\r\n", query); err != nil {
		t.Fatal(err)
	}
	return conn
}

// residentBytes is how much memory the process has.
func residentBytes(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(data))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// delays reads a stream up to session.idle, with as little garbage as can be,
// and gives how old each event was.
func delays(t *testing.T, conn net.Conn) []time.Duration {
	var out []time.Duration
	lines := bufio.NewReaderSize(conn, 64<<10)
	for {
		line, long, err := lines.ReadLine()
		if err != nil {
			t.Error(err)
			return append(out, time.Hour)
		}
		if _, rest, ok := bytes.Cut(line, []byte(`,"time":`)); ok && bytes.HasPrefix(line, []byte("data: ")) {
			ms, err := strconv.ParseInt(string(rest[:13]), 10, 64)
			if err != nil {
				t.Error(err)
			}
			out = append(out, time.Since(time.UnixMilli(ms)))
			if bytes.Contains(line, []byte(`"type":"session.idle"`)) {
				return out
			}
		}
		for long && err == nil {
			_, long, err = lines.ReadLine()
		}
	}
}

// TestSC06_SlowReader measures the memory of the process, so it does not run
// beside other tests.
func TestSC06_SlowReader(t *testing.T) {
	w := setup(t, func(c *event.Config) { c.WriteTimeout = 300 * time.Millisecond })
	server := w.serve()
	z := rawStream(t, server, "scope=server") // reads nothing
	defer z.Close()
	fast := rawStream(t, server, "scope=server")
	defer fast.Close()
	debug.FreeOSMemory()
	before := residentBytes(t)

	const total, piece = 64 << 20, 4 << 10
	var late []time.Duration
	var reader sync.WaitGroup
	reader.Go(func() { late = delays(t, fast) })
	text, peak := strings.Repeat("x", piece), 0
	for n := range total / piece {
		publish(w, partDelta, ses1, deltaPayload{PartID: "p", Field: "text", Delta: text, Offset: n * piece})
		if n%64 == 0 {
			peak = max(peak, residentBytes(t)-before)
			time.Sleep(8 * time.Millisecond) //nolint:forbidigo // the pace of the publisher
		}
	}
	commit(w, wentIdle, ses1, idlePayload{})
	reader.Wait()
	slices.Sort(late)
	// 100 ms on a machine of its own; the bound here only shows that the fast
	// reader does not wait for the slow one.
	p99 := late[len(late)*99/100]
	if p99 > 5*time.Second {
		t.Errorf("the fast reader is late by %v", p99)
	}
	if peak > memoryFactor*48<<20 {
		t.Errorf("memory grew by %d MiB", peak>>20)
	}
	if err := z.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(z) // what the kernel held, then the abort
	if err != nil || bytes.HasSuffix(rest, []byte("0\r\n\r\n")) || bytes.Contains(rest, []byte("session.idle")) {
		t.Errorf("the slow reader's end after %d bytes: %v", len(rest), err)
	}
	t.Logf("memory grew by %d MiB at most, the fast reader was late by %v, the slow one got %d MiB", peak>>20, p99, len(rest)>>20)
}

func TestSC06_APauseInABurstIsForgiven(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	c := connect(t, w.serve(), "scope=server", "")
	c.next()
	p := w.openPart("p", ses1)
	for range 10_000 {
		p.grow("0123456789")
	}
	time.Sleep(500 * time.Millisecond) //nolint:forbidigo // the client's pause
	p.finish()
	commit(w, wentIdle, ses1, idlePayload{})
	view := newScreen()
	for _, g := range c.until("session.idle") {
		if err := view.apply(g); err != nil {
			t.Fatal(err)
		}
	}
	if view.text("p") != p.text() {
		t.Errorf("%d bytes of %d", len(view.text("p")), len(p.text()))
	}
}

func TestSC06_ASlowReaderIsToldAndTheEndIsUnclean(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *event.Config) { c.LagBudget = 1 << 20; c.WriteTimeout = time.Minute })
	conn := rawStream(t, w.serve(), "scope=server")
	defer conn.Close()
	text := strings.Repeat("x", 64<<10)
	for n := range 256 {
		publish(w, partDelta, ses1, deltaPayload{PartID: "p", Field: "text", Delta: text, Offset: n * len(text)})
	}
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(bufio.NewReader(conn))
	if err != nil {
		t.Fatal(err)
	}
	tail := string(all[max(0, len(all)-400):])
	if !strings.Contains(tail, `"type":"server.lagged"`) || strings.HasSuffix(tail, "0\r\n\r\n") {
		t.Errorf("the stream ends with %q", tail)
	}
}

// TestE11_AbortedStreamsLeaveNothing counts the sockets of the process, so it
// does not run beside other tests.
func TestE11_AbortedStreamsLeaveNothing(t *testing.T) {
	w := setup(t, nil)
	server := httptest.NewServer(streamHandler(func() *event.Bus { return w.bus }))
	quiet := goleak.IgnoreCurrent()
	descriptors := countDescriptors(t)
	const waves, each = 20, 250
	for wave := range waves {
		conns := make([]net.Conn, each)
		for i := range conns {
			conns[i] = rawStream(t, server, fmt.Sprintf("directory=/%d", i))
		}
		for i, conn := range conns {
			if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
				t.Fatalf("stream %d: %v", i, err)
			}
		}
		commit(w, noted, event.ServerWide(), notePayload{N: wave})
		for i, conn := range conns {
			if i%3 == 0 { // a reset instead of a close
				if err := conn.(*net.TCPConn).SetLinger(0); err != nil {
					t.Fatal(err)
				}
			}
			conn.Close()
		}
	}
	if err := goleak.Find(quiet); err != nil {
		t.Error(err)
	}
	if now := countDescriptors(t); now > descriptors {
		t.Errorf("%d descriptors, %d before", now, descriptors)
	}
	server.Close()
	if err := w.bus.Stop(t.Context()); err != nil { // returns when no stream is left
		t.Error(err)
	}
}

func countDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestIdleStreamsAreSmall(t *testing.T) {
	const n = 2000
	w := setup(t, nil)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	streams := make([]*event.Subscription, n)
	for i := range streams {
		streams[i] = subscribe(w, event.Options{Filter: event.Filter{Contexts: []event.Context{contextA}}})
		take(t, streams[i], 1)
	}
	if each := (heap() - before) / n; each > 4<<10 {
		t.Errorf("a subscription takes %d bytes", each)
	}
	runtime.KeepAlive(streams)
}
