package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/cli"
)

func TestSC60_BindPolicy(t *testing.T) {
	for _, host := range []string{"0.0.0.0", "::", "192.168.1.20"} {
		f := &serveFlags{host: host, port: 0, state: t.TempDir(), directory: t.TempDir(), logLevel: "error"}
		start := time.Now()
		var out bytes.Buffer
		err := serve(t.Context(), f, &out, &out)
		if err == nil || strings.Contains(err.Error(), "\n") || time.Since(start) > time.Second || out.Len() != 0 {
			t.Errorf("%s: %v after %v, printed %q", host, err, time.Since(start), out.String())
		}
	}
	f := &serveFlags{host: "127.0.0.1", state: t.TempDir(), directory: t.TempDir(), logLevel: "error", insecure: true}
	if err := serve(t.Context(), f, &bytes.Buffer{}, &bytes.Buffer{}); err == nil {
		t.Error("--insecure-no-auth alone is enough")
	}
}

// lineWriter hands the first line on as soon as it is written.
type lineWriter struct{ lines chan string }

func (w lineWriter) Write(p []byte) (int, error) {
	w.lines <- string(p)
	return len(p), nil
}

func TestServeOnPortZeroPrintsJSON(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	f := &serveFlags{host: "127.0.0.1", port: 0, state: t.TempDir(), directory: t.TempDir(), logLevel: "error", leaseTTL: time.Minute}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := lineWriter{lines: make(chan string, 4)}
	done := make(chan error, 1)
	go func() { done <- serve(ctx, f, out, &bytes.Buffer{}) }()
	var at cli.Runtime
	select {
	case line := <-out.lines:
		if err := json.Unmarshal([]byte(line), &at); err != nil || at.PID == 0 {
			t.Fatalf("%q: %v", line, err)
		}
	case err := <-done:
		t.Fatal(err)
	}
	res, err := http.Get(at.URL + "/api/session")
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %d", res.StatusCode)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
