package access_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/switchyard-dev/switchyard/access"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
)

func TestTokenIsMadeOnceAndPrivate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state", "switchyard")
	first, err := access.LoadToken(access.TokenSource{StateDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if got := first.Reveal(); !strings.HasPrefix(got, "swy_") || len(got) != len("swy_")+43 {
		t.Errorf("token of %d characters, prefix %q", len(got), got[:4])
	}
	again, err := access.LoadToken(access.TokenSource{StateDir: dir})
	if err != nil || again.Reveal() != first.Reveal() || again.ID() != first.ID() {
		t.Errorf("second start: %v", err)
	}
	if other, _ := access.LoadToken(access.TokenSource{StateDir: t.TempDir()}); other.Reveal() == first.Reveal() {
		t.Error("two servers have the same token")
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "token"): 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".token-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, ok := id.Parse[id.Token](string(first.ID())); !ok {
		t.Errorf("id %q", first.ID())
	}
}

func TestTokenOfConcurrentFirstStartsIsOne(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	var wg sync.WaitGroup
	secrets := make([]string, 16)
	for i := range secrets {
		wg.Go(func() {
			token, err := access.LoadToken(access.TokenSource{StateDir: dir})
			if err != nil {
				t.Error(err)
			}
			secrets[i] = token.Reveal()
		})
	}
	wg.Wait()
	for _, s := range secrets {
		if s == "" || s != secrets[0] {
			t.Fatal("the starts do not agree")
		}
	}
}

func TestOpenTokenFileIsClosed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "token")
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	token, err := access.LoadToken(access.TokenSource{StateDir: dir})
	if err != nil || token.Reveal() != secret {
		t.Fatalf("%v", err)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestTokenSources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "mounted")
	if err := os.WriteFile(file, []byte("  from-a-file-0123456789\n"), 0o444); err != nil {
		t.Fatal(err)
	}
	short := filepath.Join(dir, "short")
	if err := os.WriteFile(short, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		src  access.TokenSource
		want string
		err  string
	}{
		{"file before environment", access.TokenSource{File: file, Env: "from-environment-0123"}, "from-a-file-0123456789", ""},
		{"environment before state", access.TokenSource{Env: "from-environment-0123", StateDir: dir}, "from-environment-0123", ""},
		{"missing file", access.TokenSource{File: file + "x", Env: "from-environment-0123"}, "", "no such file"},
		{"short file", access.TokenSource{File: short}, "", short},
		{"short environment", access.TokenSource{Env: "hunter2"}, "", "SWITCHYARD_TOKEN"},
		{"spaces inside", access.TokenSource{Env: "correct horse battery staple"}, "", "no spaces"},
		{"not ASCII", access.TokenSource{Env: "pässwörter-sind-lang"}, "", "ASCII"},
		{"too long", access.TokenSource{Env: strings.Repeat("x", 600)}, "", "16 to 512"},
		{"nowhere", access.TokenSource{}, "", "state directory"},
	}
	for _, tt := range tests {
		token, err := access.LoadToken(tt.src)
		if tt.err == "" && (err != nil || token.Reveal() != tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "token")); err == nil {
		t.Error("a token file is made although another source is set")
	}
}

func TestTokenNeverPrints(t *testing.T) {
	t.Parallel()
	token, err := access.ParseToken(secret)
	if err != nil {
		t.Fatal(err)
	}
	type hidden struct{ token access.Token }
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("start", "token", token, "in", hidden{token})
	encoded, err := json.Marshal(map[string]any{"token": token})
	if err != nil {
		t.Fatal(err)
	}
	out := fmt.Sprintf("%v %+v %#v %s %q %x %d %v %+v %#v", token, token, token, token, token, token, token, hidden{token}, hidden{token}, &hidden{token})
	for _, s := range []string{out, log.String(), string(encoded)} {
		if strings.Contains(s, "0123456789abcdef") || !strings.Contains(s, "***") {
			t.Errorf("printed: %s", s)
		}
	}
}

func TestZeroTokenVerifiesNothing(t *testing.T) {
	t.Parallel()
	var zero access.Token
	for _, s := range []string{"", "x", zero.Reveal()} {
		if _, err := zero.Verify(t.Context(), s); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%q: %v", s, err)
		}
	}
}
