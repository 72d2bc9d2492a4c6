// Command testservices runs a command, usually the tests, with the services that
// it needs, and stops them afterwards, also when the command fails or a signal
// comes. Everything that it starts is its own and thrown away: it never touches a
// database server that runs already.
//
//	testservices [-postgres] [-install ripgrep,chromium] [-json] -- command [argument …]
//
// With -json the command's output is that of `go test -json`; it is shown short,
// with a summary of what failed and what was left out at the end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
)

// postgresEnv tells the command where its PostgreSQL is; package testkit reads it.
const postgresEnv = "SWITCHYARD_TEST_POSTGRES"

// options of a run.
type options struct {
	postgres bool
	install  []string
	json     bool
	command  []string
}

func main() {
	// The services are told to end when the thread that started them does, so that
	// thread must be the one that lives as long as this process.
	runtime.LockOSThread()
	var o options
	install := ""
	flag.BoolVar(&o.postgres, "postgres", false, "start a PostgreSQL and set "+postgresEnv)
	flag.StringVar(&install, "install", "", "comma-separated `programs` that must be there: "+strings.Join(programNames(), ", "))
	flag.BoolVar(&o.json, "json", false, "the command is a `go test -json`: show it short")
	flag.Parse()
	o.command = flag.Args()
	o.install = strings.FieldsFunc(install, func(r rune) bool { return r == ',' })

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, o)
	stop()
	if err != nil {
		say("%v", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// run does everything and gives the command's exit code.
func run(ctx context.Context, o options) (code int, err error) {
	if len(o.command) == 0 {
		return 2, errors.New("no command given")
	}
	for _, name := range o.install {
		if err := ensure(ctx, name); err != nil {
			return 1, err
		}
	}
	env := os.Environ()
	if o.postgres {
		if server := os.Getenv(postgresEnv); server != "" {
			say("using the PostgreSQL of %s", postgresEnv)
		} else {
			server, err := startPostgres(ctx)
			if err != nil {
				return 1, err
			}
			defer func() { err = errors.Join(err, server.stop()) }()
			env = append(env, postgresEnv+"="+server.url)
		}
	}
	if !o.json {
		return runCommand(ctx, o.command, env, os.Stdout)
	}
	report := newReport(os.Stdout)
	code, err = runCommand(ctx, o.command, env, report)
	if !report.close() {
		code = max(code, 1)
	}
	return code, err
}

// say prints a line about the services themselves.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "testservices: "+format+"\n", args...)
}

// exitCode gives a finished command's exit code, 1 where a signal ended it.
func exitCode(err error) (int, error) {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}
