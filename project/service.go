package project

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// usedEvery is how exactly the last use of a project is kept, in milliseconds:
// a busy project costs one write a minute.
const usedEvery = 60_000

// Service keeps the projects of this server.
type Service struct {
	store *store.DB
	ids   *id.Source

	mu    sync.Mutex            // protects known and used
	known map[string]id.Project // by identity; a project's id never changes
	used  map[id.Project]int64  // when its last use was stored
}

// NewService makes a Service.
func NewService(s *store.DB, ids *id.Source) *Service {
	return &Service{store: s, ids: ids, known: map[string]id.Project{}, used: map[id.Project]int64{}}
}

// Ensure gives the id of a place's project and stores the project at its first
// use.
func (s *Service) Ensure(ctx context.Context, p Place) (id.Project, error) {
	s.mu.Lock()
	known, ok := s.known[p.Identity]
	s.mu.Unlock()
	if ok {
		return known, nil
	}
	now := clock.Now()
	var row db.Project
	err := s.store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) (err error) {
		row, err = tx.ProjectUpsert(ctx, db.ProjectUpsertParams{
			ID: string(id.New[id.Project](s.ids)), Identity: store.Clean(p.Identity), Worktree: store.Clean(p.Main), Vcs: p.VCS,
			Commands: []byte("[]"), Created: now, Updated: now, Used: now,
		})
		return err
	})
	if err != nil {
		return "", fmt.Errorf("storing the project of %s: %w", p.Root, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[p.Identity] = id.Project(row.ID)
	s.used[id.Project(row.ID)] = now
	return id.Project(row.ID), nil
}

// Use notes that a project is used, for the order of List. It is exact to a
// minute.
func (s *Service) Use(ctx context.Context, projectID id.Project) error {
	now := clock.Now()
	s.mu.Lock()
	recent := now-s.used[projectID] < usedEvery
	if !recent {
		s.used[projectID] = now
	}
	s.mu.Unlock()
	if recent {
		return nil
	}
	err := s.store.Write(ctx, store.Relaxed, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.ProjectUse(ctx, db.ProjectUseParams{ID: string(projectID), Used: now})
		return err
	})
	if err != nil {
		return fmt.Errorf("noting the use of project %s: %w", projectID, err)
	}
	return nil
}

// Get reads a project.
func (s *Service) Get(ctx context.Context, projectID id.Project) (Project, error) {
	row, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) (db.Project, error) {
		return r.ProjectGet(ctx, db.ProjectGetParams{ID: string(projectID)})
	})
	if store.IsNoRows(err) {
		return Project{}, notFound(projectID)
	}
	if err != nil {
		return Project{}, fmt.Errorf("reading project %s: %w", projectID, err)
	}
	return fromRow(row)
}

// List gives all projects, the ones used last first.
func (s *Service) List(ctx context.Context) ([]Project, error) {
	rows, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) ([]db.Project, error) { return r.ProjectList(ctx) })
	if err != nil {
		return nil, fmt.Errorf("listing projects: %w", err)
	}
	out := make([]Project, 0, len(rows))
	for _, row := range rows {
		p, err := fromRow(row)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// Change is what an update sets; nil fields stay, "" and no commands clear.
type Change struct {
	Name, Icon *string
	Commands   *[]Command
}

// Update changes a project and publishes project.updated.
func (s *Service) Update(ctx context.Context, projectID id.Project, c Change) (Project, error) {
	var out Project
	err := s.store.Write(ctx, store.Durable, func(ctx context.Context, tx *store.Tx) error {
		row, err := tx.ProjectLock(ctx, db.ProjectLockParams{ID: string(projectID)})
		if store.IsNoRows(err) {
			return notFound(projectID)
		}
		if err != nil {
			return err
		}
		p := db.ProjectUpdateParams{ID: row.ID, Name: row.Name, Icon: row.Icon, Commands: row.Commands, Updated: clock.Now()}
		if c.Name != nil {
			p.Name = orNull(*c.Name)
		}
		if c.Icon != nil {
			p.Icon = orNull(*c.Icon)
		}
		if c.Commands != nil {
			if p.Commands, err = json.Marshal(append([]Command{}, *c.Commands...)); err != nil {
				return err
			}
		}
		if row, err = tx.ProjectUpdate(ctx, p); err != nil {
			return err
		}
		if out, err = fromRow(row); err != nil {
			return err
		}
		return Updated.Append(tx, event.ServerWide(), Info{ProjectID: out.ID, Info: out})
	})
	if err != nil {
		return Project{}, fmt.Errorf("updating project %s: %w", projectID, err)
	}
	return out, nil
}

// Known is a directory of a project that the server has met.
type Known struct {
	Directory string `json:"directory"`
	Exists    bool   `json:"exists"`
	Main      bool   `json:"main,omitempty" doc:"The main work tree, or the project's directory without git."`
}

// Directories lists the main work tree and then the directories of the sessions
// that are in no workspace, by name.
func (s *Service) Directories(ctx context.Context, projectID id.Project) ([]Known, error) {
	p, err := s.Get(ctx, projectID)
	if err != nil {
		return nil, err
	}
	used, err := store.Get(ctx, s.store, func(ctx context.Context, r store.Reader) ([]string, error) {
		return r.ProjectDirectories(ctx, db.ProjectDirectoriesParams{ProjectID: string(projectID)})
	})
	if err != nil {
		return nil, fmt.Errorf("listing the directories of project %s: %w", projectID, err)
	}
	used = slices.DeleteFunc(used, func(d string) bool { return d == p.Worktree })
	out := []Known{{Directory: p.Worktree, Exists: isDirectory(p.Worktree), Main: true}}
	for _, d := range used {
		out = append(out, Known{Directory: d, Exists: isDirectory(d)})
	}
	return out, nil
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func notFound(projectID id.Project) error {
	return fault.New(fault.ProjectNotFound, "there is no project %q", projectID).With("projectID", projectID)
}

func orNull(text string) *string {
	if text = store.Clean(text); text != "" {
		return &text
	}
	return nil
}

func fromRow(row db.Project) (Project, error) {
	p := Project{
		ID: id.Project(row.ID), Worktree: row.Worktree, VCS: row.Vcs, Commands: []Command{},
		Time: Time{Created: row.Created, Updated: row.Updated, Used: row.Used},
	}
	if row.Name != nil {
		p.Name = *row.Name
	}
	if row.Icon != nil {
		p.Icon = *row.Icon
	}
	if err := json.Unmarshal(row.Commands, &p.Commands); err != nil {
		return Project{}, fmt.Errorf("reading project %s: %w", row.ID, err)
	}
	return p, nil
}
