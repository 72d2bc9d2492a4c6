package vcs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/switchyard-dev/switchyard/env"
)

const (
	// programTime bounds one run of git: a repository may make it read a FIFO.
	programTime = 2 * time.Minute
	// maxOutput bounds what one run may give into memory.
	maxOutput = 256 << 20
	maxErrors = 8 << 10
)

// errNoProgram says that there is no git, or none that takes our settings.
var errNoProgram = errors.New("there is no git program")

// gitError is git's own failure.
type gitError struct {
	command string
	code    int
	text    string // what it wrote to stderr
}

func (e *gitError) Error() string {
	return fmt.Sprintf("git %s: exit %d: %s", e.command, e.code, strings.TrimSpace(e.text))
}

// safety is the environment of every git process. A repository's configuration
// can name programs in many places; each is switched off here, as settings from
// the environment win over those of files. Filters have names that nobody knows
// beforehand, see safe.
func safety() map[string]string {
	return map[string]string{
		"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_LITERAL_PATHSPECS": "1",
		// No transport at all: objects that a partial clone lacks stay away.
		"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1",
		"GIT_PAGER": "cat", "GIT_EDITOR": ":", "GIT_ASKPASS": "", "SSH_ASKPASS": "",
		"LC_ALL": "C", "LANGUAGE": "",
	}
}

// settings are configuration that wins over the repository's: first what could
// run a program, then what would change the form of the output.
func settings() [][2]string {
	return [][2]string{
		{"core.fsmonitor", "false"},
		{"core.hooksPath", "/dev/null"},
		{"core.pager", "cat"},
		{"core.editor", ":"},
		{"core.askPass", ""},
		{"core.sshCommand", "false"},
		{"core.gitProxy", ""},
		{"core.alternateRefsCommand", "false"},
		{"credential.helper", ""},
		{"diff.external", ""},
		{"gpg.program", "false"},
		{"protocol.allow", "never"},
		{"protocol.ext.allow", "never"},
		{"protocol.file.allow", "never"},
		{"log.showSignature", "false"},
		{"status.submoduleSummary", "false"},
		{"submodule.recurse", "false"},

		{probeKey, "1"},
		// git diff would write the index.
		{"diff.autoRefreshIndex", "false"},
		{"core.quotePath", "false"},
		{"color.ui", "false"},
		{"diff.suppressBlankEmpty", "false"},
		{"diff.colorMoved", "no"},
		{"diff.interHunkContext", "0"},
		{"diff.wsErrorHighlight", "none"},
		{"apply.whitespace", "nowarn"},
		{"apply.ignoreWhitespace", "no"},
	}
}

// probeKey tells that git heeds settings from the environment, which versions
// before 2.31 do not.
const probeKey = "switchyard.probe"

// call is one run of git.
type call struct {
	// in is where it runs: a repository, or the zero Repo for none. dir is where
	// it works, absolute; "" is the top of the work tree.
	in   Repo
	dir  string
	args []string
	// off are the filters to switch off.
	off   []string
	stdin io.Reader
	out   io.Writer
	// discover lets git find the repository of dir by itself.
	discover bool
}

// environ gives the environment of a call.
func (c call) environ() map[string]string {
	vars := safety()
	switch {
	case c.discover:
	case c.in.Root == "":
		// A directory that looks like a repository itself must not become one.
		vars["GIT_DIR"] = "/dev/null"
	default:
		// Named outright: core.worktree could point anywhere.
		vars["GIT_DIR"], vars["GIT_WORK_TREE"] = c.in.GitDir, c.in.Root
	}
	pairs := settings()
	for _, name := range c.off {
		pairs = append(pairs, [2]string{"filter." + name + ".clean", ""}, [2]string{"filter." + name + ".smudge", ""},
			[2]string{"filter." + name + ".process", ""}, [2]string{"filter." + name + ".required", "false"})
	}
	vars["GIT_CONFIG_COUNT"] = strconv.Itoa(len(pairs))
	for i, p := range pairs {
		vars["GIT_CONFIG_KEY_"+strconv.Itoa(i)], vars["GIT_CONFIG_VALUE_"+strconv.Itoa(i)] = p[0], p[1]
	}
	return vars
}

// run runs git to its end. Its failure is a *gitError; errNoProgram says that it
// could not be started.
func (s *Service) run(ctx context.Context, c call) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithTimeoutCause(ctx, programTime, fmt.Errorf("git %s took over %v", c.args[0], programTime))
	defer cancel()
	dir := c.dir
	if dir == "" {
		dir = c.in.Root
	}
	args := []string{s.Program, "--no-pager"}
	if dir != "" {
		args = append(args, "-C", dir)
	}
	stderr := &limited{limit: maxErrors}
	p, err := s.Env.Start(ctx, env.Command{Args: append(args, c.args...), Env: c.environ(), Output: c.out, Errors: stderr, Stdin: c.stdin})
	if errors.Is(err, env.ErrNoProgram) {
		return errNoProgram
	}
	if err != nil {
		return fmt.Errorf("running git %s: %w", c.args[0], err)
	}
	exit := p.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case exit.Err != nil:
		return fmt.Errorf("running git %s: %w", c.args[0], exit.Err)
	case exit.Code != 0:
		return &gitError{command: c.args[0], code: exit.Code, text: stderr.String()}
	}
	return nil
}

// output runs git and gives what it printed.
func (s *Service) output(ctx context.Context, c call) ([]byte, error) {
	out := &limited{limit: maxOutput}
	c.out = out
	if err := s.run(ctx, c); err != nil {
		return nil, err
	}
	if out.over {
		return nil, fmt.Errorf("git %s printed over %d bytes", c.args[0], maxOutput)
	}
	return out.Bytes(), nil
}

// stream runs git and calls read with its output while it runs. An error of read
// ends git.
func (s *Service) stream(ctx context.Context, c call, read func(*bufio.Reader) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	from, to := io.Pipe()
	c.out = to
	var failure error
	var wg sync.WaitGroup
	wg.Go(func() {
		failure = s.run(ctx, c)
		_ = to.CloseWithError(failure) // a nil failure is the end of the output
	})
	err := read(bufio.NewReaderSize(from, 64<<10))
	if err != nil {
		cancel()
	}
	_ = from.Close()
	wg.Wait()
	if err != nil && !errors.Is(err, failure) {
		return err
	}
	return failure
}

// limited keeps the first bytes that are written to it.
type limited struct {
	bytes.Buffer
	limit int
	over  bool
}

// Write implements io.Writer; it never fails.
func (l *limited) Write(p []byte) (int, error) {
	if room := l.limit - l.Len(); len(p) > room {
		l.over = true
		l.Buffer.Write(p[:room])
		return len(p), nil
	}
	return l.Buffer.Write(p)
}
