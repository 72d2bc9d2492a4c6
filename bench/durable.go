package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/project"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
)

// accept measures prompts to idle sessions, by one client and by many at once,
// against as many that append 4 KiB to a file of their own and sync it.
func (b *bench) accept(ctx context.Context) error {
	for _, clients := range []int{1, 8, 64} {
		if err := b.acceptBy(ctx, clients); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) acceptBy(ctx context.Context, clients int) error {
	p, err := b.server(ctx)
	if err != nil {
		return err
	}
	defer p.stop()
	per := max(b.n.prompts/clients, 5)
	sessions := make([]string, clients*per)
	err = each(len(sessions), func(i int) (err error) {
		sessions[i], err = newSession(ctx, p)
		return err
	})
	if err != nil {
		return err
	}
	prompt := map[string]any{"prompt": map[string]any{"text": "say:x"}}
	ours, err := timed(clients, per, func(client, n int) error {
		_, err := p.call(ctx, http.MethodPost, "/api/session/"+sessions[client*per+n]+"/prompt", prompt)
		return err
	})
	if err != nil {
		return err
	}
	files := make([]*os.File, clients)
	for i := range files {
		if files[i], err = os.Create(filepath.Join(b.dir, fmt.Sprint("fsync", i))); err != nil {
			return err
		}
		defer files[i].Close()
	}
	limit, err := timed(clients, per, func(client, _ int) error {
		if _, err := files[client].Write(make([]byte, 4096)); err != nil {
			return err
		}
		return files[client].Sync()
	})
	if err != nil {
		return err
	}
	for _, at := range []int{50, 99} {
		row(fmt.Sprintf("prompt accepted p%d, %d at once, against append+fsync", at, clients), "ms", percentile(ours, at), percentile(limit, at))
	}
	return nil
}

// timed runs do per times on each of several goroutines and gives how long each
// run took, in milliseconds, sorted.
func timed(clients, per int, do func(client, n int) error) ([]float64, error) {
	var wg sync.WaitGroup
	took, errs := make([]float64, clients*per), make([]error, clients)
	for c := range clients {
		wg.Go(func() {
			for n := range per {
				began := time.Now()
				if errs[c] = do(c, n); errs[c] != nil {
					return
				}
				took[c*per+n] = float64(time.Since(began).Microseconds()) / 1000
			}
		})
	}
	wg.Wait()
	slices.Sort(took)
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return took, nil
}

// percentile of sorted values.
func percentile(v []float64, at int) float64 { return v[(len(v)-1)*at/100] }

// restart measures a start on a large store after a crash, until the server says
// that it is ready. The store is filled without a server.
func (b *bench) restart(ctx context.Context) error {
	home := filepath.Join(b.dir, "restart")
	state := filepath.Join(home, "state")
	if err := os.MkdirAll(state, 0o700); err != nil {
		return err
	}
	if err := b.fill(ctx, filepath.Join(state, "switchyard.db"), state); err != nil {
		return fmt.Errorf("filling the store: %w", err)
	}
	var took []float64
	for range b.n.starts {
		began := time.Now()
		p, err := b.serverOn(ctx, home, "")
		if err != nil {
			return err
		}
		_, err = p.call(ctx, http.MethodGet, "/readyz", nil)
		took = append(took, float64(time.Since(began).Microseconds())/1000)
		if err == nil && len(took) == b.n.starts {
			row("  RSS then", "MB", p.rss(), 0)
		}
		p.stop() // kills it: each start is one after a crash
		if err != nil {
			return err
		}
	}
	row(fmt.Sprintf("restart after a kill to ready, %d sessions, %d events", b.n.sessions, b.n.events), "ms", median(took), 0)
	return nil
}

// fill writes sessions and events.
func (b *bench) fill(ctx context.Context, path, directory string) error {
	db, err := store.Open(ctx, store.Config{URL: path, Owner: "bench", Relaxed: true})
	if err != nil {
		return err
	}
	return errors.Join(b.fillStore(ctx, db, directory), db.Close())
}

func (b *bench) fillStore(ctx context.Context, db *store.DB, directory string) error {
	boot := db.Boot()
	bus := event.NewBus(ctx, event.Config{Epoch: boot.Epoch, Start: boot.Head, Gaps: boot.Gaps, Log: db})
	defer bus.Close()
	ids := id.NewSource(time.Now, nil)
	prj, err := project.NewService(db, ids).Ensure(ctx, project.Locate(directory))
	if err != nil {
		return err
	}
	sessions := session.NewService(db, ids, bus)
	err = each(b.n.sessions, func(int) error {
		_, err := sessions.Create(ctx, session.CreateInput{ProjectID: prj, Context: event.Context{Directory: directory}})
		return err
	})
	if err != nil {
		return err
	}
	const batch = 2000
	payload, err := json.Marshal(map[string]any{"part": map[string]any{"id": "prt_x", "type": "text", "text": strings.Repeat("text ", 40)}})
	if err != nil {
		return err
	}
	for left := b.n.events - b.n.sessions; left > 0; left -= batch {
		err := db.Write(ctx, store.Relaxed, func(_ context.Context, tx *store.Tx) error {
			for range min(batch, left) {
				tx.Append(store.Event{Type: "message.part.updated", Time: time.Now().UnixMilli(), Directory: directory, SessionID: "ses_x", RootSessionID: "ses_x", Payload: payload})
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// takeover kills a server that runs a turn and measures how long another one on
// the same PostgreSQL needs to end it, with the lease of 15 s.
func (b *bench) takeover(ctx context.Context) error {
	database := os.Getenv("SWITCHYARD_TEST_POSTGRES")
	if database == "" {
		fmt.Println("takeover: left out, there is no PostgreSQL in SWITCHYARD_TEST_POSTGRES")
		return nil
	}
	state := filepath.Join(b.dir, "takeover")
	dying, err := b.serverOn(ctx, filepath.Join(state, "one"), database)
	if err != nil {
		return err
	}
	defer dying.stop()
	other, err := b.serverOn(ctx, filepath.Join(state, "two"), database)
	if err != nil {
		return err
	}
	defer other.stop()
	ses, err := newSession(ctx, dying)
	if err != nil {
		return err
	}
	if _, err := dying.call(ctx, http.MethodPost, "/api/session/"+ses+"/prompt", map[string]any{"prompt": map[string]any{"text": "hang"}}); err != nil {
		return err
	}
	<-time.After(2 * time.Second)
	began := time.Now()
	dying.stop()
	out, err := other.call(ctx, http.MethodPost, "/api/session/"+ses+"/wait", map[string]any{"timeout": 60_000})
	if err != nil {
		return err
	}
	if !strings.Contains(string(out), `"interrupted"`) {
		return fmt.Errorf("the turn was not taken over: %s", out)
	}
	row("turn of a killed server settled by another one", "s", time.Since(began).Seconds(), 0)
	return nil
}
