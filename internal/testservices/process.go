package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// grace is what a process gets to end by itself before it is killed.
const grace = 10 * time.Second

// outputDelay is how long a command's output may stay open after its end, held by
// children that it left behind.
const outputDelay = time.Second

// process is a child that leads its own process group, so that a signal from the
// terminal comes to us alone and we decide who ends first.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the child has ended
	err  error         // how; read after done
}

// start starts cmd. The caller must wait for done, see [process.end].
func start(cmd *exec.Cmd) (*process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	endWithParent(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = cmd.Wait()
	}()
	return p, nil
}

// end sends first to the whole group, kills it if that is not enough, and waits.
func (p *process) end(first syscall.Signal) {
	limit := time.NewTimer(grace)
	defer limit.Stop()
	p.signal(first)
	select {
	case <-p.done:
	case <-limit.C:
	}
	// The leader may be gone and others of its group not.
	p.signal(syscall.SIGKILL)
	<-p.done
}

func (p *process) signal(s syscall.Signal) {
	_ = syscall.Kill(-p.cmd.Process.Pid, s) // the group may be gone
}

// runCommand runs the command to its end, or ends it with ctx, and gives its exit code.
func runCommand(ctx context.Context, command, env []string, out io.Writer) (int, error) {
	cmd := exec.Command(command[0], command[1:]...) //nolint:noctx // the caller's own command; ctx ends its whole group below
	cmd.Env, cmd.Stdout, cmd.Stderr = env, out, os.Stderr
	cmd.WaitDelay = outputDelay
	p, err := start(cmd)
	if err != nil {
		return 1, err
	}
	select {
	case <-p.done:
		return exitCode(p.err)
	case <-ctx.Done():
		p.end(syscall.SIGINT)
		return 1, fmt.Errorf("interrupted: %w", context.Cause(ctx))
	}
}
