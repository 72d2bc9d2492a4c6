package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// program is something that tests or benchmarks call and Debian has a package of.
type program struct {
	title string
	pkg   string        // Debian's package
	find  func() string // where it is, empty if nowhere
}

var programs = map[string]program{
	"postgres": {"PostgreSQL", "postgresql", findPostgres},
	"ripgrep":  {"ripgrep", "ripgrep", inPath("rg")},
	"chromium": {"Chromium", "chromium", inPath("chromium", "chromium-browser", "google-chrome")},
}

func programNames() []string { return slices.Sorted(maps.Keys(programs)) }

// ensure installs the program if it is not there yet.
func ensure(ctx context.Context, name string) error {
	p, ok := programs[name]
	if !ok {
		return fmt.Errorf("program %q is unknown: one of %s", name, strings.Join(programNames(), ", "))
	}
	if p.find() != "" {
		return nil
	}
	command, err := aptCommand(exec.LookPath, os.Geteuid())
	if err != nil {
		return fmt.Errorf("%s is missing: %w; install it by hand (package %s)", p.title, err, p.pkg)
	}
	say("installing %s (Debian's package %s)", p.title, p.pkg)
	if err := aptInstall(ctx, command, p.pkg); err != nil {
		return err
	}
	if p.find() == "" {
		return fmt.Errorf("%s is still missing after the installation of %s", p.title, p.pkg)
	}
	return nil
}

// aptCommand gives the start of the command that installs packages here.
func aptCommand(look func(string) (string, error), uid int) ([]string, error) {
	apt, err := look("apt-get")
	if err != nil {
		return nil, errors.New("there is no apt-get to install it with")
	}
	set := []string{"env", "DEBIAN_FRONTEND=noninteractive", apt, "-q", "-y", "-o", "DPkg::Lock::Timeout=300"}
	if uid == 0 {
		return set, nil
	}
	if _, err := look("sudo"); err != nil {
		return nil, errors.New("only root may install it")
	}
	// -n: fail at once where a password would be asked for.
	return append([]string{"sudo", "-n"}, set...), nil
}

func aptInstall(ctx context.Context, command []string, pkg string) error {
	apt := func(args ...string) error {
		all := append(slices.Clone(command[1:]), args...)
		out, err := exec.CommandContext(ctx, command[0], all...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("running apt-get %s: %w\n%s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	// Old package lists may still do, so the installation decides.
	update := apt("update")
	if err := apt("install", "--no-install-recommends", pkg); err != nil {
		return errors.Join(update, err)
	}
	return nil
}

// inPath gives a finder for the first of names that is in PATH.
func inPath(names ...string) func() string {
	return func() string {
		for _, name := range names {
			if at, err := exec.LookPath(name); err == nil {
				return at
			}
		}
		return ""
	}
}

// findPostgres gives the directory with initdb and postgres: the one in PATH, else
// the newest version where packages put them.
func findPostgres() string {
	dirs := []string{}
	if initdb, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(initdb); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin",
		"/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin",
	} {
		found, _ := filepath.Glob(pattern) // only a bad pattern is an error
		slices.SortFunc(found, func(a, b string) int { return version(b) - version(a) })
		dirs = append(dirs, found...)
	}
	for _, dir := range dirs {
		if executable(filepath.Join(dir, "initdb")) && executable(filepath.Join(dir, "postgres")) {
			return dir
		}
	}
	return ""
}

// version gives the number in a directory like /usr/lib/postgresql/15/bin, else 0.
func version(dir string) int {
	digits := strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, dir)
	n, _ := strconv.Atoi(digits)
	return n
}

func executable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}
