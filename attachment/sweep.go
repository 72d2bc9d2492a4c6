package attachment

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

const (
	// sweepRows is how many attachments are looked at in one piece, sweepMost how
	// many go in one sweep: what is left waits for the next.
	sweepRows = 100
	sweepMost = 10_000
)

func (s *Service) sweepEvery(ctx context.Context, every time.Duration) {
	defer close(s.done)
	// Files without a row are left by a crash only: one look at the start is
	// enough.
	s.report(ctx, s.sweepFiles(ctx))
	for {
		_, err := s.Sweep(ctx)
		s.report(ctx, err)
		if clock.Sleep(ctx, every) != nil {
			return
		}
	}
}

func (s *Service) report(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		s.log.Warn("sweeping attachments", "error", err)
	}
}

// Sweep removes attachments that no session refers to and that did not come
// again for the time that Options name; it tells how many went.
func (s *Service) Sweep(ctx context.Context) (gone int, err error) {
	before := time.Now().Add(-s.unused)
	for gone < sweepMost {
		rows, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) ([]db.Attachment, error) {
			return r.AttachmentUnused(ctx, db.AttachmentUnusedParams{Before: clock.Millis(before), MaxRows: sweepRows})
		})
		if err != nil {
			return gone, fmt.Errorf("finding unused attachments: %w", err)
		}
		n, err := s.removeAll(ctx, rows, before)
		gone += n
		if err != nil || n == 0 || len(rows) < sweepRows {
			return gone, err
		}
	}
	return gone, nil
}

func (s *Service) removeAll(ctx context.Context, rows []db.Attachment, before time.Time) (gone int, err error) {
	for _, row := range rows {
		went, err := s.remove(ctx, row, before)
		if err != nil {
			return gone, fmt.Errorf("removing attachment %s: %w", row.ID, err)
		}
		if went {
			gone++
		}
	}
	return gone, nil
}

// remove takes a row away, if it is still unused, then its file: a row without
// its file would be a promise that cannot be kept.
func (s *Service) remove(ctx context.Context, row db.Attachment, before time.Time) (went bool, err error) {
	s.files.Lock()
	defer s.files.Unlock()
	err = s.store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) error {
		n, err := tx.AttachmentDeleteUnused(ctx, db.AttachmentDeleteUnusedParams{ID: row.ID, Before: clock.Millis(before)})
		went = n > 0
		return err
	})
	if err != nil || !went {
		return false, err
	}
	return true, removeOld(s.path(row.Hash), before)
}

// removeOld removes a file unless it is newer: then it has just come again,
// through another server on the same directory.
func removeOld(path string, before time.Time) error {
	info, err := os.Stat(path)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	if err != nil || !info.ModTime().Before(before) {
		return err
	}
	return os.Remove(path)
}

// sweepFiles removes old files that no row names, and those that never came
// whole.
func (s *Service) sweepFiles(ctx context.Context) error {
	before := time.Now().Add(-s.unused)
	dirs, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("reading the directory of attachments: %w", err)
	}
	for _, dir := range dirs {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := s.sweepDir(ctx, dir.Name(), before); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) hashes(ctx context.Context, prefix string) ([]string, error) {
	list, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) ([]string, error) {
		// "g" comes after all hexadecimal digits.
		return r.AttachmentHashes(ctx, db.AttachmentHashesParams{Low: prefix, High: prefix + "g"})
	})
	if err != nil {
		return nil, fmt.Errorf("reading the hashes of attachments: %w", err)
	}
	return list, nil
}

// sweepDir reads the rows while nothing can be kept: a file whose row comes
// after the look would seem to have none.
func (s *Service) sweepDir(ctx context.Context, name string, before time.Time) error {
	s.files.Lock()
	defer s.files.Unlock()
	var known []string
	if name != stageDir {
		var err error
		if known, err = s.hashes(ctx, name); err != nil {
			return err
		}
	}
	dir := filepath.Join(s.dir, name)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("reading the directory of attachments: %w", err)
	}
	for _, e := range entries {
		if _, found := slices.BinarySearch(known, e.Name()); found {
			continue
		}
		if err := removeOld(filepath.Join(dir, e.Name()), before); err != nil {
			return fmt.Errorf("removing a file that no attachment has: %w", err)
		}
	}
	return nil
}
