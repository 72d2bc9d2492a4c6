// Package app puts the server together: it opens the store, makes the services
// and their order of start and stop, and serves them (design §3, floor 10).
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/switchyard-dev/switchyard/access"
	"github.com/switchyard-dev/switchyard/agent"
	"github.com/switchyard-dev/switchyard/api"
	"github.com/switchyard-dev/switchyard/attachment"
	"github.com/switchyard-dev/switchyard/config"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/idempotency"
	"github.com/switchyard-dev/switchyard/lease"
	"github.com/switchyard-dev/switchyard/llm"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/op/openapi"
	"github.com/switchyard-dev/switchyard/operations"
	"github.com/switchyard-dev/switchyard/permission"
	"github.com/switchyard-dev/switchyard/project"
	"github.com/switchyard-dev/switchyard/provider"
	"github.com/switchyard-dev/switchyard/question"
	"github.com/switchyard-dev/switchyard/runtime"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/snapshot"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/tool"
	"github.com/switchyard-dev/switchyard/transfer"
	"github.com/switchyard-dev/switchyard/undo"
	"github.com/switchyard-dev/switchyard/warp"
	"github.com/switchyard-dev/switchyard/workspace"
)

// The bounds of requests in bytes (design §6).
const (
	headerLimit = 32 << 10
	bodyLimit   = 4 << 20
)

// Config says how a server runs. The zero value of a field is its default.
type Config struct {
	// Directory is the default runtime, where requests without a hint run.
	Directory string
	// Addr is host:port to listen on; port 0 takes any free one.
	Addr string
	// Database is a file path or a postgres:// URL; "" is a file in State.
	Database string
	// State is the directory of what the server keeps.
	State string
	// ConfigFiles says where the owner's configuration is.
	ConfigFiles config.Options
	// Roots bound the directories that may be served; none means all.
	Roots []string

	Verifier  access.Verifier
	NoAuth    bool
	Hosts     []string
	Origins   []string
	BasePath  string
	TLSCert   string
	TLSKey    string
	BehindTLS bool

	// Demo keeps the built-in model even when a real provider exists.
	Demo bool
	// Version is told to clients.
	Version string
	Log     *slog.Logger

	// The rest is for tests and tuning.
	Retry     llm.RetryPolicy
	Events    event.Config
	Retention store.Retention
	Lease     lease.Config
	// Attachments needs neither Dir nor Log.
	Attachments attachment.Options
	Idle        time.Duration
	Instances   int
	LookupEnv   func(string) (string, bool)
}

// App is a server that was put together. Close ends it.
type App struct {
	config Config
	log    *slog.Logger
	store  *store.DB
	bus    *event.Bus
	host   *runtime.Host
	engine *agent.Engine

	services runtime.Services
	keeper   *lease.Keeper // nil where the store has one server
	leave    context.CancelFunc
	joined   sync.WaitGroup

	attachments *attachment.Service
	workspaces  *workspace.Service
	snapshots   *snapshot.Service
	keys        *idempotency.Service
}

// New opens everything but the listener, and settles the turns that an earlier
// process left open.
func New(ctx context.Context, c Config) (*App, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(c.State, 0o700); err != nil {
		return nil, fmt.Errorf("making the state directory: %w", err)
	}
	a := &App{config: c, log: c.Log}
	if err := a.open(ctx); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	a.connect(ctx)
	a.sweep(ctx)
	if err := a.workspaces.Recover(ctx); err != nil {
		a.log.Warn("settling workspaces that were being made", "error", err)
	}
	lost, err := a.engine.Recover(ctx)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	if lost != (agent.Recovery{}) {
		a.log.Warn("turns of an earlier process were taken over", "settled", lost.Settled, "resumed", lost.Resumed)
	}
	return a, nil
}

func (a *App) open(ctx context.Context) error {
	ids := id.NewSource(time.Now, nil)
	owner := fmt.Sprintf("%d@%s", os.Getpid(), string(id.New[id.Token](ids)))
	global, err := config.NewLoader(a.config.ConfigFiles).Global(ctx)
	if err != nil {
		return err
	}
	a.store, err = store.Open(ctx, store.Config{
		URL: a.database(), Owner: owner, Note: fmt.Sprintf("pid %d, %s", os.Getpid(), a.config.Addr),
		Relaxed: global.Config.Durability == "process", Retention: a.config.Retention, Log: a.log,
	})
	if err != nil {
		return err
	}
	boot := a.store.Boot()
	events := a.config.Events
	events.Epoch, events.Start, events.Gaps, events.Log = boot.Epoch, boot.Head, boot.Gaps, a.store
	events.Version, events.Logger, events.Shared = a.config.Version, a.log, a.engineName() == "postgres"
	a.bus = event.NewBus(ctx, events)
	a.store.OnCommit(a.bus.Commit)
	a.store.OnGap(a.bus.AddGap)
	if err := a.join(ctx, owner); err != nil {
		return err
	}
	return a.serve(ctx, ids, owner, boot, global.Config.Recover == "resume")
}

// serve makes the services over the open store.
func (a *App) serve(ctx context.Context, ids *id.Source, owner string, boot store.Boot, resume bool) error {
	outputs, err := runtime.NewOutputs(filepath.Join(a.config.State, "tool-output"))
	if err != nil {
		return err
	}
	files := a.config.Attachments
	files.Dir, files.Log = filepath.Join(a.config.State, "attachments"), a.log
	if a.attachments, err = attachment.NewService(ctx, a.store, ids, files); err != nil {
		return err
	}
	models := provider.NewService(provider.Options{Demo: a.config.Demo, LookupEnv: a.config.LookupEnv})
	services := runtime.Services{
		Sessions: session.NewService(a.store, ids, a.bus), Permissions: permission.NewService(a.store, ids),
		Questions: question.NewService(a.store, ids), Projects: project.NewService(a.store, ids), Bus: a.bus,
		StoreHealth: a.store.Health, Models: models, Attachments: a.attachments,
		About: runtime.About{Version: a.config.Version, Epoch: boot.Epoch, Engine: a.engineName(), Limits: limits()},
	}
	state, err := filepath.EvalSymlinks(a.config.State)
	if err != nil {
		return fmt.Errorf("finding the state directory: %w", err)
	}
	a.workspaces = workspace.NewService(ctx, workspace.Config{
		Store: a.store, IDs: ids, Bus: a.bus, Projects: projects{services.Projects}, Git: repositories{}, Run: runStart,
		Dir: filepath.Join(state, "worktrees"), Owner: owner, Alone: a.engineName() == "sqlite", Log: a.log,
	})
	services.Workspaces = a.workspaces
	services.Warp = &warp.Service{Sessions: services.Sessions, Workspaces: a.workspaces, Projects: services.Projects}
	a.snapshots = snapshot.NewService(ctx, a.store, state, a.log)
	services.Snapshots = a.snapshots
	services.Undo = &undo.Service{Sessions: services.Sessions, Snapshots: a.snapshots}
	services.Transfer = transfer.NewService(a.store, ids, services.Sessions, a.attachments)
	build := runtime.Build{
		Loader: config.NewLoader(a.config.ConfigFiles), Models: models, Outputs: outputs, Attachments: a.attachments, Store: a.store,
	}
	a.host, err = runtime.New(ctx, runtime.Config{
		Directory: a.config.Directory, Home: a.config.ConfigFiles.Home, Roots: a.config.Roots,
		Idle: a.config.Idle, Cap: a.config.Instances, Build: build.Parts, Services: services,
	})
	if err != nil {
		return err
	}
	engine := agent.Config{
		Sessions: services.Sessions, Permissions: services.Permissions, Questions: services.Questions,
		Tools: tool.NewRegistry(tool.Builtin()...), Workplaces: a.host, IDs: ids, Owner: owner, Generation: boot.Number, Mark: a.mark(),
		Resume: resume, Attachments: a.attachments, Snapshots: a.snapshots, Retry: a.config.Retry, Log: a.log,
	}
	if a.keeper != nil {
		engine.Lease, engine.Scan = a.keeper, takeoverScan
	}
	a.engine = agent.New(ctx, engine)
	a.services = services
	a.host.Attach(a.engine)
	a.keys = idempotency.NewService(idempotency.Config{Store: a.store, IDs: ids, Owner: owner, Log: a.log})
	return nil
}

func limits() runtime.Limits {
	return runtime.Limits{
		Body: bodyLimit, PromptBody: operations.PromptBody, ImportBody: transfer.MaxBytes, Headers: headerLimit, Queue: session.MaxQueued,
		Attachment: attachment.MaxSize, Image: attachment.MaxImage, Pixels: attachment.MaxPixels,
		ListDefault: session.DefaultLimit, ListMax: session.MaxLimit,
	}
}

func (a *App) database() string {
	if a.config.Database != "" {
		return a.config.Database
	}
	return filepath.Join(a.config.State, "switchyard.db")
}

func (a *App) engineName() string {
	if store.IsPostgres(a.database()) {
		return "postgres"
	}
	return "sqlite"
}

// Host gives the contexts, for callers in the same process.
func (a *App) Host() *runtime.Host { return a.host }

// Handler gives the whole HTTP surface for a server that listens on bound.
func (a *App) Handler(bound string) (http.Handler, error) {
	guard, err := access.NewGuard(access.Options{
		Verifier: a.config.Verifier, NoAuth: a.config.NoAuth, Bound: bound, Hosts: a.config.Hosts, Origins: a.config.Origins,
		WriteError: op.WriteProblem,
	})
	if err != nil {
		return nil, err
	}
	return api.New(api.Config{
		Host: a.host, Operations: operations.All(), Document: Document(a.config.Version), Access: guard.Wrap, BodyLimit: bodyLimit, Keys: a.keys,
		Ready: func(context.Context) error { return a.store.Health() }, BasePath: a.config.BasePath, Log: a.log,
	}), nil
}

// Document describes the API.
func Document(version string) openapi.Config {
	return openapi.Config{
		Title: "Switchyard", Version: version, Operations: operations.All(), Unions: operations.Unions(),
		Description: "Coding-agent sessions over many directories: operations, and one stream of events.",
	}
}

// Close frees everything. It may follow Run, or stand alone.
func (a *App) Close() error {
	var errs []error
	if a.engine != nil {
		errs = append(errs, a.engine.Close())
	}
	if a.leave != nil {
		a.leave()
		a.joined.Wait()
	}
	if a.keeper != nil {
		ctx, cancel := context.WithTimeout(context.Background(), drainTime)
		errs = append(errs, a.keeper.Close(ctx))
		cancel()
	}
	if a.workspaces != nil {
		a.workspaces.Close()
	}
	if a.snapshots != nil {
		a.snapshots.Close()
	}
	if a.host != nil {
		errs = append(errs, a.host.Close())
	}
	if a.attachments != nil {
		errs = append(errs, a.attachments.Close())
	}
	if a.bus != nil {
		a.bus.Close()
	}
	if a.store != nil {
		errs = append(errs, a.store.Close())
	}
	return errors.Join(errs...)
}
