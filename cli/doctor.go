package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchyard-dev/switchyard/access"
	"github.com/switchyard-dev/switchyard/cli/internal/remote"
	"github.com/switchyard-dev/switchyard/config"
	"github.com/switchyard-dev/switchyard/integrity"
)

// toolTime bounds the question for a program's version.
const toolTime = 5 * time.Second

// exitBlind is the exit code where something could not be checked, or must not
// be repaired now.
const exitBlind = 2

// doctor looks at one thing after the other and tells what it finds.
type doctor struct {
	out      io.Writer
	to       remote.Connection
	cfg      Config
	database string
	repair   bool
	json     bool
	report   report
	failed   int
	blind    int
	damaged  bool // the store's file itself
}

// report is what --json prints.
type report struct {
	Checks   []checked           `json:"checks"`
	Findings []integrity.Finding `json:"findings"`
	Backup   string              `json:"backup,omitempty"`
}

// checked is a line of the doctor.
type checked struct {
	Level  string `json:"level"`
	What   string `json:"what"`
	Detail string `json:"detail"`
}

func doctorCommand(cfg Config) *cobra.Command {
	d := &doctor{cfg: cfg, report: report{Checks: []checked{}, Findings: []integrity.Finding{}}}
	cmd := &cobra.Command{
		Use: "doctor", Short: "Find out what is wrong, and mend the store", Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		Long: "Find out what is wrong: the state directory, the token, the server, the store, the\n" +
			"configuration that applies to the working directory, and the programs that tools need.\n" +
			"The store is read from end to end and held against the invariants that every crash must\n" +
			"leave true. A store that a server uses is only read. --repair mends what it can, after a\n" +
			"copy of a SQLite file was made beside it, and refuses while a server uses the store.\n\n" +
			"Each line begins with ok, warn or fail; warn and ok need nothing to be done. Exit codes:\n" +
			"0 nothing is wrong, 1 something is, 2 something could not be checked or repaired now.",
		Example: "  switchyard doctor\n  switchyard doctor --state /var/lib/switchyard --repair\n  switchyard doctor --database postgres://localhost/switchyard --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			d.out = cmd.OutOrStdout()
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&d.database, "database", "", "SQLite `file` or postgres:// URL (default: the file in the state directory)")
	cmd.Flags().BoolVar(&d.repair, "repair", false, "mend what can be mended in the store")
	cmd.Flags().BoolVar(&d.json, "json", false, "print one JSON object")
	d.to.Flags(cmd.Flags())
	return cmd
}

func (d *doctor) run(ctx context.Context) error {
	d.stateDirectory()
	d.token()
	d.server(ctx)
	if d.database != "" || d.to.Server == "" && os.Getenv("SWITCHYARD_URL") == "" {
		d.store(ctx)
	}
	d.configuration(ctx)
	d.program(ctx, "git", true, "version control needs it")
	d.program(ctx, "bash", false, "the bash tool uses sh instead")
	d.program(ctx, "rg", false, "agents may like to use it, the built-in grep does not")
	if ctx.Err() != nil {
		return remote.Interrupted()
	}
	if d.json {
		if err := json.NewEncoder(d.out).Encode(d.report); err != nil {
			return err
		}
	}
	if d.blind > 0 {
		return remote.Exitf(exitBlind, "checks that failed: %d, that could not be made: %d", d.failed, d.blind)
	}
	if d.failed > 0 {
		return remote.Exitf(remote.ExitFailed, "checks that failed: %d", d.failed)
	}
	return nil
}

func (d *doctor) say(level, what, format string, args ...any) {
	if level == "fail" {
		d.failed++
	}
	detail := printable(fmt.Sprintf(format, args...))
	if d.json {
		d.report.Checks = append(d.report.Checks, checked{Level: level, What: what, Detail: detail})
		return
	}
	fmt.Fprintf(d.out, "%-4s  %s: %s\n", level, what, detail)
}

func (d *doctor) ok(what, format string, args ...any)   { d.say("ok", what, format, args...) }
func (d *doctor) warn(what, format string, args ...any) { d.say("warn", what, format, args...) }
func (d *doctor) fail(what, format string, args ...any) { d.say("fail", what, format, args...) }

func (d *doctor) stateDirectory() {
	const what = "state directory"
	info, err := os.Stat(d.to.State)
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		d.ok(what, "%s is not there yet; the server makes it", d.to.State)
	case err != nil:
		d.fail(what, "%v", err)
	case !info.IsDir():
		d.fail(what, "%s is no directory", d.to.State)
	case info.Mode().Perm()&0o022 != 0:
		d.fail(what, "%s can be written by others (mode %o): chmod 700 it", d.to.State, info.Mode().Perm())
	case info.Mode().Perm()&0o055 != 0:
		d.warn(what, "%s can be read by others (mode %o): chmod 700 it", d.to.State, info.Mode().Perm())
	default:
		d.ok(what, "%s", d.to.State)
	}
}

func (d *doctor) token() {
	const what = "token"
	if d.to.TokenFile != "" || os.Getenv("SWITCHYARD_TOKEN") != "" {
		if _, err := access.LoadToken(access.TokenSource{File: d.to.TokenFile, Env: os.Getenv("SWITCHYARD_TOKEN")}); err != nil {
			d.fail(what, "%v", err)
			return
		}
		d.ok(what, "given by --token-file or SWITCHYARD_TOKEN")
		return
	}
	path := filepath.Join(d.to.State, remote.TokenFile)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		d.ok(what, "there is none yet; the server makes one")
		return
	case err != nil:
		d.fail(what, "%v", err)
		return
	case info.Mode().Perm()&0o077 != 0:
		d.fail(what, "%s can be read by others (mode %o): chmod 600 it, and make a new token where others use this machine", path, info.Mode().Perm())
		return
	}
	if _, err := access.LoadToken(access.TokenSource{File: path}); err != nil {
		d.fail(what, "%v", err)
		return
	}
	d.ok(what, "%s", path)
}

// server asks the server how it is.
func (d *doctor) server(ctx context.Context) {
	const what = "server"
	server, err := d.to.Find(ctx, d.cfg.program())
	if errors.Is(err, remote.ErrNoServer) {
		d.ok(what, "none is running here")
		return
	}
	if err != nil {
		d.fail(what, "%v", err)
		return
	}
	var h struct {
		Status  string `json:"status"`
		Version string `json:"version"`
		Store   struct {
			Engine string `json:"engine"`
			Code   string `json:"code"`
		} `json:"store"`
	}
	if err := server.Call(ctx, "health.get", remote.Arguments{}, &h); err != nil {
		d.fail(what, "%v", err)
		return
	}
	switch {
	case h.Version == "":
		d.fail(what, "%s runs, and does not accept this token", server.Base())
	case h.Status != "ok":
		d.fail(what, "%s is %s: the %s store says %s", server.Base(), h.Status, h.Store.Engine, h.Store.Code)
	case h.Version != d.cfg.Version:
		d.warn(what, "%s runs version %s, this program is %s", server.Base(), h.Version, d.cfg.Version)
	default:
		d.ok(what, "%s runs version %s with a %s store", server.Base(), h.Version, h.Store.Engine)
	}
}

func (d *doctor) configuration(ctx context.Context) {
	const what = "configuration"
	list, err := configProblems(ctx, ".")
	if err != nil {
		d.fail(what, "%v", err)
		return
	}
	for _, p := range list {
		if p.Severity == config.SeverityError {
			d.fail(what, "%s", p)
			continue
		}
		d.warn(what, "%s", p)
	}
	if len(list) == 0 {
		d.ok(what, "no mistakes found")
	}
}

// program looks for a program and asks for its version.
func (d *doctor) program(ctx context.Context, name string, needed bool, without string) {
	path, err := exec.LookPath(name)
	switch {
	case err != nil && needed:
		d.warn(name, "not found: %s", without)
		return
	case err != nil:
		d.ok(name, "not found: %s", without)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		d.warn(name, "%s does not tell its version: %v", path, err)
		return
	}
	line, _, _ := strings.Cut(string(out), "\n")
	d.ok(name, "%s (%s)", path, strings.TrimSpace(line))
}
