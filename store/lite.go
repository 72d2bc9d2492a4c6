package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// liteReaders is how many reads run at once; each costs a page cache.
	liteReaders = 4
	// liteBatch bounds how many writes share one commit.
	liteBatch = 64
	// liteBusy is how long writes wait for another program that has locked the
	// file, a backup for example.
	liteBusy = 30 * time.Second
)

// lite is the SQLite engine: one writer goroutine that owns the only writing
// connection and commits what waits together, and a pool of readers.
type lite struct {
	path    string
	writer  *sql.DB
	conn    *sql.Conn
	level   string // what the writer goroutine set synchronous to
	readers *sql.DB
	// prepared are the statements of conn and of readers.
	prepared []*prepared
	lock     *os.File
	relaxed  bool

	tx   Reader
	read Reader

	jobs     chan *liteJob
	stopping context.Context // ends when close begins
	stop     context.CancelFunc
	done     chan struct{}

	closing sync.RWMutex // protects closed; held for reading while a job is sent
	closed  bool
}

// liteJob is a write that waits for its commit.
type liteJob struct {
	ctx   context.Context
	level Level
	fn    func(context.Context, *Tx) error
	// claimed decides who was first: the writer, or the caller who left.
	claimed atomic.Bool
	done    chan struct{} // closed when events and err are set
	events  []Event
	err     error
}

func openLite(ctx context.Context, c Config) (engine, error) {
	path := c.URL
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // one lock file, whatever name the store is opened by
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the store's directory: %w", err)
	}
	lock, err := lockFile(path+".lock", c.Note)
	if err != nil {
		return nil, err
	}
	l := &lite{path: path, lock: lock, relaxed: c.Relaxed, jobs: make(chan *liteJob, liteBatch), done: make(chan struct{})}
	if err := l.connect(ctx, path); err != nil {
		return nil, errors.Join(err, l.free())
	}
	base := context.WithoutCancel(ctx)
	l.stopping, l.stop = context.WithCancel(base)
	go l.run(base)
	return l, nil
}

func (l *lite) connect(ctx context.Context, path string) error {
	if err := private(path); err != nil {
		return err
	}
	var err error
	if l.writer, err = sql.Open("sqlite", liteDSN(path, "_pragma=busy_timeout(1000)&_txlock=immediate")); err != nil {
		return fmt.Errorf("opening the store: %w", err)
	}
	l.writer.SetMaxOpenConns(1)
	if err := migrateLite(ctx, l.writer, migrations, path); err != nil {
		return err
	}
	if l.conn, err = l.writer.Conn(ctx); err != nil {
		return fmt.Errorf("opening the store: %w", err)
	}
	if l.readers, err = sql.Open("sqlite", liteDSN(path, "_pragma=busy_timeout(5000)&_pragma=query_only(1)")); err != nil {
		return fmt.Errorf("opening the store: %w", err)
	}
	l.readers.SetMaxOpenConns(liteReaders)
	l.readers.SetMaxIdleConns(liteReaders)
	l.prepared = []*prepared{newPrepared(l.conn), newPrepared(l.readers)}
	l.tx, l.read = liteReader(l.prepared[0]), liteReader(l.prepared[1])
	return nil
}

func liteDSN(path, extra string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() +
		"?" + extra + "&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=foreign_keys(1)" +
		"&_pragma=temp_store(MEMORY)&_pragma=cache_size(-4000)&_pragma=wal_autocheckpoint(1000)&_pragma=journal_size_limit(67108864)"
}

func (l *lite) reader() Reader { return l.read }

// write hands fn to the writer goroutine and waits for the commit that holds it.
func (l *lite) write(ctx context.Context, level Level, fn func(context.Context, *Tx) error) ([]Event, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	job := &liteJob{ctx: ctx, level: level, fn: fn, done: make(chan struct{})}
	if err := l.send(job); err != nil {
		return nil, err
	}
	select {
	case <-job.done:
	case <-ctx.Done():
		if job.claimed.CompareAndSwap(false, true) {
			return nil, context.Cause(ctx)
		}
		<-job.done // it has begun, so that leaving does not count
	}
	return job.events, job.err
}

func (l *lite) send(job *liteJob) error {
	l.closing.RLock()
	defer l.closing.RUnlock()
	if l.closed {
		return errClosed()
	}
	select {
	case l.jobs <- job:
		return nil
	case <-job.ctx.Done():
		return context.Cause(job.ctx)
	}
}

// run is the writer goroutine. A batch is what waits: there is no timer, so a
// lone write pays no delay and a crowd shares one sync.
func (l *lite) run(ctx context.Context) {
	defer close(l.done)
	batch := make([]*liteJob, 0, liteBatch)
	for first := range l.jobs {
		batch = append(batch[:0], first)
		for len(batch) < liteBatch {
			select {
			case job, ok := <-l.jobs:
				if !ok {
					break
				}
				batch = append(batch, job)
				continue
			default:
			}
			break
		}
		l.commit(ctx, batch)
		for _, job := range batch {
			close(job.done)
		}
	}
}

// commit runs a batch in one transaction. An error of one member undoes that
// member alone; a commit that fails takes all of them with it.
func (l *lite) commit(ctx context.Context, batch []*liteJob) {
	err := l.begin(ctx, batch)
	if err == nil {
		for _, job := range batch {
			if err = l.member(ctx, job); err != nil {
				break
			}
		}
		if err == nil {
			err = l.exec(ctx, "COMMIT")
		}
		if err != nil {
			_ = l.exec(ctx, "ROLLBACK") // SQLite may have rolled back by itself
		}
	}
	if err == nil {
		return
	}
	for _, job := range batch {
		job.err, job.events = fmt.Errorf("committing: %w", err), nil
	}
}

// begin sets how durable the commit will be, by the member that asks for most,
// and takes the file's write lock.
func (l *lite) begin(ctx context.Context, batch []*liteJob) error {
	level := "NORMAL"
	for _, job := range batch {
		if job.level == Durable && !l.relaxed {
			level = "FULL"
		}
	}
	if level != l.level {
		if err := l.exec(ctx, "PRAGMA synchronous="+level); err != nil {
			return err
		}
		l.level = level
	}
	for began := time.Now(); ; {
		err := l.exec(ctx, "BEGIN IMMEDIATE") // waits for the busy_timeout
		if !busy(err) || time.Since(began) >= liteBusy || l.stopping.Err() != nil {
			return err
		}
	}
}

func busy(err error) bool {
	lite, ok := errors.AsType[*sqlite.Error](err)
	return ok && lite.Code()&0xff == sqlite3.SQLITE_BUSY
}

// member runs one closure in a savepoint. The error it returns is one of the
// transaction, not the closure's.
func (l *lite) member(ctx context.Context, job *liteJob) error {
	if !job.claimed.CompareAndSwap(false, true) {
		return nil // its caller has left
	}
	job.err = context.Cause(job.ctx)
	if job.err != nil {
		return nil //nolint:nilerr // the caller's end is its own error, not the transaction's
	}
	if err := l.exec(ctx, "SAVEPOINT member"); err != nil {
		return err
	}
	tx := &Tx{Reader: l.tx}
	inside := context.WithoutCancel(job.ctx)
	job.err = guard(func() error {
		if err := job.fn(inside, tx); err != nil {
			return err
		}
		return insertEvents(inside, tx, tx.events)
	})
	if job.err != nil {
		if err := l.exec(ctx, "ROLLBACK TO member"); err != nil {
			return errors.Join(job.err, err)
		}
	} else {
		job.events = tx.events
	}
	return l.exec(ctx, "RELEASE member")
}

func (l *lite) exec(ctx context.Context, sql string) error {
	return l.tx.raw.exec(ctx, sql, nil)
}

// close commits what waits and ends the writer.
func (l *lite) close() error {
	l.stop()
	l.closing.Lock()
	if l.closed {
		l.closing.Unlock()
		return nil
	}
	l.closed = true
	l.closing.Unlock()
	close(l.jobs)
	<-l.done
	return l.free()
}

func (l *lite) free() error {
	var errs []error
	for _, p := range l.prepared {
		errs = append(errs, p.close())
	}
	if l.readers != nil {
		errs = append(errs, l.readers.Close())
	}
	if l.conn != nil {
		errs = append(errs, l.conn.Close())
	}
	if l.writer != nil {
		errs = append(errs, l.writer.Close())
	}
	return errors.Join(append(errs, l.lock.Close())...)
}
