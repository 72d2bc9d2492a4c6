package snapshot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

const (
	// maxCached bounds the files whose hash is remembered.
	maxCached = 50_000
	// sweepEvery and sweepAge: contents that no change names any more go an hour
	// after they were kept last.
	sweepEvery = time.Hour
	sweepAge   = time.Hour
)

type cachedHash struct {
	id   identity
	hash string
}

// Service keeps changes. It is safe for concurrent use; Close ends its sweeping.
type Service struct {
	store   *store.DB
	objects objects
	log     *slog.Logger
	own     string // the server's directory, which is nobody's work
	most    int64  // bytes kept for a project
	stop    context.CancelFunc
	wg      sync.WaitGroup

	mu     sync.Mutex // protects hashes
	hashes map[string]cachedHash
}

// NewService makes a Service that keeps contents in the server's own directory, by
// its canonical path. What else happens there is never looked at.
func NewService(ctx context.Context, s *store.DB, own string, log *slog.Logger) *Service {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	out := &Service{
		store: s, objects: objects{dir: filepath.Join(own, "snapshots")}, own: own, log: log, most: MaxProject, stop: stop,
		hashes: map[string]cachedHash{},
	}
	out.wg.Go(func() { out.sweepAll(ctx) })
	return out
}

// Close ends the sweeping and waits.
func (s *Service) Close() {
	s.stop()
	s.wg.Wait()
}

func (s *Service) cached(path string, id identity) (string, bool) {
	s.mu.Lock()
	c, ok := s.hashes[path]
	s.mu.Unlock()
	if !ok || c.id != id || !s.objects.has(c.hash) {
		return "", false
	}
	return c.hash, true
}

func (s *Service) remember(path string, id identity, hash string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.hashes) >= maxCached {
		clear(s.hashes)
	}
	s.hashes[path] = cachedHash{id: id, hash: hash}
}

// Call says which call changed files.
type Call struct {
	SessionID id.Session
	TurnID    id.Turn
	// Seq is that of the call's message in the session.
	Seq    int64
	PartID id.Part
}

// Record writes the changes of a call, as part of the write of its result.
func (s *Service) Record(ctx context.Context, tx *store.Tx, c Call, changes []Change) error {
	now := clock.Now()
	for _, ch := range changes {
		err := tx.FileChangeInsert(ctx, db.FileChangeInsertParams{
			SessionID: string(c.SessionID), TurnID: string(c.TurnID), MessageSeq: c.Seq, PartID: string(c.PartID), Path: store.Clean(ch.Path),
			PreHash: ch.Pre.Hash, PreMode: int64(ch.Pre.Mode), PostHash: ch.Post.Hash, PostMode: int64(ch.Post.Mode),
			Size: ch.Pre.Size + ch.Post.Size, Reason: ch.reason(), Created: now,
		})
		if err != nil {
			return fmt.Errorf("recording a changed file: %w", err)
		}
	}
	return nil
}

func (s *Service) rows(ctx context.Context, ses id.Session) ([]db.FileChange, error) {
	rows, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) ([]db.FileChange, error) {
		return r.FileChangeList(ctx, db.FileChangeListParams{SessionID: string(ses)})
	})
	if err != nil {
		return nil, fmt.Errorf("reading the changed files of %s: %w", ses, err)
	}
	return rows, nil
}

// sweepAll sweeps at the start and then from time to time.
func (s *Service) sweepAll(ctx context.Context) {
	for {
		if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("sweeping snapshots", "error", err)
		}
		if clock.Sleep(ctx, sweepEvery) != nil {
			return
		}
	}
}

// sweep lets the oldest changes of projects go that keep too much, and then what no
// change names any more.
func (s *Service) sweep(ctx context.Context) error {
	before := time.Now().Add(-sweepAge)
	rows, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) ([]db.FileChangeAllRow, error) { return r.FileChangeAll(ctx) })
	if err != nil {
		return fmt.Errorf("listing what is kept: %w", err)
	}
	wanted, kept := map[string]bool{}, map[string]int64{}
	for _, row := range rows { // the newest first
		if row.PreHash == "" && row.PostHash == "" {
			continue
		}
		if kept[row.ProjectID] += row.Size; kept[row.ProjectID] > s.most {
			if err := s.forget(ctx, row); err != nil {
				return err
			}
			continue
		}
		wanted[row.PreHash], wanted[row.PostHash] = true, true
	}
	return errors.Join(s.objects.sweep(wanted, before), ctx.Err())
}

func (s *Service) forget(ctx context.Context, row db.FileChangeAllRow) error {
	err := s.store.Write(ctx, store.Relaxed, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.FileChangeForget(ctx, db.FileChangeForgetParams{SessionID: row.SessionID, Ord: row.Ord})
		return err
	})
	if err != nil {
		return fmt.Errorf("letting an old change go: %w", err)
	}
	return nil
}
