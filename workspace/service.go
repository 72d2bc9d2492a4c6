package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

const (
	// awaitTime is how long a request waits for a workspace that is being made.
	awaitTime = 30 * time.Second
	awaitStep = 50 * time.Millisecond
	// usedEvery is how exactly the last use is kept, in milliseconds.
	usedEvery = 60_000
	// maxReason bounds the reason of a failure, in bytes.
	maxReason = 4 << 10
)

// Projects tells of projects.
type Projects interface {
	// Get reads a project; an unknown one is a project_not_found fault.
	Get(ctx context.Context, p id.Project) (Project, error)
	// Of gives the project of a canonical directory.
	Of(ctx context.Context, directory string) (Project, error)
	// List gives all projects.
	List(ctx context.Context) ([]Project, error)
}

// Run runs a command line of a project's owner in a directory; say takes its
// output, a line each.
type Run func(ctx context.Context, directory, command string, say func(string)) error

// Config says what a Service works with.
type Config struct {
	Store    *store.DB
	IDs      *id.Source
	Bus      *event.Bus
	Projects Projects
	Git      Git
	Run      Run
	// Dir is where work trees are made.
	Dir string
	// Owner names this server; Alone tells that no other one uses the store.
	Owner string
	Alone bool
	Log   *slog.Logger
}

// Service keeps the workspaces. It is safe for concurrent use; Close ends it.
type Service struct {
	c       Config
	drivers map[string]Driver
	stop    context.CancelFunc
	ctx     context.Context // of what is being made
	wg      sync.WaitGroup

	mu   sync.Mutex // protects used
	used map[id.Workspace]int64
}

// NewService makes a Service.
func NewService(ctx context.Context, c Config) *Service {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	return &Service{
		c: c, ctx: ctx, stop: stop, used: map[id.Workspace]int64{},
		drivers: map[string]Driver{
			"directory": directories{}, "worktree": worktrees{git: c.Git, projects: c.Projects, run: c.Run},
		},
	}
}

// Close ends what is being made, and waits.
func (s *Service) Close() {
	s.stop()
	s.wg.Wait()
}

// Types are the types of workspaces, by name.
func (s *Service) Types() []string { return slices.Sorted(maps.Keys(s.drivers)) }

// Get reads a workspace.
func (s *Service) Get(ctx context.Context, ws string) (Workspace, error) {
	wid, ok := id.Parse[id.Workspace](ws)
	if !ok {
		return Workspace{}, notFound(ws)
	}
	row, err := store.Get(ctx, s.c.Store, func(ctx context.Context, r store.Reader) (db.Workspace, error) {
		return r.WorkspaceGet(ctx, db.WorkspaceGetParams{ID: string(wid)})
	})
	if store.IsNoRows(err) {
		return Workspace{}, notFound(ws)
	}
	if err != nil {
		return Workspace{}, fmt.Errorf("reading workspace %s: %w", ws, err)
	}
	return s.look(ctx, row)
}

// look gives a row with its state as it is now.
func (s *Service) look(ctx context.Context, row db.Workspace) (Workspace, error) {
	w, err := fromRow(row)
	if err != nil {
		return w, err
	}
	if d := s.drivers[w.Type]; d != nil && (w.Status == Ready || w.Status == Missing) {
		w.Status, w.Reason = d.Status(ctx, w)
	}
	return w, nil
}

// Filter selects workspaces.
type Filter struct {
	ProjectID id.Project // "" for all
	// Archived is exclude, include or only; "" is exclude.
	Archived string
}

// List gives workspaces, oldest first.
func (s *Service) List(ctx context.Context, f Filter) ([]Workspace, error) {
	rows, err := store.Get(ctx, s.c.Store, func(ctx context.Context, r store.Reader) ([]db.Workspace, error) { return r.WorkspaceList(ctx) })
	if err != nil {
		return nil, fmt.Errorf("listing workspaces: %w", err)
	}
	out := []Workspace{}
	for _, row := range rows {
		archived := row.Archived != nil
		if f.ProjectID != "" && row.ProjectID != string(f.ProjectID) || archived && (f.Archived == "" || f.Archived == "exclude") || !archived && f.Archived == "only" {
			continue
		}
		w, err := s.look(ctx, row)
		if err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	return out, nil
}

// Containing gives the workspace whose root holds a canonical directory, the
// innermost of several; nil for none.
func (s *Service) Containing(ctx context.Context, directory string) (*Workspace, error) {
	all, err := s.List(ctx, Filter{Archived: "include"})
	if err != nil {
		return nil, err
	}
	var in *Workspace
	for _, w := range all {
		if w.Contains(directory) && (in == nil || len(w.Directory) > len(in.Directory)) {
			in = &w
		}
	}
	return in, nil
}

// Await gives a workspace that can be used and its directory. It waits up to 30 s
// for one that is being made; one that is not ready then, or failed, is a
// workspace_not_ready fault, one whose directory is gone directory_not_found.
func (s *Service) Await(ctx context.Context, ws string) (Workspace, error) {
	for end := time.Now().Add(awaitTime); ; {
		w, err := s.Get(ctx, ws)
		switch {
		case err != nil:
			return w, err
		case w.Status == Failed || w.Status == Creating && time.Now().After(end):
			return w, fault.New(fault.WorkspaceNotReady, "workspace %s is %s", w.ID, strings.TrimSuffix(string(w.Status)+": "+w.Reason, ": ")).
				With("workspaceID", w.ID).With("status", w.Status)
		case w.Status != Creating:
			w.Directory, err = s.drivers[w.Type].Connect(ctx, w)
			return w, err
		}
		if err := clock.Sleep(ctx, awaitStep); err != nil {
			return w, err
		}
	}
}

// Use notes that a workspace is used. It is exact to a minute.
func (s *Service) Use(ctx context.Context, ws id.Workspace) error {
	now := clock.Now()
	s.mu.Lock()
	recent := now-s.used[ws] < usedEvery
	if !recent {
		s.used[ws] = now
	}
	s.mu.Unlock()
	if recent {
		return nil
	}
	err := s.c.Store.Write(ctx, store.Relaxed, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.WorkspaceUse(ctx, db.WorkspaceUseParams{ID: string(ws), Used: now})
		return err
	})
	if err != nil {
		return fmt.Errorf("noting the use of workspace %s: %w", ws, err)
	}
	return nil
}

// Change is what an update sets; nil fields stay.
type Change struct {
	Name     *string
	Metadata *map[string]any
	Archived *bool
}

// Update changes a workspace and publishes workspace.updated.
func (s *Service) Update(ctx context.Context, ws string, c Change) (Workspace, error) {
	wid, ok := id.Parse[id.Workspace](ws)
	if !ok {
		return Workspace{}, notFound(ws)
	}
	var out Workspace
	err := s.c.Store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) error {
		row, err := tx.WorkspaceLock(ctx, db.WorkspaceLockParams{ID: string(wid)})
		if store.IsNoRows(err) {
			return notFound(ws)
		}
		if err != nil {
			return err
		}
		p := db.WorkspaceSetParams{ID: row.ID, Name: row.Name, Metadata: row.Metadata, Archived: row.Archived, Updated: clock.Now()}
		if c.Name != nil {
			p.Name = store.Clean(*c.Name)
		}
		if c.Metadata != nil {
			if p.Metadata, err = encode(*c.Metadata); err != nil {
				return err
			}
		}
		if c.Archived != nil {
			p.Archived = nil
			if now := p.Updated; *c.Archived {
				p.Archived = &now
			}
		}
		if row, err = tx.WorkspaceSet(ctx, p); err != nil {
			return err
		}
		if out, err = s.look(ctx, row); err != nil {
			return err
		}
		return Updated.Append(tx, event.ServerWide(), Info{WorkspaceID: out.ID, Info: out})
	})
	if err != nil {
		return Workspace{}, fmt.Errorf("updating workspace %s: %w", ws, err)
	}
	return out, nil
}

// State is a workspace's state with what happens there.
type State struct {
	WorkspaceID id.Workspace `json:"workspaceID"`
	Status      string       `json:"status" enum:"creating,ready,missing,failed,archived"`
	Reason      string       `json:"reason,omitempty"`
	Sessions    int64        `json:"sessions" doc:"How many sessions are pinned there."`
	Time        Time         `json:"time"`
}

// States gives the states of all workspaces, oldest first.
func (s *Service) States(ctx context.Context) ([]State, error) {
	all, err := s.List(ctx, Filter{Archived: "include"})
	if err != nil {
		return nil, err
	}
	rows, err := store.Get(ctx, s.c.Store, func(ctx context.Context, r store.Reader) ([]db.WorkspaceSessionsRow, error) {
		return r.WorkspaceSessions(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("counting the sessions of workspaces: %w", err)
	}
	sessions := map[string]int64{}
	for _, row := range rows {
		sessions[row.WorkspaceID] = row.Total
	}
	out := make([]State, 0, len(all))
	for _, w := range all {
		st := State{WorkspaceID: w.ID, Status: string(w.Status), Reason: w.Reason, Sessions: sessions[string(w.ID)], Time: w.Time}
		if w.Time.Archived != 0 {
			st.Status = "archived"
		}
		out = append(out, st)
	}
	return out, nil
}

func encode(metadata map[string]any) ([]byte, error) {
	if metadata == nil {
		return []byte("{}"), nil
	}
	data, err := json.Marshal(metadata)
	if err != nil {
		return nil, fmt.Errorf("encoding metadata: %w", err)
	}
	return data, nil
}

// reasonOf says why something failed, in words for people.
func reasonOf(err error) string {
	text := err.Error()
	if f, ok := fault.As(err); ok {
		text = f.Detail
	}
	if errors.Is(err, context.Canceled) {
		text = "the server stopped"
	}
	return strings.ToValidUTF8(text[:min(len(text), maxReason)], "")
}

// place gives the directory of a new work tree.
func (s *Service) place(p id.Project, name string) string {
	return filepath.Join(s.c.Dir, string(p), name)
}
