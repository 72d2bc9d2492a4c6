package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	soakSessions = 50
	// soakPause is between two prompts of a session, so that the machine is busy
	// but not full.
	soakPause = 2 * time.Second
	// soakTurns is how many turns a session has before another takes its place, so
	// that the load stays the same.
	soakTurns = 20
	// sampleEvery is how often memory is looked at.
	sampleEvery = 10 * time.Second
)

// soak lets sessions prompt for a while and fits a line through the memory of the
// second half: the first fills caches and the ring of events.
func (b *bench) soak(ctx context.Context, length time.Duration) error {
	home := filepath.Join(b.dir, "soak")
	config := filepath.Join(home, ".config", "switchyard")
	if err := os.MkdirAll(config, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(config, "switchyard.json"), []byte(`{"permission": {"*": "allow"}}`), 0o600); err != nil {
		return err
	}
	p, err := b.serverOn(ctx, home, "")
	if err != nil {
		return err
	}
	defer p.stop()
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	var turns, failed atomic.Int64
	var done sync.WaitGroup
	for range soakSessions {
		done.Go(func() {
			ses := ""
			for n := 0; ctx.Err() == nil; n++ {
				var err error
				if n%soakTurns == 0 {
					ses, err = newSession(ctx, p)
				}
				if err == nil && soakTurn(ctx, p, ses) == nil {
					turns.Add(1)
				} else if ctx.Err() == nil {
					failed.Add(1)
				}
				pause(ctx, soakPause)
			}
		})
	}
	began := time.Now()
	var at, rss []float64
	for ctx.Err() == nil {
		pause(ctx, sampleEvery)
		if half := time.Since(began); half > length/2 {
			at, rss = append(at, half.Hours()), append(rss, p.rss())
		}
	}
	done.Wait()
	slope, level := line(at, rss)
	row(fmt.Sprintf("turns in %s by %d sessions", length, soakSessions), "", float64(turns.Load()), 0)
	row("  failed", "", float64(failed.Load()), 0)
	row("  RSS in the middle of the second half", "MB", level, 0)
	row("  slope of RSS over the second half", "MB/h", slope, 0)
	return nil
}

// soakTurn prompts and waits for the end of the turn.
func soakTurn(ctx context.Context, p *process, ses string) error {
	_, err := p.call(ctx, http.MethodPost, "/api/session/"+ses+"/prompt", map[string]any{
		"prompt": map[string]any{"text": "tool:bash:{\"command\":\"echo hello\"}\nsay:done"},
	})
	if err != nil {
		return err
	}
	out, err := p.call(ctx, http.MethodPost, "/api/session/"+ses+"/wait", map[string]any{"timeout": 30_000})
	if err == nil && !strings.Contains(string(out), `"outcome":"completed"`) {
		err = fmt.Errorf("the turn ended otherwise: %s", out)
	}
	return err
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// line fits a straight line and gives its slope and its value in the middle.
func line(x, y []float64) (slope, middle float64) {
	if len(x) == 0 {
		return 0, 0
	}
	var mx, my, xy, xx float64
	for i := range x {
		mx, my = mx+x[i]/float64(len(x)), my+y[i]/float64(len(y))
	}
	for i := range x {
		xy, xx = xy+(x[i]-mx)*(y[i]-my), xx+(x[i]-mx)*(x[i]-mx)
	}
	if xx == 0 {
		return 0, my
	}
	return xy / xx, my
}
