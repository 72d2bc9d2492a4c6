package env

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/switchyard-dev/switchyard/fault"
)

const (
	// callVar marks a child and all that it starts with the tool call that it
	// belongs to, so that a later server finds what a crashed one left behind.
	callVar = "SWITCHYARD_CALL"

	defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// ErrNoProgram is what Start's error is when the program is not on this machine.
var ErrNoProgram = exec.ErrNotFound

// fixedVars stand in every child's environment.
var fixedVars = map[string]string{
	"GIT_TERMINAL_PROMPT": "0", // git would wait for a password that nobody can type
}

// inheritedVars are what children may see of the server's environment; beside
// them LC_* and XDG_*.
var inheritedVars = map[string]bool{
	"PATH": true, "HOME": true, "USER": true, "LOGNAME": true, "SHELL": true,
	"LANG": true, "TERM": true, "TMPDIR": true, "TZ": true,
}

// secretWords in a name keep a variable out, whatever list it is on.
var secretWords = []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "_KEY", "APIKEY"}

// inherited picks from environ what a child may see: the allow-list and the
// names in pass.
func inherited(environ, pass []string) map[string]string {
	vars := map[string]string{"PATH": defaultPath}
	passed := map[string]bool{}
	for _, name := range pass {
		passed[name] = !strings.HasPrefix(name, "SWITCHYARD_")
	}
	for _, pair := range environ {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || value == "" {
			continue
		}
		if passed[name] || inheritedVars[name] || localeOrXDG(name) {
			vars[name] = value
		}
	}
	return vars
}

func localeOrXDG(name string) bool {
	if strings.HasPrefix(name, "LC_") {
		return true
	}
	if !strings.HasPrefix(name, "XDG_") {
		return false
	}
	for _, word := range secretWords {
		if strings.Contains(name, word) {
			return false
		}
	}
	return true
}

// shellOf chooses the shell for command lines. Other shells than these three
// read another language, so the user's is taken only when it is one of them.
func shellOf(environ []string) string {
	var own string
	for _, pair := range environ {
		if value, ok := strings.CutPrefix(pair, "SHELL="); ok {
			own = value
		}
	}
	switch path.Base(own) {
	case "bash", "zsh", "sh":
		if path.IsAbs(own) && executable(own) {
			return own
		}
	}
	if executable("/bin/bash") {
		return "/bin/bash"
	}
	return "/bin/sh"
}

func executable(p string) bool {
	info, err := os.Stat(p)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// Start runs a command in its own process group. When ctx ends the group is
// stopped. A Dir that is missing is a directory_not_found fault, a file a
// not_a_directory fault, both with "path"; a program that cannot be run is an
// error that says so.
func (e *LocalEnv) Start(ctx context.Context, c Command) (Process, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	args := c.Args
	if c.Shell != "" {
		args = append(e.Shell(), c.Shell)
	}
	if len(args) == 0 {
		return nil, errors.New("starting a command: there is none")
	}
	dir, err := e.workDir(c.Dir)
	if err != nil {
		return nil, err
	}
	// The end of ctx stops the whole group, in steps; os/exec would kill the
	// command alone.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(e.ChildEnv(c.Env, c.Call), "PWD="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdin, cmd.Stderr = c.Stdin, c.Errors
	return startProcess(ctx, cmd, c.Output)
}

// workDir gives the absolute directory for a child.
func (e *LocalEnv) workDir(p string) (string, error) {
	name, err := e.files.Rel(p)
	if err != nil {
		return "", err
	}
	info, err := e.files.Stat(name)
	switch {
	case errors.Is(err, iofs.ErrNotExist) && !fault.Is(err, fault.DirectoryMissing):
		return "", withField(fault.Wrap(err, fault.DirectoryNotFound, "there is no directory %s", p), "path", p)
	case err != nil:
		return "", fmt.Errorf("choosing a working directory: %w", err)
	case !info.IsDir():
		return "", notDirectory(p, iofs.ErrInvalid)
	}
	return filepath.Join(e.files.dir, filepath.FromSlash(name)), nil
}
