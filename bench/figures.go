package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// bench is one run.
type bench struct {
	dir, binary string
	n           sizes
	serial      int
}

// server starts the built server on an empty store.
func (b *bench) server(ctx context.Context) (*process, error) {
	b.serial++
	return b.serverOn(ctx, filepath.Join(b.dir, fmt.Sprint("home", b.serial)), "")
}

// serverOn starts the built server with a directory for its state and everything
// else, on a database of its own unless one is named.
func (b *bench) serverOn(ctx context.Context, home, database string) (*process, error) {
	work := filepath.Join(home, "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		return nil, err
	}
	args := []string{"serve", "--port", "0", "--state", filepath.Join(home, "state"), "--directory", work, "--log-level", "error"}
	if database != "" {
		args = append(args, "--database", database)
	}
	return spawn(ctx, b.binary, args, []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "SWITCHYARD_TOKEN=" + token})
}

func (b *bench) size(context.Context) error {
	info, err := os.Stat(b.binary)
	if err == nil {
		row("binary size", "MB", float64(info.Size())/1e6, 0)
	}
	return err
}

func (b *bench) start(ctx context.Context) error {
	var took []float64
	for range b.n.starts {
		began := time.Now()
		p, err := b.server(ctx)
		if err != nil {
			return err
		}
		_, err = p.call(ctx, http.MethodGet, "/api/health", nil)
		took = append(took, float64(time.Since(began).Microseconds())/1000)
		p.stop()
		if err != nil {
			return err
		}
	}
	row("start on an empty store to the first 200", "ms", median(took), 0)
	return nil
}

func (b *bench) idle(ctx context.Context) error {
	p, err := b.server(ctx)
	if err != nil {
		return err
	}
	defer p.stop()
	<-time.After(3 * time.Second)
	row("idle RSS", "MB", p.rss(), 0)
	before := p.cpu()
	<-time.After(5 * time.Second)
	row("idle CPU of one core", "%", 100*float64(p.cpu()-before)/float64(5*time.Second), 0)
	return nil
}

func (b *bench) health(ctx context.Context) error {
	p, err := b.server(ctx)
	if err != nil {
		return err
	}
	defer p.stop()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	bare, err := spawn(ctx, self, []string{"-bare"}, os.Environ())
	if err != nil {
		return err
	}
	defer bare.stop()
	var ours, limit []float64
	for range b.n.pairs {
		for server, into := range map[*process]*[]float64{p: &ours, bare: &limit} {
			v, err := server.perCall(ctx, b.n.gets, "/api/health")
			if err != nil {
				return err
			}
			*into = append(*into, v)
		}
	}
	row("CPU per health.get, against bare net/http", "µs", median(ours), median(limit))
	return nil
}

func (b *bench) list(ctx context.Context) error {
	p, err := b.server(ctx)
	if err != nil {
		return err
	}
	defer p.stop()
	err = each(b.n.sessions, func(int) error {
		_, err := p.call(ctx, http.MethodPost, "/api/session", map[string]any{})
		return err
	})
	if err != nil {
		return err
	}
	var ours []float64
	for range b.n.pairs {
		v, err := p.perCall(ctx, b.n.pages, "/api/session?limit=50")
		if err != nil {
			return err
		}
		ours = append(ours, v)
	}
	row(fmt.Sprintf("CPU per session.list, 50 of %d", b.n.sessions), "µs", median(ours), 0)
	row(fmt.Sprintf("RSS after %d sessions", b.n.sessions), "MB", p.rss(), 0)
	return nil
}

func newSession(ctx context.Context, p *process) (string, error) {
	out, err := p.call(ctx, http.MethodPost, "/api/session", map[string]any{})
	var answer struct {
		Data struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err == nil {
		err = json.Unmarshal(out, &answer)
	}
	return answer.Data.ID, err
}

// fanOut counts what one and many subscribers get of a storm of updates.
func (b *bench) fanOut(ctx context.Context) error {
	for _, subscribers := range []int{1, b.n.subscribers} {
		if err := b.fan(ctx, subscribers); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) fan(ctx context.Context, subscribers int) error {
	p, err := b.server(ctx)
	if err != nil {
		return err
	}
	defer p.stop()
	ses, err := newSession(ctx, p)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var got atomic.Int64
	var ready, done sync.WaitGroup
	for range subscribers {
		ready.Add(1)
		done.Go(func() { follow(ctx, p, &got, ready.Done) })
	}
	ready.Wait()
	before, began := p.cpu(), time.Now()
	err = each(b.n.updates, func(i int) error {
		_, err := p.call(ctx, http.MethodPatch, "/api/session/"+ses, map[string]any{"title": fmt.Sprint("title ", i)})
		return err
	})
	want := int64(b.n.updates * subscribers)
	for end := time.Now().Add(20 * time.Second); got.Load() < want && time.Now().Before(end); {
		<-time.After(5 * time.Millisecond)
	}
	took, used := time.Since(began), p.cpu()-before
	cancel()
	done.Wait()
	if err != nil {
		return err
	}
	row(fmt.Sprintf("events per second to %d subscriber(s)", subscribers), "", float64(got.Load())/took.Seconds(), 0)
	row("  CPU per delivery, the updates included", "µs", float64(used.Microseconds())/float64(max(1, got.Load())), 0)
	row("  events lost", "", float64(want-got.Load()), 0)
	return nil
}

// follow counts session.updated frames until ctx ends.
func follow(ctx context.Context, p *process, got *atomic.Int64, ready func()) {
	once := sync.OnceFunc(ready)
	defer once()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/api/event?types=session.updated", nil)
	if err != nil {
		return
	}
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := p.client.Do(r)
	if err != nil {
		return
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "data: ") {
			if strings.Contains(lines.Text(), `"type":"server.connected"`) {
				once()
				continue
			}
			got.Add(1)
		}
	}
}
