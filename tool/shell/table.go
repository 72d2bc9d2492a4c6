package shell

// set makes a constant table of names.
func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

var (
	// shells run their argument or their input, except when the first argument is
	// a script.
	shells = set("sh", "bash", "rbash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "pwsh", "nu")

	// runners run a command of their arguments or their input.
	runners = set(
		"eval", "exec", "source", ".", "builtin", "coproc", "noglob", "nocorrect", "repeat", "foreach", "-", "zargs", "zmv", "sched", "at", "batch", "crontab",
		"env", "sudo", "doas", "su", "runuser", "pkexec", "nohup", "time", "nice", "ionice", "chrt", "taskset",
		"timeout", "stdbuf", "setsid", "setarch", "setpriv", "chroot", "unshare", "nsenter", "systemd-run",
		"script", "watch", "flock", "entr", "strace", "ltrace", "xargs", "parallel", "busybox", "toybox",
		"expect", "unbuffer", "dbus-run-session", "start-stop-daemon", "ssh-agent", "run-parts",
	)

	// changers change what later commands mean, or where they run.
	changers = set(
		"trap", "alias", "unalias", "hash", "enable", "bind", "complete", "compgen", "shopt", "fc", "let", "read",
		"mapfile", "readarray", "getopts", "unset", "pushd", "popd", "emulate", "zmodload", "autoload",
		"setopt", "unsetopt", "zstyle", "vared", "functions",
	)

	// actions are the flags by which searching programs run commands or write.
	actions = map[string][]string{
		"find": {"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"},
		"fd":   {"-x", "-X", "--exec", "--exec-batch"},
		"rg":   {"--pre", "--hostname-bin"},
		"sort": {"--compress-program"},
	}

	// declares assign like "A=b" does, and export.
	declares = set("export", "readonly", "declare", "typeset", "local", "nameref")

	// prints only print or compare what they are given.
	prints = set("echo", "printf", "test", "[", "[[", "true", "false", ":", "exit", "return")

	// evaluates are the flags by which these evaluate what a variable holds.
	evaluates = set("-v", "-R", "-eq", "-ne", "-lt", "-le", "-gt", "-ge")

	// builtins see their arguments as shell text in some shells.
	builtins = set("test", "[", "[[", "printf", "print", "wait", "kill", "cd", "export", "readonly", "declare", "typeset", "local", "shift", "return", "exit")

	// numeric are the variables that are always numbers.
	numeric = set("$?", "$#", "$$", "$!", `"$?"`, `"$#"`, `"$$"`, `"$!"`)

	shellOptions = set("pipefail", "errexit", "nounset", "xtrace", "noglob")

	// variables are known to change no more than output, language or mode.
	variables = set(
		"CI", "NODE_ENV", "GOOS", "GOARCH", "GOARM", "GOAMD64", "CGO_ENABLED", "GOMAXPROCS", "GOGC", "GO111MODULE",
		"RUST_LOG", "RUST_BACKTRACE", "CARGO_TERM_COLOR", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE",
		"RAILS_ENV", "RACK_ENV", "APP_ENV", "MIX_ENV", "FLASK_ENV", "LANG", "LANGUAGE", "TZ", "TERM", "COLUMNS", "LINES",
		"NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "VERBOSE", "DEBIAN_FRONTEND",
	)

	// zshSpecial are lower-case names that one shell ties to its search paths.
	zshSpecial = set("path", "cdpath", "fpath", "manpath", "module_path", "aliases", "functions", "commands", "options")

	// streams are no files.
	streams = set("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty")

	// touches are the commands whose operands are files to read or change.
	touches = set("cd", "rm", "rmdir", "unlink", "cp", "mv", "ln", "mkdir", "touch", "chmod", "chown", "chgrp", "cat", "tee", "install", "truncate", "head", "tail")
)
