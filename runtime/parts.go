package runtime

import (
	"context"
	"errors"
	"path"
	"path/filepath"
	"strings"

	"github.com/switchyard-dev/switchyard/agent/definition"

	"github.com/switchyard-dev/switchyard/agent"
	"github.com/switchyard-dev/switchyard/attachment"
	"github.com/switchyard-dev/switchyard/config"
	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/fs"
	"github.com/switchyard-dev/switchyard/project"
	"github.com/switchyard-dev/switchyard/provider"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/tool"
	"github.com/switchyard-dev/switchyard/vcs"
)

// Limits are the bounds that clients may want to know (design §6).
type Limits struct {
	Body        int64 `json:"body" doc:"Bytes of a request body."`
	PromptBody  int64 `json:"promptBody" doc:"Bytes of a prompt's body."`
	ImportBody  int64 `json:"importBody" doc:"Bytes of a document for session.import."`
	Headers     int   `json:"headers" doc:"Bytes of a request's headers."`
	Queue       int   `json:"queue" doc:"Prompts that may wait in one session."`
	Attachment  int64 `json:"attachment" doc:"Bytes of an attachment."`
	Image       int64 `json:"image" doc:"Bytes of an image among them."`
	Pixels      int64 `json:"pixels" doc:"Width times height of an image."`
	ListDefault int   `json:"listDefault"`
	ListMax     int   `json:"listMax"`
}

// About is what the server says of itself.
type About struct {
	Version string
	Epoch   uint32
	Engine  string
	Limits  Limits
}

// Factory makes the services of one context. It starts no process and scans
// nothing.
type Factory func(c event.Context, place project.Place) (*Parts, error)

// Parts are the services of one runtime context.
type Parts struct {
	// Env reaches files and processes below the root of containment.
	Env env.Environment
	// FS serves the files of the context's directory.
	FS *fs.Service
	// VCS asks git about the work tree of the directory.
	VCS *vcs.Service
	// Outputs keeps whole tool outputs.
	Outputs tool.OutputStore

	location event.Context
	place    project.Place
	loader   *config.Loader
	models   *provider.Service

	attachments *attachment.Service
}

// Build is what all contexts of a server share, for making Parts.
type Build struct {
	Loader  *config.Loader
	Models  *provider.Service
	Outputs tool.OutputStore
	// Attachments keeps the files of prompts.
	Attachments *attachment.Service
	// Store keeps the events of changed files.
	Store *store.DB
}

// Parts is a Factory.
func (b Build) Parts(c event.Context, place project.Place) (*Parts, error) {
	e, err := env.Local(place.Root)
	if err != nil {
		return nil, err
	}
	files, err := e.Open(c.Directory)
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return &Parts{
		Env: e, FS: fs.New(fs.Config{Files: files, Root: c.Directory, Store: b.Store, Origin: event.At(c, "", "")}),
		VCS:     vcs.New(vcs.Config{Env: e, Directory: c.Directory, Locate: repoOf(c.Directory)}),
		Outputs: b.Outputs, location: c, place: place, loader: b.Loader, models: b.Models,
		attachments: b.Attachments,
	}, nil
}

// repoOf finds the repository of a directory as it is at each call.
func repoOf(directory string) func() (vcs.Repo, bool) {
	return func() (vcs.Repo, bool) {
		place := project.Locate(directory)
		return vcs.Repo{Root: place.Root, GitDir: place.GitDir, CommonDir: place.Identity}, place.GitDir != ""
	}
}

func (p *Parts) close() error { return errors.Join(p.FS.Close(), p.Env.Close()) }

// Config reads the configuration of the directory as it is now.
func (p *Parts) Config(ctx context.Context) (*config.Resolved, error) {
	return p.loader.Resolve(ctx, p.configLocation())
}

func (p *Parts) configLocation() config.Location {
	return config.Location{Root: p.place.Root, Directory: p.location.Directory, Files: p.Env.Files()}
}

// Providers gives the inventory of providers for the directory.
func (p *Parts) Providers(ctx context.Context) (*provider.Inventory, error) {
	c, err := p.Config(ctx)
	if err != nil {
		return nil, err
	}
	return p.models.Inventory(c.Config), nil
}

// Settings resolves what turns run with.
func (p *Parts) Settings(ctx context.Context) (agent.Settings, error) {
	c, err := p.Config(ctx)
	if err != nil {
		return agent.Settings{}, err
	}
	agents := definition.Configured(c.Config)
	name, err := definition.DefaultName(c.Config, agents)
	if err != nil {
		return agent.Settings{}, err
	}
	inventory := p.models.Inventory(c.Config)
	return agent.Settings{
		Agents: agents, DefaultAgent: name, Depth: c.Config.SubagentDepth, Rules: c.Config.Permission, DefaultModel: inventory.DefaultModel(), Models: inventory,
		SmallModel: inventory.SmallModel(), Compaction: c.Config.Compaction,
		NoSnapshots: c.Config.Snapshot != nil && !*c.Config.Snapshot,
		ToolOutput:  tool.Limits{Lines: c.Config.ToolOutput.MaxLines, Bytes: c.Config.ToolOutput.MaxBytes},
		Instructions: func(ctx context.Context) ([]string, error) {
			return p.instructions(ctx, c)
		},
	}, nil
}

func (p *Parts) instructions(ctx context.Context, c *config.Resolved) ([]string, error) {
	texts, _, err := p.loader.Instructions(ctx, p.configLocation(), c.Config)
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, len(texts))
	for _, t := range texts {
		out = append(out, "Instructions from "+t.Path+":\n"+t.Content)
	}
	return out, nil
}

// PathInWorktree gives the directory relative to the top of its work tree; "" at
// the top.
func (r *Request) PathInWorktree() string {
	rel, err := filepath.Rel(r.instance.place.Root, r.location.Directory)
	if err != nil || rel == "." {
		return ""
	}
	return filepath.ToSlash(rel)
}

// WorktreePath reads a path that a client names below the work tree: relative to
// its top, or absolute.
func (r *Request) WorktreePath(p string) (string, error) {
	outside := fault.New(fault.PathOutside, "%s is not below the work tree", p).With("path", p)
	if filepath.IsAbs(p) {
		rel, err := filepath.Rel(r.instance.place.Root, filepath.Clean(p))
		if err != nil {
			return "", outside
		}
		p = filepath.ToSlash(rel)
	}
	p = path.Clean(p)
	if p == ".." || strings.HasPrefix(p, "../") {
		return "", outside
	}
	if p == "." {
		p = ""
	}
	return p, nil
}

// DefaultDirectory is the directory of the default runtime.
func (h *Host) DefaultDirectory() string { return h.fallback.Directory }

// Home is the user's home directory.
func (h *Host) Home() string { return h.home }

// Roots are the directories that may be served; none means all.
func (h *Host) Roots() []string { return append([]string{}, h.roots...) }
