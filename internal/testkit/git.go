package testkit

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Repo makes a git repository with one commit in a temporary directory and gives
// its path: branch main, file README.md. Git runs there without the machine's own
// configuration, see [Git].
func Repo(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	Git(t, dir, "init", "--quiet", "--initial-branch=main")
	WriteFile(t, dir, "README.md", "# A repository\n")
	Git(t, dir, "add", "--all")
	Git(t, dir, "commit", "--quiet", "--message=First")
	return dir
}

// Git runs git in dir and gives what it printed, without the last line break. It
// fails the test if git does. The user, the dates and the configuration are fixed,
// so that the same steps give the same commit ids on every machine.
func Git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = GitEnv()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// GitEnv gives this process's environment without any git setting and with the
// fixed ones of [Git], for tests that start git, or something that does, themselves.
func GitEnv() []string {
	env := []string{}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "GIT_") {
			env = append(env, kv)
		}
	}
	return append(env,
		"GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z",
	)
}
