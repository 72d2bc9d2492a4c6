package store_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/store"
)

// The children's settings beside childEnv.
const (
	childURL  = "STORE_TEST_URL"
	childName = "STORE_TEST_NAME"
)

// child is another process with a store: it says what it has done, a line each,
// until it is killed.
func child(role string) int {
	name := os.Getenv(childName)
	d, err := store.Open(context.Background(), store.Config{URL: os.Getenv(childURL), Owner: name, Note: "pid " + strconv.Itoa(os.Getpid()) + " port 4096"})
	if err != nil {
		fmt.Fprintln(os.Stdout, "error", err)
		return 1
	}
	fmt.Fprintln(os.Stdout, "open", d.Boot().Number)
	if role == "holder" {
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 0
	}
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := 0; ; i++ {
				row := fmt.Sprintf("%s-%d-%06d", name, w, i)
				var told int64
				err := d.Write(context.Background(), store.Durable, func(ctx context.Context, tx *store.Tx) error {
					if err := add(row, 2)(ctx, tx); err != nil {
						return err
					}
					var err error
					told, err = tx.CounterNext(ctx, counter())
					return err
				})
				if err != nil {
					fmt.Fprintln(os.Stdout, "error", err)
					return
				}
				fmt.Fprintln(os.Stdout, "stored", row, told)
			}
		})
	}
	writers.Wait()
	return 1
}

// process is a child that runs.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func startChild(t *testing.T, role, url, name string) *process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+role, childURL+"="+url, childName+"="+name)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // held open: a holder waits for its end
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, lines: bufio.NewScanner(out)}
	t.Cleanup(func() { p.kill() })
	p.line(t, "open")
	return p
}

// line reads a line with this first word and gives the others.
func (p *process) line(t *testing.T, first string) []string {
	t.Helper()
	if !p.lines.Scan() {
		t.Fatalf("the process has ended: %v", p.lines.Err())
	}
	words := strings.Fields(p.lines.Text())
	if len(words) == 0 || words[0] != first {
		t.Fatalf("the process says %q", p.lines.Text())
	}
	return words[1:]
}

// kill ends the process at once and gives the rows that it said were stored and
// that nobody has read yet.
func (p *process) kill() (rows []string) {
	_ = p.cmd.Process.Kill() // it may have ended
	for p.lines.Scan() {
		if words := strings.Fields(p.lines.Text()); len(words) == 3 && words[0] == "stored" {
			rows = append(rows, words[1])
		}
	}
	_ = p.cmd.Wait()
	return rows
}

// stored reads n lines of a writer.
func (p *process) stored(t *testing.T, n int) (rows []string) {
	t.Helper()
	for range n {
		rows = append(rows, p.line(t, "stored")[0])
	}
	return rows
}

// survived looks at a store after its writers were killed.
func survived(t *testing.T, b *bundle, acknowledged []string) {
	t.Helper()
	rows, events := b.rows(), b.events()
	for _, row := range acknowledged {
		if _, found := slices.BinarySearch(rows, row); !found {
			t.Errorf("%s was acknowledged and is gone", row)
		}
	}
	if len(events) != 2*len(rows) {
		t.Errorf("%d events of %d rows", len(events), len(rows))
	}
	matches(t, rows, events)
	next, gaps := int64(1), b.gaps()
	for _, e := range events {
		for len(gaps) > 0 && gaps[0].From == next {
			next, gaps = gaps[0].To+1, gaps[1:]
		}
		if e.Seq != next {
			t.Errorf("number %d comes in place of %d; further gaps are %v", e.Seq, next, gaps)
		}
		next = e.Seq + 1
	}
	if n := b.number("SELECT CAST(value AS text) FROM counter WHERE name = 'session'"); n != int64(len(rows)) {
		t.Errorf("counted to %d, %d rows", n, len(rows))
	}
}

// gaps are those of all starts.
func (b *bundle) gaps() (gaps []store.Gap) {
	b.t.Helper()
	for _, text := range b.text("SELECT CAST(gap_from AS text) || ' ' || CAST(gap_to AS text) FROM boot ORDER BY number") {
		var g store.Gap
		if _, err := fmt.Sscan(text, &g.From, &g.To); err != nil || g.To-g.From != store.BootGap-1 {
			b.t.Fatalf("gap %q: %v", text, err)
		}
		gaps = append(gaps, g)
	}
	return gaps
}

func TestNothingAcknowledgedIsLostAsOneProcessIsKilled(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/store.db"
	var acknowledged []string
	for start := range 3 {
		p := startChild(t, "writer", path, fmt.Sprintf("start%d", start))
		acknowledged = append(acknowledged, p.stored(t, 30)...)
		acknowledged = append(acknowledged, p.kill()...)
	}
	b := &bundle{t: t, url: path, lite: true, db: open(t, store.Config{URL: path})}
	if boot := b.db.Boot(); boot.Number != 4 {
		t.Errorf("start %d, want 4", boot.Number)
	}
	survived(t, b, acknowledged)
	if bad := b.text("PRAGMA integrity_check"); !slices.Equal(bad, []string{"ok"}) {
		t.Errorf("integrity: %v", bad)
	}
}

func TestTwoProcessesShareOneDatabaseAndAreKilled(t *testing.T) {
	t.Parallel()
	url := testkit.Postgres(t)
	b := &bundle{t: t, url: url, db: open(t, store.Config{URL: url})}
	one, two := startChild(t, "writer", url, "one"), startChild(t, "writer", url, "two")
	acknowledged := one.stored(t, 40)
	acknowledged = append(acknowledged, two.stored(t, 40)...)
	acknowledged = append(acknowledged, one.kill()...)
	three := startChild(t, "writer", url, "three") // while two goes on
	acknowledged = append(acknowledged, two.stored(t, 40)...)
	acknowledged = append(acknowledged, three.stored(t, 40)...)
	acknowledged = append(acknowledged, two.kill()...)
	acknowledged = append(acknowledged, three.kill()...)
	b.quiet()
	b.reopen(store.Config{})
	if boot := b.db.Boot(); boot.Number != 5 {
		t.Errorf("start %d, want 5", boot.Number)
	}
	survived(t, b, acknowledged)
}

// TestSC65TenProcessesWriteAtOnce: forty writers of ten processes want the same
// rows; none of them is told of a conflict.
func TestSC65TenProcessesWriteAtOnce(t *testing.T) {
	t.Parallel()
	url := testkit.Postgres(t)
	b := &bundle{t: t, url: url, db: open(t, store.Config{URL: url})}
	var all []*process
	for n := range 10 {
		all = append(all, startChild(t, "writer", url, fmt.Sprintf("p%d", n)))
	}
	var acknowledged []string
	for _, p := range all {
		acknowledged = append(acknowledged, p.stored(t, 20)...) // an error line fails the test
	}
	for _, p := range all {
		acknowledged = append(acknowledged, p.kill()...)
	}
	b.quiet()
	b.reopen(store.Config{})
	survived(t, b, acknowledged)
}

// quiet waits until the database server has ended what killed clients began.
func (b *bundle) quiet() {
	b.t.Helper()
	testkit.Eventually(b.t, waitLimit, "the killed processes' connections are gone", func() bool {
		return b.number("SELECT CAST(COUNT(*) AS text) FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()") == 0
	})
}

func TestASecondProcessIsToldWhoHasTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := dir + "/store.db"
	holder := startChild(t, "holder", path, "holder")
	if err := os.Symlink(path, dir+"/link.db"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, dir + "/link.db"} {
		_, err := store.Open(t.Context(), store.Config{URL: name, Note: "pid 1"})
		f, ok := fault.As(err)
		want := fmt.Sprintf("the store is in use by another process (pid %d port 4096)", holder.cmd.Process.Pid)
		if !ok || f.Code != fault.StoreUnavailable || f.Detail != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
	holder.kill()
	b := &bundle{t: t, db: open(t, store.Config{URL: path, Note: "pid 2"})} // nothing to clean up by hand
	b.write(add("row", 1))
	if note := testkit.ReadFile(t, dir, "store.db.lock"); note != "pid 2\n" {
		t.Errorf("the lock says %q", note)
	}
}
