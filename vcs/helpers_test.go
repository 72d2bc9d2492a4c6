package vcs_test

import (
	"encoding/base64"
	"os/exec"
	"strings"
)

// exact gives a name's bytes.
func exact(name, encoded string) string {
	if encoded == "" {
		return name
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return "not base64: " + encoded
	}
	return string(data)
}

// with runs git on another index.
func (b *bundle) with(index, stdin string, args ...string) string {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), "git", args...)
	cmd.Dir = b.dir
	cmd.Env = append(b.environ(), "GIT_INDEX_FILE="+index, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=core.safecrlf", "GIT_CONFIG_VALUE_0=false",
		"GIT_CONFIG_KEY_1=advice.addEmbeddedRepo", "GIT_CONFIG_VALUE_1=false")
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}
