package attachment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// Options say where attachments are kept and how long unused ones stay. Zero
// fields take their defaults.
type Options struct {
	// Dir is made when it is missing.
	Dir string
	// Unused is how long an attachment stays that no session refers to, counted
	// from when it last came; default 24 hours.
	Unused time.Duration
	// Every is the time between two sweeps; default an hour.
	Every time.Duration
	Log   *slog.Logger
}

// Service keeps attachments and sweeps away those that nothing refers to. It is
// safe for concurrent use. Close ends it.
type Service struct {
	store  *store.DB
	ids    *id.Source
	dir    string
	unused time.Duration
	log    *slog.Logger

	stop context.CancelFunc
	done chan struct{}

	// files is read-locked while a file and its row come, locked while they go:
	// else a file could go that has just come again.
	files sync.RWMutex
}

// NewService makes a Service that sweeps from now on.
func NewService(ctx context.Context, s *store.DB, ids *id.Source, o Options) (*Service, error) {
	if err := os.MkdirAll(filepath.Join(o.Dir, stageDir), 0o700); err != nil {
		return nil, fmt.Errorf("making the directory for attachments: %w", err)
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	v := &Service{
		store: s, ids: ids, dir: o.Dir, unused: cmp.Or(o.Unused, 24*time.Hour), log: o.Log, stop: stop, done: make(chan struct{}),
	}
	if v.log == nil {
		v.log = slog.New(slog.DiscardHandler)
	}
	go v.sweepEvery(run, cmp.Or(o.Every, time.Hour))
	return v, nil
}

// Close ends the sweeps and waits for the one that runs.
func (s *Service) Close() error {
	s.stop()
	<-s.done
	return nil
}

func (s *Service) path(hash string) string { return filepath.Join(s.dir, hash[:2], hash) }

// Keep makes staged files permanent and, unless ses is empty, lets the session
// refer to them. The same content is the same attachment. Either all are kept or
// the error tells why none is; the staged files are gone in any case.
func (s *Service) Keep(ctx context.Context, ses id.Session, staged ...*Staged) ([]Attachment, error) {
	defer discard(staged)
	s.files.RLock()
	defer s.files.RUnlock()
	for _, f := range staged {
		if err := f.publish(s.path(f.hash)); err != nil {
			return nil, fmt.Errorf("keeping an attachment: %w", err)
		}
	}
	var out []Attachment
	err := s.store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) error {
		out = make([]Attachment, 0, len(staged))
		for _, f := range staged {
			row, err := tx.AttachmentPut(ctx, db.AttachmentPutParams{
				ID: string(id.New[id.Attachment](s.ids)), Hash: f.hash, Mime: f.kind.mime, Size: f.size,
				Width: int64(f.kind.width), Height: int64(f.kind.height), Name: store.Clean(f.name), Created: clock.Now(),
			})
			if err != nil {
				return err
			}
			out = append(out, fromRow(row))
			if ses == "" {
				continue
			}
			if err := tx.AttachmentRefer(ctx, db.AttachmentReferParams{SessionID: string(ses), AttachmentID: row.ID}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("keeping an attachment: %w", err)
	}
	return out, nil
}

// Get finds an attachment; an unknown one is an attachment_not_found fault.
func (s *Service) Get(ctx context.Context, att id.Attachment) (Attachment, error) {
	return s.get(ctx, att, func(ctx context.Context, r store.Reader) (db.Attachment, error) {
		return r.AttachmentGet(ctx, db.AttachmentGetParams{ID: string(att)})
	})
}

// OfSession finds an attachment that a session refers to; any other one is an
// attachment_not_found fault.
func (s *Service) OfSession(ctx context.Context, ses id.Session, att id.Attachment) (Attachment, error) {
	return s.get(ctx, att, func(ctx context.Context, r store.Reader) (db.Attachment, error) {
		return r.AttachmentOfSession(ctx, db.AttachmentOfSessionParams{SessionID: string(ses), ID: string(att)})
	})
}

func (s *Service) get(ctx context.Context, att id.Attachment, read func(context.Context, store.Reader) (db.Attachment, error)) (Attachment, error) {
	row, err := store.Get(ctx, s.store, read)
	if store.IsNoRows(err) {
		return Attachment{}, NotFound(att)
	}
	if err != nil {
		return Attachment{}, fmt.Errorf("reading attachment %s: %w", att, err)
	}
	return fromRow(row), nil
}

// NotFound is the fault for an attachment that is not there.
func NotFound(att id.Attachment) error {
	return fault.New(fault.AttachmentNotFound, "there is no attachment %q", att).With("attachmentID", att)
}

// Find finds the attachment that a part's URL names.
func (s *Service) Find(ctx context.Context, url string) (Attachment, error) {
	_, att, ok := chat.ParseAttachmentURL(url)
	if !ok {
		return Attachment{}, NotFound(id.Attachment(url))
	}
	return s.Get(ctx, att)
}

// Open opens an attachment's content. A file that is gone from the disk is an
// attachment_not_found fault. The caller closes it.
func (s *Service) Open(a Attachment) (*os.File, error) {
	f, err := os.Open(s.path(a.Hash))
	if errors.Is(err, iofs.ErrNotExist) {
		return nil, fault.Wrap(err, fault.AttachmentNotFound, "the file of attachment %q is gone", a.ID)
	}
	if err != nil {
		return nil, fmt.Errorf("opening attachment %s: %w", a.ID, err)
	}
	return f, nil
}

// Read gives an attachment's whole content. One that is not what was kept, cut
// by a full disk or changed by hand, is an error.
func (s *Service) Read(a Attachment) ([]byte, error) {
	data, err := os.ReadFile(s.path(a.Hash))
	if err != nil {
		return nil, fmt.Errorf("reading attachment %s: %w", a.ID, err)
	}
	if int64(len(data)) != a.Size {
		return nil, fmt.Errorf("reading attachment %s: %d bytes in place of %d", a.ID, len(data), a.Size)
	}
	return data, nil
}

// Take makes an attachment of the session out of a part whose URL is a data:
// URL, and changes the part to name it. Other parts stay as they are.
func (s *Service) Take(ctx context.Context, ses id.Session, part *chat.FilePart) error {
	if !IsData(part.URL) {
		return nil
	}
	staged, err := s.StageData(part.URL, part.Filename)
	if err != nil {
		return err
	}
	kept, err := s.Keep(ctx, ses, staged)
	if err != nil {
		return err
	}
	part.Mime, part.URL = kept[0].Mime, chat.AttachmentURL(ses, kept[0].ID)
	return nil
}
