package app_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/app/apptest"
)

// npmParsers installs the public parsers of testdata/parsers and gives the
// directory with the program that uses them.
func npmParsers(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("npm is not installed: the public JavaScript parsers are not tried")
	}
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "read.mjs"} {
		data, err := os.ReadFile(filepath.Join("testdata", "parsers", name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), data)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	install := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("npm ci: %v\n%s", err, out)
		}
		t.Skipf("the public JavaScript parsers cannot be installed: %v", err)
	}
	return dir
}

func TestPublicJavaScriptParsersReadTheStream(t *testing.T) {
	t.Parallel()
	dir := npmParsers(t)
	s := apptest.Start(t, apptest.Options{})
	ses := s.Session("")
	query := apptest.Query("session", string(ses.ID))
	own := s.Events(query)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	node := exec.CommandContext(ctx, "node", "read.mjs", s.URL+"/api/event"+query, apptest.Token)
	node.Dir = dir
	var errs bytes.Buffer
	node.Stderr = &errs
	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() {
		t.Fatalf("the readers did not start: %s", errs.String())
	}
	// Both readers have asked for the stream; give their requests time to arrive.
	own.Rest(500 * time.Millisecond)
	s.Prompt(ses, "say:hello parsers, ünïcode and all\n\ttwo lines")
	want := ids(own.Until("session.idle"))
	for lines.Scan() {
		var seen struct {
			Parser string   `json:"parser"`
			IDs    []string `json:"ids"`
			Types  []string `json:"types"`
		}
		if err := json.Unmarshal(lines.Bytes(), &seen); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		// A title may follow the idle before the reader has left.
		got, types := seen.IDs[1:], seen.Types
		if len(got) == len(want)+1 && types[len(types)-1] == "session.updated" {
			got = got[:len(want)]
		}
		if types[0] != "server.connected" || !slices.Equal(got, want) {
			t.Errorf("%s saw %d events, want %d", seen.Parser, len(got), len(want))
		}
	}
	if err := node.Wait(); err != nil {
		t.Fatalf("node: %v\n%s", err, errs.String())
	}
}
