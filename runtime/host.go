package runtime

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/switchyard-dev/switchyard/access"
	"github.com/switchyard-dev/switchyard/agent"
	"github.com/switchyard-dev/switchyard/attachment"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/permission"
	"github.com/switchyard-dev/switchyard/project"
	"github.com/switchyard-dev/switchyard/provider"
	"github.com/switchyard-dev/switchyard/question"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/snapshot"
	"github.com/switchyard-dev/switchyard/transfer"
	"github.com/switchyard-dev/switchyard/undo"
	"github.com/switchyard-dev/switchyard/warp"
	"github.com/switchyard-dev/switchyard/workspace"
)

// The defaults of eviction (design §5).
const (
	DefaultIdle = 30 * time.Minute
	DefaultCap  = 256
)

// Services are what contexts give access to; app makes them.
type Services struct {
	Sessions    *session.Service
	Permissions *permission.Service
	Questions   *question.Service
	Projects    *project.Service
	Bus         *event.Bus
	// Agent runs the turns; it is made with the Host as its Workplaces and then
	// given to Attach.
	Agent *agent.Engine
	// StoreHealth is nil while the store takes writes.
	StoreHealth func() error
	Models      *provider.Service
	Attachments *attachment.Service
	Transfer    *transfer.Service
	Workspaces  *workspace.Service
	Warp        *warp.Service
	Snapshots   *snapshot.Service
	Undo        *undo.Service
	About       About
}

// Config says what a Host serves.
type Config struct {
	// Directory is the default runtime, used where a caller gives no hint.
	Directory string
	// Home is the user's home directory.
	Home string
	// Roots bound the directories that may be served; none means all.
	Roots []string
	// Idle and Cap bound how long and how many instances without a lease live.
	Idle time.Duration
	Cap  int
	// Build makes the services of one context.
	Build    Factory
	Services Services
}

// Host makes contexts and keeps the instances behind them. It is safe for
// concurrent use.
type Host struct {
	Services
	fallback event.Context
	home     string
	roots    []string
	idle     time.Duration
	limit    int
	build    Factory

	stop context.CancelFunc
	done chan struct{}
	// branches tells the followers of contexts of checkouts.
	branches *branches

	mu        sync.Mutex // protects instances and their leases
	instances map[string]*instance
}

// New makes a Host; Close ends it. The default directory and the roots must
// exist.
func New(ctx context.Context, c Config) (*Host, error) {
	directory, err := canonical(c.Directory)
	if err != nil {
		return nil, err
	}
	h := &Host{
		Services: c.Services, fallback: event.Context{Directory: directory}, home: c.Home, idle: c.Idle, limit: c.Cap,
		build: c.Build, done: make(chan struct{}), instances: map[string]*instance{},
	}
	if h.idle <= 0 {
		h.idle = DefaultIdle
	}
	if h.limit <= 0 {
		h.limit = DefaultCap
	}
	for _, root := range c.Roots {
		real, err := canonical(root)
		if err != nil {
			return nil, err
		}
		h.roots = append(h.roots, real)
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	h.stop = stop
	h.branches = newBranches(run, h.Bus)
	go h.evictEvery(run, max(h.idle/4, 100*time.Millisecond))
	return h, nil
}

// Attach gives the Host the engine that was made with it.
func (h *Host) Attach(e *agent.Engine) { h.Agent = e }

// Close ends eviction and frees all instances. Turns must have ended before.
func (h *Host) Close() error {
	h.stop()
	<-h.done
	h.branches.close()
	h.mu.Lock()
	all := make([]*instance, 0, len(h.instances))
	for _, i := range h.instances {
		all = append(all, i)
	}
	clear(h.instances)
	h.mu.Unlock()
	var errs []error
	for _, i := range all {
		errs = append(errs, i.close())
	}
	return errors.Join(errs...)
}

// Server gives the server context.
func (h *Host) Server(_ context.Context, p access.Principal) (*Server, error) {
	return &Server{Principal: p, Host: h}, nil
}

// Request resolves a hint (api.md 1–3) and takes a lease. The caller releases
// the result.
func (h *Host) Request(ctx context.Context, p access.Principal, hint Hint) (*Request, error) {
	where, err := h.Resolve(ctx, hint)
	if err != nil {
		return nil, err
	}
	i, err := h.lease(where)
	if err != nil {
		return nil, err
	}
	return &Request{Principal: p, Host: h, location: where, instance: i}, nil
}

// Item gives the context of an operation that finds its object by id; no hint
// is resolved.
func (h *Host) Item(_ context.Context, p access.Principal) (*Request, error) {
	return &Request{Principal: p, Host: h}, nil
}

// Session reads a session's pinned row. A malformed id is like an unknown one.
func (h *Host) Session(ctx context.Context, p access.Principal, sessionID string) (*Session, error) {
	ses, ok := id.Parse[id.Session](sessionID)
	if !ok {
		return nil, fault.New(fault.SessionNotFound, "there is no session %q", sessionID).With("sessionID", sessionID)
	}
	row, err := h.Sessions.Get(ctx, ses)
	if err != nil {
		return nil, err
	}
	return &Session{Principal: p, Host: h, ID: ses, Row: row}, nil
}

// EventCursor is the position before whatever is read or written next; answers
// carry it as X-Event-Cursor.
func (h *Host) EventCursor() string { return h.Bus.Head().String() }

// Resolve gives the canonical context of a hint; nothing is opened or kept. A
// workspace that is being made is waited for.
func (h *Host) Resolve(ctx context.Context, hint Hint) (event.Context, error) {
	if hint.HasWorkspace {
		return h.inWorkspace(ctx, hint)
	}
	if !hint.HasDirectory {
		return h.fallback, nil
	}
	directory, err := h.Directory(hint.Directory)
	return event.Context{Directory: directory}, err
}

// Directory gives the canonical path of a directory that may be served.
func (h *Host) Directory(given string) (string, error) {
	directory, err := canonical(given)
	if err != nil {
		return "", err
	}
	if !h.allowed(directory) {
		return "", directoryNotFound(given)
	}
	return directory, nil
}

// inWorkspace resolves a hint that names a workspace. Its root stands for itself,
// also beyond the roots that are served: who registered it was allowed to.
func (h *Host) inWorkspace(ctx context.Context, hint Hint) (event.Context, error) {
	w, err := h.Workspaces.Await(ctx, hint.Workspace)
	if err != nil {
		return event.Context{}, err
	}
	where := event.Context{Directory: w.Directory, WorkspaceID: w.ID}
	if !hint.HasDirectory {
		return where, nil
	}
	if where.Directory, err = canonical(hint.Directory); err != nil {
		return event.Context{}, err
	}
	if !w.Contains(where.Directory) {
		return event.Context{}, fault.New(fault.DirectoryOutsideWorkspace, "%s is not in workspace %s, whose root is %s", where.Directory, w.ID, w.Directory).
			With("workspaceID", w.ID).With("directory", where.Directory)
	}
	return where, nil
}

func (h *Host) allowed(directory string) bool {
	if len(h.roots) == 0 || directory == h.fallback.Directory {
		return true
	}
	return slices.ContainsFunc(h.roots, func(root string) bool {
		return directory == root || strings.HasPrefix(directory, strings.TrimSuffix(root, "/")+"/")
	})
}

// canonical gives the absolute path of a directory without symbolic links, byte
// for byte as the file system has it.
func canonical(directory string) (string, error) {
	invalid := func(why string) error {
		return fault.New(fault.DirectoryInvalid, "the directory %s", why).With("directory", strings.ToValidUTF8(directory, "\ufffd"))
	}
	switch {
	case directory == "":
		return "", invalid("is empty")
	case !utf8.ValidString(directory) || strings.ContainsRune(directory, 0):
		return "", invalid("is not valid UTF-8")
	case !filepath.IsAbs(directory):
		return "", invalid("is not absolute")
	}
	real, err := filepath.EvalSymlinks(filepath.Clean(directory))
	if errors.Is(err, syscall.ENOTDIR) {
		return "", invalid("is not a directory")
	}
	if err != nil {
		return "", directoryNotFound(directory)
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", directoryNotFound(directory)
	}
	if !info.IsDir() {
		return "", invalid("is not a directory")
	}
	return real, nil
}

func directoryNotFound(directory string) error {
	return fault.New(fault.DirectoryNotFound, "there is no directory %s", directory).With("directory", directory)
}
