package id_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/id"
)

func TestParse(t *testing.T) {
	t.Parallel()
	src := id.NewSource(time.Now, nil)
	ses := id.New[id.Session](src)
	ws := id.New[id.Workspace](src)
	tests := []struct {
		name, in, want string
		parse          func(string) (string, bool)
		ok             bool
	}{
		{"session", string(ses), string(ses), text[id.Session], true},
		{"lower case", "ses_" + strings.ToLower(string(ses[4:])), string(ses), text[id.Session], true},
		{"synonym", strings.Replace(string(ws), "ws_", "wrk_", 1), string(ws), text[id.Workspace], true},
		{"other kind", string(ws), "", text[id.Session], false},
		{"short", "ses_01", "", text[id.Session], false},
		{"not base 32", "ses_" + strings.Repeat("U", 26), "", text[id.Session], false},
		{"overflow", "ses_" + strings.Repeat("Z", 26), "", text[id.Session], false},
		{"client message", "msg_p-1_X", "msg_p-1_X", text[id.Message], true},
		{"message too long", "msg_" + strings.Repeat("a", 65), "", text[id.Message], false},
		{"message with slash", "msg_a/b", "", text[id.Message], false},
		{"empty", "", "", text[id.Pty], false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := tt.parse(tt.in)
			if ok != tt.ok || ok && got != tt.want {
				t.Fatalf("Parse(%q) = %q, %v; want %q, %v", tt.in, got, ok, tt.want, tt.ok)
			}
		})
	}
}

func text[T ~string](s string) (string, bool) {
	v, ok := id.Parse[T](s)
	return string(v), ok
}

func TestSessionIsUUIDv7(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_700_000_000_123)
	ses := id.New[id.Session](id.NewSource(func() time.Time { return at }, nil))
	uuid, ok := id.UUID(ses)
	if !ok || len(uuid) != 36 || uuid[14] != '7' || !strings.ContainsRune("89ab", rune(uuid[19])) {
		t.Fatalf("UUID(%s) = %q, %v", ses, uuid, ok)
	}
	if got, ok := id.Time(ses); !ok || !got.Equal(at) {
		t.Fatalf("Time = %v, %v", got, ok)
	}
}

func TestSourceClampsBackwardClock(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(2_000)
	src := id.NewSource(func() time.Time { return now }, nil)
	first := id.New[id.Part](src)
	now = time.UnixMilli(1_000)
	second := id.New[id.Part](src)
	a, _ := id.Time(first)
	b, _ := id.Time(second)
	if b.Before(a) {
		t.Fatalf("time went back from %v to %v", a, b)
	}
}

func TestSourceConcurrent(t *testing.T) {
	t.Parallel()
	src := id.NewSource(time.Now, nil)
	var mu sync.Mutex
	seen := map[id.Call]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				v := id.New[id.Call](src)
				mu.Lock()
				seen[v] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(seen) != 1600 {
		t.Fatalf("%d different ids, want 1600", len(seen))
	}
}
