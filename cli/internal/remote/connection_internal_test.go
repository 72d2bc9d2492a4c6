package remote

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

func TestTheTokenOfThisMachineStaysHere(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	if err := os.WriteFile(filepath.Join(state, "token"), []byte("swy_secret-of-the-tests"), 0o600); err != nil {
		t.Fatal(err)
	}
	for server, sent := range map[string]bool{
		"http://127.0.0.1:4700": true, "http://localhost": true, "https://[::1]:1/base/": true, "http://127.9.9.9": true,
		"http://example.com": false, "https://10.0.0.1:4700": false, "http://127.0.0.1.example.com": false,
	} {
		c, err := (&Connection{Server: server, State: state}).Find(t.Context(), Program{})
		if err != nil {
			t.Fatal(err)
		}
		if (c.token != "") != sent {
			t.Errorf("%s: token sent is %t", server, !sent)
		}
	}
}

func TestServersAreGivenAsURLs(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"localhost:4700", "127.0.0.1:4700", "ftp://x", "http://", "http://user:token@x", "::"} {
		if _, err := parseServer(bad); ExitCode(err) != ExitUsage {
			t.Errorf("%s: %v", bad, err)
		}
	}
	u, err := parseServer("https://host/agents/?x=1#y")
	if err != nil || u.String() != "https://host/agents" {
		t.Errorf("%v, %v", u, err)
	}
}

func TestTheRunningServerIsFound(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/livez" {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	port := s.URL[len("http://127.0.0.1"):]
	here := fmt.Sprint(os.Getpid())
	tests := []struct {
		name, file string
		want       serverState
		url        string
	}{
		{"none", "", stateNone, ""},
		{"garbage", "{", stateStale, ""},
		{"no address", `{"pid":` + here + `}`, stateStale, ""},
		{"of a process that is gone", `{"url":"` + s.URL + `","pid":4194303}`, stateStale, s.URL},
		{"silent", `{"url":"http://127.0.0.1:1","pid":` + here + `}`, stateSilent, "http://127.0.0.1:1"},
		{"something else", `{"url":"` + s.URL + `/elsewhere","pid":` + here + `}`, stateSilent, s.URL + "/elsewhere"},
		{"running", `{"url":"` + s.URL + `","pid":` + here + `}`, stateRunning, s.URL},
		{"on every interface", `{"url":"http://0.0.0.0` + port + `","pid":` + here + `}`, stateRunning, s.URL},
		{"on every interface by its new name", `{"url":"http://[::]:1","pid":` + here + `}`, stateSilent, "http://[::1]:1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			state := t.TempDir()
			if tt.file != "" {
				if err := os.WriteFile(filepath.Join(state, RuntimeFile), []byte(tt.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r, got, err := probe(t.Context(), state)
			if err != nil || got != tt.want || r.URL != tt.url {
				t.Errorf("%v %q, %v", got, r.URL, err)
			}
		})
	}
}
