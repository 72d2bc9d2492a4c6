package simulate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
)

// Template makes an empty store in dir that histories begin with, and gives its
// path.
func Template(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "template.db")
	db, err := store.Open(ctx, store.Config{URL: path, Owner: "template"})
	if err != nil {
		return "", err
	}
	return path, db.Close()
}

// Run plays the history of a seed in dir, which must be empty, and gives what is
// wrong with it. steps is how many things happen before everything is let end.
func Run(ctx context.Context, seed uint64, steps int, dir, template string) (err error) {
	w, err := newWorld(ctx, seed, dir, template)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, w.close())
		if err != nil {
			err = fmt.Errorf("seed %d: %w\n%s", seed, err, strings.Join(w.trace, "\n"))
		}
	}()
	for range steps {
		if err := w.act(ctx); err != nil {
			return err
		}
	}
	if err := w.finish(ctx); err != nil {
		return err
	}
	return w.check(ctx)
}

func (w *world) close() error {
	w.faults.arm(0, 0)
	return errors.Join(w.halt(false), w.place.env.Close())
}

// nudge makes one more event, so that all of the earlier ones are looked for.
func (w *world) nudge(ctx context.Context) error {
	_, err := w.server.sessions.Create(ctx, session.CreateInput{ProjectID: w.project, Context: event.Context{Directory: w.place.env.Root()}})
	return err
}
