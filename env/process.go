package env

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// outputGrace is how long a command's output may stay open and silent after
	// the command has ended; outputMax bounds the wait for a background child
	// that goes on writing.
	outputGrace = 300 * time.Millisecond
	outputMax   = time.Second

	// The three together stay below the three seconds that Stop promises.
	intWait  = 800 * time.Millisecond
	termWait = 800 * time.Millisecond
	killWait = time.Second

	// A look at the group costs little at first and a walk through /proc later.
	groupPollFirst = 5 * time.Millisecond
	groupPollLast  = 80 * time.Millisecond
)

// process is a running command with the group that it leads.
type process struct {
	cmd     *exec.Cmd
	started time.Time

	pipe   *os.File      // our end of the output
	copied chan struct{} // closed when nothing of the output is read any more
	writes atomic.Int64  // odd while a write to the caller's Output runs

	done chan struct{} // closed when exit is valid
	exit Exit

	stop sync.Once
	gone atomic.Bool // the group was seen empty: its number may be another's now
}

// startProcess starts cmd with its output going to out, nil for nowhere. Its
// errors go there too unless cmd.Stderr is set.
func startProcess(ctx context.Context, cmd *exec.Cmd, out io.Writer) (*process, error) {
	ours, theirs, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	// One descriptor for both: the kernel keeps the order of writing, and
	// os/exec starts no copying of its own.
	cmd.Stdout = theirs
	if cmd.Stderr == nil {
		cmd.Stderr = theirs
	}
	// What os/exec copies by itself (Stdin, Errors) must not wait for a child in
	// the background either.
	cmd.WaitDelay = outputMax
	p := &process{
		cmd: cmd, started: time.Now(), pipe: ours,
		copied: make(chan struct{}), done: make(chan struct{}),
	}
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		_ = ours.Close()
		return nil, fmt.Errorf("starting a command: %w", err)
	}
	if out == nil {
		out = io.Discard
	}
	// All three end when the command has ended and its output was settled.
	go p.copy(out)
	go p.finish(ctx)
	go p.watch(ctx)
	return p, nil
}

// PID is the number of the command and of its group.
func (p *process) PID() int { return p.cmd.Process.Pid }

// Wait ends when the command and the copying of its output have ended.
func (p *process) Wait() Exit {
	<-p.done
	return p.exit
}

// copy passes the output on. After a failing write the rest is read and
// dropped, so that the command is not blocked.
func (p *process) copy(out io.Writer) {
	defer close(p.copied)
	buf := make([]byte, 32<<10)
	for {
		n, err := p.pipe.Read(buf)
		if n > 0 && out != nil {
			p.writes.Add(1)
			if _, werr := out.Write(buf[:n]); werr != nil {
				out = nil
			}
			p.writes.Add(1)
		}
		if err != nil {
			return
		}
	}
}

// finish waits for the command, then for its output, and publishes the result.
func (p *process) finish(ctx context.Context) {
	err := p.cmd.Wait()
	took := time.Since(p.started)
	p.settle()
	_ = p.pipe.Close()
	if ctx.Err() != nil {
		p.Stop() // so that Wait does not end before the group does
	}
	p.exit = exitOf(p.cmd.ProcessState, err)
	p.exit.Took = took
	if !groupAlive(p.PID()) {
		p.gone.Store(true)
	}
	close(p.done)
}

// settle waits for the end of the output. A child in the background may hold
// the pipe open for ever, so silence ends the wait.
func (p *process) settle() {
	last := time.Now().Add(outputMax)
	for {
		before := p.writes.Load()
		grace := time.NewTimer(outputGrace)
		select {
		case <-p.copied:
			grace.Stop()
			return
		case <-grace.C:
		}
		now := p.writes.Load()
		writing := now%2 == 1
		if !writing && (now == before || time.Now().After(last)) {
			_ = p.pipe.Close()
			<-p.copied
			return
		}
	}
}

// watch stops the group when the context ends first.
func (p *process) watch(ctx context.Context) {
	select {
	case <-ctx.Done():
		p.Stop()
	case <-p.done:
	}
}

// Stop sends INT, then TERM, then KILL to the group and returns when the group
// is gone, within three seconds. Calls at the same time share one stopping.
func (p *process) Stop() {
	p.stop.Do(func() {
		_ = p.gone.Load() ||
			p.signal(syscall.SIGINT, intWait) ||
			p.signal(syscall.SIGTERM, termWait) ||
			p.signal(syscall.SIGKILL, killWait)
	})
}

// signal signals the group and reports whether it is gone within limit.
func (p *process) signal(s syscall.Signal, limit time.Duration) bool {
	end := time.Now().Add(limit)
	if err := syscall.Kill(-p.PID(), s); errors.Is(err, syscall.ESRCH) {
		return true
	}
	for pause := groupPollFirst; time.Now().Before(end); pause = min(2*pause, groupPollLast) {
		<-time.After(pause)
		if !groupAlive(p.PID()) {
			return true
		}
	}
	return false
}

// exitOf tells how a command ended.
func exitOf(state *os.ProcessState, err error) Exit {
	if state == nil {
		return Exit{Code: -1, Err: fmt.Errorf("waiting for a command: %w", err)}
	}
	exit := Exit{Code: state.ExitCode()}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		exit.Signal = unix.SignalName(status.Signal())
	}
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) && !errors.Is(err, exec.ErrWaitDelay) {
		exit.Err = fmt.Errorf("waiting for a command: %w", err)
	}
	return exit
}
