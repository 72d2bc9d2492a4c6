package workspace_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
	"github.com/switchyard-dev/switchyard/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// repository notes what is asked of it.
type repository struct{ removed []string }

func (r *repository) Add(context.Context, string, string, string, string) error { return nil }
func (r *repository) Remove(_ context.Context, _, path string) error {
	r.removed = append(r.removed, path)
	return nil
}
func (r *repository) Trees(context.Context, string) ([]workspace.Found, error) { return nil, nil }
func (r *repository) Unsaved(context.Context, string, int) ([]string, error)   { return nil, nil }

// projects knows one.
type projects struct{ workspace.Project }

func (p projects) Get(context.Context, id.Project) (workspace.Project, error) { return p.Project, nil }

func (p projects) Of(context.Context, string) (workspace.Project, error) { return p.Project, nil }

func (p projects) List(context.Context) ([]workspace.Project, error) {
	return []workspace.Project{p.Project}, nil
}

// TestWhatADeadServerWasMakingHasFailed: it is cleaned up at the next start, except
// where another server that shares the store may still be making it.
func TestWhatADeadServerWasMakingHasFailed(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{true, false} {
		d, err := store.Open(t.Context(), store.Config{URL: filepath.Join(t.TempDir(), "s.db"), Owner: "me"})
		if err != nil {
			t.Fatal(err)
		}
		boot := d.Boot()
		bus := event.NewBus(t.Context(), event.Config{Epoch: boot.Epoch, Start: boot.Head, Gaps: boot.Gaps, Log: d})
		ids, git, now := id.NewSource(time.Now, nil), &repository{}, time.Now().UnixMilli()
		old := map[string]int64{"fresh": now, "stale": now - time.Hour.Milliseconds()}
		names := map[string]string{}
		err = d.Write(t.Context(), store.Durable, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.ProjectUpsert(ctx, db.ProjectUpsertParams{ID: "prj_x", Identity: "/r", Worktree: "/r", Vcs: "git", Commands: []byte("[]")})
			for name, updated := range old {
				if err != nil {
					return err
				}
				names[name] = string(id.New[id.Workspace](ids))
				_, err = tx.WorkspaceInsert(ctx, db.WorkspaceInsertParams{
					ID: names[name], ProjectID: "prj_x", Type: "worktree", Name: name, Directory: "/none/" + name, Metadata: []byte("{}"),
					Status: "creating", Owned: 1, Owner: "dead", Created: updated, Updated: updated,
				})
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		s := workspace.NewService(t.Context(), workspace.Config{
			Store: d, IDs: ids, Bus: bus, Projects: projects{workspace.Project{ID: "prj_x", Worktree: "/r", Git: true}}, Git: git, Owner: "me",
			Alone: alone, Log: slog.New(slog.DiscardHandler),
		})
		if err := s.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		for name, ws := range names {
			w, err := s.Get(t.Context(), ws)
			if failed := w.Status == workspace.Failed && w.Reason != ""; err != nil || failed != (alone || name == "stale") {
				t.Errorf("alone %v, %s: %+v, %v", alone, name, w, err)
			}
		}
		if want := map[bool]int{true: 2, false: 1}[alone]; len(git.removed) != want {
			t.Errorf("alone %v: removed %q", alone, git.removed)
		}
		s.Close()
		bus.Close()
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
