package snapshot

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// setup makes a Service with the sessions of two projects.
func setup(t *testing.T) *Service {
	t.Helper()
	dir := t.TempDir()
	s, err := store.Open(t.Context(), store.Config{URL: filepath.Join(dir, "s.db"), Owner: "test"})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	must(t, s.Write(t.Context(), store.Durable, func(ctx context.Context, tx *store.Tx) error {
		for i, p := range []string{"prj_one", "prj_two"} {
			if _, err := tx.ProjectUpsert(ctx, db.ProjectUpsertParams{ID: p, Identity: p, Worktree: "/", Vcs: "none", Commands: []byte("[]")}); err != nil {
				return err
			}
			ses := "ses_" + p
			_, err := tx.SessionInsert(ctx, db.SessionInsertParams{
				ID: ses, Ord: int64(i + 1), ProjectID: p, Directory: "/", RootID: ses, Model: []byte("null"), Permission: []byte("null"),
				Metadata: []byte("null"), Tokens: []byte("{}"),
			})
			if err != nil {
				return err
			}
		}
		return nil
	}))
	svc := NewService(t.Context(), s, dir, slog.New(slog.DiscardHandler))
	t.Cleanup(svc.Close)
	return svc
}

// keeps records a change of a file whose contents are put.
func (s *Service) keeps(t *testing.T, ses, path, before, after string) (pre, post string) {
	t.Helper()
	pre, err := s.objects.put([]byte(before))
	must(t, err)
	post, err = s.objects.put([]byte(after))
	must(t, err)
	must(t, s.store.Write(t.Context(), store.Durable, func(ctx context.Context, tx *store.Tx) error {
		return s.Record(ctx, tx, Call{SessionID: id.Session(ses), TurnID: "trn_x", Seq: 1, PartID: "prt_x"}, []Change{{
			Path: path, Pre: State{Hash: pre, Mode: 0o644, Size: int64(len(before))}, Post: State{Hash: post, Mode: 0o644, Size: int64(len(after))},
		}})
	}))
	return pre, post
}

// age makes everything that is kept old.
func (s *Service) age(t *testing.T) {
	t.Helper()
	old := time.Now().Add(-2 * sweepAge)
	must(t, filepath.WalkDir(s.objects.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			err = os.Chtimes(path, old, old)
		}
		return err
	}))
}

func TestWhatNoChangeNamesGoes(t *testing.T) {
	t.Parallel()
	s := setup(t)
	pre, post := s.keeps(t, "ses_prj_one", "/f", "before", "after")
	lost, err := s.objects.put([]byte("of a session that was deleted"))
	must(t, err)
	s.age(t)
	young, err := s.objects.put([]byte("of a call that is running"))
	must(t, err)
	must(t, s.sweep(t.Context()))
	for hash, want := range map[string]bool{pre: true, post: true, young: true, lost: false} {
		if s.objects.has(hash) != want {
			t.Errorf("%s is kept: %v", hash, !want)
		}
	}
	must(t, os.WriteFile(s.objects.path(pre), []byte("damaged"), 0o600))
	if _, err := s.objects.get(pre); err == nil {
		t.Error("a damaged content was given")
	}
}

func TestAProjectThatKeepsTooMuchLosesItsOldest(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.most = 30
	old, _ := s.keeps(t, "ses_prj_one", "/old", "0123456789", "9876543210")
	fresh, _ := s.keeps(t, "ses_prj_one", "/new", "abcdefghij", "jihgfedcba")
	other, _ := s.keeps(t, "ses_prj_two", "/x", "ABCDEFGHIJ", "JIHGFEDCBA")
	s.age(t)
	must(t, s.sweep(t.Context()))
	for hash, want := range map[string]bool{old: false, fresh: true, other: true} {
		if s.objects.has(hash) != want {
			t.Errorf("%s is kept: %v", hash, !want)
		}
	}
	diffs, err := s.Diff(t.Context(), Query{SessionID: "ses_prj_one", Directory: "/"})
	must(t, err)
	if len(diffs) != 2 || diffs[0].Uncovered != Expired || diffs[1].Uncovered != "" || diffs[1].Additions != 1 {
		t.Errorf("%+v", diffs)
	}
	undo, skipped, err := s.Plan(t.Context(), "ses_prj_one", 0, "")
	must(t, err)
	if len(undo) != 1 || undo[0].Path != "/new" || len(skipped) != 1 || skipped[0] != (Skipped{File: "/old", Reason: Expired}) {
		t.Errorf("%+v %+v", undo, skipped)
	}
}
