package attachment_test

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/switchyard-dev/switchyard/attachment"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/project"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bundle is a service over a real store and directory.
type bundle struct {
	*attachment.Service
	t        *testing.T
	dir      string
	store    *store.DB
	sessions *session.Service
	ids      *id.Source
	project  id.Project
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{t: t, dir: filepath.Join(t.TempDir(), "attachments"), ids: id.NewSource(time.Now, nil)}
	var err error
	b.store, err = store.Open(t.Context(), store.Config{URL: filepath.Join(t.TempDir(), "s.db"), Owner: "test"})
	if err != nil {
		t.Fatal(err)
	}
	boot := b.store.Boot()
	bus := event.NewBus(t.Context(), event.Config{Epoch: boot.Epoch, Start: boot.Head, Gaps: boot.Gaps, Log: b.store})
	b.sessions = session.NewService(b.store, b.ids, bus)
	if b.project, err = project.NewService(b.store, b.ids).Ensure(t.Context(), project.Locate(t.TempDir())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		bus.Close()
		if err := b.store.Close(); err != nil {
			t.Error(err)
		}
	})
	b.Service = b.service(24 * time.Hour)
	return b
}

// service makes a further service over the same store and directory.
func (b *bundle) service(unused time.Duration) *attachment.Service {
	b.t.Helper()
	s, err := attachment.NewService(b.t.Context(), b.store, b.ids, attachment.Options{Dir: b.dir, Unused: unused})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.t.Error(err)
		}
	})
	return s
}

func (b *bundle) session() id.Session {
	b.t.Helper()
	ses, err := b.sessions.Create(b.t.Context(), session.CreateInput{ProjectID: b.project, Context: event.Context{Directory: "/d"}})
	if err != nil {
		b.t.Fatal(err)
	}
	return ses.ID
}

func (b *bundle) keep(ses id.Session, content []byte, name string) attachment.Attachment {
	b.t.Helper()
	staged, err := b.Stage(bytes.NewReader(content), name)
	if err != nil {
		b.t.Fatal(err)
	}
	kept, err := b.Keep(b.t.Context(), ses, staged)
	if err != nil {
		b.t.Fatal(err)
	}
	return kept[0]
}

// files lists what is in the directory, relative to it.
func (b *bundle) files() []string {
	b.t.Helper()
	var out []string
	err := filepath.WalkDir(b.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(b.dir, path)
			out = append(out, rel)
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// age makes files look old.
func (b *bundle) age(names ...string) {
	b.t.Helper()
	old := time.Now().Add(-48 * time.Hour)
	for _, name := range names {
		if err := os.Chtimes(filepath.Join(b.dir, name), old, old); err != nil {
			b.t.Fatal(err)
		}
	}
}

func picture(w, h int) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	img.Set(0, 0, color.NRGBA{R: 200, A: 255})
	return img
}

func encoded(t *testing.T, mime string, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch mime {
	case attachment.TypePNG:
		err = png.Encode(&b, picture(w, h))
	case attachment.TypeJPEG:
		err = jpeg.Encode(&b, picture(w, h), nil)
	default:
		err = gif.Encode(&b, picture(w, h), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
